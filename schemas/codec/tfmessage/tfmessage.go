// Package tfmessage decodes tf2_msgs/msg/TFMessage, the transforms between the coordinate
// frames of a robot in ROS 2, in CDR.
//
//	encapsulation  4 bytes: 00 00 big-endian, 00 01 little-endian; offsets count from here
//	transforms     sequence of
//	  header          int32 sec, uint32 nanosec, string frame_id (the parent)
//	  child_frame_id  string
//	  translation     float64 x, y, z
//	  rotation        float64 x, y, z, w
//
// A number stands at a multiple of its size. A string and a sequence begin with a uint32
// length; that of a string counts its final zero.
package tfmessage

import (
	"encoding/binary"
	"math"

	"entropipe/schemas/codec"
)

// Schema is the name of the message in ROS 2; recordings of some tools leave out "msg/".
const Schema = "tf2_msgs/msg/TFMessage"

// Transform is the motion from the frame Child to the frame Parent: a point p of Child is
// at Rotation * p + Translation in Parent. Numbers are as received, finite or not.
type Transform struct {
	Parent, Child string
	TimeNs        int64      // nanoseconds since 1970
	Translation   [3]float64 // metres
	Rotation      [4]float64 // quaternion x, y, z, w
}

// least is the number of bytes of a transform with empty names.
const least = 8 + 4 + 4 + 7*8

// Decode appends the transforms of a message to dst. Memory is bounded by the length of the
// message. A fault is an *codec.Error.
func Decode(dst []Transform, value []byte) ([]Transform, error) {
	if len(value) < 4 {
		return dst, codec.Errorf(codec.Truncated, len(value), "the message has %d bytes, less than the header of CDR",
			len(value))
	}
	r := reader{b: value[4:], order: binary.LittleEndian}
	switch {
	case value[0] == 0 && value[1] == 0:
		r.order = binary.BigEndian
	case value[0] != 0 || value[1] != 1:
		return dst, codec.Errorf(codec.Unsupported, 0, "the message begins with %x; plain CDR (0000, 0001) is known",
			value[:4])
	}
	count := r.u32()
	if uint64(count)*least > uint64(len(value)) {
		return dst, codec.Errorf(codec.Truncated, len(value), "%d transforms do not fit into %d bytes", count,
			len(value))
	}
	for range count {
		t := Transform{TimeNs: int64(int32(r.u32()))*1e9 + int64(r.u32()), Parent: r.text(), Child: r.text()}
		for i := range t.Translation {
			t.Translation[i] = r.f64()
		}
		for i := range t.Rotation {
			t.Rotation[i] = r.f64()
		}
		if r.bad {
			return dst, codec.Errorf(codec.Truncated, len(value), "the message ends within a transform; it has %d "+
				"bytes", len(value))
		}
		dst = append(dst, t)
	}
	if r.bad {
		return dst, codec.Errorf(codec.Truncated, len(value), "the message ends before its transforms; it has %d bytes",
			len(value))
	}
	return dst, nil
}

// reader reads CDR behind the encapsulation. After a read beyond the end, bad is set and
// values are zero.
type reader struct {
	b     []byte
	at    int
	order binary.ByteOrder
	bad   bool
}

func (r *reader) take(n uint32) []byte {
	if r.bad || uint64(n) > uint64(len(r.b)-r.at) {
		r.bad = true
		return nil
	}
	v := r.b[r.at : r.at+int(n)]
	r.at += int(n)
	return v
}

func (r *reader) u32() uint32 {
	r.take(uint32(-r.at & 3)) // padding
	if v := r.take(4); v != nil {
		return r.order.Uint32(v)
	}
	return 0
}

func (r *reader) f64() float64 {
	r.take(uint32(-r.at & 7)) // padding
	if v := r.take(8); v != nil {
		return math.Float64frombits(r.order.Uint64(v))
	}
	return 0
}

func (r *reader) text() string {
	b := r.take(r.u32())
	if n := len(b); n > 0 && b[n-1] == 0 {
		b = b[:n-1]
	}
	return string(b)
}
