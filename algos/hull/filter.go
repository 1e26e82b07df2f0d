package hull

import "entropipe/algos/geom"

// bands is the number of vertical bands between the leftmost and the rightmost
// vertex; an uint8 numbers them.
const bands = 256

// filter recognises points strictly inside a convex polygon. In each band of
// x it holds one chord of the upper and one of the lower chain, moved inwards
// by more than all rounding errors together.
//
// With t = (x-left)*scale, a point is inside when 0 <= t < bands and
// lowSlope*t + low < y < upSlope*t + up, the slopes and offsets being those of
// band [t]. All this in T: widening would cost more than the filter.
//
// Why that is sound. Let W and H be the polygon's width and height, Y its
// largest |y|, u the unit roundoff of T. The upper chain is a concave function
// of t: a chord between two of its points lies below it, and at a distance of
// one band from either end its slope is at most H a band. So an error d of t
// is, there, one of at most H*d of y. The errors are:
//   - of t: x-left, scale and the product are rounded; 3u*bands*H of y. The
//     ends are exact: t < 0 if and only if x < left, and build makes sure that
//     every x from the rightmost vertex on has t >= bands;
//   - of a chord beyond its band, for that same t: twice 3u*bands*H;
//   - of the bands' edges, computed relative to left: 3u*bands*H;
//   - of a chain's height at an edge: 4u*H + u*Y;
//   - of slope*t + offset, and of the two themselves: 8 roundings of numbers up
//     to bands*H, 4 of them up to bands*H + Y.
//
// Together less than 32*bands*u*H + 8u*Y, and for the lower chain likewise; the
// margin is twice that. Whether the compiler fuses a multiplication with an
// addition does not matter.
type filter[T geom.Float] struct {
	left, scale T
	band        [bands]band[T]
}

type band[T geom.Float] struct{ upSlope, up, lowSlope, low T }

// build makes the filter of a convex polygon, its vertices counter-clockwise
// from the lexicographic minimum. It reports false where there is none: fewer
// than three vertices, or sizes whose products could leave the range of T.
func (f *filter[T]) build(h []vertex[T]) bool {
	if len(h) < 3 {
		return false
	}
	right, low, high := 0, h[0].y, h[0].y
	for i, v := range h {
		if compare(v, h[right]) > 0 {
			right = i
		}
		low, high = min(low, v.y), max(high, v.y)
	}
	unit, smallest, largest := precision[T]()
	width, height := h[right].x-h[0].x, high-low
	top := float64(max(-low, high))
	if !(min(width, height) > smallest) || !(max(float64(width), float64(height), top) < largest) {
		return false
	}
	f.left, f.scale = h[0].x, bands/width
	for T(width*f.scale) < bands {
		f.scale *= 1 + 2*T(unit)
	}
	var lower, upper [bands + 1]float64
	heights(&lower, h, right, 1)
	heights(&upper, h, right, len(h)-1)
	margin := unit * (64*bands*float64(height) + 16*top)
	for j := range f.band {
		up, low := upper[j+1]-upper[j], lower[j+1]-lower[j]
		f.band[j] = band[T]{
			upSlope: T(up), up: T(upper[j] - float64(up*float64(j)) - margin),
			lowSlope: T(low), low: T(lower[j] - float64(low*float64(j)) + margin),
		}
	}
	return true
}

// inside reports whether a point is surely inside. No comparison with a NaN or
// an infinity is true here, so such a point never is.
func (f *filter[T]) inside(x, y T) bool {
	t := (x - f.left) * f.scale
	if !(t >= 0 && t < bands) {
		return false
	}
	b := &f.band[uint8(int32(t))]
	return y < T(b.upSlope*t)+b.up && y > T(b.lowSlope*t)+b.low
}

// precision returns the unit roundoff of T and bounds of sizes that are safe
// to multiply by bands and by the unit roundoff.
func precision[T geom.Float]() (unit float64, smallest T, largest float64) {
	if T(1)+T(0x1p-30) == 1 {
		return 0x1p-24, 0x1p-80, 0x1p100
	}
	return 0x1p-53, 0x1p-80, 0x1p900
}

// heights fills y with a chain's height at the bands' edges. The chain leads
// from h[0] to h[right]; step goes from a vertex to the next, modulo len(h).
// Of a vertical edge at the right end the first vertex counts, at the left end
// the last: the one that the rest of the chain begins with.
func heights[T geom.Float](y *[bands + 1]float64, h []vertex[T], right, step int) {
	left := float64(h[0].x)
	width := float64(h[right].x) - left
	i, j := 0, step
	for k := range y {
		x := width * (float64(k) / bands)
		for float64(h[j].x)-left <= x && j != right {
			i, j = j, (j+step)%len(h)
		}
		a, b := h[i], h[j]
		y[k] = float64(a.y)
		if dx := float64(b.x) - float64(a.x); dx > 0 {
			part := min(1, max(0, (x-(float64(a.x)-left))/dx))
			y[k] += float64((float64(b.y) - float64(a.y)) * part)
		}
	}
}
