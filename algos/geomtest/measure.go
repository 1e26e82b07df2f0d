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
	points, exp := scaledPoints(c, idx)
	twice, perimeter := new(big.Int), new(big.Float).SetPrec(rootBits)
	for k, p := range points {
		q := points[(k+1)%len(points)]
		twice.Add(twice, mul(p[0], q[1]))
		twice.Sub(twice, mul(p[1], q[0]))
		perimeter.Add(perimeter, length(minus(q, p)))
	}
	return timesPower(big.NewRat(1, 2), twice, 2*exp), perimeter.SetMantExp(perimeter, exp)
}

// MeasureExact3 returns the area of a closed surface to 256 bits, and the volume inside as
// a rational. faces names the corners of its triangles, three indices of c each.
func MeasureExact3[T geom.Float](c geom.Cloud[T], faces []int32) (area *big.Float, volume *big.Rat) {
	points, exp := scaledPoints(c, faces)
	area, sum := new(big.Float).SetPrec(rootBits), new(big.Int)
	for ; len(points) > 0; points = points[3:] {
		p := points[0]
		u, v := minus(points[1], p), minus(points[2], p)
		var normal [3]*big.Int
		for d := range normal {
			i, j := (d+1)%3, (d+2)%3
			normal[d] = sub(mul(u[i], v[j]), mul(u[j], v[i]))
			sum.Add(sum, mul(normal[d], p[d]))
		}
		area.Add(area, length(normal))
	}
	return area.SetMantExp(area, 2*exp-1), timesPower(big.NewRat(1, 6), sum, 3*exp)
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

// scaledPoints returns the points that idx names as integers times 2^exp, with z 0 where c
// has none. Integers have no common divisors to look for, as rationals have.
func scaledPoints[T geom.Float](c geom.Cloud[T], idx []int32) (points [][3]*big.Int, exp int) {
	values := make([]float64, 0, 3*len(idx))
	for _, i := range idx {
		for _, axis := range [3][]T{c.X, c.Y, c.Z} {
			v := 0.0
			if axis != nil {
				v = float64(axis[i])
			}
			values = append(values, v)
		}
	}
	whole, exp := scaled(values)
	for k := range idx {
		points = append(points, [3]*big.Int(whole[3*k:]))
	}
	return points, exp
}

// timesPower returns r·m·2^exp.
func timesPower(r *big.Rat, m *big.Int, exp int) *big.Rat {
	power := new(big.Int).Lsh(big.NewInt(1), uint(max(exp, -exp)))
	r.Mul(r, new(big.Rat).SetInt(m))
	if exp < 0 {
		return r.Quo(r, new(big.Rat).SetInt(power))
	}
	return r.Mul(r, new(big.Rat).SetInt(power))
}

func minus(p, q [3]*big.Int) (v [3]*big.Int) {
	for d := range v {
		v[d] = sub(p[d], q[d])
	}
	return v
}

func length(v [3]*big.Int) *big.Float {
	square := new(big.Int)
	for _, c := range v {
		square.Add(square, mul(c, c))
	}
	f := new(big.Float).SetPrec(rootBits).SetInt(square)
	return f.Sqrt(f)
}
