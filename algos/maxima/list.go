package maxima

import "entropipe/algos/internal/kernel"

// listBudget is how many vectors of the list a survivor may be compared with
// on average before a sweep is the better choice: about as long as that takes.
// Without vector units sixteen comparisons take as long as that many vectors.
func listBudget() int {
	if kernel.Best() == kernel.Portable {
		return 2
	}
	return 50
}

// crowdMost is how many survivors are compared one with another although all
// of them may be maximal.
func crowdMost() int {
	if kernel.Best() == kernel.Portable {
		return 100
	}
	return 500
}

// findInList finds the maximal survivors by comparing each with those kept
// before it, and then, from the last to the first, those kept with each other:
// what covers a point either comes before it, an equal one among them, or
// after it. It gives up, and returns false, when the list grows long.
//
// Source: the block-nested-loops of Börzsönyi, Kossmann, Stocker, "The skyline
// operator" (2001), without removal.
func (m *Maxima[T]) findInList() bool {
	if len(m.v) == 2 && kernel.Best() == kernel.Portable {
		return false // the sweep of a plane is as good
	}
	if m.crowded > 0 && m.crowded*float64(len(m.ids)) > float64(crowdMost()) {
		return false
	}
	if m.fillList(m.v, listBudget()*len(m.ids)+256) < len(m.ids) {
		return false
	}
	m.turnList()
	return true
}

// fillList puts points into the list until it is full or the budget spent, and
// returns how many it took.
func (m *Maxima[T]) fillList(points [][]T, budget int) int {
	m.list.Reset(len(points))
	next, left := m.list.Add(points, 0, budget)
	m.touched += next + budget - left
	return next
}

// turnList leaves the maximal points of the list in m.back.IDs, as positions in
// m.list counted from its end.
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

// appendList appends what findInList found, ascending.
func (m *Maxima[T]) appendList(dst []int32) []int32 {
	last := int32(len(m.list.IDs) - 1)
	for j := len(m.back.IDs) - 1; j >= 0; j-- {
		dst = append(dst, m.ids[m.list.IDs[last-m.back.IDs[j]]])
	}
	return dst
}
