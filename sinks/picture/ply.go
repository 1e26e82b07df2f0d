package picture

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"image/color"
	"math"
	"strconv"
)

// WritePLY writes the points with their flags and colours, and a mesh: the
// faces of the hull in space and the triangles, or if oneMesh is set the former
// or else the latter. Vertex k is the k-th row of table points, and says in
// index which point of the frame it is.
//
// Without points it has the corners of the hull in the plane, at z = 0, as a
// fan.
func WritePLY(w *bufio.Writer, s *Frame, oneMesh, ascii bool) error {
	p := plyWriter{Writer: w, ascii: ascii}
	if len(s.Points.Idx) == 0 && s.layers[LayerHull] && s.Hull != nil {
		s = hullAsPoints(s)
	}
	var faces []plyFaces
	if s.layers[LayerHull3D] && s.Hull3 != nil && len(s.Hull3.Faces) > 0 {
		faces = append(faces, plyFaces{s.Hull3.Faces, inkHull3D})
	}
	if s.layers[LayerTriangles] && len(s.Triangles) > 0 && !(oneMesh && len(faces) > 0) {
		faces = append(faces, plyFaces{s.Triangles, inkTriangles})
	}
	p.header(s, faces)
	p.vertices(s)
	for _, f := range faces {
		for i := 0; i < len(f.corners); i += 3 {
			p.uint8(3)
			for _, v := range f.corners[i : i+3] {
				p.int32(int32(s.place(v)))
			}
			p.color(f.color)
			p.end()
		}
	}
	return w.Flush()
}

// plyFaces are triangles of one colour, as points of the frame.
type plyFaces struct {
	corners []int32
	color   color.NRGBA
}

// hullAsPoints is a frame whose points are the corners of its hull.
func hullAsPoints(s *Frame) *Frame {
	r := *s.Result
	h, points := *r.Hull, *r.Points
	h.Idx = nil
	for i := range h.X {
		h.Idx = append(h.Idx, int32(i))
	}
	points.Idx, points.X64, points.Y64 = h.Idx, h.X, h.Y
	r.Hull, r.Points, r.Triangles = &h, &points, nil
	for i := 1; i+1 < len(h.Idx); i++ {
		r.Triangles = append(r.Triangles, 0, h.Idx[i], h.Idx[i+1])
	}
	return &Frame{Result: &r, layers: map[string]bool{LayerPoints: true, LayerHull: true, LayerTriangles: true}}
}

// flags say of which results a point is part.
type flags uint8

const (
	inHull flags = 1 << iota
	inHull3D
	inMaxima
)

// flagsOf returns the flags of every row of table points.
func flagsOf(s *Frame) []flags {
	all := make([]flags, len(s.Points.Idx))
	set := func(f flags, idx []int32) {
		for _, i := range idx {
			all[s.place(i)] |= f
		}
	}
	if s.layers[LayerHull] && s.Hull != nil {
		set(inHull, s.Hull.Idx)
	}
	if s.layers[LayerHull3D] && s.Hull3 != nil {
		set(inHull3D, s.Hull3.Idx)
	}
	if s.layers[LayerMaxima] {
		for _, m := range s.Maxima {
			set(inMaxima, m.Idx)
		}
	}
	return all
}

// plyWriter writes one value after the other, as text or little-endian.
type plyWriter struct {
	*bufio.Writer
	ascii bool
	begun bool // the line of text has a value
	bytes [24]byte
}

func (p *plyWriter) header(s *Frame, faces []plyFaces) {
	format, coordinate := "binary_little_endian", "float"
	if p.ascii {
		format = "ascii"
	}
	if s.Points.X64 != nil {
		coordinate = "double"
	}
	fmt.Fprintf(p, "ply\nformat %s 1.0\ncomment %s\ncomment topic %s partition %d offset %d index %d; %s; entropipe "+
		"export\n", format,
		oneLine(s.name()), s.Topic, s.Partition, s.Offset, s.Index,
		map[string]string{"m": "metres", "px": "pixels, y down"}[s.Unit()])
	fmt.Fprintf(p, "element vertex %d\nproperty %[2]s x\nproperty %[2]s y\nproperty %[2]s z\n",
		len(s.Points.Idx), coordinate)
	if s.Points.Intensity != nil {
		p.WriteString("property float intensity\n")
	}
	p.WriteString("property int index\nproperty uchar hull\nproperty uchar hull3d\nproperty uchar maxima\nproperty " +
		"uchar red\nproperty uchar green\nproperty uchar blue\n")
	n := 0
	for _, f := range faces {
		n += len(f.corners) / 3
	}
	if n > 0 {
		fmt.Fprintf(p, "element face %d\nproperty list uchar int vertex_indices\nproperty uchar red\nproperty uchar "+
			"green\nproperty uchar blue\n", n)
	}
	p.WriteString("end_header\n")
}

// oneLine is text as a comment can hold it: printable ASCII.
func oneLine(text string) string {
	line := []byte(text)
	for i, c := range line {
		if c < ' ' || c > '~' {
			line[i] = '?'
		}
	}
	return string(line)
}

func (p *plyWriter) vertices(s *Frame) {
	all := flagsOf(s)
	for k, i := range s.Points.Idx {
		x, y, z := s.at(k)
		for _, v := range [3]float64{x, y, z} {
			if s.Points.X64 != nil {
				p.float64(v)
			} else {
				p.float32(float32(v))
			}
		}
		if s.Points.Intensity != nil {
			p.float32(s.Points.Intensity[k])
		}
		p.int32(i)
		ink := inkPoints
		for _, f := range []struct {
			flag flags
			ink  color.NRGBA
		}{{inHull, inkHull}, {inHull3D, inkHull3D}, {inMaxima, inkMaxima}} {
			set := all[k]&f.flag != 0
			p.uint8(map[bool]uint8{true: 1}[set])
			if set {
				ink = f.ink
			}
		}
		p.color(ink)
		p.end()
	}
}

func (p *plyWriter) color(c color.NRGBA) {
	p.uint8(c.R)
	p.uint8(c.G)
	p.uint8(c.B)
}

func (p *plyWriter) uint8(v uint8) {
	if p.ascii {
		p.int32(int32(v))
		return
	}
	p.WriteByte(v)
}

func (p *plyWriter) int32(v int32) {
	if p.ascii {
		p.word(strconv.AppendInt(p.bytes[:0], int64(v), 10))
		return
	}
	p.Write(binary.LittleEndian.AppendUint32(p.bytes[:0], uint32(v)))
}

func (p *plyWriter) float32(v float32) {
	if p.ascii {
		p.word(strconv.AppendFloat(p.bytes[:0], float64(v), 'g', -1, 32))
		return
	}
	p.Write(binary.LittleEndian.AppendUint32(p.bytes[:0], math.Float32bits(v)))
}

func (p *plyWriter) float64(v float64) {
	if p.ascii {
		p.word(strconv.AppendFloat(p.bytes[:0], v, 'g', -1, 64))
		return
	}
	p.Write(binary.LittleEndian.AppendUint64(p.bytes[:0], math.Float64bits(v)))
}

// word writes a value of a line of text.
func (p *plyWriter) word(text []byte) {
	if p.begun {
		p.WriteByte(' ')
	}
	p.Write(text)
	p.begun = true
}

// end ends a vertex or a face.
func (p *plyWriter) end() {
	if p.ascii {
		p.WriteByte('\n')
	}
	p.begun = false
}
