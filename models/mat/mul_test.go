package mat

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// naive returns dst's numbers after the product, in float64, and the sum of the
// products' magnitudes.
func naive(dst, a, b Matrix, e Epilogue) (value, size [][]float64) {
	for i := range a.Rows {
		v, s := make([]float64, b.Cols), make([]float64, b.Cols)
		for j := range b.Cols {
			if e.Add {
				v[j] = float64(dst.Row(i)[j])
				s[j] = math.Abs(v[j])
			}
			for p, x := range a.Row(i) {
				f := float64(x) * float64(b.Data[p*b.Stride+j])
				v[j] += f
				s[j] += math.Abs(f)
			}
			if e.Bias != nil {
				v[j] += float64(e.Bias[j])
				s[j] += math.Abs(float64(e.Bias[j]))
			}
			if e.ReLU {
				v[j] = max(v[j], 0)
			}
			if e.Apply != nil { // which changes no size by more than its slope, 1.13
				x := []float32{float32(v[j])}
				e.Apply(x, x)
				v[j] = float64(x[0])
				s[j] += 8 * math.Abs(v[j])
			}
			if e.Times.Rows > 0 {
				f := float64(e.Times.Row(i)[j])
				v[j], s[j] = v[j]*f, s[j]*math.Abs(f)
			}
		}
		value, size = append(value, v), append(size, s)
	}
	return value, size
}

func near(t *testing.T, got Matrix, value, size [][]float64, factor float64, what string) {
	t.Helper()
	for i := range value {
		for j, want := range value[i] {
			if g := float64(got.Row(i)[j]); !(math.Abs(g-want) <= factor*size[i][j]+1e-37) {
				t.Fatalf("%s: row %d column %d: %v, want %v within %v", what, i, j, g, want, factor*size[i][j])
			}
		}
	}
}

func epilogue(r *rand.Rand, m, n int) Epilogue {
	e := Epilogue{Add: r.IntN(2) == 0, ReLU: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		e.Bias = make([]float32, n)
		for i := range e.Bias {
			e.Bias[i] = float32(r.NormFloat64())
		}
	}
	if !e.ReLU {
		e.Apply = []func(dst, src []float32){nil, GELU, GELUTanh, SiLU}[r.IntN(4)]
	}
	if r.IntN(4) == 0 {
		e.Times = random(r, m, n)
	}
	return e
}

// Every small shape up to what a register block and a panel hold, and shapes
// around every size at which a product is cut.
func shapes(f func(m, k, n int)) {
	for m := 1; m <= 14; m++ {
		for n := 1; n <= 70; n++ {
			f(m, (m*n)%5, n)
		}
	}
	for k := 0; k <= 70; k++ {
		f(1+k%7, k, 1+(k*37)%70)
		f(70-k, 3, k+1)
	}
	for _, k := range []int{depth - 1, depth, depth + 1, 2*depth + 7} {
		f(13, k, 67)
	}
	f(mulRows+1, 5, 33)
	f(2*mulRows, 9, 130)
}

func TestMul(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(1)
		shapes(func(m, k, n int) {
			a, b, dst := random(r, m, k), random(r, k, n), random(r, m, n)
			e := epilogue(r, m, n)
			what := fmt.Sprintf("%d×%d·%d×%d %+v", m, k, k, n, e)
			value, size := naive(dst, a, b, e)
			var w Weights
			w.Pack(b)
			w.Mul(dst, a, e, 1)
			near(t, dst, value, size, float64(k+3)*0x1p-24, what)
			intact(t, dst, what)
		})
	})
}

var campaign = flag.Int("campaign", 300,
	"random shapes of products to compare with the definition, up to 70×70·70×70; all of them are 343000")

// Shapes at random, or all of them one by one.
func TestProductsOfEveryShape(t *testing.T) {
	count := min(*campaign, 70*70*70)
	if testing.Short() {
		count = min(count, 50)
	}
	everyLevel(t, func(t *testing.T) {
		r, all := seeded(2), count == 70*70*70
		for shape := range count {
			if !all {
				shape = r.IntN(70 * 70 * 70)
			}
			m, k, n := 1+shape/4900, 1+shape/70%70, 1+shape%70
			what := fmt.Sprintf("%d×%d·%d×%d", m, k, k, n)
			a, b, dst, gradient := random(r, m, k), random(r, k, n), random(r, m, n), random(r, k, n)
			value, size := naive(dst, a, b, Epilogue{})
			var w Weights
			w.Pack(b)
			w.Mul(dst, a, Epilogue{}, 1)
			near(t, dst, value, size, float64(k)*0x1p-24, what)
			intact(t, dst, what)
			turned := Of(k, m, make([]float32, k*m))
			for i := range m {
				for p, x := range a.Row(i) {
					turned.Row(p)[i] = x
				}
			}
			value, size = naive(gradient, turned, dst, Epilogue{})
			TMul(gradient, a, dst, 1)
			near(t, gradient, value, size, float64(m+1)*0x1p-24, what+" turned")
			intact(t, gradient, what+" turned")
		}
	})
}

