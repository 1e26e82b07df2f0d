package replay

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas"
)

// number is a type of a column of ours.
type number interface{ float32 | float64 | int64 }

// stored is a type of values in a file.
type stored interface {
	float32 | float64 | int32 | int64 | uint32
}

// convert fills dst, one element for each row of v, and writes null for rows without a value.
// bad is the position in v of the first value that T does not hold; -1: there is none.
func convert[T number](dst []T, v *leafValues, leaf *parquetLeaf, null T) (bad int, err error) {
	var whole T = 1
	floats := whole/2 != 0
	switch {
	case v.some() == 0:
		for i := range dst {
			dst[i] = null
		}
	case leaf.kind == parquet.Float && floats:
		spread(dst, v, v.f32, null)
	case leaf.kind == parquet.Double && floats:
		spread(dst, v, v.f64, null)
	case leaf.half && floats:
		spreadHalves(dst, v, null)
	case leaf.kind == parquet.Int32 && leaf.unsigned:
		spread(dst, v, unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(v.i32))), len(v.i32)), null)
	case leaf.kind == parquet.Int32:
		spread(dst, v, v.i32, null)
	case leaf.kind == parquet.Int64:
		if bad, err := checkWide(v, leaf, unsafe.Sizeof(whole) == 8 && floats); err != nil {
			return bad, err
		}
		spread(dst, v, v.i64, null)
	default:
		return 0, fmt.Errorf("the value is no integer")
	}
	return -1, nil
}

// checkWide returns the error for the first integer of v that int64, or with exact float64, does
// not hold, and its row.
func checkWide(v *leafValues, leaf *parquetLeaf, exact bool) (bad int, err error) {
	if !leaf.unsigned && !exact {
		return 0, nil
	}
	for k := range v.some() {
		at := k
		if v.index != nil {
			at = int(v.index[k])
		}
		n := v.i64[at]
		if leaf.unsigned && n < 0 {
			return v.rowOf(k), fmt.Errorf("%d is no int64", uint64(n))
		}
		if size := uint64(max(n, -n)); exact && bits.Len64(size)-bits.TrailingZeros64(size) > 53 {
			return v.rowOf(k), fmt.Errorf("%d is an integer that float64 does not hold", n)
		}
	}
	return 0, nil
}

// rowOf returns the row of value number k.
func (v *leafValues) rowOf(k int) int {
	if v.levels == nil {
		return k
	}
	for row, level := range v.levels {
		if level == 1 {
			if k == 0 {
				return row
			}
			k--
		}
	}
	return len(v.levels)
}

// spread converts values to the rows of dst.
func spread[T number, S stored](dst []T, v *leafValues, values []S, null T) {
	index := v.index
	switch {
	case v.levels == nil && index == nil:
		if same, ok := any(values).([]T); ok {
			copy(dst, same)
			return
		}
		for i, from := range values[:len(dst)] {
			dst[i] = T(from)
		}
	case v.levels == nil:
		for i, at := range index[:len(dst)] {
			dst[i] = T(values[at])
		}
	default:
		k := 0
		for i, level := range v.levels[:len(dst)] {
			if level != 1 {
				dst[i] = null
				continue
			}
			at := k
			if index != nil {
				at = int(index[k])
			}
			dst[i] = T(values[at])
			k++
		}
	}
}

// spreadHalves is spread for float16.
func spreadHalves[T number](dst []T, v *leafValues, null T) {
	k := 0
	for i := range dst {
		if dst[i] = null; v.levels == nil || v.levels[i] == 1 {
			b := v.text(k)
			dst[i] = T(schemas.WidenHalf(uint16(b[0]) | uint16(b[1])<<8))
			k++
		}
	}
}
