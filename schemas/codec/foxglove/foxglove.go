// Package foxglove decodes and encodes messages of the Foxglove schemas: foxglove.PointCloud,
// FrameTransform and FrameTransforms in Protobuf and JSON come in; PointCloud, SceneUpdate and
// FrameTransform in Protobuf, with their schemas, go out.
//
// Vocabulary. A primitive is a figure of a scene entity: a line or a list of triangles. A
// pose is a position and an orientation relative to the frame of reference frame_id.
package foxglove

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"entropipe/schemas/codec"
)

// Names of the schemas.
const (
	PointCloudSchema     = "foxglove.PointCloud"
	SceneUpdateSchema    = "foxglove.SceneUpdate"
	FrameTransformSchema = "foxglove.FrameTransform"
)

// NumericType is the type of a field of a PointCloud. Its numbers are not those of ROS.
type NumericType uint32

// The numeric types.
const (
	Uint8 NumericType = 1 + iota
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Float32
	Float64
)

// types are the types of package codec, by NumericType.
var types = [...]codec.Type{Uint8: codec.Uint8, Int8: codec.Int8, Uint16: codec.Uint16, Int16: codec.Int16,
	Uint32: codec.Uint32, Int32: codec.Int32, Float32: codec.Float32, Float64: codec.Float64}

// Field is a field of a PointCloud.
type Field struct {
	Name   string
	Offset uint32 // bytes from the begin of the point
	Type   NumericType
}

// PointCloud is a message foxglove.PointCloud. Data are little-endian.
type PointCloud struct {
	TimeNs  int64 // nanoseconds since 1970
	FrameID string
	Pose    Pose // from the sensor to FrameID
	Stride  uint32
	Fields  []Field
	Data    []byte
}

// Pose is a position in metres and an orientation. The zero value is the identity.
type Pose struct {
	Position    Vector
	Orientation Quaternion
}

// Vector is a Vector3 or a Point3.
type Vector struct{ X, Y, Z float64 }

// Quaternion is a rotation; all zeros mean no rotation.
type Quaternion struct{ X, Y, Z, W float64 }

// Decode reads a PointCloud in Protobuf into c: the columns, frame_id as Sensor, the
// timestamp as TimeNs unless it is zero, and the pose unless it is the identity. limit bounds
// the bytes of the columns. A fault is an *codec.Error.
func Decode(c *codec.Cloud, value []byte, limit int64) error {
	c.Reset()
	if len(value) == 0 {
		return codec.Errorf(codec.Empty, -1, "the message is empty")
	}
	var m PointCloud
	if fault := m.parse(value); fault != nil {
		return fault
	}
	return m.unpack(c, limit)
}

// unpack fills c. It returns a nil interface, or a fault.
func (m *PointCloud) unpack(c *codec.Cloud, limit int64) error {
	matrix, ok := m.Pose.matrix()
	if !ok {
		return codec.Errorf(codec.BadValue, -1, "the pose has numbers that are not finite")
	}
	c.Sensor, c.TimeNs, c.HasTime, c.Pose = m.FrameID, m.TimeNs, m.TimeNs != 0, matrix
	p := codec.Packed{Stride: int(m.Stride)}
	for _, f := range m.Fields {
		role := codec.RoleOf(f.Name)
		if f.Name == "timestamp" {
			role = codec.TOffset
		}
		if role != codec.NoRole && (f.Type == 0 || int(f.Type) >= len(types)) {
			return codec.Errorf(codec.BadType, -1, "field %.40q has type %d; 1 to 8 are known", f.Name, f.Type)
		}
		field := codec.Field{Name: f.Name, Role: role, Offset: int(f.Offset)}
		if role != codec.NoRole {
			field.Type = types[f.Type]
		}
		p.Fields = append(p.Fields, field)
	}
	if m.Stride == 0 || m.Stride > math.MaxInt32 {
		return codec.Errorf(codec.BadLength, -1, "the point_stride is %d", m.Stride)
	}
	if rest := len(m.Data) % p.Stride; rest != 0 {
		return codec.Errorf(codec.BadLength, -1, "%d bytes of data are no multiple of the point_stride %d", len(m.Data),
			m.Stride)
	}
	if fault := c.UnpackMessage(&p, m.Data, len(m.Data)/p.Stride, limit); fault != nil {
		return fault
	}
	return nil
}

// maxFields bounds the fields of a cloud.
const maxFields = 1 << 12