// What stands in the package comment: a row alone, in any place, in any
// company, by any number of workers, has the same bits.
func TestMulRowsDoNotKnowEachOther(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		seeds := uint64(12)
		if testing.Short() {
			seeds = 3
		}
		rowsDoNotKnowEachOther(t, seeds, 600, 500, func(b Matrix) *Weights {
			w := new(Weights)
			w.Pack(b)
			return w
		})
	})
}

// rowsDoNotKnowEachOther multiplies up to so many rows, so deep, in any company.
func rowsDoNotKnowEachOther(t *testing.T, seeds uint64, rows, depth int, weights func(b Matrix) *Weights) {
	t.Helper()
	for seed := range seeds {
		r := seeded(seed)
		m, k, n := 1+r.IntN(rows), r.IntN(depth), 1+r.IntN(200)
		a, b, e := random(r, m, k), random(r, k, n), epilogue(r, m, n)
		e.Add = false
		what := fmt.Sprintf("seed %d: %d×%d·%d×%d", seed, m, k, k, n)
		w := weights(b)
		all := random(r, m, n)
		w.Mul(all, a, e, 1)
		for workers := 2; workers < 9; workers += 3 {
			again := random(r, m, n)
			w.Mul(again, a, e, workers)
			sameBits(t, again, all, fmt.Sprintf("%s, %d workers", what, workers))
			intact(t, again, what)
		}
		for range 8 {
			lo := r.IntN(m)
			hi := lo + 1 + r.IntN(min(m-lo, 20))
			part := random(r, hi-lo, n)
			w.Mul(part, a.Slice(lo, hi), e.rows(lo, hi), 1)
			sameBits(t, part, all.Slice(lo, hi), fmt.Sprintf("%s, rows %d to %d", what, lo, hi))
		}
	}
}

// The vector levels round alike: a machine without AVX-512 gives the same bits.
func TestMulVectorLevelsAgree(t *testing.T) {
	if Best() < AVX512 {
		t.Skipf("this CPU has %v", Best())
	}
	r := seeded(3)
	shapes(func(m, k, n int) {
		a, b, e := random(r, m, k), random(r, k, n), epilogue(r, m, n)
		e.Add = false
		var w Weights
		w.Pack(b)
		wide, narrow := random(r, m, n), random(r, m, n)
		w.Mul(wide, a, e, 1)
		restore := Limit(AVX2)
		w.Mul(narrow, a, e, 1)
		restore()
		sameBits(t, narrow, wide, fmt.Sprintf("%d×%d·%d×%d", m, k, k, n))
	})
}

// No worker has more to do than an even share, rounded up to bands, where the
// bands can be shared so.
func TestBandsOfTask(t *testing.T) {
	for _, c := range []struct{ bands, down, workers, want int }{
		{1, 1, 2, 1}, {6, 1, 2, 1}, {12, 1, 2, 2}, {18, 1, 2, 3}, {24, 1, 2, 3}, {48, 1, 2, 6}, {7, 1, 2, 1},
		{18, 2, 2, 6}, {6, 1, 16, 1},
	} {
		if got := bandsOfTask(c.bands, c.down, c.workers); got != c.want {
			t.Errorf("%d bands, %d rows of tasks, %d workers: %d, want %d", c.bands, c.down, c.workers, got, c.want)
		}
	}
}

// A packed matrix is the same from either orientation, in used memory too.
func TestPackT(t *testing.T) {
	var a, b Weights
	r := seeded(4)
	for _, shape := range [][2]int{{70, 33}, {1, 1}, {3, 16}, {17, 32}, {0, 5}, {5, 0}, {64, 65}} {
		m := random(r, shape[0], shape[1])
		turned := random(r, shape[1], shape[0])
		for i := range m.Rows {
			for j, x := range m.Row(i) {
				turned.Row(j)[i] = x
			}
		}
		a.Pack(m)
		b.PackT(turned)
		if k, n := b.Shape(); k != shape[0] || n != shape[1] {
			t.Errorf("%v: shape %d×%d", shape, k, n)
		}
		sameBits(t, Of(1, len(b.bands), b.bands), Of(1, len(a.bands), a.bands), fmt.Sprint(shape))
	}
}

func TestTMul(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(5)
		shapes(func(i, rows, j int) {
			a, b, dst := random(r, rows, i), random(r, rows, j), random(r, i, j)
			turned := random(r, i, rows)
			for p := range rows {
				for q, x := range a.Row(p) {
					turned.Row(q)[p] = x
				}
			}
			add := r.IntN(2) == 0
			what := fmt.Sprintf("(%d×%d)ᵀ·%d×%d, add %v", rows, i, rows, j, add)
			value, size := naive(dst, turned, b, Epilogue{Add: add})
			if add {
				AddTMul(dst, a, b, 1)
			} else {
				TMul(dst, a, b, 1)
			}
			near(t, dst, value, size, float64(min(rows, tmulRows)+rows/tmulRows+3)*0x1p-23, what)
			intact(t, dst, what)
		})
	})
}

