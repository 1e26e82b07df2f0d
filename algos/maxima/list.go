package maxima

import "entropipe/algos/internal/kernel"

// listLimits bound the comparisons of survivors with the list.
type listLimits struct {
	// budget is the number of vectors of the list that a survivor is compared with
	// on average, at most: about as long as a sweep takes.
	budget int
	// crowd is the number of survivors that are compared with each other, at most,
	// where all of them may be maximal.
	crowd int
	// plane says that the list is faster than a sweep in the plane.
	plane bool
}

// limits returns the limits for the vector units in use. Sixteen comparisons in
// portable code take as long as sixteen vectors.
func limits() listLimits {
	if kernel.Best() == kernel.Portable {
		return listLimits{budget: 2, crowd: 100, plane: false}
	}
	return listLimits{budget: 50, crowd: 500, plane: true}
}

// findInList finds the maximal survivors. It compares each survivor with the list of
// survivors kept before it, and then the list with itself from the last to the
// first: a point that covers another one, or equals it, comes before or after it. It
// returns false when the list grows long, and finds nothing then.
//
// Source: the block-nested-loops of Börzsönyi, Kossmann, Stocker, "The skyline
// operator" (2001), without removal.
func (m *Maxima[T]) findInList() bool {
	l := limits()
	if len(m.v) == 2 && !l.plane {
		return false
	}
	if m.crowded > 0 && m.crowded*float64(len(m.ids)) > float64(l.crowd) {
		return false
	}
	if m.fillList(m.v, l.budget*len(m.ids)+256) < len(m.ids) {
		return false
	}
	m.turnList()
	return true
}

// fillList puts points into the list until the list is full or the budget is spent,
// and returns the number of points that it took.
func (m *Maxima[T]) fillList(points [][]T, budget int) int {
	m.list.Reset(len(points))
	next, left := m.list.Add(points, 0, budget)
	m.touched += next + budget - left
	return next
}

// turnList sets m.back.IDs to the maximal points of the list, as positions counted
// from the end of the list.
func (m *Maxima[T]) turnList() {
	n, dims := len(m.list.IDs), len(m.v)
	for k := range dims {
		turned := append(m.turned[k][:0], m.list.Values(k)...)
		for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
			turned[i], turned[j] = turned[j], turned[i]
		}
		m.turned[k] = turned
	}
	m.back.Reset(dims)
	const most = kernel.FrontMax * kernel.FrontMax
	_, left := m.back.Add(m.turned[:dims], 0, most)
	m.touched += n + most - left
}

// appendList appends the indices of the points that findInList found, ascending.
func (m *Maxima[T]) appendList(dst []int32) []int32 {
	last := int32(len(m.list.IDs) - 1)
	for j := len(m.back.IDs) - 1; j >= 0; j-- {
		dst = append(dst, m.ids[m.list.IDs[last-m.back.IDs[j]]])
	}
	return dst
}
