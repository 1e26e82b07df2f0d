package maxima

import (
	"math"
	"slices"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// sweepPlane marks the maximal survivors in the plane: along descending x, the
// points that rise above all points before them.
func (m *Maxima[T]) sweepPlane() {
	m.dropBelowCorners()
	m.sorter.sort(m.v[0], m.v[1])
	m.touched += len(m.ids)
	ys, top := m.v[1], T(math.Inf(-1))
	for _, e := range m.sorter.order {
		if i := uint32(e); ys[i] > top {
			top = ys[i]
			m.keep(int32(i))
		}
	}
}

// dropBelowCorners drops all survivors in the plane except the two ends of the front
// and the points strictly inside the rectangle between the ends. In clouds of a few
// dozen points, or with many ties, that leaves few points to sort.
func (m *Maxima[T]) dropBelowCorners() {
	x, y := m.v[0], m.v[1][:len(m.v[0])]
	right, top := 0, 0
	for i := range x {
		if x[i] >= x[right] && (x[i] > x[right] || y[i] > y[right]) {
			right = i
		}
		if y[i] >= y[top] && (y[i] > y[top] || x[i] > x[top]) {
			top = i
		}
	}
	left, bottom := x[top], y[right]
	n := 0
	for i := range x {
		if x[i] > left && y[i] > bottom || i == right || i == top {
			m.ids[n], x[n], y[n] = m.ids[i], x[i], y[i]
			n++
		}
	}
	m.touched += len(x)
	m.ids, m.v[0], m.v[1] = m.ids[:n], x[:n], y[:n]
}

// sweepSpace marks the maximal survivors in space: along descending z, the points
// outside the staircase, the union of the quadrants x <= q.x, y <= q.y below the
// points q before them. Equal points are neighbours in this order, the lowest index
// first, and the first covers the others.
func (m *Maxima[T]) sweepSpace() {
	m.stair.Reset(m.rankByX())
	m.sorter.sort(m.v[2], m.v[0], m.v[1])
	ys := m.v[1]
	// Steps are collected before the climb that uses them, so that cache misses
	// overlap. A point that the staircase covers before these steps is covered
	// after them, too.
	for order := m.sorter.order; len(order) > 0; {
		now := order[:min(len(m.steps), len(order))]
		order = order[len(now):]
		n := 0
		for _, e := range now {
			i := uint32(e)
			s := kernel.Step[T]{Y: ys[i], Rank: m.rank[i], ID: int32(i)}
			m.steps[n&(len(m.steps)-1)] = s
			if !m.stair.Covers(s.Rank, s.Y) {
				n++
			}
		}
		m.climbed = m.stair.Climb(m.climbed[:0], m.steps[:n])
		for _, i := range m.climbed {
			m.keep(i)
		}
	}
	m.touched += 2*len(m.ids) + m.stair.Written
}

// rankByX sets m.rank, with 0 for the largest x and equal ranks for equal x. It
// returns the number of different ranks.
func (m *Maxima[T]) rankByX() int {
	m.sorter.sort(m.v[0])
	m.rank = slices.Grow(m.rank[:0], len(m.ids))[:len(m.ids)]
	return rankAlong(m.rank, m.v[0], m.sorter.order)
}

// rankAlong sets the ranks of survivors from their order along axis v, and returns
// the number of different ranks.
func rankAlong[T geom.Float](rank []int32, v []T, order []uint64) int {
	next := int32(-1)
	var last T
	for k, e := range order {
		i := uint32(e)
		if x := v[i]; k == 0 || x != last {
			last = x
			next++
		}
		rank[i] = next
	}
	return int(next) + 1
}
