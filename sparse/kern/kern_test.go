package kern

import (
	"math"
	"math/rand/v2"
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

func TestFullLayoutEqualsDense(t *testing.T) {
	for _, causal := range []bool{false, true} {
		for _, n := range []int{1, 5, 64, 100, 200} {
			for _, block := range []int{16, 32, 64, 128} {
				r := rand.New(rand.NewPCG(1, uint64(n)))
				j := newJob(r, n, n, 4, 2, 32)
				j.Causal = causal
				new(Scratch).Attend([]Job{j}, 1)
				dense := append([]float32(nil), j.Out.Data...)
				j.Layouts = []*support.Layout{fullLayout(n, block, causal), nil}
				new(Scratch).Attend([]Job{j}, 2)
				for i, x := range j.Out.Data {
					if x != dense[i] {
						t.Fatalf("causal %v, n %d, block %d: number %d is %g, dense %g", causal, n, block, i, x, dense[i])
					}
				}
			}
		}
	}
}
