package waymotest

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Encoding says how a record is written.
type Encoding struct {
	Packed  bool // repeated numbers are packed, against the schema
	Plain   bool // range images stand in the old field, without zlib
	Order   []int
	Without map[int]bool // lasers that are not listed
	Empty   map[int]bool // lasers that are listed without images
	Single  bool         // no second returns
}

// Record returns a frame of version 1.
func (s *Scene) Record(frame int, e Encoding) []byte {
	order := e.Order
	if order == nil {
		order = []int{2, 5, 3, 4, 1}
	}
	var context, out []byte
	context = stringField(context, 1, s.Context)
	context = bytesField(context, 2, []byte{8, 1}) // a camera's calibration
	for _, number := range order {
		context = bytesField(context, 3, s.Lasers[number-1].calibration(e))
	}
	out = bytesField(out, 1, context)
	out = protowire.AppendTag(out, 2, protowire.VarintType)
	out = protowire.AppendVarint(out, uint64(s.Time(frame)))
	world := s.World(frame, 0)
	out = bytesField(out, 3, doubles(nil, 1, world[:], e.Packed))
	out = bytesField(out, 4, []byte("\x08\x01\x12\x03jpg")) // a camera image
	for _, number := range order {
		if !e.Without[number] {
			out = bytesField(out, 5, s.laser(frame, &s.Lasers[number-1], e))
		}
	}
	return out
}

func (l *Laser) calibration(e Encoding) []byte {
	out := varintField(nil, 1, uint64(l.Number))
	out = doubles(out, 2, l.Inclinations, e.Packed)
	for i, v := range []float64{l.Min, l.Max} {
		out = protowire.AppendTag(out, protowire.Number(3+i), protowire.Fixed64Type)
		out = protowire.AppendFixed64(out, math.Float64bits(v))
	}
	return bytesField(out, 5, doubles(nil, 1, l.Extrinsic[:], e.Packed))
}

func (s *Scene) laser(frame int, l *Laser, e Encoding) []byte {
	out := varintField(nil, 1, uint64(l.Number))
	if e.Empty[l.Number] {
		return out
	}
	sw := s.Sweep(frame, l)
	for k, values := range sw.Returns {
		if k == 1 && e.Single {
			continue
		}
		encoded := matrix(l.H, l.W, 4, values, e)
		image := bytesField(nil, 3, []byte("camera projection"))
		if e.Plain {
			image = bytesField(image, 1, encoded)
		} else {
			image = bytesField(image, 2, deflate(encoded))
		}
		if k == 0 && sw.Pose != nil {
			image = bytesField(image, 4, deflate(matrix(l.H, l.W, 6, sw.Pose, e)))
		}
		out = bytesField(out, protowire.Number(2+k), image)
	}
	return out
}

// matrix returns a MatrixFloat. Its numbers are always packed unless Plain is set.
func matrix(h, w, channels int, values []float32, e Encoding) (out []byte) {
	if e.Plain {
		for _, v := range values {
			out = protowire.AppendTag(out, 1, protowire.Fixed32Type)
			out = protowire.AppendFixed32(out, math.Float32bits(v))
		}
	} else {
		raw := make([]byte, 0, 4*len(values))
		for _, v := range values {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		out = bytesField(out, 1, raw)
	}
	var shape, packed []byte
	for _, dim := range []int{h, w, channels} {
		shape = varintField(shape, 1, uint64(dim))
		packed = protowire.AppendVarint(packed, uint64(dim))
	}
	if e.Packed {
		shape = bytesField(nil, 1, packed)
	}
	return bytesField(out, 2, shape)
}

func deflate(data []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	w.Write(data) // a bytes.Buffer takes everything
	w.Close()
	return out.Bytes()
}

func bytesField(dst []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, number, protowire.BytesType), value)
}

func stringField(dst []byte, number protowire.Number, value string) []byte {
	return bytesField(dst, number, []byte(value))
}

func varintField(dst []byte, number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, number, protowire.VarintType), value)
}

// doubles appends a repeated field.
func doubles(dst []byte, number protowire.Number, values []float64, packed bool) []byte {
	if packed {
		var raw []byte
		for _, v := range values {
			raw = protowire.AppendFixed64(raw, math.Float64bits(v))
		}
		if raw == nil {
			return dst
		}
		return bytesField(dst, number, raw)
	}
	for _, v := range values {
		dst = protowire.AppendTag(dst, number, protowire.Fixed64Type)
		dst = protowire.AppendFixed64(dst, math.Float64bits(v))
	}
	return dst
}
