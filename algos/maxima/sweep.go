package maxima

import (
	"math"
	"slices"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// sweepPlane marks the maximal survivors, without z: along descending x, those
// that rise above all points so far.
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

// dropBelowCorners keeps, of the survivors in the plane, the two ends of the
// front and the points strictly inside the rectangle between them. On clouds
// of a few dozen points, or with many ties, this leaves little to sort.
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

// sweepSpace marks the maximal survivors: along descending z, those that lie
// outside the staircase, the union of the quadrants x <= q.x, y <= q.y below
// points q so far. Equal points are neighbours, the lowest index first, and it
// covers the others.
func (m *Maxima[T]) sweepSpace() {
	m.stair.Reset(m.rankByX())
	m.sorter.sort(m.v[2], m.v[0], m.v[1])
	ys := m.v[1]
	// Apart from the climb that uses them, so that cache misses overlap. What
	// the staircase covered before the steps ahead, it still covers after them.
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

// rankByX sets m.rank, 0 for the largest x and equal for equal x, and returns
// the number of different ranks.
func (m *Maxima[T]) rankByX() int {
	m.sorter.sort(m.v[0])
	m.rank = slices.Grow(m.rank[:0], len(m.ids))[:len(m.ids)]
	return rankAlong(m.rank, m.v[0], m.sorter.order)
}

// rankAlong sets the ranks of survivors from their order along an axis, and
// returns the number of different ones.
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
