package exact

import "math/bits"

// The wide stage: all coordinates as integers of k limbs over their common
// unit, on the stack. It takes any finite floats and is the last resort, so it
// is written with plain loops. A number here is a slice of limbs, the least
// first, either a magnitude with its sign beside it or two's complement.

const (
	// wideBits is what the sums of the wide stage need above the bits of a
	// coordinate w: a difference w+1, |p|² and q × r 2w+3, their product 4w+6,
	// the sum of three 4w+8, with its sign 4w+9, at most 4·64k.
	wideBits = 3
	// maxLimbs holds all of float64, 2^-1074 to below 2^1024; 2099 bits are
	// what non-finite values, which look like 2^1024, can ask for.
	maxLimbs = (2099 + wideBits + 63) / 64
	// orientRoom and circleRoom count the limbs of scratch for k = 1.
	orientRoom = 1 + 4*1 + 2*2
	circleRoom = 1 + 6*1 + 3*2 + 4 + 4
)

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

// orientLimbs is the sign of (a - c) × (b - c).
func orientLimbs(v *[6]float64, unit, k int, room []uint64) int {
	s := scratch{room}
	t := s.take(k)
	acx, acy := s.diff(v[0], v[4], unit, t), s.diff(v[1], v[5], unit, t)
	bcx, bcy := s.diff(v[2], v[4], unit, t), s.diff(v[3], v[5], unit, t)
	product, sum := s.take(2*k), s.take(2*k)
	addProduct(sum, product, acx, bcy, false)
	addProduct(sum, product, acy, bcx, true)
	return sign(sum)
}

// circleLimbs is the sign of InCircle's determinant.
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
		addProduct(lift, square, x[p], x[p], false)
		addProduct(lift, square, y[p], y[p], false)
		clear(cross)
		addProduct(cross, square, x[q], y[r], false)
		addProduct(cross, square, y[q], x[r], true)
		negative := sign(cross) < 0
		if negative {
			negate(cross)
		}
		addProduct(sum, product, magnitude{lift, false}, magnitude{cross, negative}, false)
	}
	return sign(sum)
}

// magnitude is an integer as its absolute value and its sign.
type magnitude struct {
	limbs    []uint64
	negative bool
}

// scratch hands out limbs, all zero.
type scratch struct{ room []uint64 }

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
	add(sum, t, v < 0)
}

// addProduct adds a·b to sum, or takes it off. The product, of len(sum) limbs
// as are the two factors together, overwrites product. Limbs of zero at either
// end of a factor, which are most where magnitudes differ, are not multiplied.
func addProduct(sum, product []uint64, a, b magnitude, minus bool) {
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
	add(sum, product, minus != (a.negative != b.negative))
}

// trim returns v without its limbs of zero at the ends, and how many were at
// the lower one.
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

// add adds v to sum, or takes it off.
func add(sum, v []uint64, minus bool) {
	carry, flip := uint64(0), uint64(0)
	if minus { // -v is ^v + 1
		carry, flip = 1, ^uint64(0)
	}
	for i := range sum {
		sum[i], carry = bits.Add64(sum[i], v[i]^flip, carry)
	}
}

func negate(v []uint64) {
	carry := uint64(1)
	for i := range v {
		v[i], carry = bits.Add64(^v[i], 0, carry)
	}
}

// sign is that of a number in two's complement.
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
