// Package codec defines the columns of a point cloud that the formats below it decode to,
// and reads records of fixed size into such columns.
//
// A format is a package below this one: schemas/codec/pcd, schemas/codec/las and so on.
// A format turns bytes into columns. It opens no file and knows no message: package replay
// opens files, package schemas decodes messages, and both call the same formats.
//
// Vocabulary. A column holds one value for each point. A field is a column of the foreign
// format, with its own name and type. A role is the column of ours that a field fills. A
// field without a role is ignored, and Cloud.Ignored names it.
package codec

import (
	"fmt"
	"math"

	"entropipe/algos/geom"
)

// Points are the columns of one cloud. Cloud64 is used if Double is set, else Cloud32.
// Every column is nil or has as many values as X.
type Points struct {
	Cloud32   geom.Cloud[float32]
	Cloud64   geom.Cloud[float64]
	Double    bool
	Intensity []float32
	Extra
}

// Len returns the number of points.
func (p *Points) Len() int {
	if p.Double {
		return p.Cloud64.Len()
	}
	return p.Cloud32.Len()
}

// HasZ reports whether the cloud is three-dimensional.
func (p *Points) HasZ() bool { return p.Cloud32.Z != nil || p.Cloud64.Z != nil }

// Extra holds the further columns of table points. A nil column is absent.
type Extra struct {
	Ring             []int32   // number of the laser beam or scan line
	Return           []int32   // number of the echo of the pulse, from 1
	Laser            []int32   // number of the device, where a frame joins several
	Label            []int32   // class of the point, by the data set's own numbers
	Elongation       []float32 // lengthening of the pulse, without unit
	TOffsetNs        []int64   // time of the point after the time of the frame, nanoseconds
	Red, Green, Blue []int32   // colour, in the range of the source (0..255 or 0..65535)
}

// NoInt32 and NoInt64 stand for a point without a value, in columns of integers. Tables
// hold null there.
const (
	NoInt32 = math.MinInt32
	NoInt64 = math.MinInt64
)

// Int32Columns is the number of columns that Extra.Int32s returns.
const Int32Columns = 7

// Int32s returns the int32 columns in the order ring, return, laser, label, red, green,
// blue. The pointers let a caller set them.
func (e *Extra) Int32s() [Int32Columns]*[]int32 {
	return [Int32Columns]*[]int32{&e.Ring, &e.Return, &e.Laser, &e.Label, &e.Red, &e.Green, &e.Blue}
}

// Int32Names are the names of the columns that Extra.Int32s returns.
var Int32Names = [Int32Columns]string{"ring", "return", "laser", "label", "red", "green", "blue"}

// Pose is a rigid motion from the sensor to the world: the first three rows of the 4 x 4
// matrix, row-major, in metres.
type Pose [12]float64

// Cloud is a decoded cloud with what its format says of it. A Cloud owns the memory of its
// columns: the next decoding into the same Cloud overwrites them. The zero value is ready.
// A Cloud is not for concurrent use.
type Cloud struct {
	Points
	Sensor  string   // name of the sensor or of its coordinate frame; empty: not said
	TimeNs  int64    // time of the cloud, nanoseconds since 1970
	HasTime bool     // TimeNs is set
	Pose    *Pose    // nil: not said
	Ignored []string // names of fields that have no role

	memory memory
}

// Reset makes c an empty cloud, and keeps its memory for the next columns.
func (c *Cloud) Reset() { *c = Cloud{memory: c.memory, Ignored: c.Ignored[:0]} }

// memory is what the columns of a Cloud are cut from.
type memory struct {
	f32 map[Role][]float32
	f64 map[Role][]float64
	i32 map[Role][]int32
	i64 map[Role][]int64

	bytes []byte
}

// Bytes returns n bytes of scratch memory of c, for a format that rewrites its records
// before Unpack. Their content is undefined, and the next call of Bytes reuses them.
func (c *Cloud) Bytes(n int) []byte {
	if cap(c.memory.bytes) < n {
		c.memory.bytes = make([]byte, n, n+n/8)
	}
	return c.memory.bytes[:n:n]
}

// Float32s returns a column of n values for role, in memory of c. Values are undefined.
func (c *Cloud) Float32s(role Role, n int) []float32 { return column(&c.memory.f32, role, n) }

// Float64s is Float32s for float64.
func (c *Cloud) Float64s(role Role, n int) []float64 { return column(&c.memory.f64, role, n) }

// Int32s is Float32s for int32.
func (c *Cloud) Int32s(role Role, n int) []int32 { return column(&c.memory.i32, role, n) }

// Int64s is Float32s for int64.
func (c *Cloud) Int64s(role Role, n int) []int64 { return column(&c.memory.i64, role, n) }

func column[T any](m *map[Role][]T, role Role, n int) []T {
	if *m == nil {
		*m = map[Role][]T{}
	}
	v := (*m)[role]
	if cap(v) < n || v == nil {
		v = make([]T, n, n+n/8)
		(*m)[role] = v
	}
	return v[:n:n]
}

// Reasons of an Error. They are among the reasons of table rejects.
const (
	Empty       = "empty"
	TooLarge    = "too_large"
	Truncated   = "truncated"
	WrongMagic  = "wrong_magic"
	Corrupt     = "corrupt"
	Unsupported = "unsupported"
	Missing     = "missing_column"
	Duplicate   = "duplicate_column"
	BadType     = "bad_type"
	BadLength   = "bad_length"
	BadValue    = "bad_value"
)

// Error says why bytes are no cloud of a format.
type Error struct {
	Reason string // one of the constants above
	Detail string // a sentence for people, with names and sizes
	At     int64  // position of the fault in the bytes; -1: unknown
}

func (e *Error) Error() string {
	if e.At < 0 {
		return e.Detail
	}
	return fmt.Sprintf("%s (at byte %d)", e.Detail, e.At)
}

// Errorf returns an *Error.
func Errorf(reason string, at int, format string, args ...any) *Error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...), At: int64(at)}
}
