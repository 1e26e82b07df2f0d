package optimal

import "entropipe/algos/geom"

// Maxima finds maximal points in the plane. The zero value maximises both axes. A
// Maxima keeps its working memory between calls, some 20 bytes a point. It must not
// be used by two goroutines at a time: make one for each goroutine.
type Maxima[T geom.Float] struct {
	// Min[0] says that x is minimised, Min[1] that y is.
	Min [2]bool
	// Trace is the trace of the last call. Each maximal point has a group, with the
	// points that it pruned.
	Trace Trace

	sites  []site[T]
	dice   dice
	looked int // number of points that selection looked at in the last call
}

// Append appends the indices of the points of c that are maximal in x and y,
// ascending, to dst and returns the extended slice; it ignores z. The result is that
// of maxima.Append2D: equal points (-0 equals 0) count as the one with the lowest
// index; an empty cloud adds nothing, any other cloud at least one index.
//
// The result is exact. Cost: O(n(H+1)), where H is the structural entropy of the
// cloud for maxima. Append panics when slices differ in length, when a coordinate is
// not finite, and for more than 2^31-1 points.
//
// Source: Kirkpatrick and Seidel, "Output-size sensitive algorithms for finding
// maximal vectors" (1985); that it is instance-optimal is due to Afshani,
// Barbay and Chan.
func (m *Maxima[T]) Append(dst []int32, c geom.Cloud[T]) []int32 {
	m.sites = load(m.sites[:0], c, sign[T](m.Min[0]), sign[T](m.Min[1]))
	m.Trace.reset(len(m.sites))
	m.dice.reset()
	m.looked = 0
	m.solve(m.sites)
	for i, g := range m.Trace.Group {
		if m.Trace.Ranges[g].A == int32(i) {
			dst = append(dst, int32(i))
		}
	}
	return dst
}

// solve opens a group for each maximal point of q, with the points that it prunes.
func (m *Maxima[T]) solve(q []site[T]) {
	t := &m.Trace
	t.Touched += int64(len(q))
	if len(q) == 0 {
		return
	}
	half := len(q) / 2
	m.looked += choose(&m.dice, q, half, luckFactor)
	// The highest point of the right half is maximal: a point of the left half with
	// at least its y comes before it in the order, so it has a smaller x, or the
	// same x and not a greater y.
	top := half
	for i := half + 1; i < len(q); i++ {
		if s, b := q[i], q[top]; s.y > b.y || s.y == b.y && b.before(s) {
			top = i
		}
	}
	best := q[top]
	group := t.open(best.i, best.i)
	left, right := m.prune(q[:half], best, group), m.prune(q[half:], best, group)
	// No remaining point dominates one of the other half: those of the left half are
	// higher than all of the right half, those of the right half are further right.
	m.solve(left)
	m.solve(right)
}

// prune returns the points of q that best does not dominate, and puts the other
// points, best among them, into the group.
func (m *Maxima[T]) prune(q []site[T], best site[T], group int32) []site[T] {
	n := 0
	for _, s := range q {
		if s.x <= best.x && s.y <= best.y {
			m.Trace.Group[s.i] = group
			continue
		}
		q[n] = s
		n++
	}
	return q[:n]
}
