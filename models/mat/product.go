package mat

import "unsafe"

// productArgs is what the generated products read; they know the offsets.
// Strides are in bytes.
type productArgs struct {
	rows       int // of c
	steps      int // of each sum
	a          *float32
	aStride    int
	b          *float32 // Mul: the first panel; TMul: b's first row
	bStride    int      // from row to row
	c          *float32
	cStride    int
	bias       *float32 // or nil
	add        int      // Mul: whether to add what c holds; TMul always adds
	relu       int
	mask       uint64     // AVX-512: the columns of the last panel
	halves     [2]*int32  // AVX2: masks of the halves of the panel
	ahead      [2]uintptr // what to fetch for later: begin and end, or zeros
	held       *float32   // Mul: rows to add besides; nil: none
	heldStride int
	heldAt     int  // offset of the next of them; the kernels move it on
	whole      bool // whether the last panel has all its columns; not read there
}

// fetching returns v[lo:hi] as an address that is only ever fetched into a
// cache. What lies outside v is left out.
func fetching[T float32 | uint32](v []T, lo, hi int) [2]uintptr {
	if hi = min(hi, len(v)); lo >= hi {
		return [2]uintptr{}
	}
	return [2]uintptr{uintptr(unsafe.Pointer(&v[lo])), uintptr(unsafe.Pointer(&v[hi-1]))}
}

// laneMasks holds a mask of the first n of 8 lanes at 8-n.
var laneMasks = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

// columns sets the masks for the last of the panels that hold n columns.
func (p *productArgs) columns(n int) {
	last := (n-1)%panel + 1
	p.mask = 1<<last - 1
	p.halves = [2]*int32{&laneMasks[8-min(last, 8)], &laneMasks[8-max(last-8, 0)]}
	p.whole = last == panel
}

// mulPanels is the number of panels that one kernel takes at most.
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
