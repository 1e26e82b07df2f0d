package foxglove

import (
	"encoding/binary"
	"math"
)

// What viewers draw has the same look whether it comes from a file or from a running process:
// colours that stay apart for colour-blind eyes, after Okabe and Ito.
var (
	HullColor   = ink(0x00, 0x72, 0xb2, 1)
	Hull3DColor = ink(0x00, 0x9e, 0x73, .3)
	MaximaColor = ink(0xd5, 0x5e, 0x00, 1)
	MeshColor   = ink(0xc4, 0xc4, 0xc4, .5)
)

func ink(r, g, b uint8, alpha float64) Color {
	return Color{R: float64(r) / 255, G: float64(g) / 255, B: float64(b) / 255, A: alpha}
}

// World is the frame of reference in which poses stand.
const World = "world"

// lineWidth is the width of lines, in pixels.
const lineWidth = 2

// HullLine returns the hull in the plane as a closed line through its corners.
func HullLine(corners []Vector) Line {
	return Line{Type: LineLoop, Thickness: lineWidth, ScaleInvariant: true, Color: HullColor, Points: corners}
}

// Crosses returns a cross of three strokes at each point. arm is half the length of a stroke.
func Crosses(points []Vector, arm float64) Line {
	line := Line{Type: LineList, Thickness: lineWidth, ScaleInvariant: true, Color: MaximaColor,
		Points: make([]Vector, 0, 6*len(points))}
	for _, v := range points {
		for _, d := range [3]Vector{{X: arm}, {Y: arm}, {Z: arm}} {
			line.Points = append(line.Points, Vector{X: v.X - d.X, Y: v.Y - d.Y, Z: v.Z - d.Z},
				Vector{X: v.X + d.X, Y: v.Y + d.Y, Z: v.Z + d.Z})
		}
	}
	return line
}

// TrianglesOf returns triangles of points of a frame, each of which it names once. corners
// are numbers of points, three a triangle; row returns which of the n rows holds a number, and
// at the coordinates of a row.
func TrianglesOf(corners []int32, n int, row func(number int32) int, at func(row int) Vector) Triangles {
	t := Triangles{Indices: make([]uint32, len(corners)), Points: make([]Vector, 0, min(n, len(corners)))}
	const unseen = -1
	place := make([]int32, n) // position in t.Points of each row
	for k := range place {
		place[k] = unseen
	}
	for k, number := range corners {
		r := row(number)
		if place[r] == unseen {
			place[r] = int32(len(t.Points))
			t.Points = append(t.Points, at(r))
		}
		t.Indices[k] = uint32(place[r])
	}
	return t
}

// Packer lays columns side by side as the points of a PointCloud. Reset makes it ready for the
// next cloud, in the same memory.
type Packer struct {
	fields  []Field
	stride  uint32
	columns []any // []float32, []float64 or []int32; nil: zeros
	data    []byte
}

// Reset forgets the columns.
func (p *Packer) Reset() {
	clear(p.columns)
	p.fields, p.columns, p.stride = nil, p.columns[:0], 0
}

// Float32 adds a column; nil has zeros.
func (p *Packer) Float32(name string, v []float32) { p.add(name, Float32, 4, v) }

// Float64 adds a column; nil has zeros.
func (p *Packer) Float64(name string, v []float64) { p.add(name, Float64, 8, v) }

// Int32 adds a column; nil has zeros.
func (p *Packer) Int32(name string, v []int32) { p.add(name, Int32, 4, v) }

func (p *Packer) add(name string, kind NumericType, size uint32, column any) {
	p.fields = append(p.fields, Field{Name: name, Offset: p.stride, Type: kind})
	p.columns = append(p.columns, column)
	p.stride += size
}

// Pack gives c the n points of the columns. Their memory is the packer's.
func (p *Packer) Pack(c *PointCloud, n int) {
	stride := int(p.stride)
	if need := n * stride; cap(p.data) < need {
		p.data = make([]byte, need)
	} else {
		p.data = p.data[:need]
		clear(p.data)
	}
	for i, f := range p.fields {
		at := int(f.Offset)
		switch column := p.columns[i].(type) {
		case []float32:
			for k, v := range column {
				binary.LittleEndian.PutUint32(p.data[k*stride+at:], math.Float32bits(v))
			}
		case []float64:
			for k, v := range column {
				binary.LittleEndian.PutUint64(p.data[k*stride+at:], math.Float64bits(v))
			}
		case []int32:
			for k, v := range column {
				binary.LittleEndian.PutUint32(p.data[k*stride+at:], uint32(v))
			}
		}
	}
	c.Fields, c.Stride, c.Data = p.fields, p.stride, p.data
}
