package mat

import (
	"fmt"
	"math"
	"testing"
)

// Every number of columns that a vector unit cuts differently, and runs of rows.
func columnShapes(f func(rows, cols int, what string)) {
	for cols := 1; cols <= 70; cols++ {
		f(1+cols%5, cols, fmt.Sprintf("%d×%d", 1+cols%5, cols))
	}
	f(0, 7, "0×7")
	f(300, 130, "300×130")
	f(257, 256, "257×256")
}

func TestAffine(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(31)
		columnShapes(func(rows, cols int, what string) {
			x, dst := random(r, rows, cols), random(r, rows, cols)
			scale, shift := random(r, 1, cols).Row(0), random(r, 1, cols).Row(0)
			for _, relu := range []bool{false, true} { // the last is AffineReLU, as below
				want, size := make([][]float64, rows), make([][]float64, rows)
				for i := range rows {
					for j, v := range x.Row(i) {
						p := float64(v) * float64(scale[j])
						y := p + float64(shift[j])
						if relu {
							y = max(y, 0)
						}
						want[i], size[i] = append(want[i], y), append(size[i], math.Abs(p)+math.Abs(float64(shift[j])))
					}
				}
				if relu {
					AffineReLU(dst, x, scale, shift)
				} else {
					Affine(dst, x, scale, shift)
				}
				near(t, dst, want, size, 0x1p-23, what)
				intact(t, dst, what)
			}
			AffineReLU(x, x, scale, shift)
			sameBits(t, x, dst, what+" in place")
		})
	})
}

func TestMoments(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(32)
		columnShapes(func(rows, cols int, what string) {
			x, center := random(r, rows, cols), random(r, 1, cols).Row(0)
			sum, square := random(r, 1, cols), random(r, 1, cols)
			want, size := make([][]float64, 2), make([][]float64, 2)
			for j := range cols {
				s, q := float64(sum.Data[j]), float64(square.Data[j])
				a, b := math.Abs(s), math.Abs(q)
				for i := range rows {
					d := float64(x.Row(i)[j]) - float64(center[j])
					s, q, a, b = s+d, q+d*d, a+math.Abs(d), b+d*d
				}
				want[0], want[1] = append(want[0], s), append(want[1], q)
				size[0], size[1] = append(size[0], a), append(size[1], b)
			}
			Moments(sum.Row(0), square.Row(0), x, center)
			bound := float64(rows+4) * 0x1p-23
			near(t, sum, want[:1], size[:1], bound, what+" sum")
			near(t, square, want[1:], size[1:], bound, what+" square")
			intact(t, sum, what)
			intact(t, square, what)
		})
	})
}

func TestReLUBackward(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(33)
		columnShapes(func(rows, cols int, what string) {
			d, h, z, center := random(r, rows, cols), random(r, rows, cols), random(r, rows, cols),
				random(r, 1, cols).Row(0)
			sum, dot := random(r, 1, cols), random(r, 1, cols)
			kept := random(r, rows, cols)
			want, size := make([][]float64, 2), make([][]float64, 2)
			for j := range cols {
				s, q := float64(sum.Data[j]), float64(dot.Data[j])
				a, b := math.Abs(s), math.Abs(q)
				for i := range rows {
					switch r.IntN(9) { // a ReLU also gives zeros, of either sign
					case 0:
						h.Row(i)[j] = 0
					case 1:
						h.Row(i)[j] = float32(math.Copysign(0, -1))
					}
					kept.Row(i)[j] = 0
					if h.Row(i)[j] > 0 {
						kept.Row(i)[j] = d.Row(i)[j]
						g := float64(d.Row(i)[j])
						f := g * (float64(z.Row(i)[j]) - float64(center[j]))
						s, q, a, b = s+g, q+f, a+math.Abs(g), b+math.Abs(f)
					}
				}
				want[0], want[1] = append(want[0], s), append(want[1], q)
				size[0], size[1] = append(size[0], a), append(size[1], b)
			}
			ReLUBackward(d, h, z, sum.Row(0), dot.Row(0), center)
			sameBits(t, d, kept, what)
			bound := float64(rows+4) * 0x1p-23
			near(t, sum, want[:1], size[:1], bound, what+" sum")
			near(t, dot, want[1:], size[1:], bound, what+" dot")
			intact(t, d, what)
			intact(t, dot, what)
		})
	})
}

func TestNormBackward(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(34)
		columnShapes(func(rows, cols int, what string) {
			d, z := random(r, rows, cols), random(r, rows, cols)
			v := func() []float32 { return random(r, 1, cols).Row(0) }
			center, a, b, c := v(), v(), v(), v()
			want, size := make([][]float64, rows), make([][]float64, rows)
			for i := range rows {
				for j := range cols {
					p := float64(a[j]) * float64(d.Row(i)[j])
					q := float64(b[j]) * (float64(z.Row(i)[j]) - float64(center[j]))
					want[i] = append(want[i], p+q+float64(c[j]))
					size[i] = append(size[i], math.Abs(p)+math.Abs(q)+math.Abs(float64(c[j])))
				}
			}
			NormBackward(d, z, center, a, b, c)
			near(t, d, want, size, 0x1p-22, what)
			intact(t, d, what)
		})
	})
}

// ColumnMax compares only: every level gives the same, and of equal numbers
// the first row, zeros of both signs being equal.
func TestColumnMax(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(35)
		columnShapes(func(rows, cols int, what string) {
			x := random(r, rows, cols)
			for i := range rows {
				for j := range cols {
					x.Row(i)[j] = []float32{-1, float32(math.Copysign(0, -1)), 0, 1, -2, -math.MaxFloat32}[r.IntN(6)]
				}
			}
			best, at := random(r, 1, cols), make([]int32, cols)
			want, row := make([]float32, cols), make([]int32, cols)
			for j := range cols {
				best.Data[j], want[j], at[j], row[j] = float32(math.Inf(-1)), float32(math.Inf(-1)), -1, -1
				for i := range rows {
					if v := x.Row(i)[j]; v > want[j] {
						want[j], row[j] = v, 100+int32(i)
					}
				}
			}
			cut := rows / 3
			ColumnMax(best.Row(0), at, x.Slice(0, cut), 100)
			ColumnMax(best.Row(0), at, x.Slice(cut, rows), 100+int32(cut))
			sameBits(t, best, Of(1, cols, want), what)
			intact(t, best, what)
			for j := range row {
				if at[j] != row[j] {
					t.Fatalf("%s: column %d: row %d, want %d", what, j, at[j], row[j])
				}
			}
			for j := range cols {
				best.Data[j] = float32(math.Inf(-1))
			}
			ColumnMax(best.Row(0), nil, x, 0)
			for j, w := range want { // the sign of zero may be another row's
				if best.Data[j] != w {
					t.Fatalf("%s: column %d without rows: %v, want %v", what, j, best.Data[j], w)
				}
			}
		})
	})
}

func BenchmarkColumns(b *testing.B) {
	r := seeded(36)
	const rows, cols = 256, 128
	d, h, z := random(r, rows, cols), random(r, rows, cols), random(r, rows, cols)
	v := func() []float32 { return make([]float32, cols) }
	p, q, s, u := v(), v(), v(), v()
	at := make([]int32, cols)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"affine", func() { AffineReLU(h, z, p, q) }},
		{"moments", func() { Moments(s, u, z, p) }},
		{"relu backward", func() { ReLUBackward(d, h, z, s, u, p) }},
		{"norm backward", func() { NormBackward(d, z, p, p, p, p) }},
		{"column max", func() { ColumnMax(s, at, z, 0) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(rows*cols), "ns/number")
		})
	}
}
