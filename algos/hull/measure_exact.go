package hull

import (
	"math"
	"math/big"

	"entropipe/algos/geom"
)

// The measures in exact arithmetic, for the hulls whose measures the bounds of
// measure.go do not prove. Coordinates become integers, multiples of a unit, the
// power of two that divides all of them. The integers have up to 2,150 bits where
// magnitudes differ as widely as float64 allows, and some hundred bits for an
// ordinary flat cloud.

// sumBits is the precision of sums of roots, and of dividends.
const sumBits = 128

// exactArea returns the signed area of the polygon, rounded once; it is negative
// where the polygon turns clockwise.
func exactArea[T geom.Float](c geom.Cloud[T], idx []int32) float64 {
	unit := unitOf(unitOf(math.MaxInt, c.X, idx), c.Y, idx)
	at := func(p *point3, i int32) { p.set(float64(c.X[i]), float64(c.Y[i]), 0, unit) }
	var o, normal point3
	at(&o, idx[0])
	p, q := new(point3), new(point3)
	var twice big.Int
	for _, i := range idx[1:] {
		at(q, i)
		q.less(&o)
		normal.cross(p, q)
		twice.Add(&twice, &normal[2])
		p, q = q, p
	}
	return rounded(whole(&twice), 2, 2*unit)
}

// exactSurface returns the area of the surface, off by less than 3 roundings, and
// its volume, rounded once.
func exactSurface[T geom.Float](c geom.Cloud[T], faces []int32) (area, volume float64) {
	unit := unitOf(unitOf(unitOf(math.MaxInt, c.X, faces), c.Y, faces), c.Z, faces)
	at := func(p *point3, i int32) { p.set(float64(c.X[i]), float64(c.Y[i]), float64(c.Z[i]), unit) }
	var o, p, q, r, normal point3
	at(&o, faces[0])
	twice := new(big.Float).SetPrec(sumBits)
	var six, part big.Int
	for k := 0; k+2 < len(faces); k += 3 {
		at(&p, faces[k])
		at(&q, faces[k+1])
		at(&r, faces[k+2])
		q.less(&p)
		r.less(&p)
		p.less(&o)
		normal.cross(&q, &r)
		normal.dot(&part, &normal)
		twice.Add(twice, root(&part))
		normal.dot(&part, &p)
		six.Add(&six, &part)
	}
	return rounded(twice, 2, 2*unit), rounded(whole(&six), 6, 3*unit)
}

// unitOf returns the least of unit and the exponents of the last bits of v[i] for
// all i in idx. Zeros have no bits.
func unitOf[T geom.Float](unit int, v []T, idx []int32) int {
	for _, i := range idx {
		if f := float64(v[i]); f != 0 {
			_, e := math.Frexp(f)
			unit = min(unit, e-53)
		}
	}
	return unit
}

// point3 is a point or vector of integers, whose memory is used again.
type point3 [3]big.Int

// set makes p the point x, y, z in multiples of 2^unit, which divides all three.
func (p *point3) set(x, y, z float64, unit int) {
	for d, v := range [3]float64{x, y, z} {
		m, e := math.Frexp(v)
		p[d].SetInt64(int64(math.Ldexp(m, 53)))
		if v != 0 {
			p[d].Lsh(&p[d], uint(e-53-unit))
		}
	}
}

// less subtracts q from p.
func (p *point3) less(q *point3) {
	for d := range p {
		p[d].Sub(&p[d], &q[d])
	}
}

// cross sets n to the cross product of p and q. n is neither p nor q.
func (n *point3) cross(p, q *point3) {
	var product big.Int
	for d := range n {
		i, j := (d+1)%3, (d+2)%3
		n[d].Mul(&p[i], &q[j])
		n[d].Sub(&n[d], product.Mul(&p[j], &q[i]))
	}
}

// dot sets sum to the dot product of p and q.
func (p *point3) dot(sum *big.Int, q *point3) {
	sum.SetInt64(0)
	var product big.Int
	for d := range p {
		sum.Add(sum, product.Mul(&p[d], &q[d]))
	}
}

// whole returns v, rounded to sumBits.
func whole(v *big.Int) *big.Float { return new(big.Float).SetPrec(sumBits).SetInt(v) }

// root returns the square root of v, off by at most 3/2 of 2^-53 of itself: v is
// rounded to a float64, and so is the root.
func root(v *big.Int) *big.Float {
	m := new(big.Float).SetPrec(53).SetInt(v)
	e := m.MantExp(m)
	f, _ := m.Float64()
	if e%2 != 0 {
		f, e = 2*f, e-1
	}
	r := new(big.Float).SetFloat64(math.Sqrt(f))
	return r.SetMantExp(r, e/2)
}

// rounded returns v·2^exponent / by as a float64.
func rounded(v *big.Float, by float64, exponent int) float64 {
	v.Quo(v, new(big.Float).SetFloat64(by))
	f, _ := v.SetMantExp(v, exponent).Float64()
	return f
}
