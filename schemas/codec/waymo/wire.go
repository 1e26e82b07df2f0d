package waymo

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"entropipe/schemas/codec"
)

// field is a field of a protobuf message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte // value of a BytesType, else of fixed width
	bits   uint64 // value of a VarintType
	at     int    // offset of the value in the record
}

// walk calls do with each field of a message that begins at offset base of the record.
func walk(message []byte, base int, what string, do func(field) *codec.Error) *codec.Error {
	for at := 0; at < len(message); {
		number, kind, n := protowire.ConsumeTag(message[at:])
		if n < 0 {
			return wireError(what, base+at, n)
		}
		f := field{number: number, kind: kind, at: base + at + n}
		value := message[at+n:]
		switch kind {
		case protowire.VarintType:
			var k int
			f.bits, k = protowire.ConsumeVarint(value)
			if k < 0 {
				return wireError(what, f.at, k)
			}
			n += k
		case protowire.BytesType:
			b, k := protowire.ConsumeBytes(value)
			if k < 0 {
				return wireError(what, f.at, k)
			}
			f.bytes = b
			f.at += k - len(b)
			n += k
		default:
			k := protowire.ConsumeFieldValue(number, kind, value)
			if k < 0 {
				return wireError(what, f.at, k)
			}
			f.bytes = value[:k]
			n += k
		}
		if err := do(f); err != nil {
			return err
		}
		at += n
	}
	return nil
}

func wireError(what string, at, n int) *codec.Error {
	return codec.Errorf(codec.Corrupt, at, "%s is no protobuf message: %v", what, protowire.ParseError(n))
}

// is returns an error unless the field is of the kind.
func (f *field) is(what string, kind protowire.Type) *codec.Error {
	if f.kind != kind {
		return codec.Errorf(codec.BadType, f.at, "field %d of %s has wire type %d, want %d", f.number, what, f.kind,
			kind)
	}
	return nil
}

// double sets v to the field.
func (f *field) double(what string, v *float64) *codec.Error {
	if err := f.is(what, protowire.Fixed64Type); err != nil {
		return err
	}
	*v = math.Float64frombits(binary.LittleEndian.Uint64(f.bytes))
	return nil
}

// doubles appends the values of a repeated field, packed or not.
func (f *field) doubles(what string, dst *[]float64) *codec.Error {
	if f.kind != protowire.Fixed64Type {
		if err := f.is(what, protowire.BytesType); err != nil {
			return err
		}
	}
	if len(f.bytes)%8 != 0 {
		return codec.Errorf(codec.BadLength, f.at, "field %d of %s has %d bytes of numbers of 8", f.number, what,
			len(f.bytes))
	}
	for b := f.bytes; len(b) > 0; b = b[8:] {
		*dst = append(*dst, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return nil
}

// ints appends the values of a repeated field, packed or not; at most 16 are kept.
func (f *field) ints(what string, dst *[]int) *codec.Error {
	add := func(v uint64) {
		if len(*dst) < 16 {
			*dst = append(*dst, int(int32(v)))
		}
	}
	if f.kind == protowire.VarintType {
		add(f.bits)
		return nil
	}
	if err := f.is(what, protowire.BytesType); err != nil {
		return err
	}
	for b := f.bytes; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return wireError(what, f.at, n)
		}
		add(v)
		b = b[n:]
	}
	return nil
}
