// Package exact computes the signs of the determinants that geometry turns on:
// the side of a line or a plane, the inside of a circle or a sphere.
//
//	left := exact.Orient2D(0, 0, 2, 0, 1, 1)                        // 1: (1, 1) lies left of (0, 0) to (2, 0)
//	on := exact.InCircle(0, 0, 2, 0, 2, 2, 0, 2)                    // 0: (0, 2) lies on the circle of the first three
//	above := exact.Orient3D(0, 0, 0, 1, 0, 0, 0, 1, 0, 0.3, 0.3, 2) // 1: above the floor
//	fmt.Println(left, on, above)
//
// The signs are right for all finite coordinates, from denormal to almost
// overflowing. The package is not a number type: it returns signs, never values.
// All functions are pure, allocate nothing and may be called concurrently.
//
// # Words
//
//   - filter: the determinant in floating point with a bound of its rounding error.
//     A determinant beyond the bound has the right sign. The filter decides nearly
//     all calls.
//   - narrow stage: for coordinates whose differences floats can hold.
//   - wide stage: for any coordinates, as integers of any length.
//   - unit: a power of two that divides all numbers at hand.
//   - limb: a 64-bit digit of a long integer.
//
// # Why integers
//
// Exact stages on floating-point expansions (Shewchuk 1997) were tried first:
// two to four times slower on grids, and they need a second arithmetic for
// numbers that overflow or underflow. Integers do neither.
//
// Every product that decides a sign is rounded explicitly, float64(a*b): a
// compiler that fuses it with the next addition would void the error bounds.
package exact

import "math"

// epsilon is the largest relative error of one rounding to float64.
const epsilon = 0x1p-53

// OrientError bounds the rounding error of the filter of Orient2D, relative to
// the sum of the magnitudes of its two products, wherever nothing underflows.
//
// A rounded difference is off by at most ε of itself, so a rounded product of two
// differences is off by (1 + 2)ε + 3ε² + ε³ of itself. The last subtraction cannot
// change the sign. The rest of 16ε² covers the rounding of the sum of magnitudes,
// of its product with this constant and of the result.
// Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast Robust
// Geometric Predicates", 1997, calls it ccwerrboundA.
const OrientError = (3 + 16*epsilon) * epsilon

// CircleError bounds the rounding error of the filter of InCircle, relative to
// its permanent, wherever nothing underflows.
//
// Products of two differences are off by 3ε as in OrientError. A rounded difference
// or sum of two such products is off by 4ε of the sum of their magnitudes. A product
// of two such sums is off by (4 + 4 + 1)ε, and the first of the two additions adds
// ε; the second cannot change the sign. 96ε² covers all terms of second order and
// the rounding of the bound. It is Shewchuk's iccerrboundA.
const CircleError = (10 + 96*epsilon) * epsilon

// CircleLost bounds the loss of InCircle's determinant to underflow, while its three
// squared lengths add up to less than CircleLimit: each product of differences loses
// at most half of the least denormal, 2^-1075, and is multiplied by less than
// CircleLimit. CircleError times the permanent plus CircleLost bounds the whole
// error, for callers with a filter of their own.
const (
	CircleLost  = 0x1p-500
	CircleLimit = 0x1p+500
)

// orientLost bounds the loss of Orient2D's two products to underflow, half of the
// least denormal each. Where orientLost vanishes in rounding, 4ε² of the rest of the
// bound are larger than the loss.
const orientLost = 0x1p-1020

// Orient2D returns the sign of the turn from a over b to c: +1 for a
// counter-clockwise turn, -1 for a clockwise turn, 0 when the three points are on
// one line (or two of them are equal). It is exact for all finite coordinates; for
// NaN or infinite coordinates the result means nothing.
//
// The sign changes when two points change places, and is the same for a, b, c, for
// b, c, a and for c, a, b. Cost: 5 ns where the filter decides, below 10 ns for
// collinear points of like magnitudes, microseconds for the widest spreads.
func Orient2D(ax, ay, bx, by, cx, cy float64) int {
	l := float64((ax - cx) * (by - cy))
	r := float64((ay - cy) * (bx - cx))
	det := l - r
	// Overflow makes the bound Inf or NaN, and both comparisons false.
	bound := float64(OrientError*(math.Abs(l)+math.Abs(r))) + orientLost
	switch {
	case det > bound:
		return 1
	case -det > bound:
		return -1
	}
	return orientNarrow(ax, ay, bx, by, cx, cy)
}

// InCircle returns +1 when d lies inside the circle through a, b and c, -1 when d
// lies outside, 0 when d lies on the circle, for a, b, c counter-clockwise; for a,
// b, c clockwise it returns the opposite sign. For collinear a, b, c it returns the
// sign of the determinant, which is 0 when two of them are equal or d is on their
// line. It is exact for all finite coordinates; for NaN or infinite coordinates the
// result means nothing.
//
// The sign changes when any two of the four points change places. Cost: 10 ns where
// the filter decides, 30 ns for cocircular points of a grid or of like magnitudes, a
// quarter of a microsecond when differences need two limbs, tens of microseconds
// for the widest spreads.
func InCircle(ax, ay, bx, by, cx, cy, dx, dy float64) int {
	adx, ady := ax-dx, ay-dy
	bdx, bdy := bx-dx, by-dy
	cdx, cdy := cx-dx, cy-dy
	bc, cb := float64(bdx*cdy), float64(cdx*bdy)
	ca, ac := float64(cdx*ady), float64(adx*cdy)
	ab, ba := float64(adx*bdy), float64(bdx*ady)
	al := float64(adx*adx) + float64(ady*ady)
	bl := float64(bdx*bdx) + float64(bdy*bdy)
	cl := float64(cdx*cdx) + float64(cdy*cdy)
	det := float64(al*(bc-cb)) + float64(bl*(ca-ac)) + float64(cl*(ab-ba))
	permanent := float64(al*(math.Abs(bc)+math.Abs(cb))) +
		float64(bl*(math.Abs(ca)+math.Abs(ac))) +
		float64(cl*(math.Abs(ab)+math.Abs(ba)))
	if al+bl+cl < CircleLimit {
		bound := float64(CircleError*permanent) + CircleLost
		switch {
		case det > bound:
			return 1
		case -det > bound:
			return -1
		}
	}
	return circleNarrow(&[8]float64{ax, ay, bx, by, cx, cy, dx, dy})
}
