package delaunay

import (
	"math"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// rounding bounds the errors of the filters of inserter.
//
// turn bounds that of locate's determinant: the error of two products of
// differences, each at most the sides of the box, see exact.OrientError.
//
// circle bounds that of dig's determinant a·dx + b·dy + c·l as a share of
// size·(size + l). With u, v the edges at v[2] and d the vector to the point, a
// squared length is off by 4ε of itself (differences ε each, their product ε,
// the sum ε), a by 7ε of |u|²|vy| + |v|²|uy|, c by 4ε, and all three terms,
// with d's own error, by 9ε; the two additions add 2ε. So the error is below
// 11ε·P, and terms of second order, with
//
//	P = |u|²(|vy dx| + |vx dy|) + |v|²(|uy dx| + |ux dy|) + l(|uy vx| + |ux vy|)
//	  <= |u|²|v||d| + |v|²|u||d| + l|u||v|             (Cauchy)
//	  <= |u||v| (|d| sqrt(2·size) + l)  <=  size/2 · (size + l/2 + l)
//
// which is below 3/4 size·(size + l): 8.25ε in all, and 9ε pay for the rounding
// of the bound. lost is what underflow can take, see exact.CircleLost: products
// lose at most 2^-1075 and are multiplied by less than 2^490.
type rounding struct {
	turn, circle, lost float64
	lattice            bool // both determinants are exact
}

const circleError = 9 * 0x1p-53

// latticeBits is the width of a lattice whose determinants are exact. Whole
// numbers below 2^12 in magnitude, as differences, have products below 2^24,
// squared lengths and cross products up to 2^25, a and b up to 2^38, each term
// up to 2^50, and the sum of three is below 2^52.
const latticeBits = 12

// roundingIn returns what holds for all points of c. Pixels and grids are on a
// lattice, and full of cocircular points that would otherwise all need exact
// arithmetic.
func roundingIn[T geom.Float](c geom.Cloud[T], b box) rounding {
	// Differences are below 2·farthest, so a squared length is below 2^483.
	const farthest = 0x1p240
	reach := max(math.Abs(b.x0), math.Abs(b.x1), math.Abs(b.y0), math.Abs(b.y1))
	switch {
	case reach > farthest:
		return rounding{turn: math.Inf(1), circle: math.Inf(1)} // always the exact functions
	case onLattice(c, b, reach):
		return rounding{lattice: true}
	}
	// Differences, their product and this are rounded: a few ε of the bound,
	// against the 8 that 2 OrientError is short of.
	turn := float64(2.125*exact.OrientError*(b.x1-b.x0))*(b.y1-b.y0) + 0x1p-1000
	return rounding{turn: turn, circle: circleError, lost: exact.CircleLost}
}

// onLattice reports whether all coordinates are multiples of a unit that is a
// power of two and at least the size of the box / 2^latticeBits. Points of most other
// clouds say no at once.
func onLattice[T geom.Float](c geom.Cloud[T], b box, reach float64) bool {
	_, exp := math.Frexp(max(b.x1-b.x0, b.y1-b.y0))
	unit := math.Ldexp(1, exp-latticeBits)
	// The fourth power of a unit must not underflow; multiples beyond 2^50 are
	// not what adding magic rounds to.
	if unit < 0x1p-200 || reach >= 0x1p50*unit {
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
