package geomtest

import (
	"math"
	"math/big"

	"entropipe/algos/geom"
)

// rootBits is the precision of roots and of their sums, 200 bits more than that of
// float64.
const rootBits = 256

// MeasureExact returns the area of a polygon as a rational, and its perimeter to 256 bits.
// idx names its vertices, points of c, counter-clockwise. It ignores z.
func MeasureExact[T geom.Float](c geom.Cloud[T], idx []int32) (area *big.Rat, perimeter *big.Float) {
	c.Z = nil
	twice, perimeter := new(big.Rat), new(big.Float).SetPrec(rootBits)
	for k, i := range idx {
		p, q := rational(c, i), rational(c, idx[(k+1)%len(idx)])
		twice.Add(twice, times(p[0], q[1]))
		twice.Sub(twice, times(p[1], q[0]))
		edge := minus(q, p)
		perimeter.Add(perimeter, length(edge))
	}
	return twice.Quo(twice, big.NewRat(2, 1)), perimeter
}

// MeasureExact3 returns the area of a closed surface to 256 bits, and the volume inside as
// a rational. faces names the corners of its triangles, three indices of c each.
func MeasureExact3[T geom.Float](c geom.Cloud[T], faces []int32) (area *big.Float, volume *big.Rat) {
	area, volume = new(big.Float).SetPrec(rootBits), new(big.Rat)
	for ; len(faces) > 0; faces = faces[3:] {
		p, q, r := rational(c, faces[0]), rational(c, faces[1]), rational(c, faces[2])
		u, v := minus(q, p), minus(r, p)
		var normal [3]*big.Rat
		for d := range normal {
			i, j := (d+1)%3, (d+2)%3
			normal[d] = new(big.Rat).Sub(times(u[i], v[j]), times(u[j], v[i]))
			volume.Add(volume, times(normal[d], p[d]))
		}
		area.Add(area, length(normal))
	}
	return area.Quo(area, big.NewFloat(2)), volume.Quo(volume, big.NewRat(6, 1))
}

// Ulps returns |got - exact| in units in the last place; exact is a *big.Rat or a
// *big.Float. The unit is the distance of the float64 numbers around the exact value,
// subnormal numbers included. For an infinite got it returns 0 where the exact value is
// beyond the largest float64 or at most 4 units below it, otherwise +Inf. For NaN it
// returns +Inf.
func Ulps(got float64, exact any) float64 {
	want := new(big.Float).SetPrec(rootBits)
	switch e := exact.(type) {
	case *big.Rat:
		want.SetRat(e)
	case *big.Float:
		want.Set(e)
	}
	switch least := math.MaxFloat64 - 0x1p973; {
	case math.IsNaN(got):
		return math.Inf(1)
	case math.IsInf(got, 0):
		if got < 0 {
			want.Neg(want)
		}
		if want.Cmp(big.NewFloat(least)) >= 0 {
			return 0
		}
		return math.Inf(1)
	}
	unit := -1074
	if want.Sign() != 0 {
		unit = max(unit, min(want.MantExp(nil), 1024)-53)
	}
	off := new(big.Float).SetPrec(rootBits).Sub(new(big.Float).SetFloat64(got), want)
	ulps, _ := off.SetMantExp(off, -unit).Float64()
	return math.Abs(ulps)
}

// rational returns a point, with z 0 where c has none.
func rational[T geom.Float](c geom.Cloud[T], i int32) (p [3]*big.Rat) {
	for d, axis := range [3][]T{c.X, c.Y, c.Z} {
		if p[d] = new(big.Rat); axis != nil {
			p[d].SetFloat64(float64(axis[i]))
		}
	}
	return p
}

func times(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }

func minus(p, q [3]*big.Rat) (v [3]*big.Rat) {
	for d := range v {
		v[d] = new(big.Rat).Sub(p[d], q[d])
	}
	return v
}

func length(v [3]*big.Rat) *big.Float {
	square := new(big.Rat)
	for _, c := range v {
		square.Add(square, times(c, c))
	}
	f := new(big.Float).SetPrec(rootBits).SetRat(square)
	return f.Sqrt(f)
}
