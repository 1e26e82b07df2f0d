package mat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// everyRounding runs f at each way to multiply rounded weights that this CPU
// has.
func everyRounding(t *testing.T, f func(t *testing.T)) {
	t.Run("bf16", func(t *testing.T) {
		if !HasBF16() {
			t.Skip("this CPU has no AVX512_BF16")
		}
		f(t)
	})
	everyLevel(t, func(t *testing.T) {
		defer withoutBF16()()
		f(t)
	})
}

// withoutBF16 is Limit for the instruction.
func withoutBF16() (restore func()) {
	was := hasBF16
	hasBF16 = false
	return func() { hasBF16 = was }
}

// someShapes is every so manyth of shapes; with -short fewer.
func someShapes(every int, f func(m, k, n int)) {
	if testing.Short() {
		every *= 7
	}
	i := 0
	shapes(func(m, k, n int) {
		if i++; i%every == 0 {
			f(m, k, n)
		}
	})
}

// roundedCopy is m with every number rounded, in its place.
func roundedCopy(m Matrix) Matrix {
	r := m
	r.Data = append([]float32(nil), m.Data...)
	for i := range r.Rows {
		for j, x := range r.Row(i) {
			r.Row(i)[j] = math.Float32frombits(upper(x))
		}
	}
	return r
}

func roundedWeights(b Matrix) *Weights {
	w := new(Weights)
	w.Pack(b)
	w.Round()
	return w
}

// A rounded number is the nearest one of 8 bits, of two the even one.
func TestUpperIsTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
		if !(math.Abs(float64(x)) < 0x1.fep127) { // beyond, the next one is infinite
			return
		}
		got := math.Float32frombits(upper(x))
		off := math.Abs(float64(got) - float64(x))
		for _, step := range []uint32{1 << 16, -(1 << 16) & math.MaxUint32} {
			next := math.Float32frombits(math.Float32bits(got) + step)
			if d := math.Abs(float64(next) - float64(x)); d < off || d == off && upper(x)>>16&1 == 1 {
				t.Fatalf("%x becomes %x, %x is nearer", x, got, next)
			}
		}
	})
}

// Law: all 65,536 numbers of bf16 are rounded to themselves, infinities and the
// NaNs of arithmetic too; what lies between two finite ones of a sign goes to
// the nearer, from the middle to the one whose last bit is 0. bf16 is the upper
// half of a float32, so the lower half alone tells how near.
func TestUpperOfEveryNumber(t *testing.T) {
	for h := range uint32(1 << 16) {
		exponent := h >> 7 & 0xff
		if exponent == 0xff && h&0x7f != 0 && h&0x7f != 0x40 {
			continue // a NaN that no arithmetic makes
		}
		lower := []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff}
		if exponent == 0xff {
			lower = lower[:1]
		}
		for _, l := range lower {
			want := h
			if l > 0x8000 || l == 0x8000 && h&1 == 1 {
				want++
			}
			if got := upper(math.Float32frombits(h<<16 | l)); got != want<<16 {
				t.Fatalf("%#08x is rounded to %#08x, want %#08x", h<<16|l, got, want<<16)
			}
		}
	}
}

// The kernels round as upper does. The instruction alone takes numbers below
// 2⁻¹²⁶ as zero.
func TestRoundRows(t *testing.T) {
	everyRounding(t, func(t *testing.T) {
		r := seeded(20)
		for k := range 100 {
			a := random(r, 1+k%3, k)
			for i := range a.Rows {
				for j := range a.Row(i) {
					x := math.Float32frombits(r.Uint32())
					if size := math.Abs(float64(x)); size >= 0x1p-126 && size < math.MaxFloat32 {
						a.Row(i)[j] = x
					}
				}
			}
			rows := roundRows(a)
			for i := range a.Rows {
				row := rows.data[i*rows.stride : (i+1)*rows.stride]
				for j := range 2 * pairsOf(k) {
					want, got := uint32(0), uint32(0)
					if j < k {
						want = upper(a.Row(i)[j])
					}
					if rows.each == 2 {
						got = row[j]
					} else {
						got = row[j/2] >> (16 * (j % 2)) << 16
					}
					if got != want {
						t.Fatalf("%d numbers, row %d: number %d is %#x, want %#x", k, i, j, got, want)
					}
				}
			}
			rows.free()
		}
	})
}

// Both bounds of Round: to the product of the rounded numbers, and to that of
// the numbers before.
func TestRoundedMul(t *testing.T) {
	everyRounding(t, func(t *testing.T) {
		r := seeded(21)
		check := func(m, k, n int) {
			a, b, dst := random(r, m, k), random(r, k, n), random(r, m, n)
			e := epilogue(r, m, n)
			what := fmt.Sprintf("%d×%d·%d×%d %+v", m, k, k, n, e)
			value, size := naive(dst, roundedCopy(a), roundedCopy(b), e)
			exact, span := naive(dst, a, b, e)
			roundedWeights(b).Mul(dst, a, e, 1)
			near(t, dst, value, size, float64(k+4)*0x1p-23, what)
			if e.Apply == nil { // whose slope is more than 1
				near(t, dst, exact, span, 0x1p-7+0x1p-16+float64(k+4)*0x1p-23, what+", before rounding")
			}
			intact(t, dst, what)
		}
		every := 9 // the next test has all shapes
		if HasBF16() {
			every = 1
		}
		someShapes(every, check)
		check(7, 2*depth+1, 70) // more than one part
		check(13, 4*depth+3, 16)
	})
}