func TestTMulIsTheSameForAllWorkers(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		for seed := range uint64(10) {
			r := seeded(seed)
			rows, i, j := 1+r.IntN(1500), 1+r.IntN(140), 1+r.IntN(140)
			a, b := random(r, rows, i), random(r, rows, j)
			one := random(r, i, j)
			TMul(one, a, b, 1)
			for _, workers := range []int{2, 3, 8, 100} {
				many := random(r, i, j)
				TMul(many, a, b, workers)
				what := fmt.Sprintf("seed %d: (%d×%d)ᵀ·%d×%d, %d workers", seed, rows, i, rows, j, workers)
				sameBits(t, many, one, what)
				intact(t, many, what)
			}
		}
	})
}

func TestProductsDoNotAllocate(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(6)
		a, b, dst := random(r, 300, 70), random(r, 70, 100), random(r, 300, 100)
		gradient, times := random(r, 70, 100), random(r, 300, 100)
		var w Weights
		w.Pack(b)
		if got := testing.AllocsPerRun(5, func() {
			w.Pack(b)
			w.Mul(dst, a, Epilogue{ReLU: true}, 1)
			w.Mul(dst, a, Epilogue{Apply: GELU, Times: times}, 1)
			AddTMul(gradient, a, dst, 1)
		}); got != 0 {
			t.Errorf("%v allocations", got)
		}
	})
}

func BenchmarkMul(b *testing.B) {
	for _, s := range [][3]int{{1024, 1024, 1024}, {100_000, 64, 128}, {100_000, 256, 128}, {128, 768, 768},
		{1, 768, 3072}, {32, 384, 1152}, {32, 384, 384}, {64, 768, 768}, {100_000, 128, 2}, {100_000, 2, 64}} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%dx%dx%d/workers=%d", s[0], s[1], s[2], workers), func(b *testing.B) {
				m, k, n := s[0], s[1], s[2]
				r := seeded(7)
				x, y, dst := random(r, m, k), random(r, k, n), Of(m, n, make([]float32, m*n))
				var w Weights
				w.Pack(y)
				for b.Loop() {
					w.Mul(dst, x, Epilogue{}, workers)
				}
				b.ReportMetric(2*float64(m)*float64(k)*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

func BenchmarkTMul(b *testing.B) {
	for _, s := range [][3]int{{16384, 128, 256}, {16384, 256, 128}, {16384, 64, 128}, {16384, 2, 64}} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%dx%dx%d/workers=%d", s[0], s[1], s[2], workers), func(b *testing.B) {
				rows, i, j := s[0], s[1], s[2]
				r := seeded(8)
				x, y, dst := random(r, rows, i), random(r, rows, j), random(r, i, j)
				for b.Loop() {
					TMul(dst, x, y, workers)
				}
				b.ReportMetric(2*float64(rows)*float64(i)*float64(j)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

// Law: an old number of dst costs one rounding, however large it is. A sum that began
// with it would be rounded as coarsely at each of its steps. The residuals of
// transformers, to which products are added, may be 10⁴ times as large as these.
func TestAddingRoundsOnce(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		for seed := range uint64(4) {
			r := seeded(20 + seed)
			m, k, n := 1+r.IntN(30), []int{64, depth, depth + 1, 4 * depth}[seed], 1+r.IntN(130)
			a, b, dst := random(r, m, k), random(r, k, n), random(r, m, n)
			for i := range m {
				for j := range n {
					dst.Row(i)[j] = float32((1 + 0.9*r.Float64()) * (1 << 20))
				}
			}
			const half = 0x1p-4 // half a unit in the last place of numbers from 2²⁰ to 2²¹
			e := Epilogue{Add: true}
			if seed%2 == 1 {
				e.Bias = random(r, 1, n).Row(0)
			}
			what := fmt.Sprintf("seed %d: %d×%d·%d×%d", seed, m, k, k, n)
			value, size := naive(Of(m, n, make([]float32, m*n)), a, b, Epilogue{Bias: e.Bias})
			before := make([]float64, 0, m*n)
			for i := range m {
				for _, v := range dst.Row(i) {
					before = append(before, float64(v))
				}
			}
			var w Weights
			w.Pack(b)
			w.Mul(dst, a, e, 1)
			for i := range m {
				for j := range n {
					want := before[i*n+j] + value[i][j]
					if off := math.Abs(float64(dst.Row(i)[j]) - want); off > half+float64(k+3)*0x1p-24*size[i][j] {
						t.Fatalf("%s: row %d column %d is off by %v, %v of a last place", what, i, j, off, off/(2*half))
					}
				}
			}
		}
	})
}
