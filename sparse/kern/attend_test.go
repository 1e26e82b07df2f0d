package kern

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"entropipe/models/mat"
	"entropipe/sparse/support"
)

// levels runs f at every level that this machine has.
func levels(t *testing.T, f func(t *testing.T)) {
	for l := mat.Portable; l <= mat.AVX512; l++ {
		if l > mat.Best() {
			t.Logf("no %v here", l)
			continue
		}
		t.Run(l.String(), func(t *testing.T) {
			defer mat.Limit(l)()
			f(t)
		})
	}
}

// randomLayout draws a sound layout of n keys.
func randomLayout(t *rapid.T, r *rand.Rand, n int, causal bool) *support.Layout {
	block := rapid.SampledFrom([]int{16, 32, 64, 128}).Draw(t, "block")
	blocks := (n + block - 1) / block
	l := &support.Layout{Block: block, Rows: blocks, Cols: blocks, RowPtr: []int32{0}}
	if !causal && rapid.Bool().Draw(t, "ordered") {
		for _, k := range r.Perm(n) {
			l.Order = append(l.Order, int32(k))
		}
	}
	density := rapid.Float64Range(0, 1).Draw(t, "density")
	masked := rapid.Bool().Draw(t, "masked")
	for q := range blocks {
		for c := range blocks {
			if causal && c > q || c != q && r.Float64() > density {
				continue
			}
			kind := support.Full
			if c == q && causal || (c+1)*block > n {
				kind = support.Edge
			}
			if masked && r.IntN(2) == 0 {
				kind = support.Masked
				for w := range l.Words() {
					bits := r.Uint64() | r.Uint64()
					for i := range 64 { // every query reads its own key
						if at := 64*w + i; at/block == at%block {
							bits |= 1 << i
						}
					}
					l.Bits = append(l.Bits, bits)
				}
			}
			l.Col, l.Kind = append(l.Col, int32(c)), append(l.Kind, kind)
		}
		l.RowPtr = append(l.RowPtr, int32(len(l.Col)))
	}
	return l
}

// drawJob draws a job with layouts, for some of the last queries of its keys.
func drawJob(t *rapid.T) Job {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
	n := rapid.IntRange(1, 160).Draw(t, "keys")
	least := 0
	if rapid.IntRange(0, 4).Draw(t, "long") == 0 { // more than one chunk; few queries, for the time it takes
		n += 512
		least = n - 40
	}
	kvHeads := rapid.IntRange(1, 2).Draw(t, "kvHeads")
	heads := kvHeads * rapid.IntRange(1, 3).Draw(t, "group")
	dim := rapid.SampledFrom([]int{32, 64, 128, 16, 48, 80, 1, 7, 33}).Draw(t, "dim")
	j := newJob(r, n, n, heads, kvHeads, dim)
	j.Causal = rapid.Bool().Draw(t, "causal")
	if least > 0 || rapid.Bool().Draw(t, "decode") {
		j.Offset = rapid.IntRange(least, n-1).Draw(t, "offset")
		j.Q, j.Out = j.Q.Slice(j.Offset, n), j.Out.Slice(j.Offset, n)
	}
	j.Scale *= float32(rapid.SampledFrom([]float64{1, 1, 4, -1, 0}).Draw(t, "scale"))
	if rapid.Bool().Draw(t, "sparse") {
		for range kvHeads {
			l := randomLayout(t, r, n, j.Causal)
			if err := l.Validate(j.Causal); err != nil {
				t.Fatal(err)
			}
			j.Layouts = append(j.Layouts, l)
		}
	}
	return j
}

// reference computes the job as it is defined, into fresh memory.
func reference(j Job) mat.Matrix {
	j.Out = mat.Of(j.Q.Rows, j.Q.Cols, make([]float32, j.Q.Rows*j.Q.Cols))
	defer mat.Limit(mat.Portable)()
	new(Scratch).Attend([]Job{j}, 1)
	return j.Out
}

// roundingOf gives what rounding may change in the outputs of query i's head h.
//
// A logit, dim products added one after another in float32, is off by
// u·scale·|q|·|k|/√2 as a standard deviation, if roundings fall either way
// alike (Higham and Mary, 2019): its partial sums grow like a random walk. An
// output is a mean of values, so it moves by no more than the logits do,
// times the values' range; the weights' own roundings (of exp and of the sums)
// add a few u times the largest value. Four deviations of every key at once,
// and 8u: twenty thousand jobs came to a quarter of that.
func roundingOf(j Job) func(i, h int) float64 {
	norm := func(x []float32) (square float64) {
		for _, v := range x {
			square += float64(v) * float64(v)
		}
		return math.Sqrt(square)
	}
	keys, values := make([]float64, j.KVHeads), make([]float64, j.KVHeads)
	for h := range keys {
		for k := range j.K.Rows {
			keys[h] = max(keys[h], norm(j.K.Row(k)[h*j.Dim:][:j.Dim]))
			for _, v := range j.V.Row(k)[h*j.Dim:][:j.Dim] {
				values[h] = max(values[h], math.Abs(float64(v)))
			}
		}
	}
	const u = 1.0 / (1 << 24)
	return func(i, h int) float64 {
		kv := h / (j.Heads / j.KVHeads)
		logit := u * math.Abs(float64(j.Scale)) * norm(j.Q.Row(i)[h*j.Dim:][:j.Dim]) * keys[kv] / math.Sqrt2
		return (4*2*logit + 8*u) * values[kv]
	}
}

