package optimal

import "entropipe/algos/geom"

// Maxima finds maximal points in the plane. The zero value maximises both axes.
// It keeps its scratch memory between calls, some 20 bytes a point: use one a
// goroutine, never two calls at a time.
type Maxima[T geom.Float] struct {
	// Min says which axes are minimised instead: x, y.
	Min [2]bool
	// Trace is that of the last call. There is one group a maximal point: itself
	// and the points that it pruned.
	Trace Trace

	sites  []site[T]
	dice   dice
	looked int // points that selection looked at, in the last call
}

// Append appends to dst the indices of the points of c that are maximal in x
// and y, ascending, and returns it; z is not looked at. Of equal points (-0
// equals 0) the lowest index stays. An empty cloud gives nothing, any other at
// least one index. It is what maxima.Append2D gives.
//
// Cost: O(n(H+1)), H the structural entropy of the cloud for maxima. It panics
// when slices differ in length, when a coordinate is not finite, or beyond
// 2^31-1 points.
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

// solve finds the maxima of q, and what they prune of it.
func (m *Maxima[T]) solve(q []site[T]) {
	t := &m.Trace
	t.Touched += int64(len(q))
	if len(q) == 0 {
		return
	}
	half := len(q) / 2
	m.looked += choose(&m.dice, q, half, luckFactor)
	// The highest point of the right half is maximal: what has at least its y on
	// the left comes before it in the order, so has a smaller x, or the same x
	// and not a greater y.
	top := half
	for i := half + 1; i < len(q); i++ {
		if s, b := q[i], q[top]; s.y > b.y || s.y == b.y && b.before(s) {
			top = i
		}
	}
	best := q[top]
	group := t.open(best.i, best.i)
	left, right := m.prune(q[:half], best, group), m.prune(q[half:], best, group)
	// No point that is left dominates one of the other half: those on the left
	// are higher than all of the right, those on the right further right.
	m.solve(left)
	m.solve(right)
}

// prune returns the points of q that best does not dominate, best itself left
// out, and puts the others in the group.
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
