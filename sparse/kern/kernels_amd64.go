package kern

import (
	"unsafe"

	"entropipe/models/mat"
)

// scores calls the kernel of scores for a number of rows and panels. AVX2 has
// kernels of one panel only: see widest. scores, values and weigh are switches
// because calls through a table of functions would move args to the heap.
func scores(rows, panels int, args *productArgs) {
	p := (*byte)(unsafe.Pointer(args))
	if mat.Best() == mat.AVX2 {
		switch rows {
		case 6:
			scores6x1AVX2(p)
		case 4:
			scores4x1AVX2(p)
		case 2:
			scores2x1AVX2(p)
		default:
			scores1x1AVX2(p)
		}
		return
	}
	switch 8*rows + panels {
	case 8*6 + 4:
		scores6x4AVX512(p)
	case 8*6 + 2:
		scores6x2AVX512(p)
	case 8*6 + 1:
		scores6x1AVX512(p)
	case 8*4 + 4:
		scores4x4AVX512(p)
	case 8*4 + 2:
		scores4x2AVX512(p)
	case 8*4 + 1:
		scores4x1AVX512(p)
	case 8*2 + 4:
		scores2x4AVX512(p)
	case 8*2 + 2:
		scores2x2AVX512(p)
	case 8*2 + 1:
		scores2x1AVX512(p)
	case 8*1 + 4:
		scores1x4AVX512(p)
	case 8*1 + 2:
		scores1x2AVX512(p)
	default:
		scores1x1AVX512(p)
	}
}

// values calls the kernel of values, as scores does.
func values(rows, panels int, args *productArgs) {
	p := (*byte)(unsafe.Pointer(args))
	if mat.Best() == mat.AVX2 {
		switch rows {
		case 6:
			values6x1AVX2(p)
		case 4:
			values4x1AVX2(p)
		case 2:
			values2x1AVX2(p)
		default:
			values1x1AVX2(p)
		}
		return
	}
	switch 8*rows + panels {
	case 8*6 + 4:
		values6x4AVX512(p)
	case 8*6 + 2:
		values6x2AVX512(p)
	case 8*6 + 1:
		values6x1AVX512(p)
	case 8*4 + 4:
		values4x4AVX512(p)
	case 8*4 + 2:
		values4x2AVX512(p)
	case 8*4 + 1:
		values4x1AVX512(p)
	case 8*2 + 4:
		values2x4AVX512(p)
	case 8*2 + 2:
		values2x2AVX512(p)
	case 8*2 + 1:
		values2x1AVX512(p)
	case 8*1 + 4:
		values1x4AVX512(p)
	case 8*1 + 2:
		values1x2AVX512(p)
	default:
		values1x1AVX512(p)
	}
}

func weigh(args *weightArgs) {
	p := (*byte)(unsafe.Pointer(args))
	if mat.Best() == mat.AVX2 {
		weightsAVX2(p)
		return
	}
	weightsAVX512(p)
}
