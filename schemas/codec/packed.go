package codec

import (
	"cmp"
	"encoding/binary"
	"math"
	"strings"
)

// Role is the column of ours that a field of a foreign format fills.
type Role uint8

// The roles. NoRole is that of a field which is ignored.
const (
	NoRole Role = iota
	X
	Y
	Z
	Intensity
	Ring
	Return
	Laser
	Label
	Elongation
	TOffset // time of the point; its unit is that of the field
	Red
	Green
	Blue
	RGB // red, green, blue in one value: 0x00RRGGBB, also as the bits of a float32
	numRoles
)

// RoleNames are the names of the columns, by role.
var RoleNames = [numRoles]string{"", "x", "y", "z", "intensity", "ring", "return", "laser", "label", "elongation",
	"t_offset_ns", "red", "green", "blue", "rgb"}

// aliases are the names that drivers and data sets give to the columns.
var aliases = map[string]Role{
	"x": X, "y": Y, "z": Z,
	"intensity": Intensity, "i": Intensity, "reflectance": Intensity, "reflectivity": Intensity,
	"intensities": Intensity,
	"ring":        Ring, "channel": Ring, "line": Ring, "beam": Ring,
	"return": Return, "return_number": Return, "return_type": Return, "returnnumber": Return,
	"laser": Laser, "laser_id": Laser, "laser_name": Laser,
	"label": Label, "classification": Label, "class": Label,
	"elongation":  Elongation,
	"t_offset_ns": TOffset, "t": TOffset, "time": TOffset, "offset_time": TOffset, "offset_ns": TOffset,
	"time_offset": TOffset,
	"r":           Red, "red": Red, "diffuse_red": Red, "g": Green, "green": Green, "diffuse_green": Green,
	"b": Blue, "blue": Blue, "diffuse_blue": Blue,
	"rgb": RGB, "rgba": RGB,
}

// RoleOf returns the role of a field by its name, in any letters; NoRole if the name is
// none that drivers use.
func RoleOf(name string) Role {
	if r, ok := aliases[name]; ok {
		return r
	}
	return aliases[strings.ToLower(name)]
}

// Type is the type of a field's values.
type Type uint8

// The types of fields.
const (
	Int8 Type = 1 + iota
	Uint8
	Int16
	Uint16
	Int32
	Uint32
	Float32
	Float64
	Int64
	Uint64
	numTypes
)

var typeSizes = [numTypes]int{Int8: 1, Uint8: 1, Int16: 2, Uint16: 2, Int32: 4, Uint32: 4, Float32: 4, Float64: 8,
	Int64: 8, Uint64: 8}

// Size returns the number of bytes of a value; 0 for a type that is none of the above.
func (t Type) Size() int {
	if t >= numTypes {
		return 0
	}
	return typeSizes[t]
}

// IsFloat reports whether t is Float32 or Float64.
func (t Type) IsFloat() bool { return t == Float32 || t == Float64 }

// Field is a field of a record of fixed size.
type Field struct {
	Name   string
	Role   Role // NoRole: Unpack ignores the field, and names it in Cloud.Ignored unless Name is "" or "_"
	Offset int  // bytes from the begin of the record to the value
	// Step is the distance in bytes from a value to that of the next record, where values of
	// one field stand together; Offset then counts from the begin of the data. 0: Stride.
	Step int
	Type Type
	// NsPerUnit converts a time to nanoseconds; 0: integers are nanoseconds and floats are
	// seconds.
	NsPerUnit float64
}

// Packed describes n records of Stride bytes, in rows of Width records that begin RowStride
// bytes apart. RowStride 0 means that all records stand one after the other.
type Packed struct {
	Fields           []Field
	Stride           int
	Width, RowStride int
	BigEndian        bool
}

// Unpack reads n records of data into the columns of c, which it resets except for Sensor,
// TimeNs and Pose. Coordinates become float64 if any of x, y, z is float64 or an integer of
// more than 24 bits, else float32: no coordinate is rounded. An integer of 64 bits that
// float64 cannot hold is an error. limit bounds the bytes of the columns.
//
// The errors are: no field x or y, two fields of one role, a field of an unknown type or
// beyond the record, and fewer data than n records. Cost: one pass over data.
func (c *Cloud) Unpack(p *Packed, data []byte, n int, limit int64) *Error {
	sensor, ns, timed, pose := c.Sensor, c.TimeNs, c.HasTime, c.Pose
	c.Reset()
	c.Sensor, c.TimeNs, c.HasTime, c.Pose = sensor, ns, timed, pose
	fields, err := p.check(c, data, n, limit)
	if err != nil {
		return err
	}
	for _, role := range [...]Role{X, Y, Z} {
		f := fields[role]
		c.Double = c.Double || f != nil && f.Type >= Int32 && f.Type != Float32
	}
	for role := X; role < numRoles; role++ {
		if f := fields[role]; f != nil {
			if err := c.place(p, f, data, n); err != nil {
				return err
			}
		}
	}
	c.unpackFields(p, &fields, data, n)
	return nil
}

