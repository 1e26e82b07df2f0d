// Package kern is the arithmetic of attention: dense and block-sparse, for
// encoders and for causal models, and what the dropped part can have changed.
//
// It is not a layer: projections, rotary positions and caches belong to its
// callers, which hand over queries, keys and values as attended.
//
// Words: a job is the attention of one sequence in one layer; a tile is a run
// of query rows of one head that one goroutine works on; a layout
// (support.Layout) says which blocks of keys a block of queries reads.
//
// What callers may rely on:
//
//   - Batch invariance. At one level (mat.Best) the bits of a row of a result
//     depend on that row's query, its keys and values, its position, and the
//     head's layout; not on other queries of the job, other jobs, or workers.
//   - A layout that lists every block gives the bits of no layout at all.
//   - Values are finite by contract. A NaN or an infinity gives rows without
//     meaning, never a fault, and not beyond the tiles that read it.
package kern

import (
	"entropipe/models/mat"
	"entropipe/sparse/support"
)

// Job is the attention of one sequence in one layer: row i of Out becomes, for
// every head, the mean of the values v_j weighted by exp(Scale·q_i·k_j) over
// the keys j that query i sees. The matrices are views and nothing is kept; Out
// shares no memory with the others.
type Job struct {
	Q, Out mat.Matrix // [queries][Heads*Dim]; Q may be columns of a fused matrix
	K, V   mat.Matrix // [keys][KVHeads*Dim]; key j has position j
	// Dim is any positive number; 32, 64 and 128 are fast. Query head h reads
	// key and value head h*KVHeads/Heads; KVHeads divides Heads.
	Heads, KVHeads, Dim int
	Scale               float32
	Causal              bool // query i sees keys of positions up to its own, Offset+i
	Offset              int  // position of the first query: 0 unless a cache holds earlier keys
	// Layouts is per key and value head. A nil slice or entry is dense. Row
	// block r of a layout speaks for queries of positions r*Block onwards, and
	// the layout must have rows for all of them. A query whose layout leaves it
	// no key gets zeros.
	Layouts []*support.Layout
	// Paged, unless it is nil, is where keys and values lie, per key and value
	// head, for Attend alone: then K.Rows is all that is read of K and V.
	Paged []Paged
	// LogSums, unless it is nil, receives the natural logarithm of the sum of
	// exp(Scale·q·k) over the keys that were read: [queries][Heads]. Where no
	// key was read it is minus infinity.
	LogSums []float64
}

// What a caller can do wrong.
const (
	badHeads  = "kern: heads, key heads or dimension out of range"
	badShape  = "kern: a matrix does not fit heads, dimension and rows"
	badOffset = "kern: an offset below zero, or causal queries beyond the keys"
	badLayout = "kern: a layout does not cover the queries, or is broken"
	badPage   = "kern: pages that do not cover the keys, or a page that is not there"
	badMass   = "kern: head, block or destination out of range"
)

// check panics unless the job is sound; whether a layout's insides are is for
// support.Layout.Validate.
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
		if l != nil && (l.Block <= 0 || l.Block%panel != 0 || len(l.RowPtr) != l.Rows+1 || (j.Offset+j.Q.Rows+l.Block-1)/l.Block > l.Rows) {
			panic(badLayout)
		}
		if l != nil && l.Order != nil && j.Paged != nil {
			panic(badLayout)
		}
	}
}

// checkRows is check for what reads keys and values as rows.
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

// kv is the key and value head that query head h reads.
func (j *Job) kv(h int) int { return h * j.KVHeads / j.Heads }

// layout is that of query head h, nil where it is dense.
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

// horizon is the number of keys that query i may see by position.
func (j *Job) horizon(i int) int {
	if j.Causal {
		return min(j.Offset+i+1, j.K.Rows)
	}
	return j.K.Rows
}
