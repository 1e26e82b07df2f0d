// Package mat computes small networks: products of float32 matrices, the
// functions between products, and their gradients for training.
//
// It is not a tensor library: there are no shapes beyond rows and columns, no
// graph, and no automatic gradients. A network is written out by hand as a
// sequence of these calls, for inference and for training alike.
//
// Words: a Matrix is a view of rows in a slice; Weights are a matrix packed
// once for many products, in bands of 64 columns; a panel is 16 columns; a level
// is the vector unit in use; a tile is a run of rows that one goroutine computes.
//
// Guarantees:
//
//   - Batch invariance. At one level (see Best) the bits of a row of a result
//     depend on that row and on the weights: not on the rows beside it, their
//     number or order, the tiles, or the number of workers. Sums over rows
//     (TMul, Moments) are taken in an order that depends on the rows alone.
//   - The vector levels multiply and add with one rounding, portable Go with
//     two. Results of two levels therefore differ in their last bits. Each
//     function states its error, and tests check the error at every level.
//   - Inputs are finite by contract. A NaN or an infinity gives meaningless
//     results, never a fault.
//   - Calls allocate no memory, except when they start goroutines, when Weights
//     grow, for rows that are rounded to bf16, and for rows to which a long product
//     is added (Epilogue.Add); the memory of both kinds of rows is reused.
//     Calls keep no reference to their arguments. Calls may run at the same time
//     if none writes memory that another uses.
//
// Products have a parameter for the number of workers. All other functions compute
// the given rows in the calling goroutine; Tiles shares rows among goroutines, so
// that a sequence of calls can stay in the cache of one core.
package mat

// Matrix is a view of Rows rows of Cols numbers in Data; row i begins at
// Data[i*Stride]. It owns no memory. The zero value has no rows.
type Matrix struct {
	Rows, Cols, Stride int
	Data               []float32
}

// Of returns data as a matrix [rows][cols] with consecutive rows. It panics if
// data is shorter than rows·cols.
func Of(rows, cols int, data []float32) Matrix {
	m := Matrix{rows, cols, cols, data}
	m.check()
	return m
}

// Row returns row i, a view [Cols].
func (m Matrix) Row(i int) []float32 {
	return m.Data[i*m.Stride : i*m.Stride+m.Cols : i*m.Stride+m.Cols]
}

// Slice returns rows lo to hi-1, a view. It panics if they are out of range.
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

// Columns returns columns lo to hi-1 of all rows, a view. It panics if they are
// out of range.
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

// Panics of a caller's mistakes.
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

// sameShape panics unless all matrices are sound and have the same shape.
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