// parse reads Protobuf. Fields of other numbers or wire types are passed over, as in every
// reader of Protobuf.
func (m *PointCloud) parse(b []byte) *codec.Error {
	return each(b, func(number protowire.Number, kind protowire.Type, v []byte, n uint64) *codec.Error {
		switch {
		case number == 1 && kind == protowire.BytesType:
			return m.parseTime(v)
		case number == 2 && kind == protowire.BytesType:
			m.FrameID = string(v)
		case number == 3 && kind == protowire.BytesType:
			return m.Pose.parse(v)
		case number == 4 && kind == protowire.Fixed32Type:
			m.Stride = uint32(n)
		case number == 5 && kind == protowire.BytesType:
			if len(m.Fields) == maxFields {
				return codec.Errorf(codec.Corrupt, -1, "the cloud has more than %d fields", maxFields)
			}
			return m.parseField(v)
		case number == 6 && kind == protowire.BytesType:
			m.Data = v
		}
		return nil
	})
}

func (m *PointCloud) parseTime(b []byte) *codec.Error {
	seconds, nanos, fault := parseTime(b)
	if fault != nil {
		return fault
	}
	m.TimeNs, fault = timeOf(seconds, nanos)
	return fault
}

// parseTime reads a google.protobuf.Timestamp.
func parseTime(b []byte) (seconds, nanos int64, fault *codec.Error) {
	fault = each(b, func(number protowire.Number, kind protowire.Type, _ []byte, n uint64) *codec.Error {
		switch {
		case number == 1 && kind == protowire.VarintType:
			seconds = int64(n)
		case number == 2 && kind == protowire.VarintType:
			nanos = int64(int32(n))
		}
		return nil
	})
	return seconds, nanos, fault
}

// timeOf refuses times that do not fit into nanoseconds since 1970.
func timeOf(seconds, nanos int64) (ns int64, fault *codec.Error) {
	const most = math.MaxInt64/1_000_000_000 - 5
	if seconds > most || seconds < -most || nanos >= 1<<32 || nanos <= -1<<32 {
		return 0, codec.Errorf(codec.BadValue, -1, "the timestamp of %d s and %d ns fits no nanoseconds since 1970",
			seconds, nanos)
	}
	return seconds*1e9 + nanos, nil
}

func (m *PointCloud) parseField(b []byte) *codec.Error {
	var f Field
	fault := each(b, func(number protowire.Number, kind protowire.Type, v []byte, n uint64) *codec.Error {
		switch {
		case number == 1 && kind == protowire.BytesType:
			f.Name = string(v)
		case number == 2 && kind == protowire.Fixed32Type:
			f.Offset = uint32(n)
		case number == 3 && kind == protowire.VarintType:
			f.Type = NumericType(n)
		}
		return nil
	})
	m.Fields = append(m.Fields, f)
	return fault
}

func (p *Pose) parse(b []byte) *codec.Error {
	return each(b, func(number protowire.Number, kind protowire.Type, v []byte, _ uint64) *codec.Error {
		switch {
		case number == 1 && kind == protowire.BytesType:
			return doubles(v, &p.Position.X, &p.Position.Y, &p.Position.Z)
		case number == 2 && kind == protowire.BytesType:
			o := &p.Orientation
			return doubles(v, &o.X, &o.Y, &o.Z, &o.W)
		}
		return nil
	})
}

// doubles reads the fields 1, 2, … of a message of doubles.
func doubles(b []byte, to ...*float64) *codec.Error {
	return each(b, func(number protowire.Number, kind protowire.Type, _ []byte, n uint64) *codec.Error {
		if int(number) <= len(to) && kind == protowire.Fixed64Type {
			*to[number-1] = math.Float64frombits(n)
		}
		return nil
	})
}

// taker takes a field of a message: v holds the bytes of a BytesType, n the number of the
// other types.
type taker func(number protowire.Number, kind protowire.Type, v []byte, n uint64) *codec.Error

// each calls take for every field of a message, until one is a fault.
func each(b []byte, take taker) *codec.Error {
	for len(b) > 0 {
		number, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return codec.Errorf(codec.Corrupt, -1, "the bytes are no Protobuf: %v", protowire.ParseError(size))
		}
		b = b[size:]
		var v []byte
		var n uint64
		switch kind {
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var short uint32
			short, size = protowire.ConsumeFixed32(b)
			n = uint64(short)
		case protowire.Fixed64Type:
			n, size = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			v, size = protowire.ConsumeBytes(b)
		default:
			size = protowire.ConsumeFieldValue(number, kind, b)
		}
		if size < 0 {
			return codec.Errorf(codec.Truncated, -1, "field %d of the Protobuf message: %v", number,
				protowire.ParseError(size))
		}
		b = b[size:]
		if fault := take(number, kind, v, n); fault != nil {
			return fault
		}
	}
	return nil
}
