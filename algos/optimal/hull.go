package optimal

import (
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// Hull2D computes convex hulls in the plane. The zero value is ready. A Hull2D keeps
// its working memory between calls, some 30 bytes a point. It must not be used by
// two goroutines at a time: make one for each goroutine.
type Hull2D[T geom.Float] struct {
	// Upper and Lower are the traces of the last calls that computed the upper and
	// the lower hull.
	Upper, Lower Trace

	half  half[T]
	chain []int32
}

// Append appends the indices of the vertices of the hull of c to dst and returns the
// extended slice. The result is that of hull.Hull2D: counter-clockwise from the
// lexicographic minimum (x, then y); points on an edge are no vertices; equal points
// (-0 equals 0) count as the one with the lowest index. An empty cloud adds nothing,
// equal points add one index, collinear points add their two ends.
//
// The result is exact for all finite coordinates. Cost: expected O(n(H+1)), where H
// is the sum of the structural entropies of c for the upper and the lower hull;
// O(n log² n) for the worst random choices, which are the same in every call. Append
// panics when slices differ in length, when x or y is not finite, and for more than
// 2^31-1 points.
//
// Source: Kirkpatrick and Seidel, "The ultimate planar convex hull algorithm?"
// (1986), with the pruning step that Afshani, Barbay and Chan added to make it
// instance-optimal, and bridges by randomised incremental linear programming
// (Seidel 1991) instead of pairs of points.
func (h *Hull2D[T]) Append(dst []int32, c geom.Cloud[T]) []int32 {
	start := len(dst)
	dst = h.AppendLower(dst, c)
	h.chain = h.AppendUpper(h.chain[:0], c)
	slices.Reverse(h.chain)
	// Each of the two hulls may begin with the vertex where the other ends.
	for _, v := range h.chain {
		if v != dst[start] && v != dst[len(dst)-1] {
			dst = append(dst, v)
		}
	}
	return dst
}

// AppendUpper appends the vertices of the upper hull by ascending x: from the
// highest of the leftmost points to the highest of the rightmost.
func (h *Hull2D[T]) AppendUpper(dst []int32, c geom.Cloud[T]) []int32 {
	return h.half.appendTo(dst, c, 1, &h.Upper)
}

// AppendLower appends the vertices of the lower hull by ascending x: from the
// lowest of the leftmost points to the lowest of the rightmost.
func (h *Hull2D[T]) AppendLower(dst []int32, c geom.Cloud[T]) []int32 {
	return h.half.appendTo(dst, c, -1, &h.Lower)
}

// half computes upper hulls. A lower hull is the upper hull of the mirrored cloud.
type half[T geom.Float] struct {
	dst   []int32
	trace *Trace
	sites []site[T]
	stack []site[T]
	dice  dice
	luck  int // bridgeLuck, except in tests
	tests int // number of orientations in the last call
	lost  int // number of bridges in the last call that exceeded bridgeLuck
}

// bridgeLuck bounds the cost of a bridge in random order, in orientations a point. At
// most 5 are expected.
const bridgeLuck = 20

// appendTo appends the vertices of the upper hull of c, with y times up, by ascending
// x, and fills trace.
func (h *half[T]) appendTo(dst []int32, c geom.Cloud[T], up T, trace *Trace) []int32 {
	h.sites = load(h.sites[:0], c, 1, up)
	trace.reset(len(h.sites))
	h.dst, h.trace, h.tests, h.lost = dst, trace, 0, 0
	h.dice.reset()
	if h.luck == 0 {
		h.luck = bridgeLuck
	}
	if in := h.sites; len(in) > 0 {
		first, last := 0, 0
		for i, s := range in {
			if f := in[first]; s.x < f.x || s.x == f.x && f.before(s) {
				first = i
			}
			if in[last].before(s) {
				last = i
			}
		}
		p, q := in[first], in[last]
		in = slices.Delete(in, max(first, last), max(first, last)+1)
		if first != last {
			in = slices.Delete(in, min(first, last), min(first, last)+1)
		}
		h.solve(p, q, in)
	}
	dst, h.dst = h.dst, nil
	return dst
}

// side returns +1 for a point s above the line from a to b, -1 below it, 0 on it. a
// is left of b.
func (h *half[T]) side(a, b, s site[T]) int {
	h.tests++
	return exact.Orient2D(float64(a.x), float64(a.y), float64(b.x), float64(b.y), float64(s.x), float64(s.y))
}

// solve appends the vertices from p to q, which are two vertices or the same vertex.
// in holds the points between them: none lies left of p or right of q, or equals one
// of them and has a lower index.
func (h *half[T]) solve(p, q site[T], in []site[T]) {
	h.trace.Touched += int64(len(in)) + 1
	if p.i != q.i {
		h.trace.Touched++
	}
	in = h.prune(p, q, in)
	if len(in) == 0 {
		h.report(p)
		if q.i != p.i {
			h.report(q)
		}
		return
	}
	// The points above the chord lie strictly between p and q in x. So does their
	// median, and the bridge over it divides: either side has at most half of them.
	middle := len(in) / 2
	choose(&h.dice, in, middle, luckFactor)
	a, b := h.bridge(p, q, in, in[middle].x)
	left, right := h.part(a, b, in)
	h.solve(p, a, left)
	h.solve(b, q, right)
}

// report appends a vertex, and opens a group for it alone.
func (h *half[T]) report(v site[T]) {
	h.dst = append(h.dst, v.i)
	h.trace.Group[v.i] = h.trace.open(v.i, v.i)
}

// prune returns the points of in above the chord from p to q, and puts the other
// points into a group: the step of Afshani, Barbay and Chan.
func (h *half[T]) prune(p, q site[T], in []site[T]) []site[T] {
	n, group := 0, int32(-1)
	for _, s := range in {
		if p.i != q.i && h.side(p, q, s) > 0 {
			in[n] = s
			n++
			continue
		}
		if group < 0 {
			group = h.trace.open(p.i, q.i)
		}
		h.trace.Group[s.i] = group
	}
	return in[:n]
}

// part returns the points left of a and the points right of b. The other points lie
// on or below the bridge, and are put into a group, except a and b.
func (h *half[T]) part(a, b site[T], in []site[T]) (left, right []site[T]) {
	lo, hi, group := 0, len(in), int32(-1)
	for i := 0; i < hi; {
		switch s := in[i]; {
		case s.x < a.x:
			in[i], in[lo] = in[lo], s
			lo++
			i++
		case s.x > b.x:
			hi--
			in[i], in[hi] = in[hi], s
		default:
			if i++; s.i == a.i || s.i == b.i {
				break
			}
			if group < 0 {
				group = h.trace.open(a.i, b.i)
			}
			h.trace.Group[s.i] = group
		}
	}
	return in[:lo], in[hi:]
}
