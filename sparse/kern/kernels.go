package kern

import "entropipe/models/mat"

//go:generate go run -C gen ./attend -out ../attend_amd64.s -stubs ../attend_amd64.go -pkg kern

// panel is the number of keys, or of columns of values, that kernels take
// together: one vector of AVX-512, two of AVX2.
const panel = 16

// productArgs is what the generated products read; they know the offsets.
// Strides are in bytes.
type productArgs struct {
	a       *float32 // scores: queries; values: weights
	aStride int
	b       *float32 // what is packed
	bPanel  int      // from panel to panel
	bStep   int      // values: from key to key
	steps   int      // scores: numbers of a key
	list    *int32   // panels
	count   int      // scores: tuples of panels; values: panels
	c       *float32
	cStride int
	factors *float32 // values: of what c holds, by row
}

// weightArgs is what the generated kernel of weights reads. A row of 2·pairs
// panels of scores s becomes 2^((s-top)·scale), where top is the largest score of
// this and earlier chunks. factor is what earlier sums shrink by; total goes
// on from what it holds.
type weightArgs struct {
	s                  *float32
	stride             int // bytes
	rows, pairs        int
	scale, _           float32
	top, total, factor *float32 // by row
}

// height is the number of rows that a kernel takes when left remain.
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

// widest is the number of panels that a kernel takes at most.
func widest() int {
	if mat.Best() == mat.AVX512 {
		return 4
	}
	return 1
}

// width is the number of panels that a kernel takes when left remain, at most
// most.
func width(left, most int) int {
	switch {
	case left >= 4 && most >= 4:
		return 4
	case left >= 2 && most >= 2:
		return 2
	}
	return 1
}
