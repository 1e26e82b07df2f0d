package hull

import (
	"math"

	"entropipe/algos/geom"
)

// Areas, perimeters and volumes are computed in doubles, pairs of float64 with some
// 106 bits, together with a bound of the error. Where the bound does not prove the
// digits, integers of any length compute them again. One bound holds for the whole
// hull: the extents of its box bound every product, so no product has to be
// measured. The bound proves too little for hulls that are flatter than about
// 2^-40 of their box and not parallel to an axis, for coordinates that span
// hundreds of binary orders, and for results near the ends of float64.

const (
	// ulp2 is the square of 2^-53, the largest relative error of a rounding.
	ulp2 = 0x1p-106
	// underflow is more than one term of a sum loses by underflow, where
	// coordinates are at most a quarter: each operation loses at most 2^-1074, and
	// so does each coordinate when it is scaled.
	underflow = 0x1p-1000
	// proves is the least ratio of a sum to its error bound that proves its digits:
	// the bound is then at most 2^-53 of the sum.
	proves = 0x1p53
)

// Measure returns the area and the perimeter of a polygon, in the units of the
// coordinates: square metres and metres. idx names its vertices, points of c,
// convex and counter-clockwise as Hull2D returns them. Fewer than three vertices
// give 0, 0; a clockwise polygon has area 0. Neither result is negative or NaN.
//
// Both are within 4 units in the last place of the exact values: for flat polygons,
// far from the origin, and for coordinates of very different magnitudes, too. A
// value beyond float64 is +Inf; a value below half of the least float64 is 0; no
// other polygon with three vertices has area 0. The operations and their order are
// fixed and never fused: equal input gives equal bits on every processor.
//
// Cost: 25 ns a vertex; for polygons flatter than about 2^-40 of their box some
// hundred nanoseconds a vertex, with allocations. Measure may be called
// concurrently. idx must hold indices of c; other indices panic.
func Measure[T geom.Float](c geom.Cloud[T], idx []int32) (area, perimeter float64) {
	if len(idx) < 3 {
		return 0, 0
	}
	area, perimeter, proven := polygonInDoubles(c, idx)
	if !proven {
		area = exactArea(c, idx)
	}
	return max(area, 0), perimeter
}

// polygonInDoubles computes Measure in doubles. proven reports whether the error
// bound proves the area; the perimeter is always right.
func polygonInDoubles[T geom.Float](c geom.Cloud[T], idx []int32) (area, perimeter float64, proven bool) {
	var x, y interval
	for _, i := range idx {
		x.add(float64(c.X[i]))
		y.add(float64(c.Y[i]))
	}
	s := scaleOf(max(x.largest(), y.largest()))
	twice, abs := fan(c, idx, s)
	// The error of a term is the error of a minor with products of at most dx·dy,
	// (2·16)·dx·dy·ulp2, and the loss of plus in its low half, (2·12)·dx·dy·ulp2;
	// 8 more cover the rounding of dx and dy and all terms of higher order.
	dx, dy := x.width(s), y.width(s)
	bound := float64(len(idx)) * (float64(ulp2*(float64(64*dx*dy)+float64(4*abs))) + underflow)
	return s.back(twice.hi/2, 2), s.back(around(c, idx, s), 1), math.Abs(twice.hi) > float64(proves*bound)
}

// fan returns twice the signed area of the scaled polygon, as a sum over the
// triangles at its first vertex, and abs, the sum of the terms' magnitudes.
func fan[T geom.Float](c geom.Cloud[T], idx []int32, s scale) (twice double, abs float64) {
	x0, y0 := s.of(float64(c.X[idx[0]])), s.of(float64(c.Y[idx[0]]))
	px := twoDifference(s.of(float64(c.X[idx[1]])), x0)
	py := twoDifference(s.of(float64(c.Y[idx[1]])), y0)
	for _, i := range idx[2:] {
		x, y := twoDifference(s.of(float64(c.X[i])), x0), twoDifference(s.of(float64(c.Y[i])), y0)
		t := minor(px, py, x, y)
		twice, abs = twice.plus(t), abs+math.Abs(t.hi)
		px, py = x, y
	}
	return twice, abs
}

// around returns the perimeter of the scaled polygon, within 3 units in the last
// place. The square of an edge is rounded once and its root once, which makes 3/2
// of 2^-53; the sum is rounded once more; errors of second order stay below 2^-60.
//
// An edge shorter than 2^-500 may be lost. The perimeter is above 2^-80: on the
// axis with the largest coordinate two vertices differ, by at least 2^-54 of that
// coordinate, which is at least an eighth when scaled, or subnormal and then a
// multiple of 2^-76 when scaled.
func around[T geom.Float](c geom.Cloud[T], idx []int32, s scale) float64 {
	last := idx[len(idx)-1]
	px, py := s.of(float64(c.X[last])), s.of(float64(c.Y[last]))
	var length double
	for _, i := range idx {
		x, y := s.of(float64(c.X[i])), s.of(float64(c.Y[i]))
		length = length.add(math.Sqrt(sumOfSquares(twoDifference(x, px), twoDifference(y, py), double{})))
		px, py = x, y
	}
	return length.hi
}

// interval is the range of some coordinates on an axis. The zero value is empty.
type interval struct {
	low, high float64
	some      bool
}

func (e *interval) add(v float64) {
	switch {
	case !e.some:
		e.low, e.high, e.some = v, v, true
	case v < e.low:
		e.low = v
	case v > e.high:
		e.high = v
	}
}

func (e *interval) largest() float64 { return max(math.Abs(e.low), math.Abs(e.high)) }

// width returns the scaled length of the interval, rounded.
func (e *interval) width(s scale) float64 { return s.of(e.high) - s.of(e.low) }

// scale is a power of two that brings coordinates to at most a quarter, which
// leaves two bits of room for differences. It has two factors, since the power
// itself may be out of range.
type scale struct {
	exponent   int
	down, rest float64
}

// scaleOf returns the scale for coordinates whose largest magnitude is largest.
func scaleOf(largest float64) scale {
	_, e := math.Frexp(largest)
	e = max(e, -1000) + 2 // no factor may be denormal
	return scale{e, math.Ldexp(1, -e/2), math.Ldexp(1, -(e - e/2))}
}

// of returns v scaled. It is exact unless the result is subnormal. Both products
// are rounded explicitly, so that no compiler fuses the second.
func (s scale) of(v float64) float64 { return float64(float64(v*s.down) * s.rest) }

// back returns v unscaled: v times 2^(dimensions·exponent).
func (s scale) back(v float64, dimensions int) float64 {
	return math.Ldexp(v, dimensions*s.exponent)
}
