package hull

import "math"

// double is a number of some 106 bits, the sum of two float64: hi is the rounded
// sum, lo the rounding error. The zero value is 0.
//
// Its operations are those of Dekker ("A floating-point technique for extending
// the available precision", 1971) and Knuth. Products are split by math.FMA,
// which is exact on every processor; every other product that meets an addition
// is rounded explicitly, so no compiler fuses it. Error bounds hold where
// nothing overflows, and up to what underflow takes.
type double struct{ hi, lo float64 }

// twoSum returns a + b, exactly.
func twoSum(a, b float64) double {
	s := a + b
	t := s - a
	return double{s, (a - (s - t)) + (b - t)}
}

// twoDifference returns a - b, exactly.
func twoDifference(a, b float64) double { return twoSum(a, -b) }

// twoProduct returns a·b, exactly.
func twoProduct(a, b float64) double {
	p := float64(a * b)
	return double{p, math.FMA(a, b, -p)}
}

// add returns a + b, off by at most 2·2^-106 of the result.
func (a double) add(b float64) double {
	s := twoSum(a.hi, b)
	return twoSum(s.hi, s.lo+a.lo)
}

// plus returns a + b, off by at most 4·2^-106·(|a| + |b|) and, where b.lo is
// larger than a rounding of b.hi, 2·2^-53 of b.lo.
func (a double) plus(b double) double {
	s := twoSum(a.hi, b.hi)
	return twoSum(s.hi, s.lo+(a.lo+b.lo))
}

// minor returns a·d - b·c, off by at most 16·2^-106 of the sum of the
// magnitudes of the two products.
//
// In units of 2^-106 of that sum: omitting the products of two low halves loses 1;
// the products with one low half, of size 4 at most, lose 3 when they are added
// and 2 when they are subtracted; the low halves of the products lose 1; the last
// two additions lose 3 and 4. That makes 14; 2 more cover higher orders.
func minor(a, b, c, d double) double {
	p, q := twoProduct(a.hi, d.hi), twoProduct(b.hi, c.hi)
	s := twoDifference(p.hi, q.hi)
	low := math.FMA(a.hi, d.lo, float64(a.lo*d.hi)) - math.FMA(b.hi, c.lo, float64(b.lo*c.hi))
	return twoSum(s.hi, s.lo+((p.lo-q.lo)+low))
}

// sumOfSquares returns a² + b² + c², rounded: off by little more than 2^-53 of
// itself.
func sumOfSquares(a, b, c double) float64 {
	p, q, r := twoProduct(a.hi, a.hi), twoProduct(b.hi, b.hi), twoProduct(c.hi, c.hi)
	s := twoSum(p.hi, q.hi)
	t := twoSum(s.hi, r.hi)
	low := math.FMA(a.hi, a.lo, math.FMA(b.hi, b.lo, float64(c.hi*c.lo)))
	return t.hi + ((s.lo + t.lo) + ((p.lo + q.lo + r.lo) + (low + low)))
}

// sumOfProducts returns a·d + b·e + c·f, off by at most 54·2^-106 of m, where m
// bounds the magnitude of each of the three products.
//
// In units of 2^-106 of m: each product omits 1 and loses 3 in its low half; adding
// the errors of the two sums loses 5, adding the low halves of the products 5,
// adding the products with one low half 10, and adding all of these 8 and 14.
func sumOfProducts(a, b, c, d, e, f double) double {
	p, q, r := twoProduct(a.hi, d.hi), twoProduct(b.hi, e.hi), twoProduct(c.hi, f.hi)
	s := twoSum(p.hi, q.hi)
	t := twoSum(s.hi, r.hi)
	low := math.FMA(a.hi, d.lo, float64(a.lo*d.hi)) +
		math.FMA(b.hi, e.lo, float64(b.lo*e.hi)) +
		math.FMA(c.hi, f.lo, float64(c.lo*f.hi))
	return twoSum(t.hi, ((s.lo+t.lo)+(p.lo+q.lo+r.lo))+low)
}
