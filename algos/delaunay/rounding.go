package delaunay

import (
	"math"
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// rounding holds the error bounds of the filters of inserter.
//
// turn bounds the error of locate's determinant: two products of differences, each
// difference at most a side of the box, see exact.OrientError.
//
// share and least make the bound of a circle, see errorOf. Let the determinant be
// computed at vertex p with the edges u, v, let s = |u|² + |v|², and let all be in
// the unit of the frame. For a point q the determinant is
//
//	a·q - 2c p·q + c|q|² + c|p|² - a·p,   a a vector, |a| <= |u|²|v| + |v|²|u|, |c| <= |u||v|
//
// A difference is off by ε of itself, so a is off by 7ε, c by 4ε, |p|² and |q|² by
// 4ε of the sums of their terms' magnitudes. With the errors of the products and
// sums that follow, each term is off by at most 13ε of its magnitude. By Cauchy,
// and sqrt(2s)·|q| <= s + |q|²/2, the magnitudes add up to less than
//
//	s/2·(2s + 5/2 |p|² + 5/2 |q|²)  <=  5/4 s·(1 + s + |p|²)·(1 + |q|²)
//
// so the error is below 16.25ε of that product; 20ε also cover the rounding of the
// bound, part of it to float32. least covers underflow, in the bound and in the
// products, which lose less than 2^-1070 of the same.
type rounding struct {
	frame
	turn    float64
	share   float64
	least   float32
	lattice bool // both determinants are exact
}

// frame is the coordinate system of circles. Its origin is in the middle of most
// points, and their distances from the origin are about 1. Signs are right in any
// frame; a good frame leaves fewer decisions to the exact functions.
type frame struct{ x, y, scale float64 } // scale is a power of two

const (
	circleError = 20 * 0x1p-53
	circleLost  = 0x1p-126
)

// errorOf returns the err of a circle computed at a vertex, whose two edges there
// have squared lengths that add up to size.
func (r *rounding) errorOf(size float64, vertex place) float32 {
	return float32(float64(float64(r.share*size)*(1+vertex.l+size))) + r.least
}

// latticeBits is the width of a lattice whose determinants are exact. Whole
// numbers up to 2^12 in magnitude, as differences, have squared lengths and cross
// products up to 2^25, and a and b up to 2^38; in the frame, whose origin is in
// the middle, coordinates go up to 2^11, so every term is below 2^50, and the sum
// of five below 2^53.
const latticeBits = 12

// roundingIn returns the frame and the error bounds for all points of c, whose box
// is b. Pixels and grids are on a lattice, and full of cocircular points that would
// otherwise all need exact arithmetic.
func roundingIn[T geom.Float](c geom.Cloud[T], b box) rounding {
	// Squares of differences stay below 2^483.
	const farthest = 0x1p240
	reach := max(math.Abs(b.x0), math.Abs(b.x1), math.Abs(b.y0), math.Abs(b.y1))
	unit := latticeUnit(b, reach)
	if onLattice(c, unit) {
		middle := unit * (1 << (latticeBits - 1))
		return rounding{lattice: true, frame: frame{b.x0 + middle, b.y0 + middle, 1 / unit}}
	}
	r := rounding{frame: frameOf(c, b), share: circleError, least: circleLost}
	// The differences, their product and this bound are rounded: a few ε of the
	// bound, and 2.125 instead of 2 OrientError leaves room for them.
	r.turn = float64(2.125*exact.OrientError*(b.x1-b.x0))*(b.y1-b.y0) + 0x1p-1000
	if reach > farthest {
		r.turn = math.Inf(1) // the exact function decides always
	}
	return r
}

// frameOf returns a frame for the points of c, whose box is b. For many points it
// uses the quartiles of a sample, which outliers do not move.
func frameOf[T geom.Float](c geom.Cloud[T], b box) frame {
	const many, some = 1024, 31
	x, y := b.x0/2+b.x1/2, b.y0/2+b.y1/2
	size := max(b.x1/2-b.x0/2, b.y1/2-b.y0/2)
	if n := c.Len(); n > many {
		var xs, ys [some]float64
		for k := range some {
			i := k * (n - 1) / (some - 1)
			xs[k], ys[k] = float64(c.X[i]), float64(c.Y[i])
		}
		slices.Sort(xs[:])
		slices.Sort(ys[:])
		const q1, q2, q3 = some / 4, some / 2, some * 3 / 4
		if spread := max(xs[q3]/2-xs[q1]/2, ys[q3]/2-ys[q1]/2); spread > 0 {
			x, y, size = xs[q2], ys[q2], spread
		}
	}
	_, exp := math.Frexp(size)
	return frame{x, y, math.Ldexp(1, min(max(-exp, -1000), 1000))}
}

// latticeUnit returns the unit of a lattice that is wide enough for the box, or 0
// where arithmetic on that lattice would not be exact.
func latticeUnit(b box, reach float64) float64 {
	_, exp := math.Frexp(max(b.x1-b.x0, b.y1-b.y0))
	unit := math.Ldexp(1, exp-latticeBits)
	// The square of a unit must not underflow, and the square of a box must not
	// overflow; adding magic does not round to multiples beyond 2^50.
	if unit < 0x1p-200 || unit > 0x1p200 || reach >= 0x1p50*unit {
		return 0
	}
	return unit
}

// onLattice reports whether all coordinates are multiples of unit. For most clouds
// the first points show that they are not.
func onLattice[T geom.Float](c geom.Cloud[T], unit float64) bool {
	if unit == 0 {
		return false
	}
	magic := 0x1.8p52 * unit // its last bit is worth a unit
	for i := range c.X {
		x, y := float64(c.X[i]), float64(c.Y[i])
		if (x+magic)-magic != x || (y+magic)-magic != y {
			return false
		}
	}
	return true
}
