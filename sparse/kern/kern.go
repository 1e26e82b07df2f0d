// Package kern computes attention, dense and block-sparse, for encoders and for
// causal models, and bounds the error of the keys that a layout leaves out.
//
// It is not a layer: callers apply projections, rotary positions and caches, and
// pass queries, keys and values as they are to be attended.
//
// Words: a job is the attention of one sequence in one layer; a layout
// (support.Layout) lists the blocks of keys that a block of queries reads; a
// panel is 16 consecutive keys, as the kernels read them; a tile is a run of
// query rows of one head that one goroutine computes; δ is the share of the dense
// softmax that a query does not read.
//
// Guarantees:
//
//   - Batch invariance. At one level (mat.Best) the bits of a row of a result
//     depend on that row's query, its keys and values, its position, and the
//     head's layout. They do not depend on other queries of the job, on other
//     jobs, or on the number of workers.
//   - A layout that lists every block gives the same bits as no layout.
//   - Inputs are finite by contract. A NaN or an infinity gives meaningless rows
//     in the tiles that read it and nowhere else, and never a fault.
package kern

import (
	"entropipe/models/mat"
	"entropipe/sparse/support"
)

// Job is the attention of one sequence in one layer: row i of Out becomes, for
// every head, the mean of the values v_j weighted by exp(Scale·q_i·k_j) over
// the keys j that query i sees. The matrices are views that belong to the caller;
// calls keep no reference to them. Out must not share memory with Q, K and V.
type Job struct {
	Q, Out mat.Matrix // [queries][Heads*Dim]; Q may be columns of a fused matrix
	K, V   mat.Matrix // [keys][KVHeads*Dim]; key j has position j
	// Dim is any positive number; 32, 64 and 128 are fast. Query head h reads
	// key and value head h*KVHeads/Heads; KVHeads divides Heads.
	Heads, KVHeads, Dim int
	Scale               float32
	Causal              bool // query i sees keys of positions up to its own, Offset+i
	Offset              int  // position of the first query: 0 unless a cache holds earlier keys
	// Layouts has one entry for each key and value head. A nil slice or entry is
	// dense. Row r of a layout applies to the queries of positions r*Block to
	// (r+1)*Block-1, and the layout must have rows for all queries. A query whose
	// layout lists no key that it may see gets zeros.
	Layouts []*support.Layout
	// Paged, if it is not nil, has one entry for each key and value head and holds
	// the keys and values instead of K and V, of which only K.Rows is read. Only
	// Attend accepts paged jobs.
	Paged []Paged
	// LogSums [queries][Heads], if it is not nil, receives
	// ln Σ exp(Scale·q·k) over the keys that were read, and minus infinity where
	// no key was read.
	LogSums []float64
}

// Panics of a caller's mistakes.
const (
	badHeads  = "kern: heads, key heads or dimension are out of range"
	badShape  = "kern: a matrix does not fit heads, dimension and rows"
	badOffset = "kern: the offset is below zero, or causal queries lie beyond the keys"
	badLayout = "kern: a layout does not cover the queries, or is broken"
	badPage   = "kern: the pages do not cover the keys, a page is missing, or the call does not accept pages"
	badMass   = "kern: head, block or destination are out of range"
)

// check panics unless the job is sound. support.Layout.Validate checks the
// contents of a layout; check looks at its sizes alone.
func (j *Job) check() {
	if j.Heads <= 0 || j.KVHeads <= 0 || j.Heads%j.KVHeads != 0 || j.Dim <= 0 {
		panic(badHeads)
	}
	if j.Offset < 0 || j.Causal && j.Offset+j.Q.Rows > j.K.Rows {
		panic(badOffset)
	}
	if !fits(j.Q, j.Q.Rows, j.Heads*j.Dim) || !fits(j.Out, j.Q.Rows, j.Heads*j.Dim) {
		panic(badShape)
	}
	if j.Paged == nil && (!fits(j.K, j.K.Rows, j.KVHeads*j.Dim) || !fits(j.V, j.K.Rows, j.KVHeads*j.Dim)) {
		panic(badShape)
	}
	if j.Paged != nil && len(j.Paged) != j.KVHeads {
		panic(badPage)
	}
	for i := range j.Paged {
		if !j.Paged[i].fits(j.K.Rows) {
			panic(badPage)
		}
	}
	if j.LogSums != nil && len(j.LogSums) != j.Q.Rows*j.Heads {
		panic(badShape)
	}
	if len(j.Layouts) > 0 && len(j.Layouts) != j.KVHeads {
		panic(badLayout)
	}
	for _, l := range j.Layouts {
		if l == nil {
			continue
		}
		if l.Block <= 0 || l.Block%panel != 0 || len(l.RowPtr) != l.Rows+1 {
			panic(badLayout)
		}
		if (j.Offset+j.Q.Rows+l.Block-1)/l.Block > l.Rows || l.Order != nil && j.Paged != nil {
			panic(badLayout)
		}
	}
}

// checkRows is check for calls that read keys and values as rows of matrices.
func (j *Job) checkRows() {
	j.check()
	if j.Paged != nil {
		panic(badPage)
	}
}

func fits(m mat.Matrix, rows, cols int) bool {
	if m.Rows != rows || m.Cols != cols || m.Stride < cols {
		return false
	}
	return rows == 0 || (rows-1)*m.Stride+cols <= len(m.Data)
}

// kv returns the key and value head that query head h reads.
func (j *Job) kv(h int) int { return h * j.KVHeads / j.Heads }

// layout returns the layout of query head h, or nil where the head is dense.
func (j *Job) layout(h int) *support.Layout {
	if len(j.Layouts) == 0 {
		return nil
	}
	return j.Layouts[j.kv(h)]
}

func (j *Job) query(i, h int) []float32 {
	return j.Q.Data[i*j.Q.Stride+h*j.Dim:][:j.Dim]
}

func (j *Job) out(i, h int) []float32 {
	return j.Out.Data[i*j.Out.Stride+h*j.Dim:][:j.Dim]
}

func (j *Job) key(k, h int) []float32 {
	return j.K.Data[k*j.K.Stride+j.kv(h)*j.Dim:][:j.Dim]
}

func (j *Job) value(k, h int) []float32 {
	return j.V.Data[k*j.V.Stride+j.kv(h)*j.Dim:][:j.Dim]
}

// horizon returns the number of keys that query i may see by position.
func (j *Job) horizon(i int) int {
	if j.Causal {
		return min(j.Offset+i+1, j.K.Rows)
	}
	return j.K.Rows
}
