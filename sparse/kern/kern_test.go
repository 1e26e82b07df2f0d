package kern

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/models/mat"
	"entropipe/sparse/support"
)

// newJob makes a job of normal numbers; Q, K and V are columns of one matrix
// when the numbers of queries and keys are equal.
func newJob(r *rand.Rand, queries, keys, heads, kvHeads, dim int) Job {
	normal := func(rows, cols int) mat.Matrix {
		m := mat.Of(rows, cols, make([]float32, rows*cols))
		for i := range m.Data {
			m.Data[i] = float32(r.NormFloat64())
		}
		return m
	}
	j := Job{Heads: heads, KVHeads: kvHeads, Dim: dim, Scale: float32(1 / math.Sqrt(float64(dim)))}
	e, kv := heads*dim, kvHeads*dim
	if queries == keys {
		m := normal(queries, e+2*kv)
		j.Q, j.K, j.V = m.Columns(0, e), m.Columns(e, e+kv), m.Columns(e+kv, e+2*kv)
	} else {
		j.Q, j.K, j.V = normal(queries, e), normal(keys, kv), normal(keys, kv)
	}
	j.Out = mat.Of(queries, e, make([]float32, queries*e))
	return j
}

// fullLayout lists every block, or those up to the diagonal.
func fullLayout(n, block int, causal bool) *support.Layout {
	b := (n + block - 1) / block
	l := &support.Layout{Block: block, Rows: b, Cols: b, RowPtr: []int32{0}}
	for r := range b {
		for c := range b {
			if causal && c > r {
				continue
			}
			kind := support.Full
			if c == r && causal || (c+1)*block > n {
				kind = support.Edge
			}
			l.Col, l.Kind = append(l.Col, int32(c)), append(l.Kind, uint8(kind))
		}
		l.RowPtr = append(l.RowPtr, int32(len(l.Col)))
	}
	return l
}

// The same bits, and within 1e-5 where the layout has an order of its own.
func TestFullLayoutEqualsDense(t *testing.T) {
	levels(t, func(t *testing.T) {
		for _, causal := range []bool{false, true} {
			for _, n := range []int{1, 5, 64, 130, 600} {
				for _, block := range []int{16, 32, 64, 128} {
					r := rand.New(rand.NewPCG(1, uint64(n)))
					j := newJob(r, n, n, 2, 2, 32)
					j.Causal = causal
					if n > 512 { // beyond a chunk; some queries will do
						j.Q, j.Out, j.Offset = j.Q.Slice(490, 540), j.Out.Slice(490, 540), 490
					}
					dense := attended(j, 1)
					full := fullLayout(n, block, causal)
					j.Layouts = []*support.Layout{full, nil}
					for i, row := range attended(j, 2) {
						if !slices.Equal(row, dense[i]) {
							t.Fatalf("causal %v, n %d, block %d: row %d is %g, dense %g", causal, n,
								block, i, row, dense[i])
						}
					}
					full = fullLayout(n, block, false)
					for _, k := range r.Perm(n) {
						full.Order = append(full.Order, int32(k))
					}
					j.Layouts = []*support.Layout{full, full}
					for i, row := range attended(j, 2) {
						if d := distance(row, dense[i]); d > 1e-5 {
							t.Fatalf("causal %v, n %d, block %d, permuted: row %d is %g away", causal, n, block, i, d)
						}
					}
				}
			}
		}
	})
}

