package delaunay

import (
	"math"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// rounding bounds the error of the determinant in Triangulator.inside, by a
// share of its permanent and a constant.
type rounding struct {
	relative, absolute float64
	none               bool // the determinant is exact
}

// latticeBits is the width of a lattice whose determinants are exact. Whole
// numbers below 2^12 in magnitude, as differences, have products below 2^24, squared
// lengths and cross products up to 2^25, products of these up to 2^50, and
// the sum of three is below 2^52.
const latticeBits = 12

// roundingIn returns what holds for all points of c. Pixels and grids are on a
// lattice, and full of cocircular points that would otherwise all need exact
// arithmetic.
func roundingIn[T geom.Float](c geom.Cloud[T], b box) rounding {
	// Differences are below 2·farthest, so three squared lengths add up to less
	// than 24·farthest², far below exact.CircleLimit.
	const farthest = 0x1p240
	reach := max(math.Abs(b.x0), math.Abs(b.x1), math.Abs(b.y0), math.Abs(b.y1))
	if reach > farthest {
		return rounding{relative: math.Inf(1)} // always exact.InCircle
	}
	if onLattice(c, b, reach) {
		return rounding{none: true}
	}
	return rounding{relative: exact.CircleError, absolute: exact.CircleLost}
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
