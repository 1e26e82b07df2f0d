package exact

import "math/bits"

// The narrow stage in space, as in the plane: differences that are floats without
// error become integers, multiples of their common unit.

const (
	// sphereWordBits is the largest width of a difference in sphereWords: a volume
	// then has 3·20 + 3 bits and a sign, the sum of four volumes times squared
	// lengths 5·20 + 7 bits and a sign. A minor has twice as many bits as a
	// difference, so volumeWords takes differences of up to wordBits.
	sphereWordBits = 20
	// spaceBits is the largest width of a difference in the long form: a volume
	// then has 3·62 + 3 bits and a sign, in three limbs; the sum of four volumes
	// times squared lengths has 5·62 + 7 bits and a sign, in five limbs.
	spaceBits = 62
)

// orient3DNarrow is Orient3D without the filter, for a, b, c, d in v.
func orient3DNarrow(v *[12]float64) int {
	var d [9]float64
	if !differences(d[:], v[:]) {
		return orient3DWide(v)
	}
	// Seen from the last point, the others turn the other way round.
	var n [9]int64
	if words(n[:], d[:], wordBits) {
		return -volumeWords(&n)
	}
	unit, width := span(d[:])
	if width > spaceBits {
		return orient3DWide(v)
	}
	integers(n[:], d[:], unit)
	return -volume(n[0:3], n[3:6], n[6:9]).sign()
}

// sphereNarrow is InSphere without the filter, for a, b, c, d, e in v.
func sphereNarrow(v *[15]float64) int {
	var d [12]float64
	if !differences(d[:], v[:]) {
		return sphereWide(v)
	}
	var n [12]int64
	if words(n[:], d[:], sphereWordBits) {
		return sphereWords(&n)
	}
	unit, width := span(d[:])
	if width > spaceBits {
		return sphereWide(v)
	}
	integers(n[:], d[:], unit)
	return sphereIntegers(&n)
}

// differences sets d to the points of v, three coordinates each, minus the last
// point. It reports whether all differences are exact.
func differences(d, v []float64) bool {
	x, y, z := v[len(d)], v[len(d)+1], v[len(d)+2]
	for ; len(d) >= 3 && len(v) >= 3; d, v = d[3:], v[3:] {
		if !exactDiff(v[0], x) || !exactDiff(v[1], y) || !exactDiff(v[2], z) {
			return false
		}
		d[0], d[1], d[2] = v[0]-x, v[1]-y, v[2]-z
	}
	return true
}

// volumeWords returns the sign of the determinant of three rows of numbers below
// 2^wordBits.
func volumeWords(n *[9]int64) int {
	p, q, r := n[0:3], n[3:6], n[6:9]
	var sum pair
	sum.addProduct(p[2], q[0]*r[1]-r[0]*q[1])
	sum.addProduct(q[2], r[0]*p[1]-p[0]*r[1])
	sum.addProduct(r[2], p[0]*q[1]-q[0]*p[1])
	return sum.sign()
}

// sphereWords returns the sign of InSphere's determinant from differences below
// 2^sphereWordBits.
func sphereWords(n *[12]int64) int {
	a, b, c, d := n[0:3], n[3:6], n[6:9], n[9:12]
	ab, bc, cd := a[0]*b[1]-b[0]*a[1], b[0]*c[1]-c[0]*b[1], c[0]*d[1]-d[0]*c[1]
	da, ac, bd := d[0]*a[1]-a[0]*d[1], a[0]*c[1]-c[0]*a[1], b[0]*d[1]-d[0]*b[1]
	var sum pair
	sum.addProduct(squaredWord(a), b[2]*cd-c[2]*bd+d[2]*bc)
	sum.addProduct(squaredWord(b), -(c[2]*da + d[2]*ac + a[2]*cd))
	sum.addProduct(squaredWord(c), d[2]*ab+a[2]*bd+b[2]*da)
	sum.addProduct(squaredWord(d), -(a[2]*bc - b[2]*ac + c[2]*ab))
	return sum.sign()
}

func squaredWord(p []int64) int64 { return p[0]*p[0] + p[1]*p[1] + p[2]*p[2] }

// sphereIntegers is sphereWords for differences below 2^spaceBits.
func sphereIntegers(n *[12]int64) int {
	var sum [5]uint64
	for i := range 4 {
		var lift pair
		for _, f := range n[3*i : 3*i+3] {
			lift.addProduct(f, f)
		}
		addLong(&sum, lift, volume(others(n, i)))
	}
	return sign(sum[:])
}

// others returns the three points of n other than point i, in an order such that the
// sum over i of their volume times the squared length of point i is InSphere's
// determinant.
func others(n *[12]int64, i int) (p, q, r []int64) {
	a, b, c, d := n[0:3], n[3:6], n[6:9], n[9:12]
	switch i {
	case 0:
		return b, c, d
	case 1:
		return c, a, d
	case 2:
		return d, a, b
	}
	return b, a, c
}

// triple is a three-limb integer in two's complement.
type triple [3]uint64

func (t triple) sign() int { return sign(t[:]) }

// volume returns the determinant of three rows of numbers below 2^spaceBits.
func volume(p, q, r []int64) (sum triple) {
	addVolume(&sum, p[2], q, r)
	addVolume(&sum, q[2], r, p)
	addVolume(&sum, r[2], p, q)
	return sum
}

// addVolume adds z·(p × q) to sum, where p × q is the cross product in x and y.
func addVolume(sum *triple, z int64, p, q []int64) {
	h, l := mulSigned(p[0], q[1])
	h2, l2 := mulSigned(q[0], p[1])
	l, borrow := bits.Sub64(l, l2, 0)
	h, _ = bits.Sub64(h, h2, borrow)

	// As unsigned numbers, a negative minor is 2^128 too large and a negative z
	// 2^64: the other factor is subtracted at that place.
	p1, p0 := bits.Mul64(l, uint64(z))
	p2, m := bits.Mul64(h, uint64(z))
	p1, carry := bits.Add64(p1, m, 0)
	p2 += carry
	p2 -= uint64(z) & uint64(int64(h)>>63)
	negative := uint64(z >> 63)
	p1, borrow = bits.Sub64(p1, l&negative, 0)
	p2, _ = bits.Sub64(p2, h&negative, borrow)

	sum[0], carry = bits.Add64(sum[0], p0, 0)
	sum[1], carry = bits.Add64(sum[1], p1, carry)
	sum[2], _ = bits.Add64(sum[2], p2, carry)
}

// addLong adds lift·v to sum, for a lift that is not negative.
func addLong(sum *[5]uint64, lift pair, v triple) {
	var product [5]uint64
	for i, f := range [2]uint64{lift.lo, lift.hi} {
		var carry uint64
		for j, g := range v {
			hi, lo := bits.Mul64(f, g)
			var c uint64
			lo, c = bits.Add64(lo, carry, 0)
			hi += c
			product[i+j], c = bits.Add64(product[i+j], lo, 0)
			carry = hi + c
		}
		product[i+3] = carry
	}
	// As an unsigned number a negative v is 2^192 too large.
	negative := uint64(int64(v[2]) >> 63)
	var borrow uint64
	product[3], borrow = bits.Sub64(product[3], lift.lo&negative, 0)
	product[4], _ = bits.Sub64(product[4], lift.hi&negative, borrow)
	add(sum[:], product[:], plus)
}
