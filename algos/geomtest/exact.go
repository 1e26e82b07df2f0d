package geomtest

import (
	"math"
	"math/big"
)

// OrientExact returns the sign of the turn a, b, c: +1 counter-clockwise, -1 clockwise,
// 0 collinear. It is exact for all finite coordinates. Cost: about 10 ns, or a few
// microseconds for coordinates that are almost collinear.
//
// The first test is deliberately loose: 1e-15 is several times the rounding error of the
// determinant, 1e-300 is far above the loss to underflow, and an overflow makes a
// comparison with Inf or NaN, which is false.
func OrientExact(ax, ay, bx, by, cx, cy float64) int {
	l := float64((ax - cx) * (by - cy))
	r := float64((ay - cy) * (bx - cx))
	e := 1e-15*(math.Abs(l)+math.Abs(r)) + 1e-300
	switch det := l - r; {
	case det > e:
		return 1
	case -det > e:
		return -1
	}
	return orientBig(ax, ay, bx, by, cx, cy)
}

func orientBig(ax, ay, bx, by, cx, cy float64) int {
	v := integers(ax, ay, bx, by, cx, cy)
	l := mul(sub(v[0], v[4]), sub(v[3], v[5]))
	r := mul(sub(v[1], v[5]), sub(v[2], v[4]))
	return l.Cmp(r)
}

// InCircleExact returns +1 when d lies inside the circle through a, b, c (a
// counter-clockwise triangle), -1 outside, 0 on it; the opposite signs for a
// clockwise triangle. It is exact for all finite coordinates. Cost: about 20 ns, or some
// microseconds for almost cocircular points.
func InCircleExact(ax, ay, bx, by, cx, cy, dx, dy float64) int {
	if s := inCircleFloat(ax-dx, ay-dy, bx-dx, by-dy, cx-dx, cy-dy); s != 0 {
		return s
	}
	return inCircleBig(ax, ay, bx, by, cx, cy, dx, dy)
}

// inCircleFloat returns InCircleExact for coordinates relative to d, or 0 where rounding
// could change the sign. 1e-14 is ten times the rounding error of the determinant.
func inCircleFloat(ax, ay, bx, by, cx, cy float64) int {
	al, bl, cl := float64(ax*ax)+float64(ay*ay), float64(bx*bx)+float64(by*by), float64(cx*cx)+float64(cy*cy)
	bc, cb := float64(bx*cy), float64(cx*by)
	ca, ac := float64(cx*ay), float64(ax*cy)
	ab, ba := float64(ax*by), float64(bx*ay)
	det := float64(al*(bc-cb)) + float64(bl*(ca-ac)) + float64(cl*(ab-ba))
	perm := al*(math.Abs(bc)+math.Abs(cb)) + bl*(math.Abs(ca)+math.Abs(ac)) + cl*(math.Abs(ab)+math.Abs(ba))
	// For lengths below 1e100, the loss to underflow is below 1e-220.
	if e := 1e-14*perm + 1e-150; max(al, bl, cl) < 1e100 {
		if det > e {
			return 1
		}
		if -det > e {
			return -1
		}
	}
	return 0
}

func inCircleBig(ax, ay, bx, by, cx, cy, dx, dy float64) int {
	v := integers(ax, ay, bx, by, cx, cy, dx, dy)
	x := func(k int) *big.Int { return sub(v[2*k], v[6]) }
	y := func(k int) *big.Int { return sub(v[2*k+1], v[7]) }
	sum := new(big.Int)
	for k := range 3 {
		i, j := (k+1)%3, (k+2)%3
		lift := new(big.Int).Add(mul(x(k), x(k)), mul(y(k), y(k)))
		sum.Add(sum, mul(lift, sub(mul(x(i), y(j)), mul(x(j), y(i)))))
	}
	return sum.Sign()
}

// integers returns the values times a common power of two that makes all of them whole.
// The factor does not change the sign of a homogeneous polynomial.
func integers(values ...float64) []*big.Int {
	whole, _ := scaled(values)
	return whole
}

// scaled returns integers m and an exponent e: the values are m·2^e.
func scaled(values []float64) (whole []*big.Int, exp int) {
	low := math.MaxInt
	for _, v := range values {
		if v != 0 {
			_, e := math.Frexp(v)
			low = min(low, e)
		}
	}
	if low == math.MaxInt {
		low = 53 // zeros alone
	}
	memory := make([]big.Int, len(values))
	whole = make([]*big.Int, len(values))
	for i, v := range values {
		m, e := math.Frexp(v)
		whole[i] = memory[i].SetInt64(int64(math.Ldexp(m, 53)))
		if v != 0 {
			whole[i].Lsh(whole[i], uint(e-low))
		}
	}
	return whole, low - 53
}

func sub(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }
func mul(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }
