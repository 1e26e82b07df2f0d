// Package mat is the arithmetic of small networks: products of float32
// matrices, the functions between them, and what their training needs.
//
// It is not a tensor library: there are no shapes beyond rows and columns, no
// graph and no gradients by themselves. A network is written out by hand over
// these calls, for inference and for training alike.
//
// Words: a Matrix is a view of rows in a slice; Weights are a matrix packed
// once for many products, in bands of columns; a tile is a run of rows that one
// goroutine works on.
//
// What callers may rely on:
//
//   - Batch invariance. At one level (see Best) the bits of a row of a result
//     depend on that row and on the weights: not on the rows beside it, their
//     number or order, the tiles, or the number of workers. Sums over rows
//     (TMul, Moments) are taken in an order that only the rows decide.
//   - The vector levels multiply and add with one rounding, portable Go with
//     two. So results of two levels differ in their last bits; each function
//     states its error, and tests hold it to that at every level.
//   - Values are finite by contract. A NaN or an infinity gives results without
//     meaning, never a fault.
//   - Nothing is allocated, except where goroutines are started, where Weights
//     grow, for rows that are rounded to bf16, and for rows that a long product
//     is added to (Epilogue.Add); the memory of both kinds of rows is used again.
//     Arguments are not kept. Calls may run at the same time if none writes
//     what another uses.
//
// Products take a number of workers. All other functions work on the rows they
// are given; Tiles shares rows among goroutines, so that a chain of calls can
// stay in the cache of one core.
package mat

// Matrix is a view of Rows rows of Cols numbers, Stride apart, in Data. It owns
// nothing; the zero value is a matrix without rows.
type Matrix struct {
	Rows, Cols, Stride int
	Data               []float32
}

// Of returns data as a matrix whose rows follow each other. It panics if data
// is shorter than that.
func Of(rows, cols int, data []float32) Matrix {
	m := Matrix{rows, cols, cols, data}
	m.check()
	return m
}

// Row returns row i, a view.
func (m Matrix) Row(i int) []float32 {
	return m.Data[i*m.Stride : i*m.Stride+m.Cols : i*m.Stride+m.Cols]
}

// Slice returns rows lo to hi-1, a view.
func (m Matrix) Slice(lo, hi int) Matrix {
	if lo < 0 || lo > hi || hi > m.Rows {
		panic(badRows)
	}
	s := Matrix{hi - lo, m.Cols, m.Stride, nil}
	if lo < hi {
		s.Data = m.Data[lo*m.Stride:]
	}
	return s
}

// Columns returns columns lo to hi-1 of all rows, a view.
func (m Matrix) Columns(lo, hi int) Matrix {
	if lo < 0 || lo > hi || hi > m.Cols {
		panic(badColumns)
	}
	s := Matrix{m.Rows, hi - lo, m.Stride, nil}
	if lo < hi && m.Rows > 0 {
		s.Data = m.Data[lo:]
	}
	return s
}

// What a caller can do wrong.
const (
	badShape   = "mat: a matrix does not fit its data"
	badRows    = "mat: rows differ or are out of range"
	badColumns = "mat: columns differ or are out of range"
	badLength  = "mat: lengths differ"
)

func (m Matrix) empty() bool { return m.Rows == 0 || m.Cols == 0 }

// check panics unless every row lies in Data.
func (m Matrix) check() {
	if m.Rows < 0 || m.Cols < 0 || m.Stride < m.Cols {
		panic(badShape)
	}
	if !m.empty() && (m.Rows-1)*m.Stride+m.Cols > len(m.Data) {
		panic(badShape)
	}
}

// sameShape panics unless all are sound and have as many rows and columns.
func sameShape(ms ...Matrix) {
	for _, m := range ms {
		m.check()
		if m.Rows != ms[0].Rows {
			panic(badRows)
		}
		if m.Cols != ms[0].Cols {
			panic(badColumns)
		}
	}
}

// lengths panics unless every slice holds n numbers.
func lengths(n int, vs ...[]float32) {
	for _, v := range vs {
		if len(v) != n {
			panic(badLength)
		}
	}
}
