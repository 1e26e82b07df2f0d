package entropy

import "math"

// gap is a part of the cloud that no witness covers yet: points ids[from:to]. For hulls
// the points lie above the chord from a to b; for maxima lo is the lower corner of
// their box.
type gap struct {
	from, to int32
	a, b     int32
	lo       [3]float64
}

// chooser picks witnesses in coordinates of the unit box.
type chooser struct {
	ids  []int32
	heap []gap // the largest gap first
}

func (h *chooser) reset() { h.ids, h.heap = h.ids[:0], h.heap[:0] }

// push adds a gap unless it is empty.
func (h *chooser) push(g gap) {
	if g.from == g.to {
		return
	}
	h.heap = append(h.heap, g)
	for k := len(h.heap) - 1; k > 0; {
		up := (k - 1) / 2
		if !h.heap[k].before(&h.heap[up]) {
			return
		}
		h.heap[k], h.heap[up] = h.heap[up], h.heap[k]
		k = up
	}
}

// pop removes and returns the gap with most points.
func (h *chooser) pop() gap {
	top, last := h.heap[0], len(h.heap)-1
	h.heap[0] = h.heap[last]
	h.heap = h.heap[:last]
	for k := 0; ; {
		down := 2*k + 1
		if down >= last {
			return top
		}
		if down+1 < last && h.heap[down+1].before(&h.heap[down]) {
			down++
		}
		if !h.heap[down].before(&h.heap[k]) {
			return top
		}
		h.heap[k], h.heap[down] = h.heap[down], h.heap[k]
		k = down
	}
}

// before orders gaps by falling size, then by place, so that the choice does not depend
// on the order of pushes.
func (g *gap) before(o *gap) bool {
	if g.to-g.from != o.to-o.from {
		return g.to-g.from > o.to-o.from
	}
	return g.from < o.from
}

// split moves the points of ids[from:to] for which first is true to the front, then the
// points for which second is true, and returns the ends of the two parts. The other
// points are covered.
func (h *chooser) split(from, to int32, first, second func(i int32) bool) (mid, end int32) {
	mid = from
	for k := from; k < to; k++ {
		if i := h.ids[k]; first(i) {
			h.ids[k], h.ids[mid] = h.ids[mid], i
			mid++
		}
	}
	end = mid
	for k := mid; k < to; k++ {
		if i := h.ids[k]; second(i) {
			h.ids[k], h.ids[end] = h.ids[end], i
			end++
		}
	}
	return mid, end
}

// maxima appends at most k witnesses: the extremes of all axes, and then, again and
// again, a point of the gap with most points. That point is the farthest from the gap's
// lower corner on its worst axis, lifted to a point that no other point of the gap
// dominates. So maxima is a truncated search for all maximal points, which finds those
// that cover most points first.
func (h *chooser) maxima(dst []int32, u *points, dims, k int) []int32 {
	h.reset()
	base := len(dst)
	for axis := range min(dims, k) {
		dst = appendNew(dst, base, extreme(u, dims, axis))
	}
	for i := range u[0] {
		if !covered(u, dims, dst[base:], int32(i)) {
			h.ids = append(h.ids, int32(i))
		}
	}
	all := gap{to: int32(len(h.ids))}
	for axis := range dims {
		all.lo[axis] = math.Inf(1)
		for _, i := range h.ids {
			all.lo[axis] = min(all.lo[axis], u[axis][i])
		}
	}
	if dims == 2 && len(dst) == base+2 {
		all.lo[0], all.lo[1] = u[0][dst[base+1]], u[1][dst[base]]
	}
	h.push(all)
	for len(h.heap) > 0 && len(dst) < base+k {
		g := h.pop()
		w := h.middle(u, dims, &g)
		dst = append(dst, w)
		h.divide(u, dims, &g, w)
	}
	return dst
}

// divide puts the points of g that w does not cover into new gaps: the points beyond w
// on the first axis, among the others the points beyond w on the second axis, ...
func (h *chooser) divide(u *points, dims int, g *gap, w int32) {
	never := func(int32) bool { return false }
	from := g.from
	for axis := range dims {
		mid, _ := h.split(from, g.to, func(i int32) bool { return u[axis][i] > u[axis][w] }, never)
		part := gap{from: from, to: mid, lo: g.lo}
		part.lo[axis] = u[axis][w]
		h.push(part)
		from = mid
	}
}

