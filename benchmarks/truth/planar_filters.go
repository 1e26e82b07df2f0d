package main

import (
	"math"
	"slices"

	"entropipe/algos/geom"
)

// Filters in front of the chain: a polygon of points of the cloud; what lies
// inside cannot be a corner. What they keep they keep whatever the polygon, so
// the answer is exact.

// octagon is the filter of Akl and Toussaint (1978): the extreme points in eight
// directions, and each point against each edge.
type octagon struct {
	corners, rest []place
	around, last  chain
}

func (h *octagon) find(dst []int32, c geom.Cloud[float32]) []int32 {
	h.corners, h.rest = witnesses(h.corners[:0], c, 8, 1), h.rest[:0]
	poly := h.around.of(h.corners)
	y := c.Y[:len(c.X)]
	for i, x := range c.X {
		if p := (place{x, y[i], int32(i)}); len(poly) < 3 || !inside(poly, p) {
			h.rest = append(h.rest, p)
		}
	}
	for _, p := range h.last.of(h.rest) {
		dst = append(dst, p.i)
	}
	return dst
}

// inside tells whether p is well inside the convex polygon. What rounding could
// have decided counts as outside.
func inside(poly []place, p place) bool {
	a := poly[len(poly)-1]
	for _, b := range poly {
		ux, uy := float64(b.x)-float64(a.x), float64(b.y)-float64(a.y)
		vx, vy := float64(p.x)-float64(a.x), float64(p.y)-float64(a.y)
		if l, r := ux*vy, uy*vx; l-r <= 1e-14*(math.Abs(l)+math.Abs(r)) {
			return false
		}
		a = b
	}
	return true
}

// witnesses appends the farthest of every step-th point in each of k directions
// around the circle.
func witnesses(dst []place, c geom.Cloud[float32], k, step int) []place {
	for d := range k {
		sin, cos := math.Sincos(2 * math.Pi * float64(d) / float64(k))
		dx, dy := float32(cos), float32(sin)
		best, most := -1, float32(math.Inf(-1))
		for i := 0; i < len(c.X); i += step {
			if v := dx*c.X[i] + dy*c.Y[i]; v > most {
				best, most = i, v
			}
		}
		if best >= 0 {
			dst = append(dst, place{c.X[best], c.Y[best], int32(best)})
		}
	}
	return dst
}

// rowFilter drops points by rows: in each, an interval that lies within the
// polygon from the row's lower to its upper end.
type rowFilter struct {
	seeds, rest  []place
	left, right  []float64 // ends of the polygon at the borders of rows
	around, last chain
}

// rowCount is the number of rows.
const rowCount = 256

// uniform takes the polygon of 32 directions, evenly spread, over a sample of
// some 2048 points.
func (h *rowFilter) uniform(dst []int32, c geom.Cloud[float32]) []int32 {
	h.seeds = witnesses(h.seeds[:0], c, 32, max(c.Len()/2048, 1))
	return h.find(dst, c)
}

// lastFrame returns a finder that takes the points that were corners one frame
// before; the first frame has the polygon of uniform.
func (h *rowFilter) lastFrame() hullOf {
	var was []int32
	return func(dst []int32, c geom.Cloud[float32]) []int32 {
		if len(was) == 0 || int(slices.Max(was)) >= c.Len() {
			h.seeds = witnesses(h.seeds[:0], c, 32, max(c.Len()/2048, 1))
		} else {
			h.seeds = h.seeds[:0]
			for _, i := range was {
				h.seeds = append(h.seeds, place{c.X[i], c.Y[i], i})
			}
		}
		n := len(dst)
		dst = h.find(dst, c)
		was = append(was[:0], dst[n:]...)
		return dst
	}
}

// find sorts what h.seeds does not exclude.
func (h *rowFilter) find(dst []int32, c geom.Cloud[float32]) []int32 {
	poly := h.around.of(h.seeds)
	h.rest = h.rest[:0]
	lo, scale := h.rows(poly)
	y := c.Y[:len(c.X)]
	for i, x := range c.X {
		v := (float64(y[i]) - lo) * scale
		if v > 1 && v < rowCount-1 {
			if k := int(v); h.left[k] < float64(x) && float64(x) < h.right[k] {
				continue
			}
		}
		h.rest = append(h.rest, place{x, y[i], int32(i)})
	}
	for _, p := range h.last.of(h.rest) {
		dst = append(dst, p.i)
	}
	return dst
}

// rows fills the intervals and returns where the first row begins and the rows
// in a unit. A row's border is taken a millionth of a row outside, and intervals
// a billionth of the extent inside, far more than rounding.
func (h *rowFilter) rows(poly []place) (lo, scale float64) {
	lo, hi := math.Inf(1), math.Inf(-1)
	from, to := math.Inf(1), math.Inf(-1)
	for _, p := range poly {
		lo, hi = min(lo, float64(p.y)), max(hi, float64(p.y))
		from, to = min(from, float64(p.x)), max(to, float64(p.x))
	}
	if !(hi > lo) || !(to > from) {
		return lo, 0 // no row has an inside
	}
	scale = rowCount / (hi - lo)
	margin := 1e-9 * (to - from + max(math.Abs(from), math.Abs(to)))
	h.left, h.right = slices.Grow(h.left[:0], rowCount)[:rowCount], slices.Grow(h.right[:0], rowCount)[:rowCount]
	for k := range h.left {
		h.left[k], h.right[k] = math.Inf(-1), math.Inf(1)
		for _, end := range [2]float64{float64(k) - 1e-6, float64(k) + 1 + 1e-6} {
			l, r := chord(poly, lo+end/scale)
			h.left[k], h.right[k] = max(h.left[k], l+margin), min(h.right[k], r-margin)
		}
	}
	return lo, scale
}

// chord is where the polygon begins and ends at height y.
func chord(poly []place, y float64) (l, r float64) {
	l, r = math.Inf(1), math.Inf(-1)
	a := poly[len(poly)-1]
	for _, b := range poly {
		ay, by := float64(a.y), float64(b.y)
		if ay != by && min(ay, by) <= y && y <= max(ay, by) {
			x := float64(a.x) + (float64(b.x)-float64(a.x))*((y-ay)/(by-ay))
			l, r = min(l, x), max(r, x)
		}
		a = b
	}
	return l, r
}