// Without the instruction, a rounded product is the product of rounded numbers,
// bit for bit, at every level.
func TestRoundedMulIsMulOfRoundedNumbers(t *testing.T) {
	defer withoutBF16()()
	everyLevel(t, func(t *testing.T) {
		r := seeded(22)
		someShapes(1, func(m, k, n int) {
			a, b := random(r, m, k), random(r, k, n)
			e := epilogue(r, m, n)
			e.Add = false
			got, want := random(r, m, n), random(r, m, n)
			roundedWeights(b).Mul(got, a, e, 1)
			var w Weights
			w.Pack(roundedCopy(b))
			w.Mul(want, roundedCopy(a), e, 1)
			sameBits(t, got, want, fmt.Sprintf("%d×%d·%d×%d %+v", m, k, k, n, e))
		})
	})
}

// A row alone, in any place, in any company, by any number of workers, has the
// same bits.
func TestRoundedMulRowsDoNotKnowEachOther(t *testing.T) {
	everyRounding(t, func(t *testing.T) {
		seeds := uint64(12)
		if testing.Short() {
			seeds = 3
		}
		rows := 600
		if level == Portable {
			seeds, rows = 3, 300 // it takes its time
		}
		rowsDoNotKnowEachOther(t, seeds, rows, 1000, roundedWeights)
	})
}

// Denormal numbers, and sums of them, cost no more than the bound allows.
func TestRoundedMulOfDenormals(t *testing.T) {
	everyRounding(t, func(t *testing.T) {
		r := seeded(23)
		const k = 33
		a, b, dst := random(r, 5, k), random(r, k, 20), random(r, 5, 20)
		for i := range a.Rows {
			for j := range a.Row(i) {
				a.Row(i)[j] *= 0x1p-120
			}
		}
		for i := range b.Rows {
			for j := range b.Row(i) {
				b.Row(i)[j] *= 0x1p-8
			}
		}
		value, size := naive(dst, a, b, Epilogue{})
		roundedWeights(b).Mul(dst, a, Epilogue{}, 1)
		for i := range value {
			for j, want := range value[i] {
				if got := float64(dst.Row(i)[j]); math.Abs(got-want) > 0x1.01p-7*size[i][j]+k*0x1p-125 {
					t.Errorf("row %d column %d: %g, want %g", i, j, got, want)
				}
			}
		}
	})
}

// To round twice is to round once, and half of the memory is given back; who
// packs again has float32.
func TestRound(t *testing.T) {
	r := seeded(24)
	for _, shape := range [][2]int{{70, 33}, {1, 1}, {3, 16}, {17, 32}, {0, 5}, {5, 0}, {64, 65}} {
		b := random(r, shape[0], shape[1])
		var plain Weights
		plain.Pack(b)
		w := roundedWeights(b)
		again := &w.pairs
		w.Round()
		if again != &w.pairs || w.bands != nil || len(w.pairs)*2 > len(plain.bands)+plain.n+2*band {
			t.Errorf("%v: %d pairs and %d numbers, of %d", shape, len(w.pairs), len(w.bands), len(plain.bands))
		}
		if k, n := w.Shape(); k != shape[0] || n != shape[1] {
			t.Errorf("%v: shape %d×%d", shape, k, n)
		}
		w.Pack(b)
		a, got, want := random(r, 3, shape[0]), random(r, 3, shape[1]), random(r, 3, shape[1])
		w.Mul(got, a, Epilogue{}, 1)
		plain.Mul(want, a, Epilogue{}, 1)
		sameBits(t, got, want, fmt.Sprint(shape))
	}
}

// float32 and rounded weights in turns: BERT's and MiniLM's layers.
func BenchmarkRoundedMul(b *testing.B) {
	for _, s := range [][3]int{{128, 384, 1152}, {128, 384, 1536}, {128, 1536, 384}, {512, 384, 1536}, {128, 768, 2304},
		{128, 768, 3072}, {512, 3072, 768}, {1, 768, 3072}, {8, 768, 3072}} {
		m, k, n := s[0], s[1], s[2]
		r := rand.New(rand.NewPCG(7, 7))
		x, y, dst := random(r, m, k), random(r, k, n), Of(m, n, make([]float32, m*n))
		var plain Weights
		plain.Pack(y)
		for name, w := range map[string]*Weights{"f32": &plain, "bf16": roundedWeights(y)} {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", m, k, n, name), func(b *testing.B) {
				for b.Loop() {
					w.Mul(dst, x, Epilogue{}, 1)
				}
				b.ReportMetric(2*float64(m)*float64(k)*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
