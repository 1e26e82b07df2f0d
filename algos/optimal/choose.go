package optimal

import "entropipe/algos/geom"

// luckFactor bounds the cost of random pivots in choose: it is the number of points
// looked at for each point given. 4 are expected.
const luckFactor = 10

// choose moves the k-th point of q in the order of before (from 0) to place k, the
// points before it in front of it and the others behind it. It returns the number of
// points looked at. Pivots are random until they have cost luck looks a point, then
// medians of medians, so that the cost is linear in the worst case, too (Hoare 1961;
// Blum, Floyd, Pratt, Rivest and Tarjan, "Time bounds for selection", 1973).
func choose[T geom.Float](d *dice, q []site[T], k int, luck int) (looked int) {
	budget := luck * len(q)
	for len(q) > 1 {
		pivot := 0
		if looked < budget {
			pivot = d.below(len(q))
		} else {
			looked += medianOfMedians(d, q) // to the front
		}
		at := divide(q, pivot)
		looked += len(q)
		switch {
		case k < at:
			q = q[:at]
		case k > at:
			q, k = q[at+1:], k-at-1
		default:
			return looked
		}
	}
	return looked
}

// divide moves the points before q[pivot] in front of it, and returns its place.
func divide[T geom.Float](q []site[T], pivot int) int {
	last := len(q) - 1
	p := q[pivot]
	q[pivot] = q[last]
	at := 0
	for i, s := range q[:last] {
		if s.before(p) {
			q[i], q[at] = q[at], s
			at++
		}
	}
	q[last], q[at] = q[at], p
	return at
}

// medianOfMedians moves a point of q to the front that has at least three tenths of
// the other points, less a few, on either side. It returns the number of points
// looked at.
func medianOfMedians[T geom.Float](d *dice, q []site[T]) (looked int) {
	groups := 0
	for from := 0; from < len(q); from += 5 {
		five := q[from:min(from+5, len(q))]
		for i := range five { // insertion sort
			for j := i; j > 0 && five[j].before(five[j-1]); j-- {
				five[j], five[j-1] = five[j-1], five[j]
			}
		}
		middle := from + len(five)/2
		q[groups], q[middle] = q[middle], q[groups]
		groups++
	}
	looked = len(q)
	if groups > 1 {
		looked += choose(d, q[:groups], groups/2, 0)
		q[0], q[groups/2] = q[groups/2], q[0]
	}
	return looked
}
