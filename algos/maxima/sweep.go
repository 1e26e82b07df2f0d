package maxima

import (
	"math"
	"slices"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

const radixFrom = 512 // survivors; below, a comparison sort is faster

// sweepPlane marks the maximal survivors, without z: along descending x, those
// that rise above all points so far.
func (m *Maxima[T]) sweepPlane() {
	m.dropBelowCorners()
	m.clearKept(len(m.ids))
	m.sort(m.x, m.comparePlane)
	best := T(math.Inf(-1))
	for _, e := range m.order {
		i := int32(uint32(e))
		if m.y[i] > best {
			best = m.y[i]
			m.keep(i)
		}
	}
}

// dropBelowCorners keeps, of the survivors in the plane, the two ends of the
// front and the points strictly inside the rectangle between them. On clouds
// of a few dozen points, or with many ties, this leaves little to sort.
func (m *Maxima[T]) dropBelowCorners() {
	if len(m.ids) == 0 {
		return
	}
	x, y := m.x, m.y[:len(m.x)]
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
	m.ids, m.x, m.y = m.ids[:n], x[:n], y[:n]
}

// sweepSpace marks the maximal survivors: along descending z, those that lie
// outside the staircase, the union of the quadrants x <= q.x, y <= q.y below
// points q so far. Equal points are neighbours, the lowest index first, and it
// covers the others.
func (m *Maxima[T]) sweepSpace() {
	m.clearKept(len(m.ids))
	m.stair.reset(m.rankByX())
	m.sort(m.z, m.compareSpace)
	m.steps = m.steps[:0]
	for _, e := range m.order { // apart from the loop below, so that cache misses overlap
		i := uint32(e)
		m.steps = append(m.steps, step[T]{m.y[i], m.rank[i], int32(i)})
	}
	for _, s := range m.steps {
		if !m.stair.covers(s.rank, s.y) {
			m.stair.insert(s.rank, s.y)
			m.keep(s.survivor)
		}
	}
}

// rankByX sets m.rank, 0 for the largest x and equal for equal x, and returns
// the number of different ranks.
func (m *Maxima[T]) rankByX() int {
	n := len(m.ids)
	if cap(m.rank) < n {
		m.rank = make([]int32, n)
	}
	m.rank = m.rank[:n]
	m.sort(m.x, m.compareX)
	rank := -1
	var last T
	for k, e := range m.order {
		i := uint32(e)
		if x := m.x[i]; k == 0 || x != last {
			last = x
			rank++
		}
		m.rank[i] = int32(rank)
	}
	return rank + 1
}

func (m *Maxima[T]) compareX(a, b uint64) int { return descending(m.x[uint32(a)], m.x[uint32(b)]) }

func (m *Maxima[T]) comparePlane(a, b uint64) int {
	i, j := uint32(a), uint32(b)
	if c := descending(m.x[i], m.x[j]); c != 0 {
		return c
	}
	if c := descending(m.y[i], m.y[j]); c != 0 {
		return c
	}
	return int(i) - int(j)
}

func (m *Maxima[T]) compareSpace(a, b uint64) int {
	i, j := uint32(a), uint32(b)
	if c := descending(m.z[i], m.z[j]); c != 0 {
		return c
	}
	return m.comparePlane(a, b)
}

// descending orders larger values first; there are no NaN here.
func descending[T geom.Float](a, b T) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// sort fills m.order with all survivors by compare, whose first criterion is
// descending key. It sorts by a whole number that falls with key, in linear
// time, then each run of equal numbers by compare: O(n log n) however the keys
// are spread.
func (m *Maxima[T]) sort(key []T, compare func(a, b uint64) int) {
	n := len(key)
	if cap(m.order) < n {
		m.order, m.tmp = make([]uint64, n), make([]uint64, n)
	}
	m.order, m.tmp = m.order[:n], m.tmp[:n]
	for i := range m.order {
		m.order[i] = uint64(i)
	}
	passes := 2
	if n > 1<<22 {
		passes = 3
	}
	if n < radixFrom || !quantise(m.order, key, passes) {
		slices.SortFunc(m.order, compare)
		return
	}
	m.order, m.tmp = kernel.SortByKey(m.order, m.tmp, passes)
	for i := 0; i < n; {
		j := i + 1
		for j < n && m.order[j]>>32 == m.order[i]>>32 {
			j++
		}
		if j > i+1 {
			slices.SortFunc(m.order[i:j], compare)
		}
		i = j
	}
}

// quantise sets the upper halves of order to a non-decreasing function of
// (largest key - key) with 22 bits for two passes and 32 for three. It reports
// false, and sets nothing, where the range is too small or large for that.
func quantise[T geom.Float](order []uint64, key []T, passes int) bool {
	lo, hi := key[0], key[0]
	for _, v := range key {
		lo, hi = min(lo, v), max(hi, v)
	}
	levels := float64(uint64(1)<<min(32, 11*passes) - 1)
	top := float64(hi)
	width := top - float64(lo)
	scale := levels / width
	if !(width > 0) || width-width != 0 || scale-scale != 0 {
		return false
	}
	for i, v := range key {
		order[i] = uint64(min((top-float64(v))*scale, levels))<<32 | uint64(i)
	}
	return true
}