// middle returns the witness for a gap of maxima.
func (h *chooser) middle(u *points, dims int, g *gap) int32 {
	ids := h.ids[g.from:g.to]
	hi := g.lo
	for axis := range dims {
		for _, i := range ids {
			hi[axis] = max(hi[axis], u[axis][i])
		}
	}
	best, most := ids[0], math.Inf(-1)
	for _, i := range ids {
		least, sum := math.Inf(1), 0.0
		for axis := range dims {
			v := (u[axis][i] - g.lo[axis]) / max(hi[axis]-g.lo[axis], math.SmallestNonzeroFloat64)
			least, sum = min(least, v), sum+v
		}
		if v := least + 1e-9*sum; v > most {
			best, most = i, v
		}
	}
	return lift(u, dims, ids, best)
}

// lift returns the point with the largest sum of coordinates among the points of ids
// that are at least w on all axes. No other point of ids dominates it.
func lift(u *points, dims int, ids []int32, w int32) int32 {
	best, most := w, math.Inf(-1)
	for _, i := range ids {
		sum, above := 0.0, true
		for axis := range dims {
			sum += u[axis][i]
			above = above && u[axis][i] >= u[axis][w]
		}
		if above && sum > most {
			best, most = i, sum
		}
	}
	return best
}

// extreme returns the point with the largest coordinate on an axis, and the largest sum
// of coordinates among several such points.
func extreme(u *points, dims, axis int) int32 {
	best, most, sum := int32(0), math.Inf(-1), math.Inf(-1)
	for i, v := range u[axis] {
		if v < most {
			continue
		}
		s := 0.0
		for k := range dims {
			s += u[k][i]
		}
		if v > most || s > sum {
			best, most, sum = int32(i), v, s
		}
	}
	return best
}

// covered reports whether a witness is at least point i on all axes.
func covered(u *points, dims int, witnesses []int32, i int32) bool {
	for _, w := range witnesses {
		if u[0][i] <= u[0][w] && u[1][i] <= u[1][w] && (dims < 3 || u[2][i] <= u[2][w]) {
			return true
		}
	}
	return false
}

// appendNew appends i unless dst[base:] holds i already.
func appendNew(dst []int32, base int, i int32) []int32 {
	for _, j := range dst[base:] {
		if j == i {
			return dst
		}
	}
	return append(dst, i)
}

// flat is the least height above a chord, in the unit box, that is worth a witness. It
// also ends the search among points of one line.
const flat = 1e-14

// upperHull appends at most k witnesses for the upper hull: the ends, and then, again
// and again, the point farthest above the chord with most points above it. It is a
// truncated quickhull.
func (h *chooser) upperHull(dst []int32, u *points, k int) []int32 {
	h.reset()
	base := len(dst)
	if k < 1 || len(u[0]) == 0 {
		return dst
	}
	a, b := ends(u)
	dst = append(dst, a)
	if a != b && k > 1 {
		dst = append(dst, b)
	}
	for i := range u[0] {
		if above(u, a, b, int32(i)) > flat {
			h.ids = append(h.ids, int32(i))
		}
	}
	h.push(gap{to: int32(len(h.ids)), a: a, b: b})
	for len(h.heap) > 0 && len(dst) < base+k {
		g := h.pop()
		far, most := int32(0), math.Inf(-1)
		for _, i := range h.ids[g.from:g.to] {
			if d := above(u, g.a, g.b, i); d > most {
				far, most = i, d
			}
		}
		dst = append(dst, far)
		mid, end := h.split(g.from, g.to,
			func(i int32) bool { return above(u, g.a, far, i) > flat },
			func(i int32) bool { return above(u, far, g.b, i) > flat })
		h.push(gap{from: g.from, to: mid, a: g.a, b: far})
		h.push(gap{from: mid, to: end, a: far, b: g.b})
	}
	return dst
}

// above returns twice the signed area of the triangle a, b, i: positive where i is
// above the line from a to b, for a left of b.
func above(u *points, a, b, i int32) float64 {
	return (u[0][b]-u[0][a])*(u[1][i]-u[1][a]) - (u[1][b]-u[1][a])*(u[0][i]-u[0][a])
}

// ends returns the highest of the leftmost and of the rightmost points.
func ends(u *points) (a, b int32) {
	x, y := u[0], u[1]
	for i := range x {
		if x[i] < x[a] || x[i] == x[a] && y[i] > y[a] {
			a = int32(i)
		}
		if x[i] > x[b] || x[i] == x[b] && y[i] > y[b] {
			b = int32(i)
		}
	}
	return a, b
}
