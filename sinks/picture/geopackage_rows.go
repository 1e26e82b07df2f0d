package picture

import (
	"encoding/binary"
	"math"
	"slices"

	"entropipe/schemas/codec"
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

// points writes the points with the columns that the frame has. Columns that no frame before
// had are added to the table.
func (a *frameRows) points() error {
	t, err := a.table("points")
	if err != nil {
		return err
	}
	columns := a.columnsOfPoints()
	for _, c := range columns {
		if c.value != nil && !slices.Contains(t.extra, c.name) {
			if err := t.addColumn(c.name, c.kind); err != nil {
				return err
			}
		}
	}
	values := make([]func(k int) any, len(t.extra))
	for _, c := range columns {
		if at := slices.Index(t.extra, c.name); at >= 0 {
			values[at] = c.value
		}
	}
	more := make([]any, 2+len(values))
	for k, i := range a.Points.Idx {
		clear(more)
		more[0] = i
		if k < len(a.Points.Intensity) {
			more[1] = finite(float64(a.Points.Intensity[k]))
		}
		for c, value := range values {
			if value != nil {
				more[2+c] = value(k)
			}
		}
		x, y, z := a.at(k)
		if a.hasZ() {
			t.heights.add(z)
		}
		if err := t.feature(newGeometry(wkbPoint, a.hasZ(), corner{x, y, z}), a.key, more); err != nil {
			return err
		}
	}
	return nil
}

// pointColumn is a column of table points that not every frame has.
type pointColumn struct {
	name, kind string
	value      func(k int) any // of row k of table points; nil if the frame has no such column
}

// columnsOfPoints are the extra columns, in the order of table points.
func (a *frameRows) columnsOfPoints() []pointColumn {
	p := a.Points
	var all []pointColumn
	for i, v := range p.Int32s() {
		c := pointColumn{name: `"` + codec.Int32Names[i] + `"`, kind: "INTEGER"}
		if values := *v; values != nil {
			c.value = func(k int) any {
				if values[k] == codec.NoInt32 {
					return nil
				}
				return values[k]
			}
		}
		all = append(all, c)
	}
	elongation := pointColumn{name: `"elongation"`, kind: "DOUBLE"}
	if p.Elongation != nil {
		elongation.value = func(k int) any { return finite(float64(p.Elongation[k])) }
	}
	after := pointColumn{name: `"t_offset_ns"`, kind: "INTEGER"}
	if p.TOffsetNs != nil {
		after.value = func(k int) any {
			if p.TOffsetNs[k] == codec.NoInt64 {
				return nil
			}
			return p.TOffsetNs[k]
		}
	}
	return append(all, elongation, after)
}
