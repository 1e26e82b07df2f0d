package exact

import "math/bits"

// The wide stage: all coordinates as integers of k limbs, multiples of their common
// unit, on the stack. It takes any finite floats and is the last resort, so it is
// written with plain loops. A number is a slice of limbs, the least limb first,
// either a magnitude with its sign beside it or in two's complement.

const (
	// wideBits is the number of bits that the wide stage adds to the width w of a
	// coordinate: a difference has w+1 bits, |p|² and q × r have 2w+3, their
	// product 4w+6, the sum of three products 4w+8, with its sign 4w+9, at most
	// 4·64k.
	wideBits = 3
	// maxLimbs is enough for all of float64, 2^-1074 to below 2^1024, and for
	// values that are not finite: they look like 2^1024 and ask for 2099 bits.
	maxLimbs = (2099 + wideBits + 63) / 64
	// orientRoom and circleRoom are the numbers of limbs of scratch for k = 1.
	orientRoom = 1 + 4*1 + 2*2
	circleRoom = 1 + 6*1 + 3*2 + 4 + 4
)

// orientWide is Orient2D for any finite coordinates.
func orientWide(v *[6]float64) int {
	unit, width := span(v[:])
	switch k := (width + wideBits + 63) / 64; {
	case k <= 2:
		var room [2 * orientRoom]uint64
		return orientLimbs(v, unit, k, room[:])
	default:
		var room [maxLimbs * orientRoom]uint64
		return orientLimbs(v, unit, k, room[:])
	}
}

// circleWide is InCircle for any finite coordinates.
func circleWide(v *[8]float64) int {
	unit, width := span(v[:])
	switch k := (width + wideBits + 63) / 64; {
	case k <= 2:
		var room [2 * circleRoom]uint64
		return circleLimbs(v, unit, k, room[:])
	default:
		var room [maxLimbs * circleRoom]uint64
		return circleLimbs(v, unit, k, room[:])
	}
}

// orientLimbs returns the sign of (a - c) × (b - c), in k limbs a coordinate.
func orientLimbs(v *[6]float64, unit, k int, room []uint64) int {
	s := scratch{room}
	t := s.take(k)
	acx, acy := s.diff(v[0], v[4], unit, t), s.diff(v[1], v[5], unit, t)
	bcx, bcy := s.diff(v[2], v[4], unit, t), s.diff(v[3], v[5], unit, t)
	product, sum := s.take(2*k), s.take(2*k)
	addProduct(sum, product, acx, bcy, plus)
	addProduct(sum, product, acy, bcx, minus)
	return sign(sum)
}

// circleLimbs returns the sign of InCircle's determinant, in k limbs a coordinate.
func circleLimbs(v *[8]float64, unit, k int, room []uint64) int {
	s := scratch{room}
	t := s.take(k)
	var x, y [3]magnitude
	for i := range 3 {
		x[i], y[i] = s.diff(v[2*i], v[6], unit, t), s.diff(v[2*i+1], v[7], unit, t)
	}
	square, cross, lift := s.take(2*k), s.take(2*k), s.take(2*k)
	product, sum := s.take(4*k), s.take(4*k)
	for p := range 3 {
		q, r := (p+1)%3, (p+2)%3
		clear(lift)
		addProduct(lift, square, x[p], x[p], plus)
		addProduct(lift, square, y[p], y[p], plus)
		clear(cross)
		addProduct(cross, square, x[q], y[r], plus)
		addProduct(cross, square, y[q], x[r], minus)
		negative := sign(cross) < 0
		if negative {
			negate(cross)
		}
		addProduct(sum, product, magnitude{lift, false}, magnitude{cross, negative}, plus)
	}
	return sign(sum)
}

// operation says whether a term is added or subtracted. It is a mask: with carry in,
// ^v adds -v to a sum.
type operation uint64

const (
	plus  operation = 0
	minus           = ^plus
)

// magnitude is an integer, as its absolute value and its sign.
type magnitude struct {
	limbs    []uint64
	negative bool
}

// scratch is memory for limbs, all zero.
type scratch struct{ room []uint64 }

// take returns k limbs that are zero.
func (s *scratch) take(k int) []uint64 {
	limbs := s.room[:k:k]
	s.room = s.room[k:]
	return limbs
}

// diff returns (a - b) / 2^unit; t is overwritten.
func (s *scratch) diff(a, b float64, unit int, t []uint64) magnitude {
	d := s.take(len(t))
	addFloat(d, t, a, unit)
	addFloat(d, t, -b, unit)
	negative := sign(d) < 0
	if negative {
		negate(d)
	}
	return magnitude{d, negative}
}

// addFloat adds v / 2^unit to sum; t, of the same length, is overwritten.
func addFloat(sum, t []uint64, v float64, unit int) {
	if v == 0 {
		return
	}
	m, exp := split(v)
	at, shift := (exp-unit)/64, (exp-unit)%64
	clear(t)
	t[at] = m << shift
	if high := m >> (64 - shift); high != 0 {
		t[at+1] = high
	}
	if v < 0 {
		add(sum, t, minus)
	} else {
		add(sum, t, plus)
	}
}

// addProduct adds a·b to sum or subtracts it, as op says. It overwrites product.
// sum, product, and a and b together, have equal numbers of limbs. Limbs of zero at
// either end of a factor, which are most limbs where magnitudes differ, are not
// multiplied.
func addProduct(sum, product []uint64, a, b magnitude, op operation) {
	clear(product)
	first, bLimbs := trim(b.limbs)
	for i, f := range a.limbs {
		if f == 0 {
			continue
		}
		row := product[i+first:]
		carry := uint64(0)
		for j, g := range bLimbs {
			hi, lo := bits.Mul64(f, g)
			var c uint64
			lo, c = bits.Add64(lo, carry, 0)
			hi += c
			row[j], c = bits.Add64(row[j], lo, 0)
			carry = hi + c
		}
		if len(bLimbs) > 0 {
			row[len(bLimbs)] = carry
		}
	}
	if a.negative != b.negative {
		op = ^op
	}
	add(sum, product, op)
}

// trim returns v without its limbs of zero at both ends, and the number of limbs
// dropped at the lower end.
func trim(v []uint64) (first int, limbs []uint64) {
	for first < len(v) && v[first] == 0 {
		first++
	}
	last := len(v)
	for last > first && v[last-1] == 0 {
		last--
	}
	return first, v[first:last]
}

// add adds v to sum, or subtracts it: -v is ^v + 1.
func add(sum, v []uint64, op operation) {
	carry := uint64(op & 1)
	for i := range sum {
		sum[i], carry = bits.Add64(sum[i], v[i]^uint64(op), carry)
	}
}

func negate(v []uint64) {
	carry := uint64(1)
	for i := range v {
		v[i], carry = bits.Add64(^v[i], 0, carry)
	}
}

// sign returns the sign of a number in two's complement.
func sign(v []uint64) int {
	if int64(v[len(v)-1]) < 0 {
		return -1
	}
	for _, limb := range v {
		if limb != 0 {
			return 1
		}
	}
	return 0
}
