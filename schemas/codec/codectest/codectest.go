// Package codectest writes one cloud in the formats of sensors, drivers and viewers, for tests
// of what reads them. It shares no code with the readers.
package codectest

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Cloud is what every format holds. The columns have equal lengths. LAS holds coordinates of
// up to 2^31 / 64 metres that are multiples of 1/64, and intensities that are integers from 0
// to 65535; nuScenes holds intensities up to 255.
type Cloud struct {
	Frame              string // name of the coordinate frame
	Sec                int32  // seconds since 1970
	Nsec               uint32
	X, Y, Z, Intensity []float32
}

// Names are the short names of the content types that Value knows, without Arrow.
func Names() []string {
	return []string{"kitti", "nuscenes", "pcd", "ply", "las", "pointcloud2", "foxglove", "foxglove-json"}
}

// Value returns c in the format of that name. It panics for another name.
func (c *Cloud) Value(name string) []byte {
	switch name {
	case "kitti":
		return c.packed(false)
	case "nuscenes":
		return c.packed(true)
	case "pcd":
		return c.pcd()
	case "ply":
		return c.ply()
	case "las":
		return c.las()
	case "pointcloud2":
		return c.pointCloud2()
	case "foxglove":
		return c.foxglove()
	case "foxglove-json":
		return c.foxgloveJSON()
	}
	panic("codectest: no format " + name)
}

// names are those of the four columns, in order.
var names = [...]string{"x", "y", "z", "intensity"}

// packed returns the points as float32, with the number of a beam if ring is set.
func (c *Cloud) packed(ring bool) []byte {
	var b []byte
	for i := range c.X {
		for _, v := range [...]float32{c.X[i], c.Y[i], c.Z[i], c.Intensity[i]} {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		if ring {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i%32)))
		}
	}
	return b
}

func (c *Cloud) pcd() []byte {
	n := len(c.X)
	return append(fmt.Appendf(nil, "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS %s\nSIZE 4 4 4 4\n"+
		"TYPE F F F F\nCOUNT 1 1 1 1\nWIDTH %d\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS %d\nDATA binary\n",
		strings.Join(names[:], " "), n, n), c.packed(false)...)
}

func (c *Cloud) ply() []byte {
	return append(fmt.Appendf(nil, "ply\nformat binary_little_endian 1.0\nelement vertex %d\nproperty float %s\n"+
		"end_header\n", len(c.X), strings.Join(names[:], "\nproperty float ")), c.packed(false)...)
}

// las is version 1.2, point format 0, with a scale of 1/64 metre.
func (c *Cloud) las() []byte {
	const header, record, scale = 227, 20, 1. / 64
	le := binary.LittleEndian
	b := make([]byte, header, header+record*len(c.X))
	copy(b, "LASF")
	b[24], b[25] = 1, 2
	le.PutUint16(b[94:], header)
	le.PutUint32(b[96:], header)
	le.PutUint16(b[105:], record)
	le.PutUint32(b[107:], uint32(len(c.X)))
	le.PutUint32(b[111:], uint32(len(c.X)))
	for axis := range 3 {
		le.PutUint64(b[131+8*axis:], math.Float64bits(scale))
	}
	for i := range c.X {
		for _, v := range [...]float32{c.X[i], c.Y[i], c.Z[i]} {
			b = le.AppendUint32(b, uint32(int32(v/scale)))
		}
		b = le.AppendUint16(b, uint16(c.Intensity[i]))
		b = append(b, 1|1<<3, 2, 0, 0, 0, 0) // the only return; class ground
	}
	for axis, v := range [...][]float32{c.X, c.Y, c.Z} {
		if len(v) > 0 {
			le.PutUint64(b[179+16*axis:], math.Float64bits(float64(slices.Max(v))))
			le.PutUint64(b[187+16*axis:], math.Float64bits(float64(slices.Min(v))))
		}
	}
	return b
}

// cdr writes what ROS 2 calls plain CDR, little-endian. Positions count behind the four bytes
// of the encapsulation.
type cdr []byte

func (w *cdr) align() {
	for (len(*w)-4)%4 != 0 {
		*w = append(*w, 0)
	}
}

func (w *cdr) u32(v uint32) {
	w.align()
	*w = binary.LittleEndian.AppendUint32(*w, v)
}

func (w *cdr) text(s string) {
	w.u32(uint32(len(s)) + 1)
	*w = append(append(*w, s...), 0)
}

func (c *Cloud) pointCloud2() []byte {
	w, n := cdr{0, 1, 0, 0}, uint32(len(c.X))
	w.u32(uint32(c.Sec))
	w.u32(c.Nsec)
	w.text(c.Frame)
	w.u32(1) // height
	w.u32(n)
	w.u32(uint32(len(names)))
	for i, name := range names {
		w.text(name)
		w.u32(uint32(4 * i))
		w = append(w, 7) // FLOAT32
		w.u32(1)
	}
	w = append(w, 0) // is_bigendian
	w.u32(16)
	w.u32(16 * n)
	w.u32(16 * n) // bytes of data
	return append(append(w, c.packed(false)...), 1)
}

// field appends a field of protobuf that has a length.
func field(b []byte, number int, value []byte) []byte {
	b = binary.AppendUvarint(b, uint64(number)<<3|2)
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

func fixed32(b []byte, number int, v uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.AppendUvarint(b, uint64(number)<<3|5), v)
}

func varint(b []byte, number int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(number)<<3), v)
}

func (c *Cloud) foxglove() []byte {
	b := field(nil, 1, varint(varint(nil, 1, uint64(c.Sec)), 2, uint64(c.Nsec)))
	b = field(b, 2, []byte(c.Frame))
	b = fixed32(b, 4, 16)
	for i, name := range names {
		b = field(b, 5, varint(fixed32(field(nil, 1, []byte(name)), 2, uint32(4*i)), 3, 7)) // FLOAT32
	}
	return field(b, 6, c.packed(false))
}

// foxgloveJSON is one line.
func (c *Cloud) foxgloveJSON() []byte {
	b := fmt.Appendf(nil, `{"timestamp":{"sec":%d,"nsec":%d},"frame_id":%q,"pose":{"position":{"x":0,"y":0,"z":0},`+
		`"orientation":{"x":0,"y":0,"z":0,"w":1}},"point_stride":16,"fields":[`, c.Sec, c.Nsec, c.Frame)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":%q,"offset":%d,"type":7}`, name, 4*i)
	}
	return fmt.Appendf(b, `],"data":%q}`, base64.StdEncoding.EncodeToString(c.packed(false)))
}