// Where one score is far above all others, its value is the result, whatever
// the size of the scores; what lies far below counts nothing, not even as a
// number that is none.
func TestHugeScores(t *testing.T) {
	levels(t, func(t *testing.T) {
		for _, top := range []float32{30, 700, 5000, 1e30} {
			for _, sign := range []float32{1, -1} {
				const n = 600
				j := newJob(rand.New(rand.NewPCG(8, 8)), n, n, 1, 1, 16)
				j.Scale = sign
				for i := range n {
					clear(j.query(i, 0))
					clear(j.key(i, 0))
					j.query(i, 0)[3] = sign * float32(math.Sqrt(float64(top)))
					j.key(i, 0)[3] = -float32(math.Sqrt(float64(top)))
				}
				j.Q, j.Out = j.Q.Slice(0, 7), j.Out.Slice(0, 7)
				const best = 555 // in the second chunk
				j.key(best, 0)[3] *= -1
				for i, row := range attended(j, 1) {
					if d := distance(row, j.value(best, 0)); d > 1e-6 {
						t.Fatalf("scores of %g: row %d is %g away from the value of the largest", sign*top, i, d)
					}
				}
				j.key(best, 0)[3] *= -1 // all the same, and far below zero: the mean
				for _, row := range attended(j, 1) {
					for c, x := range row {
						mean := 0.0
						for k := range n {
							mean += float64(j.value(k, 0)[c]) / n
						}
						if math.Abs(float64(x)-mean) > 1e-5 {
							t.Fatalf("scores of %g: %g, want the mean %g", -top, x, mean)
						}
					}
				}
			}
		}
	})
}

// A query whose bits leave it no key gets zeros, and so do queries without keys.
func TestNoKeyGivesZeros(t *testing.T) {
	levels(t, func(t *testing.T) {
		j := newJob(rand.New(rand.NewPCG(9, 9)), 16, 16, 1, 1, 32)
		l := fullLayout(16, 16, false)
		l.Kind[0], l.Bits = support.Masked, make([]uint64, l.Words())
		l.Bits[0] = 1 << 5 // the first query reads key 5, the others none
		j.Layouts = []*support.Layout{l}
		j.LogSums = make([]float64, 16)
		for i, row := range attended(j, 1) {
			want := make([]float32, 32)
			if i == 0 {
				want = j.value(5, 0)
			}
			if d := distance(row, want); d > 1e-6 || i > 0 && !math.IsInf(j.LogSums[i], -1) {
				t.Errorf("row %d is %g, and its sum e^%g", i, row, j.LogSums[i])
			}
		}
		j = newJob(rand.New(rand.NewPCG(9, 9)), 3, 0, 2, 1, 8)
		j.Out.Data[0] = 1
		new(Scratch).Attend([]Job{j}, 2)
		for _, x := range j.Out.Data {
			if x != 0 {
				t.Fatalf("without keys: %g", j.Out.Data)
			}
		}
	})
}

func TestUnsoundJobsPanic(t *testing.T) {
	sound := func() Job { return newJob(rand.New(rand.NewPCG(2, 2)), 20, 20, 2, 1, 8) }
	for _, c := range []struct {
		want  string
		spoil func(*Job)
	}{
		{badHeads, func(j *Job) { j.Heads = 3; j.KVHeads = 2 }},
		{badHeads, func(j *Job) { j.Dim = 0 }},
		{badShape, func(j *Job) { j.K = j.K.Slice(0, 19) }},
		{badShape, func(j *Job) { j.Q = j.Q.Columns(0, 15) }},
		{badShape, func(j *Job) { j.Out.Data = j.Out.Data[:100] }},
		{badShape, func(j *Job) { j.LogSums = make([]float64, 39) }},
		{badOffset, func(j *Job) { j.Offset = -1 }},
		{badOffset, func(j *Job) { j.Causal, j.Offset = true, 1 }},
		{badLayout, func(j *Job) { j.Layouts = make([]*support.Layout, 2) }},
		{badLayout, func(j *Job) { j.Layouts = []*support.Layout{fullLayout(16, 16, false)} }},
		{badLayout, func(j *Job) { l := fullLayout(20, 16, false); l.Block = 24; j.Layouts = []*support.Layout{l} }},
	} {
		j := sound()
		c.spoil(&j)
		func() {
			defer func() {
				if got := recover(); got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
			}()
			new(Scratch).Attend([]Job{j}, 1)
		}()
	}
}
