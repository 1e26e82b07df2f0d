package codec

import (
	"encoding/binary"
	"math"
	"strconv"
)

// PutText writes the number that word says to dst, little-endian, as a value of type t. It
// reports false if word is no number, or no number of that type. Words nan and inf are
// floats, in any letters and with a sign; a float beyond the range of t is infinite, and
// "7.0" is an integer. dst has room for t.Size() bytes.
func PutText(dst []byte, t Type, word []byte) bool {
	switch t {
	case Float32:
		v, ok := parseFloat(word, 32)
		binary.LittleEndian.PutUint32(dst, math.Float32bits(float32(v)))
		return ok
	case Float64:
		v, ok := parseFloat(word, 64)
		binary.LittleEndian.PutUint64(dst, math.Float64bits(v))
		return ok
	case Uint64:
		if v, err := strconv.ParseUint(string(word), 10, 64); err == nil {
			binary.LittleEndian.PutUint64(dst, v)
			return true
		}
	}
	v, ok := parseInt(word)
	if !ok {
		return false
	}
	switch t {
	case Int8:
		dst[0] = byte(v)
		return v == int64(int8(v))
	case Uint8:
		dst[0] = byte(v)
		return v == int64(uint8(v))
	case Int16:
		binary.LittleEndian.PutUint16(dst, uint16(v))
		return v == int64(int16(v))
	case Uint16:
		binary.LittleEndian.PutUint16(dst, uint16(v))
		return v == int64(uint16(v))
	case Int32:
		binary.LittleEndian.PutUint32(dst, uint32(v))
		return v == int64(int32(v))
	case Uint32:
		binary.LittleEndian.PutUint32(dst, uint32(v))
		return v == int64(uint32(v))
	case Int64, Uint64:
		binary.LittleEndian.PutUint64(dst, uint64(v))
		return t == Int64 || v >= 0
	}
	return false
}

func parseFloat(word []byte, bits int) (float64, bool) {
	v, err := strconv.ParseFloat(string(word), bits)
	if err == nil {
		return v, true
	}
	if e, ok := err.(*strconv.NumError); ok && e.Err == strconv.ErrRange {
		return v, true
	}
	if len(word) == 4 && (word[0] == '-' || word[0] == '+') && (word[1]|0x20) == 'n' { // as C prints NaN
		return parseFloat(word[1:], bits)
	}
	return 0, false
}

func parseInt(word []byte) (int64, bool) {
	v, err := strconv.ParseInt(string(word), 10, 64)
	if err == nil {
		return v, true
	}
	f, ok := parseFloat(word, 64)
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}
