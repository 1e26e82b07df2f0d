package mat

import (
	"fmt"
	"math"
	"testing"
)

// Rows of every length, at every alignment, of usual and of extreme numbers.
func rowShapes(f func(m Matrix, what string)) {
	r := seeded(21)
	for cols := 1; cols <= 70; cols++ {
		for _, scale := range []float32{1, 1e-20, 40} {
			for _, shift := range []float32{0, 30} {
				m := random(r, 1+cols%4, cols)
				for i := range m.Rows {
					for j := range m.Row(i) {
						m.Row(i)[j] = m.Row(i)[j]*scale + shift
					}
				}
				f(m, fmt.Sprintf("%d×%d, scale %v, shift %v", m.Rows, m.Cols, scale, shift))
			}
		}
	}
	f(random(r, 3, 1000), "3×1000")
	f(random(r, 2, 4096), "2×4096")
}

func TestSoftmax(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		rowShapes(func(m Matrix, what string) {
			const scale = 0.7
			want := make([][]float64, m.Rows)
			allowed := make([][]float64, m.Rows)
			for i := range m.Rows {
				top, sum := math.Inf(-1), 0.0
				for _, x := range m.Row(i) {
					top = max(top, float64(float32(scale))*float64(x))
				}
				for _, x := range m.Row(i) {
					want[i] = append(want[i], math.Exp(float64(float32(scale))*float64(x)-top))
					sum += want[i][len(want[i])-1]
				}
				for j, x := range m.Row(i) {
					want[i][j] /= sum
					allowed[i] = append(allowed[i], want[i][j]*(1+math.Abs(top-scale*float64(x))+float64(m.Cols)/500)+
						0x1p-106)
				}
			}
			Softmax(m, scale)
			near(t, m, want, allowed, 1e-6, what)
			intact(t, m, what)
		})
	})
}

func TestLayerNorm(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(22)
		rowShapes(func(m Matrix, what string) {
			const eps = 1e-5
			gamma, beta := random(r, 1, m.Cols).Row(0), random(r, 1, m.Cols).Row(0)
			want, allowed := make([][]float64, m.Rows), make([][]float64, m.Rows)
			for i := range m.Rows {
				mean, square := 0.0, 0.0
				for _, x := range m.Row(i) {
					mean += float64(x) / float64(m.Cols)
				}
				for _, x := range m.Row(i) {
					square += (float64(x) - mean) * (float64(x) - mean) / float64(m.Cols)
				}
				f := 1 / math.Sqrt(square+float64(float32(eps)))
				for j, x := range m.Row(i) {
					y := (float64(x) - mean) * f
					want[i] = append(want[i], y*float64(gamma[j])+float64(beta[j]))
					allowed[i] = append(allowed[i], (1+float64(m.Cols)/500)*(math.Abs(mean)*f+
						math.Abs(y))*math.Abs(float64(gamma[j]))+math.Abs(float64(beta[j])))
				}
			}
			dst := random(r, m.Rows, m.Cols)
			LayerNorm(dst, m, gamma, beta, eps)
			near(t, dst, want, allowed, 1e-6, what)
			intact(t, dst, what)
			LayerNorm(m, m, gamma, beta, eps)
			sameBits(t, m, dst, what+" in place")
		})
	})
}

func TestRMSNorm(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(23)
		rowShapes(func(m Matrix, what string) {
			const eps = 1e-6
			gamma := random(r, 1, m.Cols).Row(0)
			want := make([][]float64, m.Rows)
			allowed := make([][]float64, m.Rows)
			for i := range m.Rows {
				square := 0.0
				for _, x := range m.Row(i) {
					square += float64(x) * float64(x) / float64(m.Cols)
				}
				for j, x := range m.Row(i) {
					y := float64(x) / math.Sqrt(square+float64(float32(eps))) * float64(gamma[j])
					want[i], allowed[i] = append(want[i], y), append(allowed[i], math.Abs(y)*(1+float64(m.Cols)/500))
				}
			}
			dst := random(r, m.Rows, m.Cols)
			RMSNorm(dst, m, gamma, eps)
			near(t, dst, want, allowed, 1e-6, what)
			intact(t, dst, what)
			RMSNorm(m, m, gamma, eps)
			sameBits(t, m, dst, what+" in place")
		})
	})
}

// A row's bits do not depend on the rows beside it.
func TestRowsDoNotKnowEachOther(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(24)
		for cols := 1; cols < 70; cols += 3 {
			m := random(r, 5, cols)
			g := random(r, 1, cols).Row(0)
			for name, f := range map[string]func(m Matrix){
				"softmax":    func(m Matrix) { Softmax(m, 2) },
				"layer norm": func(m Matrix) { LayerNorm(m, m, g, g, 1e-5) },
				"rms norm":   func(m Matrix) { RMSNorm(m, m, g, 1e-5) },
			} {
				all, alone := random(r, 5, cols), random(r, 5, cols)
				for i := range m.Rows {
					copy(all.Row(i), m.Row(i))
					copy(alone.Row(i), m.Row(i))
				}
				f(all)
				for i := 4; i >= 0; i-- {
					f(alone.Slice(i, i+1))
				}
				sameBits(t, alone, all, fmt.Sprintf("%s, %d columns", name, cols))
			}
		}
	})
}

func TestEmptyRows(t *testing.T) {
	Softmax(Matrix{}, 1)
	Softmax(Of(3, 0, nil), 1)
	LayerNorm(Of(0, 2, nil), Of(0, 2, nil), make([]float32, 2), make([]float32, 2), 1)
	RMSNorm(Of(3, 0, nil), Of(3, 0, nil), nil, 1)
	one := []float32{-3, 1e30}
	Softmax(Of(2, 1, one), 5)
	if one[0] != 1 || one[1] != 1 {
		t.Errorf("softmax of single numbers: %v", one)
	}
}

func BenchmarkRows(b *testing.B) {
	r := seeded(25)
	m := random(r, 128, 768)
	dst := random(r, 128, 768)
	g := random(r, 1, 768).Row(0)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"softmax", func() { Softmax(m, 0.125) }},
		{"layer norm", func() { LayerNorm(dst, m, g, g, 1e-5) }},
		{"rms norm", func() { RMSNorm(dst, m, g, 1e-5) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(128*768), "ns/number")
		})
	}
}
