package exact

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bigOrient and bigCircle are the determinants in rational numbers.
func bigOrient(v []float64) int {
	d := func(i, j int) *big.Rat { return new(big.Rat).Sub(rat(v[i]), rat(v[j])) }
	return new(big.Rat).Mul(d(0, 4), d(3, 5)).Cmp(new(big.Rat).Mul(d(1, 5), d(2, 4)))
}

func bigCircle(v []float64) int {
	x := func(p int) *big.Rat { return new(big.Rat).Sub(rat(v[2*p]), rat(v[6])) }
	y := func(p int) *big.Rat { return new(big.Rat).Sub(rat(v[2*p+1]), rat(v[7])) }
	mul := func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }
	sum := new(big.Rat)
	for p := range 3 {
		q, r := (p+1)%3, (p+2)%3
		lift := new(big.Rat).Add(mul(x(p), x(p)), mul(y(p), y(p)))
		sum.Add(sum, mul(lift, new(big.Rat).Sub(mul(x(q), y(r)), mul(y(q), x(r)))))
	}
	return sum.Sign()
}

func rat(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }

// The wide stage alone, at every length of its integers: coordinates that span
// from few to all 2098 bits, half of them on one line or circle, moved by one
// step.
func TestWideStageAtEveryLength(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 0))
	step := 5
	if testing.Short() {
		step = 31
	}
	for bits := 1; bits <= 2046; bits += step {
		low := r.IntN(2046-bits+1) - 1022
		draw := func() float64 { return math.Ldexp(2*r.Float64()-1, low+r.IntN(bits+1)) }
		a, b := draw(), draw()
		for _, v := range [][8]float64{
			{draw(), draw(), draw(), draw(), draw(), draw(), draw(), draw()},
			{a, b, -b, a, -a, -b, b, -a},                    // a circle
			{a, a, b, b, -a, -a, draw(), b},                 // a line
			{a, b, -b, a, -a, -b, b, math.Nextafter(-a, 0)}, // just off the circle
			{a, a, b, math.Nextafter(b, 0), -a, -a, a, b},
		} {
			o := [6]float64(v[:6])
			if got, want := orientWide(&o), bigOrient(o[:]); got != want {
				t.Errorf("seed %d, %d bits: orientWide(%v) = %d, want %d", seed, bits, o, got, want)
			}
			if got, want := circleWide(&v), bigCircle(v[:]); got != want {
				t.Errorf("seed %d, %d bits: circleWide(%v) = %d, want %d", seed, bits, v, got, want)
			}
		}
	}
}

// Non-finite coordinates give some sign, not a panic.
func TestNonFiniteIsHarmless(t *testing.T) {
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 5e-324, 0, math.MaxFloat64,
		math.Float64frombits(0x7ff0000000000001)}
	r := rand.New(rand.NewPCG(13, 0))
	for range 2000 {
		var v [15]float64
		for i := range v {
			v[i] = odd[r.IntN(len(odd))]
		}
		for _, s := range []int{
			Orient2D(v[0], v[1], v[2], v[3], v[4], v[5]), InCircle(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]),
			Orient3D(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11]),
			InSphere(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13], v[14]),
		} {
			if s < -1 || s > 1 {
				t.Fatalf("sign %d of %v", s, v)
			}
		}
	}
}

// The least and the largest floats together: as long as the integers get.
func TestEndsOfTheRange(t *testing.T) {
	const m, e = math.MaxFloat64, 5e-324
	for _, v := range [][8]float64{
		{m, m, -m, -m, e, e, -e, -e}, {m, m, -m, -m, e, 0, 0, 0}, {m, -m, -m, -m, m, m, -m, m},
		{m, 0, 0, m, -m, 0, 0, -m}, {m, e, 0, m, -m, 0, 0, -m}, {e, 0, 0, e, -e, 0, 0, -e}, {e, 0, 0, e, -e, 0, 0, m},
	} {
		o := v[:6]
		if got, want := Orient2D(o[0], o[1], o[2], o[3], o[4], o[5]), bigOrient(o); got != want {
			t.Errorf("Orient2D(%v) = %d, want %d", o, got, want)
		}
		if got, want := InCircle(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]), bigCircle(v[:]); got != want {
			t.Errorf("InCircle(%v) = %d, want %d", v, got, want)
		}
	}
}
