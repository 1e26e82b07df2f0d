package mat

import (
	"fmt"
	"math"
	"testing"
)

// slopes are the derivatives of gradients.go: within 2e-6 of these.
var slopes = []struct {
	name string
	f    func(d, x []float32)
	real func(x float64) float64
}{
	{"gelu", GELUBackward, geluSlope},
	{"gelu tanh", GELUTanhBackward, geluTanhSlope},
	{"silu", SiLUBackward, siluSlope},
}

func TestDerivatives(t *testing.T) {
	v := arguments(100)
	everyLevel(t, func(t *testing.T) {
		for _, s := range slopes {
			d := make([]float32, len(v))
			for i := range d {
				d[i] = 1
			}
			s.f(d, v)
			for i, x := range v {
				if want := s.real(float64(x)); !(math.Abs(float64(d[i])-want) <= 2e-6) {
					t.Fatalf("%s: %v at %v, want %v", s.name, d[i], x, want)
				}
			}
		}
	})
}

// The derivatives of gradients.go are those of functions.go.
func TestDerivativesAreDifferences(t *testing.T) {
	for i, s := range slopes {
		f := functions[2+i]
		for x := -9.0; x < 9; x += 0.01 {
			const h = 1e-5
			if want := (f.real(x+h) - f.real(x-h)) / (2 * h); math.Abs(s.real(x)-want) > 1e-8 {
				t.Errorf("%s and %s: %v at %v, want %v", s.name, f.name, s.real(x), x, want)
			}
		}
	}
}

func TestDerivativesAtEveryPlace(t *testing.T) {
	all := append(slopes[:len(slopes):len(slopes)], struct {
		name string
		f    func(d, x []float32)
		real func(x float64) float64
	}{"multiply", func(d, x []float32) { Multiply(d, d, x) }, nil})
	everyLevel(t, func(t *testing.T) {
		x := arguments(1)[500:640]
		for _, s := range all {
			want := make([]float32, len(x))
			for i := range want {
				want[i] = float32(i%7) - 2.5
				s.f(want[i:i+1], x[i:i+1])
			}
			for from := range 17 {
				for n := 0; from+n <= len(x); n++ {
					d := make([]float32, n+1)
					for i := range n {
						d[i] = float32((from+i)%7) - 2.5
					}
					d[n] = gap
					s.f(d[:n], x[from:from+n])
					what := fmt.Sprintf("%s: %d numbers from %d", s.name, n, from)
					sameBits(t, Of(1, n, d), Of(1, n, want[from:]), what)
					if d[n] != gap {
						t.Fatalf("%s: wrote beyond the end", what)
					}
				}
			}
		}
	})
}

func TestMultiply(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		a, b, dst := []float32{2, -3, 0.5}, []float32{5, 7, -1}, make([]float32, 3)
		Multiply(dst, a, b)
		sameBits(t, Of(1, 3, dst), Of(1, 3, []float32{10, -21, -0.5}), "products")
	})
}
