package delaunay

import (
	"math"
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// rounding bounds the errors of the filters of inserter.
//
// turn bounds that of locate's determinant: the error of two products of
// differences, each at most the sides of the box, see exact.OrientError.
//
// share and least make the bound of a circle, see errorOf. With u, v the edges at
// the vertex p that its determinant was made at, s = |u|² + |v|², and all in the
// unit of the frame, it is for a point q
//
//	a·q - 2c p·q + c|q|² + c|p|² - a·p,   a a vector, |a| <= |u|²|v| + |v|²|u|, |c| <= |u||v|
//
// A difference is off by ε of itself, so a by 7ε, c by 4ε, |p|² and |q|² by 4ε of
// the sums of their terms' magnitudes; with what the products and sums after
// that add, each term is off by 13ε of its magnitude at most. By Cauchy, and
// sqrt(2s)·|q| <= s + |q|²/2, these add up to less than
//
//	s/2·(2s + 5/2 |p|² + 5/2 |q|²)  <=  5/4 s·(1 + s + |p|²)·(1 + |q|²)
//
// so the error is below 16.25ε of that product, and 20ε pay for the rounding of
// the bound, to float32 in part. least is what underflow can take, there and in
// the products, which lose less than 2^-1070 of the same.
type rounding struct {
	frame
	turn    float64
	share   float64
	least   float32
	lattice bool // both determinants are exact
}

// frame is where circles are computed: its origin is in the middle of most
// points, their distances from it are about 1. Whatever it is, signs are right;
// a good one leaves fewer to the exact functions.
type frame struct{ x, y, scale float64 } // scale is a power of two

const (
	circleError = 20 * 0x1p-53
	circleLost  = 0x1p-126
)

// errorOf returns the err of a circle made of edges with squared lengths that
// sum up to size, at a vertex.
func (r *rounding) errorOf(size float64, vertex place) float32 {
	return float32(float64(float64(r.share*size)*(1+vertex.l+size))) + r.least
}

// latticeBits is the width of a lattice whose determinants are exact. Whole
// numbers up to 2^12 in magnitude, as differences, have squared lengths and cross
// products up to 2^25, and a and b up to 2^38; in the frame, whose origin is in
// the middle, coordinates go up to 2^11, so every term is below 2^50, and the sum
// of five below 2^53.
const latticeBits = 12

// roundingIn returns what holds for all points of c. Pixels and grids are on a
// lattice, and full of cocircular points that would otherwise all need exact
// arithmetic.
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
	// Differences, their product and this are rounded: a few ε of the bound,
	// against the 8 that 2 OrientError is short of.
	r.turn = float64(2.125*exact.OrientError*(b.x1-b.x0))*(b.y1-b.y0) + 0x1p-1000
	if reach > farthest {
		r.turn = math.Inf(1) // always the exact function
	}
	return r
}

// frameOf returns a frame for the points of c, which b bounds: for many points,
// by the quartiles of some, which outliers leave alone.
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

// latticeUnit returns the unit of a lattice that is wide enough for the box, or
// zero where its arithmetic would not be exact.
func latticeUnit(b box, reach float64) float64 {
	_, exp := math.Frexp(max(b.x1-b.x0, b.y1-b.y0))
	unit := math.Ldexp(1, exp-latticeBits)
	// The square of a unit must not underflow, nor that of a box overflow;
	// multiples beyond 2^50 are not what adding magic rounds to.
	if unit < 0x1p-200 || unit > 0x1p200 || reach >= 0x1p50*unit {
		return 0
	}
	return unit
}

// onLattice reports whether all coordinates are multiples of a unit. Points of
// most clouds say no at once.
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
