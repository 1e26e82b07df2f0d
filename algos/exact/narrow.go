package exact

import (
	"math"
	"math/bits"
)

// The narrow stage: differences of coordinates that are floats without error. That
// holds for coordinates of pixels, grids and most float32 clouds, and for most
// neighbours in any cloud. Differences of up to 30 bits, as on every grid, are
// multiplied in machine words, longer differences in a few limbs.

const (
	// wordBits is the largest width of a difference in circleWords: a squared
	// length and a cross product then have 61 bits, the sum of three of their
	// products 124 bits and a sign.
	wordBits = 30
	// circleBits is the largest width of a difference in circleIntegers: the sum
	// of three products of four differences then has 4·62 + 4 bits and a sign.
	circleBits = 62
	// productMin is the least magnitude from which on the error of a rounded
	// product is a float: a multiple of 2^-1074.
	productMin = 0x1p-960
)

// orientNarrow is Orient2D without the filter.
func orientNarrow(ax, ay, bx, by, cx, cy float64) int {
	if exactDiff(ax, cx) && exactDiff(ay, cy) && exactDiff(bx, cx) && exactDiff(by, cy) {
		acx, acy, bcx, bcy := ax-cx, ay-cy, bx-cx, by-cy
		l, r := float64(acx*bcy), float64(acy*bcx)
		// Rounding keeps the order of numbers, so rounded products that differ
		// have the order of the exact products. Equal rounded products have the
		// order of their rounding errors, which are floats unless they underflow.
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

// circleNarrow is InCircle without the filter, for a, b, c, d in v.
func circleNarrow(v *[8]float64) int {
	var d [6]float64
	for i := 0; i < len(d); i += 2 {
		if !exactDiff(v[i], v[6]) || !exactDiff(v[i+1], v[7]) {
			return circleWide(v)
		}
		d[i], d[i+1] = v[i]-v[6], v[i+1]-v[7]
	}
	var n [6]int64
	if words(n[:], d[:], wordBits) {
		return circleWords(&n)
	}
	unit, width := span(d[:])
	if width > circleBits {
		return circleWide(v)
	}
	integers(n[:], d[:], unit)
	return circleIntegers(&n)
}

// exactDiff reports whether a - b is exact: then, and only then, both operands can
// be computed back from it. It is false for an overflow and for NaN.
func exactDiff(a, b float64) bool {
	d := a - b
	return d+b == a && a-d == b
}

// words sets n to d in a common unit in which the largest value fills the given
// number of bits. It returns false where a value is no multiple of that unit, and
// near the ends of the range.
func words(n []int64, d []float64, bits uint64) bool {
	const mask, minExp, maxExp = 0x7ff << 52, 64, 2046 - 64
	var top uint64
	for _, f := range d {
		top = max(top, math.Float64bits(f)&mask)
	}
	exp := top >> 52 // the largest value is below 2^(exp-1022)
	if exp < minExp || exp > maxExp {
		return false
	}
	scale := math.Float64frombits((2045 - exp + bits) << 52)
	unit := math.Float64frombits((exp + 1 - bits) << 52)
	whole := true
	for i, f := range d[:len(n)] {
		n[i] = int64(f * scale)
		whole = whole && float64(n[i])*unit == f // exact, while f·scale could underflow
	}
	return whole
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

// span returns the largest unit that divides all of v, as an exponent of two, and
// the width in bits of the largest multiple: at most 2098 for finite values, at
// least 2098 for others.
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

// integers sets n to v / 2^unit, for |v| < 2^(63+unit) and v a multiple of 2^unit.
func integers(n []int64, v []float64, unit int) {
	for i, f := range v {
		m, exp := split(f)
		n[i] = int64(m << ((exp - unit) & 63))
		if f < 0 {
			n[i] = -n[i]
		}
	}
}

// circleWords returns the sign of InCircle's determinant from the differences to d,
// each below 2^wordBits.
func circleWords(n *[6]int64) int {
	ax, ay, bx, by, cx, cy := n[0], n[1], n[2], n[3], n[4], n[5]
	var sum pair
	sum.addProduct(ax*ax+ay*ay, bx*cy-by*cx)
	sum.addProduct(bx*bx+by*by, cx*ay-cy*ax)
	sum.addProduct(cx*cx+cy*cy, ax*by-ay*bx)
	return sum.sign()
}

// pair is a two-limb integer in two's complement.
type pair struct{ hi, lo uint64 }

func (p *pair) addProduct(a, b int64) {
	h, l := mulSigned(a, b)
	var carry uint64
	p.lo, carry = bits.Add64(p.lo, l, 0)
	p.hi, _ = bits.Add64(p.hi, h, carry)
}

func (p *pair) sign() int {
	switch {
	case int64(p.hi) < 0:
		return -1
	case p.hi|p.lo != 0:
		return 1
	}
	return 0
}

// circleIntegers is circleWords for differences below 2^circleBits.
func circleIntegers(n *[6]int64) int {
	ax, ay, bx, by, cx, cy := n[0], n[1], n[2], n[3], n[4], n[5]
	var sum [4]uint64
	addLifted(&sum, ax, ay, bx, by, cx, cy)
	addLifted(&sum, bx, by, cx, cy, ax, ay)
	addLifted(&sum, cx, cy, ax, ay, bx, by)
	return sign(sum[:])
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

	// |p|² times the cross product as an unsigned number. For a negative cross
	// product that number is 2^128 too large, so |p|² is subtracted from the upper
	// half.
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
