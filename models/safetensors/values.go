package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Float32s appends the values of F32, F16 or BF16 to dst; widening is exact. Float32s
// fails for any other type, even if its values would fit.
func (t Tensor) Float32s(dst []float32) ([]float32, error) {
	switch t.DType {
	case F32:
		return read(t, dst, func(to []float32, b []byte) {
			for i := range to {
				to[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
			}
		})
	case F16:
		return read(t, dst, func(to []float32, b []byte) {
			for i := range to {
				to[i] = fromHalf(binary.LittleEndian.Uint16(b[2*i:]))
			}
		})
	case BF16:
		return read(t, dst, func(to []float32, b []byte) {
			for i := range to {
				to[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
			}
		})
	}
	return dst, t.wrongType(F32, F16, BF16)
}

// Float64s appends the values of F64, F32, F16 or BF16 to dst. Float64s fails for any
// other type.
func (t Tensor) Float64s(dst []float64) ([]float64, error) {
	switch t.DType {
	case F64:
		return read(t, dst, func(to []float64, b []byte) {
			for i := range to {
				to[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
			}
		})
	case F32, F16, BF16:
		values, err := t.Float32s(nil)
		if err != nil {
			return dst, err
		}
		dst = slices.Grow(dst, len(values))
		for _, v := range values {
			dst = append(dst, float64(v))
		}
		return dst, nil
	}
	return dst, t.wrongType(F64, F32, F16, BF16)
}

// Int64s appends the values of an integer type, or BOOL as 0 and 1, to dst. Int64s
// fails for any other type and for a U64 above the largest int64.
func (t Tensor) Int64s(dst []int64) ([]int64, error) {
	le := binary.LittleEndian
	switch t.DType {
	case BOOL, U8:
		return readInts(t, dst, func(b []byte) int64 { return int64(b[0]) })
	case I8:
		return readInts(t, dst, func(b []byte) int64 { return int64(int8(b[0])) })
	case U16:
		return readInts(t, dst, func(b []byte) int64 { return int64(le.Uint16(b)) })
	case I16:
		return readInts(t, dst, func(b []byte) int64 { return int64(int16(le.Uint16(b))) })
	case U32:
		return readInts(t, dst, func(b []byte) int64 { return int64(le.Uint32(b)) })
	case I32:
		return readInts(t, dst, func(b []byte) int64 { return int64(int32(le.Uint32(b))) })
	case I64:
		return readInts(t, dst, func(b []byte) int64 { return int64(le.Uint64(b)) })
	case U64:
		n := len(dst)
		dst, err := readInts(t, dst, func(b []byte) int64 { return int64(le.Uint64(b)) })
		if err == nil && slices.ContainsFunc(dst[n:], func(v int64) bool { return v < 0 }) {
			return dst[:n], fmt.Errorf("%s: tensor %q holds a number beyond the largest int64", t.file.name, t.Name)
		}
		return dst, err
	}
	return dst, t.wrongType(BOOL, U8, I8, U16, I16, U32, I32, U64, I64)
}

func (t Tensor) wrongType(want ...DType) error {
	var names []string
	for _, w := range want {
		names = append(names, string(w))
	}
	return fmt.Errorf("%s: tensor %q has values of type %s, want %s", t.file.name, t.Name, t.DType,
		strings.Join(names, ", "))
}

// readInts takes value by value, which costs some nanoseconds each: integers
// are indices, not weights.
func readInts(t Tensor, dst []int64, decode func(b []byte) int64) ([]int64, error) {
	width := t.DType.Size()
	return read(t, dst, func(to []int64, b []byte) {
		for i := range to {
			to[i] = decode(b[width*i:])
		}
	})
}

// pieceSize is a multiple of every type's size.
const pieceSize = 1 << 16

// read appends the values, a piece at a time, whose bytes decode gets; where
// reading fails dst is returned as it was.
func read[T any](t Tensor, dst []T, decode func(to []T, b []byte)) ([]T, error) {
	n, width := len(dst), int64(t.DType.Size())
	out := slices.Grow(dst, t.Len())[:n+t.Len()]
	piece := make([]byte, min(pieceSize, t.size))
	for at := int64(0); at < t.size; at += int64(len(piece)) {
		piece = piece[:min(pieceSize, t.size-at)]
		if got, err := t.file.r.ReadAt(piece, t.start+at); got < len(piece) {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF // it was longer when it was opened
			}
			return dst, fmt.Errorf("%s: tensor %q: %w", t.file.name, t.Name, err)
		}
		from := n + int(at/width)
		decode(out[from:from+len(piece)/int(width)], piece)
	}
	return out, nil
}

// fromHalf widens a number of 5 exponent and 10 fraction bits, exactly; NaNs
// keep their bits. Where the fields stand in a float32 they mean 2^-112 of the
// number, also if it is denormal; only infinity and NaN differ.
func fromHalf(h uint16) float32 {
	bits := math.Float32bits(math.Float32frombits(uint32(h&0x7fff)<<13) * 0x1p112)
	if h&0x7c00 == 0x7c00 {
		bits |= 0x7f800000
	}
	return math.Float32frombits(bits | uint32(h>>15)<<31)
}