// check returns the fields by role.
func (p *Packed) check(c *Cloud, data []byte, n int, limit int64) (fields [numRoles]*Field, err *Error) {
	if p.Stride <= 0 || n < 0 {
		return fields, Errorf(BadLength, -1, "a point has %d bytes, and there are %d points", p.Stride, n)
	}
	width := int64(0)
	for i := range p.Fields {
		f := &p.Fields[i]
		if f.Role == NoRole {
			if f.Name != "" && f.Name != "_" {
				c.Ignored = append(c.Ignored, f.Name)
			}
			continue
		}
		if f.Type.Size() == 0 {
			return fields, Errorf(BadType, -1, "field %s has type %d, which is not known", f.Name, f.Type)
		}
		if f.Step > 0 {
			need := int64(f.Offset) + int64(max(n-1, 0))*int64(f.Step) + int64(f.Type.Size())
			if n > 0 && (f.Offset < 0 || n > math.MaxInt32 || p.RowStride > 0 || need > int64(len(data))) {
				return fields, Errorf(Truncated, len(data), "%d values of field %s need %d bytes of data; there are %d",
					n, f.Name, need, len(data))
			}
		} else if f.Offset < 0 || f.Offset > p.Stride-f.Type.Size() {
			return fields, Errorf(BadLength, -1, "field %s of %d bytes stands at byte %d of a point of %d bytes",
				f.Name,
				f.Type.Size(), f.Offset, p.Stride)
		}
		if old := fields[f.Role]; old != nil {
			return fields, Errorf(Duplicate, -1, "fields %s and %s both hold %s", old.Name, f.Name, RoleNames[f.Role])
		}
		fields[f.Role] = f
		width += 8
	}
	if fields[X] == nil || fields[Y] == nil {
		return fields, Errorf(Missing, -1, "there is no field x or no field y; the fields are %s", p.names())
	}
	if n > math.MaxInt32 || int64(n)*width > limit {
		return fields, Errorf(TooLarge, -1, "%d points take %d bytes, more than the limit of %d", n, int64(n)*width,
			limit)
	}
	return fields, p.checkLength(data, n)
}

func (p *Packed) names() string {
	var names []string
	for i := range p.Fields[:min(len(p.Fields), 20)] {
		names = append(names, p.Fields[i].Name)
	}
	return strings.Join(names, ", ")
}

// checkLength returns an error if data are shorter than n records.
func (p *Packed) checkLength(data []byte, n int) *Error {
	if n == 0 {
		return nil
	}
	need := int64(n) * int64(p.Stride) // n < 2^31
	if p.RowStride > 0 {
		if p.Width <= 0 || p.RowStride < p.Stride || p.RowStride/p.Stride < p.Width {
			return Errorf(BadLength, -1, "a row of %d points of %d bytes does not fit into %d bytes", p.Width, p.Stride,
				p.RowStride)
		}
		last := int64(n-1)/int64(p.Width)*int64(p.RowStride) + int64((n-1)%p.Width+1)*int64(p.Stride)
		need = last
	}
	if need > int64(len(data)) || need < 0 {
		return Errorf(Truncated, len(data), "%d points need %d bytes of data; there are %d", n, need, len(data))
	}
	return nil
}

// exact returns an error if an integer of 64 bits does not fit into a float64.
func exact(p *Packed, f *Field, data []byte, n int) *Error {
	if f.Type != Int64 && f.Type != Uint64 {
		return nil
	}
	for i := range n {
		v := int64(p.bits(data, p.at(f, i), 8))
		if f.Type == Uint64 && v < 0 || max(v, -v) > 1<<53 || v == math.MinInt64 {
			return Errorf(BadValue, p.at(f, i), "field %s of point %d is an integer that float64 does not hold",
				f.Name, i)
		}
	}
	return nil
}

// at returns the position of f's value in record i.
func (p *Packed) at(f *Field, i int) int {
	if p.RowStride > 0 {
		return i/p.Width*p.RowStride + i%p.Width*p.Stride + f.Offset
	}
	return i*cmp.Or(f.Step, p.Stride) + f.Offset
}

// bits returns the value of size bytes at data[at:].
func (p *Packed) bits(data []byte, at, size int) uint64 {
	var order binary.ByteOrder = binary.LittleEndian
	if p.BigEndian {
		order = binary.BigEndian
	}
	switch size {
	case 1:
		return uint64(data[at])
	case 2:
		return uint64(order.Uint16(data[at:]))
	case 4:
		return uint64(order.Uint32(data[at:]))
	}
	return order.Uint64(data[at:])
}
