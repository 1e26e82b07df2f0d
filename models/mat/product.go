package mat

import "unsafe"

// productArgs holds the arguments of the generated products, which read them by
// offset. Strides are in bytes.
type productArgs struct {
	rows       int // rows of c
	steps      int // terms of each sum
	a          *float32
	aStride    int
	b          *float32 // Mul: the first panel; TMul: the first row of b
	bStride    int      // stride from row to row
	c          *float32
	cStride    int
	bias       *float32 // nil if there is none
	add        int      // Mul: 1 to add the old numbers of c; TMul always adds them
	relu       int
	mask       uint64     // AVX-512: bits of the columns of the last panel
	halves     [2]*int32  // AVX2: masks of the halves of the panel
	ahead      [2]uintptr // first and last address to prefetch, or zeros
	held       *float32   // Mul: further rows to add, or nil
	heldStride int
	heldAt     int  // offset of the next held row; the kernels advance it
	whole      bool // the last panel has all its columns; the kernels do not read it
}

// fetching returns the addresses of the first and last number of v[lo:hi], which
// kernels only prefetch. It cuts the range at the end of v.
func fetching[T float32 | uint32](v []T, lo, hi int) [2]uintptr {
	if hi = min(hi, len(v)); lo >= hi {
		return [2]uintptr{}
	}
	return [2]uintptr{uintptr(unsafe.Pointer(&v[lo])), uintptr(unsafe.Pointer(&v[hi-1]))}
}

// laneMasks holds the mask of the first n of 8 lanes at index 8-n.
var laneMasks = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

// columns sets the masks of the last panel of n columns.
func (p *productArgs) columns(n int) {
	last := (n-1)%panel + 1
	p.mask = 1<<last - 1
	p.halves = [2]*int32{&laneMasks[8-min(last, 8)], &laneMasks[8-max(last-8, 0)]}
	p.whole = last == panel
}

// mulPanels returns the largest number of panels of a kernel.
func mulPanels() int {
	if level == AVX512 {
		return 4
	}
	return 1
}

func mulPanelsOf(n int, args *productArgs) {
	p := (*byte)(unsafe.Pointer(args))
	switch {
	case level == AVX2 && args.whole:
		mulWholeAVX2(p)
	case level == AVX2:
		mulPartAVX2(p)
	case n == 1:
		mul1AVX512(p)
	case n == 2:
		mul2AVX512(p)
	case n == 3:
		mul3AVX512(p)
	default:
		mul4AVX512(p)
	}
}

func tmulPanelsOf(n int, args *productArgs) {
	p := (*byte)(unsafe.Pointer(args))
	switch {
	case level == AVX2 && args.whole:
		tmulWholeAVX2(p)
	case level == AVX2:
		tmulPartAVX2(p)
	case n == 1:
		tmul1AVX512(p)
	case n == 2:
		tmul2AVX512(p)
	case n == 3:
		tmul3AVX512(p)
	default:
		tmul4AVX512(p)
	}
}
