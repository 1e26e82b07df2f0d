package kern

import "entropipe/models/mat"

//go:generate go run -C gen ./attend -out ../attend_amd64.s -stubs ../attend_amd64.go -pkg kern

// panel is the number of keys, or of columns of values, that kernels process
// together: one vector of AVX-512, two of AVX2.
const panel = 16

// productArgs holds the arguments of the generated products, which read them by
// offset. Strides are in bytes.
type productArgs struct {
	a       *float32 // scores: queries; values: weights
	aStride int
	b       *float32 // packed keys or values
	bPanel  int      // stride from panel to panel
	bStep   int      // values: stride from key to key
	steps   int      // scores: numbers of a key
	list    *int32   // panels
	count   int      // scores: tuples of panels; values: panels
	c       *float32
	cStride int
	factors *float32 // values: factor of each row of c
}

// weightArgs holds the arguments of the generated kernel of weights. A row of
// 2·pairs panels of scores s becomes 2^((s-top)·scale), where top is the largest
// score of this and earlier chunks. The kernel sets factor to 2^((old top-top)·scale),
// by which earlier sums must be multiplied, and total to factor·total plus the
// sum of the new weights.
type weightArgs struct {
	s                  *float32
	stride             int // bytes
	rows, pairs        int
	scale, _           float32
	top, total, factor *float32 // by row
}

// height returns the number of rows that a kernel processes when left rows remain.
func height(left int) int {
	switch {
	case left >= 6 && left != 8:
		return 6
	case left >= 4:
		return 4
	case left >= 2:
		return 2
	}
	return 1
}

// widest returns the largest number of panels of a kernel.
func widest() int {
	if mat.Best() == mat.AVX512 {
		return 4
	}
	return 1
}

// width returns the number of panels that a kernel processes when left panels
// remain; it is at most most.
func width(left, most int) int {
	switch {
	case left >= 4 && most >= 4:
		return 4
	case left >= 2 && most >= 2:
		return 2
	}
	return 1
}
