// Package pointcloud2 decodes sensor_msgs/msg/PointCloud2, the point cloud of ROS 2, in CDR.
//
//	encapsulation  4 bytes: 00 00 big-endian, 00 01 little-endian; offsets count from here
//	header         int32 sec, uint32 nanosec, string frame_id
//	height, width  uint32
//	fields         sequence of (string name, uint32 offset, uint8 datatype, uint32 count)
//	is_bigendian   bool: order of the bytes in data
//	point_step     uint32
//	row_step       uint32
//	data           sequence of uint8
//	is_dense       bool: no point is invalid
//
// A number stands at a multiple of its size. A string and a sequence begin with a uint32
// length; that of a string counts its final zero.
package pointcloud2

import (
	"encoding/binary"
	"math"

	"entropipe/schemas/codec"
)

// Schema is the name of the message in ROS 2; recordings of some tools leave out "msg/".
const Schema = "sensor_msgs/msg/PointCloud2"

// types are the datatypes of a PointField, by number.
var types = [...]codec.Type{1: codec.Int8, codec.Uint8, codec.Int16, codec.Uint16, codec.Int32, codec.Uint32,
	codec.Float32, codec.Float64}

// Decode reads a message into c: the columns, frame_id as Sensor, and the stamp as TimeNs
// unless it is zero. Points that is_dense calls invalid are kept: they hold NaN. Fields with
// several values a point are ignored. limit bounds the bytes of the columns. A fault is an
// *codec.Error.
func Decode(c *codec.Cloud, value []byte, limit int64) error {
	c.Reset()
	in, fault := open(value)
	if fault != nil {
		return fault
	}
	m, fault := in.message()
	if fault != nil {
		return fault
	}
	c.Sensor, c.TimeNs = m.frame, int64(m.sec)*1e9+int64(m.nanosec)
	c.HasTime = c.TimeNs != 0
	points := uint64(m.height) * uint64(m.width)
	if points > math.MaxInt32 {
		return codec.Errorf(codec.BadLength, -1, "the cloud has %d rows of %d points", m.height, m.width)
	}
	p := codec.Packed{Fields: m.fields, Stride: int(m.pointStep), BigEndian: m.bigEndian}
	if m.height > 1 && m.rowStep != 0 {
		p.Width, p.RowStride = int(m.width), int(m.rowStep)
	}
	if points == 0 {
		if len(m.fields) == 0 { // a driver without a return says nothing of its fields
			c.Cloud32.X, c.Cloud32.Y = c.Float32s(codec.X, 0), c.Float32s(codec.Y, 0)
			c.Cloud32.Z = c.Float32s(codec.Z, 0)
			return nil
		}
		p.Stride = math.MaxInt32 // no point is read
	}
	if fault := c.UnpackMessage(&p, m.data, int(points), limit); fault != nil {
		return fault
	}
	return nil
}

// message is a PointCloud2.
type message struct {
	sec                int32
	nanosec            uint32
	frame              string
	height, width      uint32
	fields             []codec.Field
	bigEndian          bool
	pointStep, rowStep uint32
	data               []byte
}

// maxFields bounds the fields of a cloud.
const maxFields = 1 << 12

func (r *reader) message() (m message, fault *codec.Error) {
	m.sec, m.nanosec, m.frame = int32(r.u32()), r.u32(), r.text()
	m.height, m.width = r.u32(), r.u32()
	count := r.u32()
	if count > maxFields {
		return m, codec.Errorf(codec.Corrupt, r.at, "the cloud has %d fields, more than %d", count, maxFields)
	}
	for range count {
		name, offset, kind, values := r.text(), r.u32(), r.u8(), r.u32()
		if r.bad {
			break
		}
		f, fault := field(name, offset, kind, values)
		if fault != nil {
			return m, fault
		}
		m.fields = append(m.fields, f)
	}
	m.bigEndian, m.pointStep, m.rowStep = r.u8() != 0, r.u32(), r.u32()
	m.data = r.take(r.u32())
	r.u8()
	if r.bad {
		return m, codec.Errorf(codec.Truncated, 4+r.at, "the PointCloud2 ends within its fields; it has %d bytes",
			4+len(r.b))
	}
	if m.pointStep > math.MaxInt32 || m.rowStep > math.MaxInt32 {
		return m, codec.Errorf(codec.BadLength, -1, "a point has %d bytes and a row %d", m.pointStep, m.rowStep)
	}
	return m, nil
}

// field returns the description of a PointField. Old drivers write the count 0 for 1.
func field(name string, offset uint32, kind uint8, values uint32) (f codec.Field, fault *codec.Error) {
	f = codec.Field{Name: name, Role: codec.RoleOf(name)}
	if name == "timestamp" {
		f.Role = codec.TOffset
	}
	if f.Role == codec.NoRole {
		return f, nil
	}
	if values > 1 {
		if f.Role <= codec.Z {
			return f, codec.Errorf(codec.Unsupported, -1, "field %s has %d values a point", name, values)
		}
		f.Role = codec.NoRole
		return f, nil
	}
	if kind == 0 || int(kind) >= len(types) {
		return f, codec.Errorf(codec.BadType, -1, "field %.40q has datatype %d; 1 to 8 are known", name, kind)
	}
	if offset > math.MaxInt32 {
		return f, codec.Errorf(codec.BadLength, -1, "field %s stands at byte %d of a point", name, offset)
	}
	f.Offset, f.Type = int(offset), types[kind]
	return f, nil
}

// reader reads CDR behind the encapsulation. After a read beyond the end, bad is set and
// values are zero.
type reader struct {
	b     []byte
	at    int
	order binary.ByteOrder
	bad   bool
}

// open reads the encapsulation.
func open(value []byte) (*reader, *codec.Error) {
	switch {
	case len(value) == 0:
		return nil, codec.Errorf(codec.Empty, -1, "the message is empty")
	case len(value) < 4:
		return nil, codec.Errorf(codec.Truncated, len(value), "the message has %d bytes, less than the header of CDR",
			len(value))
	case value[0] == 0 && value[1] == 0:
		return &reader{b: value[4:], order: binary.BigEndian}, nil
	case value[0] == 0 && value[1] == 1:
		return &reader{b: value[4:], order: binary.LittleEndian}, nil
	}
	what := "no encapsulation of CDR"
	if name, ok := encapsulations[binary.BigEndian.Uint16(value)]; ok {
		what = "the encapsulation " + name
	}
	return nil, codec.Errorf(codec.Unsupported, 0, "the message begins with %x, %s; plain CDR (0000, 0001) is known",
		value[:4], what)
}

// encapsulations are the other representations that DDS has.
var encapsulations = map[uint16]string{2: "PL_CDR_BE", 3: "PL_CDR_LE", 6: "CDR2_BE", 7: "CDR2_LE", 8: "D_CDR2_BE",
	9: "D_CDR2_LE", 10: "PL_CDR2_BE", 11: "PL_CDR2_LE"}

func (r *reader) take(n uint32) []byte {
	if r.bad || uint64(n) > uint64(len(r.b)-r.at) {
		r.bad = true
		return nil
	}
	v := r.b[r.at : r.at+int(n)]
	r.at += int(n)
	return v
}

func (r *reader) u8() uint8 {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) u32() uint32 {
	r.take(uint32(-r.at & 3)) // padding
	if v := r.take(4); v != nil {
		return r.order.Uint32(v)
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
