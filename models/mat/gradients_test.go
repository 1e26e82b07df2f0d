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

func TestSoftmaxBackward(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(31)
		rowShapes(func(w Matrix, what string) {
			Softmax(w, 0.1)
			d := random(r, w.Rows, w.Cols)
			want, allowed := make([][]float64, w.Rows), make([][]float64, w.Rows)
			for i := range w.Rows {
				mean, size := 0.0, 0.0
				for j, v := range w.Row(i) {
					mean += float64(v) * float64(d.Row(i)[j])
					size += float64(v) * math.Abs(float64(d.Row(i)[j]))
				}
				for j, v := range w.Row(i) {
					x := float64(d.Row(i)[j])
					want[i] = append(want[i], float64(v)*(x-mean))
					allowed[i] = append(allowed[i], float64(v)*(math.Abs(x)+size)*(1+float64(w.Cols)/500))
				}
			}
			SoftmaxBackward(d, w)
			near(t, d, want, allowed, 1e-6, what)
			intact(t, d, what)
		})
	})
}

// The gradients are those of Σ dy·LayerNorm(x), by differences in float64.
func TestLayerNormBackwardIsADifference(t *testing.T) {
	r := seeded(32)
	const eps = 1e-5
	x, dy := random(r, 1, 9).Row(0), random(r, 1, 9).Row(0)
	gamma, beta := random(r, 1, 9).Row(0), random(r, 1, 9).Row(0)
	loss := func(v []float64, gamma, beta []float64) (sum float64) {
		mean, square := 0.0, 0.0
		for _, x := range v {
			mean += x / 9
		}
		for _, x := range v {
			square += (x - mean) * (x - mean) / 9
		}
		for j, x := range v {
			sum += float64(dy[j]) * ((x-mean)/math.Sqrt(square+eps)*gamma[j] + beta[j])
		}
		return sum
	}
	args := [3][]float64{wide(x), wide(gamma), wide(beta)}
	var got [3][]float32
	for i := range got {
		got[i] = make([]float32, 9)
	}
	layerNormBackward(got[0], dy, x, gamma, got[1], got[2], eps)
	for i, what := range []string{"x", "gamma", "beta"} {
		for j := range 9 {
			const h = 1e-4
			args[i][j] += h
			above := loss(args[0], args[1], args[2])
			args[i][j] -= 2 * h
			want := (above - loss(args[0], args[1], args[2])) / (2 * h)
			args[i][j] += h
			if math.Abs(float64(got[i][j])-want) > 1e-5 {
				t.Errorf("d%s[%d] = %v, want %v", what, j, got[i][j], want)
			}
		}
	}
}

func wide(v []float32) (w []float64) {
	for _, x := range v {
		w = append(w, float64(x))
	}
	return w
}

// The vector levels are near the definition, and add to what is there.
func TestLayerNormBackward(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(33)
		for cols := 1; cols <= 140; cols++ {
			const eps = 1e-5
			rows := 1 + cols%4
			x, dy, dx, want := random(r, rows, cols), random(r, rows, cols), random(r, rows, cols),
				random(r, rows, cols)
			gamma := random(r, 1, cols).Row(0)
			sums, wantSums := random(r, 2, cols), random(r, 2, cols)
			for i := range 2 {
				copy(wantSums.Row(i), sums.Row(i))
			}
			most := 0.0
			for i := range rows {
				copy(want.Row(i), dx.Row(i))
				layerNormBackward(want.Row(i), dy.Row(i), x.Row(i), gamma, wantSums.Row(0), wantSums.Row(1), eps)
				for _, v := range want.Row(i) {
					most = max(most, math.Abs(float64(v)))
				}
			}
			LayerNormBackward(dx, dy, x, gamma, sums.Row(0), sums.Row(1), eps)
			for i := range rows {
				for j, v := range dx.Row(i) {
					if d := math.Abs(float64(v - want.Row(i)[j])); !(d <= 2e-5*(1+most)) {
						t.Fatalf("%d×%d: dx[%d][%d] = %v, want %v", rows, cols, i, j, v, want.Row(i)[j])
					}
				}
			}
			for i := range 2 {
				for j, v := range sums.Row(i) {
					if d := math.Abs(float64(v - wantSums.Row(i)[j])); !(d <= 1e-5*(1+math.Abs(float64(v)))) {
						t.Fatalf("%d columns: sum %d of column %d = %v, want %v", cols, i, j, v, wantSums.Row(i)[j])
					}
				}
			}
			intact(t, dx, fmt.Sprint(cols))
			intact(t, sums, fmt.Sprint(cols))
		}
	})
}
