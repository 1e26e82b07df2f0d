package mat

import (
	"fmt"
	"math"
	"testing"
)

// function is one of functions.go: what it is in float64, and the error that
// its comment allows at x.
type function struct {
	name    string
	f       func(dst, src []float32)
	real    func(x float64) float64
	allowed func(x, want float64) float64
}

// ulps allows n units in the last place of the wanted float32.
func ulps(n float64) func(x, want float64) float64 {
	return func(_, want float64) float64 {
		_, exp := math.Frexp(want)
		return n * math.Ldexp(1, max(exp-24, -149))
	}
}

func gated(x, _ float64) float64 { return 4e-7 * max(math.Abs(x), 0x1p-126) }

// sloped allows 3 ulp, and zero where e^-x overflows.
func sloped(x, want float64) float64 {
	if x < -88.7 {
		return math.Abs(want)
	}
	return ulps(3)(x, want)
}

var functions = []function{
	{"exp", Exp, math.Exp, ulps(1.02)},
	{"tanh", Tanh, math.Tanh, ulps(3)},
	{"gelu", GELU, func(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }, gated},
	{"gelu tanh", GELUTanh, func(x float64) float64 {
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}, gated},
	{"silu", SiLU, func(x float64) float64 { return x / (1 + math.Exp(-x)) }, sloped},
}

// arguments steps through every binade of both signs, and the edges.
func arguments(perBinade int) []float32 {
	var v []float32
	r := seeded(11)
	for sign := range uint32(2) {
		for exp := range uint32(255) {
			for range perBinade {
				v = append(v, math.Float32frombits(sign<<31|exp<<23|r.Uint32()>>9))
			}
			v = append(v, math.Float32frombits(sign<<31|exp<<23), math.Float32frombits(sign<<31|exp<<23|0x7fffff))
		}
	}
	v = append(v, 37.77864, 4.9619703, 0.06253939) // the worst there are for Exp, GELUTanhBackward and Tanh
	for range 200 * perBinade {                    // where these functions bend
		v = append(v, float32(r.NormFloat64()*4), float32(r.Float64()*200-110))
	}
	return v
}

func TestFunctions(t *testing.T) {
	v := arguments(100)
	everyLevel(t, func(t *testing.T) {
		for _, f := range functions {
			got, worst, where := make([]float32, len(v)), 0.0, float32(0)
			f.f(got, v)
			for i, x := range v {
				want := f.real(float64(x))
				if want > math.MaxFloat32 {
					if got[i] < math.MaxFloat32 {
						t.Fatalf("%s(%v) = %v, want an overflow", f.name, x, got[i])
					}
					continue
				}
				if off := math.Abs(float64(got[i])-want) / f.allowed(float64(x), want); !(off <= worst) {
					worst, where = off, x
				}
			}
			t.Logf("%s: %.2f of the error allowed, at %v", f.name, worst, where)
			if !(worst <= 1) {
				t.Errorf("%s: %.2f times the error allowed, at %v", f.name, worst, where)
			}
		}
	})
}

// A number's bits do not depend on its place or on the length; nothing beyond
// the end is written; in place is as good.
func TestFunctionsAtEveryPlace(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		for _, f := range functions {
			src := arguments(1)[500:640]
			want := make([]float32, len(src))
			for i := range src {
				f.f(want[i:i+1], src[i:i+1])
			}
			for from := range 17 {
				for n := 0; from+n <= len(src); n++ {
					dst := make([]float32, n+1)
					dst[n] = gap
					f.f(dst[:n], src[from:from+n])
					what := fmt.Sprintf("%s: %d numbers from %d", f.name, n, from)
					sameBits(t, Of(1, n, dst), Of(1, n, want[from:]), what)
					if dst[n] != gap {
						t.Fatalf("%s: wrote beyond the end", what)
					}
				}
			}
			in := append([]float32(nil), src...)
			f.f(in, in)
			sameBits(t, Of(1, len(in), in), Of(1, len(in), want), f.name+" in place")
		}
	})
}

func BenchmarkFunctions(b *testing.B) {
	for _, f := range functions {
		b.Run(f.name, func(b *testing.B) {
			src, dst := make([]float32, 8192), make([]float32, 8192)
			r := seeded(12)
			for i := range src {
				src[i] = float32(r.NormFloat64() * 2)
			}
			for b.Loop() {
				f.f(dst, src)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(src)), "ns/number")
		})
	}
}
