package picture

import (
	"encoding/binary"
	"math"
)

// Types of geometry in well-known binary; those with z are 1000 more.
const (
	wkbPoint   = 1
	wkbLine    = 2
	wkbPolygon = 3
	wkbInSpace = 1000
)

// geometry is the content of a column geom: a header of the format, then well-known
// binary. The zero value is NULL.
type geometry struct {
	bytes    []byte
	envelope envelope
	inSpace  bool
}

type envelope struct{ minX, maxX, minY, maxY float64 }

func noEnvelope() envelope {
	return envelope{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}
}

func (e *envelope) isEmpty() bool { return e.minX > e.maxX }

func (e *envelope) add(x, y float64) { e.join(envelope{x, x, y, y}) }

func (e *envelope) join(o envelope) {
	*e = envelope{min(e.minX, o.minX), max(e.maxX, o.maxX), min(e.minY, o.minY), max(e.maxY, o.maxY)}
}

// corner is a position; its z counts only where the geometry has one.
type corner struct{ x, y, z float64 }

// newGeometry returns the geometry of a type with those corners; a polygon has one ring,
// whose last corner is its first. Points have no envelope: their coordinates are it.
func newGeometry(kind uint32, inSpace bool, corners ...corner) geometry {
	v := geometry{envelope: noEnvelope(), inSpace: inSpace}
	for _, c := range corners {
		v.envelope.add(c.x, c.y)
	}
	flags, srs := byte(1), int32(-1) // little-endian
	if kind != wkbPoint {
		flags |= 1 << 1 // an envelope of x and y
	}
	b := append(make([]byte, 0, 64+24*len(corners)), 'G', 'P', 0, flags)
	b = binary.LittleEndian.AppendUint32(b, uint32(srs))
	if kind != wkbPoint {
		for _, bound := range [...]float64{v.envelope.minX, v.envelope.maxX, v.envelope.minY, v.envelope.maxY} {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(bound))
		}
	}
	b = append(b, 1)
	if inSpace {
		b = binary.LittleEndian.AppendUint32(b, kind+wkbInSpace)
	} else {
		b = binary.LittleEndian.AppendUint32(b, kind)
	}
	if kind == wkbPolygon {
		b = binary.LittleEndian.AppendUint32(b, 1)
	}
	if kind != wkbPoint {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(corners)))
	}
	for _, c := range corners {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.x))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.y))
		if inSpace {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.z))
		}
	}
	v.bytes = b
	return v
}

// hull writes the row of the polygon. A hull of one or two corners is no polygon: its
// row has no geometry, and a table of its own has it.
func (a *frameRows) hull() error {
	h := a.Hull
	if h == nil {
		return nil
	}
	var corners []corner
	for i := range h.X {
		corners = append(corners, corner{x: h.X[i], y: h.Y[i]})
	}
	var polygon geometry
	if len(corners) > 2 {
		polygon = newGeometry(wkbPolygon, false, append(corners, corners[0])...)
	}
	var bound any
	if h.ErrorBound != nil {
		bound = finite(*h.ErrorBound)
	}
	if err := a.feature("hulls", polygon, string(h.Status), a.NPoints, len(h.Idx), finite(h.Area), finite(h.Perimeter),
		bound); err != nil {
		return err
	}
	kind := map[int]uint32{1: wkbPoint, 2: wkbLine}[len(corners)]
	if kind == 0 {
		return nil
	}
	return a.feature("hulls_degenerate", newGeometry(kind, false, corners...), string(h.Status), finite(h.Perimeter))
}

// corner returns point i of the frame.
func (a *frameRows) corner(i int32) corner {
	x, y, z := a.at(a.place(i))
	return corner{x, y, z}
}

func (a *frameRows) maxima() error {
	for _, m := range a.Maxima {
		for _, i := range m.Idx {
			if err := a.feature("maxima", newGeometry(wkbPoint, a.hasZ(), a.corner(i)), m.Directions, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *frameRows) triangles() error {
	for i := 0; i < len(a.Triangles); i += 3 {
		u, v, w := a.Triangles[i], a.Triangles[i+1], a.Triangles[i+2]
		first := a.corner(u)
		ring := newGeometry(wkbPolygon, a.hasZ(), first, a.corner(v), a.corner(w), first)
		if err := a.feature("triangles", ring, i/3, u, v, w); err != nil {
			return err
		}
	}
	return nil
}

func (a *frameRows) points() error {
	for k, i := range a.Points.Idx {
		var intensity any
		if k < len(a.Points.Intensity) {
			intensity = finite(float64(a.Points.Intensity[k]))
		}
		x, y, z := a.at(k)
		if err := a.feature("points", newGeometry(wkbPoint, a.hasZ(), corner{x, y, z}), i, intensity); err != nil {
			return err
		}
	}
	return nil
}