func TestAttendIsWhatIsDefined(t *testing.T) {
	levels(t, func(t *testing.T) {
		if mat.Best() == mat.Portable {
			t.Skip("this is the definition")
		}
		var s Scratch
		rapid.Check(t, func(t *rapid.T) {
			j := drawJob(t)
			s.Attend([]Job{j}, rapid.IntRange(1, 3).Draw(t, "workers"))
			want, rounding := reference(j), roundingOf(j)
			for i := range want.Rows {
				for c, x := range want.Row(i) {
					if got, may := j.Out.Row(i)[c], rounding(i, c/j.Dim); !(math.Abs(float64(got-x)) <= may) {
						t.Fatalf("row %d, column %d: %g, want %g within %g", i, c, got, x, may)
					}
				}
			}
		})
	})
}

// bits of what Attend makes of a job, by rows.
func attended(j Job, workers int) [][]float32 {
	j.Out = mat.Of(j.Q.Rows, j.Q.Cols, make([]float32, j.Q.Rows*j.Q.Cols))
	new(Scratch).Attend([]Job{j}, workers)
	rows := make([][]float32, j.Q.Rows)
	for i := range rows {
		rows[i] = j.Out.Row(i)
	}
	return rows
}

func TestVectorLevelsGiveTheSameBits(t *testing.T) {
	if mat.Best() < mat.AVX512 {
		t.Skipf("only %v here", mat.Best())
	}
	rapid.Check(t, func(t *rapid.T) {
		j := drawJob(t)
		wide := attended(j, 1)
		restore := mat.Limit(mat.AVX2)
		narrow := attended(j, 1)
		restore()
		for i := range wide {
			if !slices.Equal(wide[i], narrow[i]) {
				t.Fatalf("row %d: AVX-512 %g, AVX2 %g", i, wide[i], narrow[i])
			}
		}
	})
}

// A row does not depend on the rows computed beside it or on its job.
func TestRowsDoNotDependOnTheirBatch(t *testing.T) {
	levels(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			j, other := drawJob(t), drawJob(t)
			all := attended(j, 1)
			lo := rapid.IntRange(0, j.Q.Rows-1).Draw(t, "lo")
			hi := rapid.IntRange(lo+1, j.Q.Rows).Draw(t, "hi")
			part := j
			part.Q, part.Offset = j.Q.Slice(lo, hi), j.Offset+lo
			part.Out = mat.Of(hi-lo, j.Q.Cols, make([]float32, (hi-lo)*j.Q.Cols))
			jobs := []Job{other, part, other}
			jobs[2].Out = mat.Of(other.Q.Rows, other.Q.Cols, make([]float32, other.Q.Rows*other.Q.Cols))
			new(Scratch).Attend(jobs, rapid.IntRange(1, 4).Draw(t, "workers"))
			for i := range hi - lo {
				if !slices.Equal(all[lo+i], part.Out.Row(i)) {
					t.Fatalf("row %d of %d to %d differs alone", lo+i, lo, hi)
				}
			}
		})
	})
}

// A causal row depends neither on the keys after it nor on their number.
func TestCausalRowsDoNotDependOnLaterKeys(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		j := newJob(r, 600, 600, 2, 1, 16)
		j.Causal = true
		all := attended(j, 1)
		for _, n := range []int{1, 15, 16, 17, 64, 65, 511, 512, 513, 577} {
			short := j
			short.Q, short.K, short.V = j.Q.Slice(0, n), j.K.Slice(0, n), j.V.Slice(0, n)
			for i, row := range attended(short, 1) {
				if !slices.Equal(row, all[i]) {
					t.Fatalf("row %d of %d differs from that of 600", i, n)
				}
			}
			last := short // as in decoding
			last.Q, last.Offset = short.Q.Slice(n-1, n), n-1
			if !slices.Equal(attended(last, 2)[0], all[n-1]) {
				t.Fatalf("row %d alone differs", n-1)
			}
		}
	})
}

func BenchmarkAttend(b *testing.B) {
	for _, c := range []struct{ n, heads, dim, block int }{
		{16, 12, 32, 0}, {64, 12, 32, 0}, {512, 12, 32, 0}, {128, 12, 64, 0}, {512, 12, 64, 0}, {1024, 12, 64, 0},
		{2048, 12, 64, 0}, {4096, 12, 64, 0},
		{512, 12, 64, 64}, {1024, 12, 64, 64}, {2048, 12, 64, 64}, {4096, 12, 64, 64}, {1024, 12, 64, 16},
		{1024, 12, 64, 32}, {1024, 12, 32, 64}, {2048, 12, 32, 64}, {1024, 12, 64, 128},
	} {
		b.Run(fmt.Sprintf("n=%d/dim=%d/block=%d", c.n, c.dim, c.block), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			j := newJob(r, c.n, c.n, c.heads, c.heads, c.dim)
			read := float64(c.n) * float64(c.n)
			if c.block > 0 {
				l := windowLayout(c.n, c.block, 0.25)
				read = float64(len(l.Col) * c.block * c.block)
				for range c.heads {
					j.Layouts = append(j.Layouts, l)
				}
			}
			var s Scratch
			jobs := []Job{j}
			for b.Loop() {
				s.Attend(jobs, 1)
			}
			b.ReportMetric(4*read*float64(c.heads*c.dim)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
		})
	}
}

// windowLayout reads the first block and those around the diagonal.
func windowLayout(n, block int, density float64) *support.Layout {
	b := n / block
	l := &support.Layout{Block: block, Rows: b, Cols: b, RowPtr: []int32{0}}
	want := max(1, int(math.Round(density*float64(b))))
	for r := range b {
		lo := min(max(1, r-(want-1)/2), max(b-want+1, 0))
		l.Col = append(l.Col, 0)
		for c := lo; c < lo+want-1; c++ {
			l.Col = append(l.Col, int32(c))
		}
		l.RowPtr = append(l.RowPtr, int32(len(l.Col)))
	}
	l.Kind = make([]uint8, len(l.Col))
	return l
}
