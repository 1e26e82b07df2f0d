package exact

import (
	"math"
	"math/bits"
)

// The narrow stage: the differences of coordinates are floats again, without
// error, as they are for coordinates that come from pixels, grids or float32
// and for most neighbours in any cloud.

const (
	// circleBits is what a difference may have in circleIntegers: the sum of
	// three products of four then has 4·62 + 4 bits and a sign.
	circleBits = 62
	// productMin is a magnitude from which on the error of a rounded product is
	// a float: a multiple of 2^-1074.
	productMin = 0x1p-960
)

func orientNarrow(ax, ay, bx, by, cx, cy float64) int {
	if exactDiff(ax, cx) && exactDiff(ay, cy) && exactDiff(bx, cx) && exactDiff(by, cy) {
		acx, acy, bcx, bcy := ax-cx, ay-cy, bx-cx, by-cy
		l, r := float64(acx*bcy), float64(acy*bcx)
		// Rounding keeps the order of numbers, so rounded products that differ
		// have the order of the exact ones; equal ones have the order of what
		// rounding took from them, which is a float if it does not underflow.
		switch m := math.Abs(l); {
		case l != r:
			return compare(l, r)
		case m > productMin && m <= math.MaxFloat64:
			return compare(math.FMA(acx, bcy, -l), math.FMA(acy, bcx, -r))
		case (acx == 0 || bcy == 0) && (acy == 0 || bcx == 0):
			return 0
		}
	}
	return orientWide(&[6]float64{ax, ay, bx, by, cx, cy})
}

func compare(l, r float64) int {
	switch {
	case l > r:
		return 1
	case l < r:
		return -1
	}
	return 0
}

func circleNarrow(ax, ay, bx, by, cx, cy, dx, dy float64) int {
	if exactDiff(ax, dx) && exactDiff(ay, dy) && exactDiff(bx, dx) &&
		exactDiff(by, dy) && exactDiff(cx, dx) && exactDiff(cy, dy) {
		d := [6]float64{ax - dx, ay - dy, bx - dx, by - dy, cx - dx, cy - dy}
		if unit, width := span(d[:]); width <= circleBits {
			return circleIntegers(
				integer(d[0], unit), integer(d[1], unit),
				integer(d[2], unit), integer(d[3], unit),
				integer(d[4], unit), integer(d[5], unit))
		}
	}
	return circleWide(&[8]float64{ax, ay, bx, by, cx, cy, dx, dy})
}

// exactDiff reports whether a - b suffered no rounding: then, and only then,
// both operands come back from it. (An overflow or NaN does not.)
func exactDiff(a, b float64) bool {
	d := a - b
	return d+b == a && a-d == b
}

// split returns the mantissa of |v| without trailing zeros, and its exponent:
// |v| = m · 2^exp. Zero gives m = 0.
func split(v float64) (m uint64, exp int) {
	b := math.Float64bits(v)
	m, exp = b&(1<<52-1), int(b>>52&0x7ff)
	if exp != 0 {
		m |= 1 << 52
	} else {
		exp = 1 // denormal
	}
	zeros := bits.TrailingZeros64(m)
	return m >> (zeros & 63), exp + zeros - 1075
}

// span returns the largest unit that all of v are multiples of, as an exponent
// of two, and the number of bits of the largest of their multiples, at most
// 2098 for finite values and at least that for others.
func span(v []float64) (unit, width int) {
	unit, top := math.MaxInt, math.MinInt
	for _, f := range v {
		if f == 0 {
			continue
		}
		m, exp := split(f)
		unit, top = min(unit, exp), max(top, exp+bits.Len64(m))
	}
	if unit == math.MaxInt {
		return 0, 0
	}
	return unit, top - unit
}

// integer returns v / 2^unit, for |v| < 2^(63+unit) and a multiple of it.
func integer(v float64, unit int) int64 {
	m, exp := split(v)
	n := int64(m << ((exp - unit) & 63))
	if v < 0 {
		return -n
	}
	return n
}

// circleIntegers is the sign of InCircle's determinant from the differences to
// d, each below 2^circleBits.
func circleIntegers(ax, ay, bx, by, cx, cy int64) int {
	var sum [4]uint64
	addLifted(&sum, ax, ay, bx, by, cx, cy)
	addLifted(&sum, bx, by, cx, cy, ax, ay)
	addLifted(&sum, cx, cy, ax, ay, bx, by)
	switch {
	case int64(sum[3]) < 0:
		return -1
	case sum[0]|sum[1]|sum[2]|sum[3] != 0:
		return 1
	}
	return 0
}

// addLifted adds |p|² (q × r) to sum, an integer in two's complement.
func addLifted(sum *[4]uint64, px, py, qx, qy, rx, ry int64) {
	lh, ll := mulSigned(px, px)
	h, l := mulSigned(py, py)
	ll, carry := bits.Add64(ll, l, 0)
	lh, _ = bits.Add64(lh, h, carry)

	ch, cl := mulSigned(qx, ry)
	h, l = mulSigned(qy, rx)
	cl, borrow := bits.Sub64(cl, l, 0)
	ch, _ = bits.Sub64(ch, h, borrow)

	// |p|² times the cross product as an unsigned number; where it is negative
	// that number is 2^128 too large, so |p|² is taken off the upper half.
	h00, p0 := bits.Mul64(ll, cl)
	h01, l01 := bits.Mul64(ll, ch)
	h10, l10 := bits.Mul64(lh, cl)
	p3, l11 := bits.Mul64(lh, ch)
	p1, c1 := bits.Add64(h00, l01, 0)
	p2, c2 := bits.Add64(h01, l11, c1)
	p3 += c2
	p1, c1 = bits.Add64(p1, l10, 0)
	p2, c2 = bits.Add64(p2, h10, c1)
	p3 += c2
	negative := uint64(int64(ch) >> 63)
	p2, borrow = bits.Sub64(p2, ll&negative, 0)
	p3, _ = bits.Sub64(p3, lh&negative, borrow)

	sum[0], carry = bits.Add64(sum[0], p0, 0)
	sum[1], carry = bits.Add64(sum[1], p1, carry)
	sum[2], carry = bits.Add64(sum[2], p2, carry)
	sum[3], _ = bits.Add64(sum[3], p3, carry)
}

// mulSigned returns a·b in two's complement.
func mulSigned(a, b int64) (hi, lo uint64) {
	hi, lo = bits.Mul64(uint64(a), uint64(b))
	hi -= uint64(a>>63)&uint64(b) + uint64(b>>63)&uint64(a)
	return hi, lo
}
