package picture

import (
	"image/color"
	"strconv"

	"entropipe/schemas/codec/foxglove"
)

// inkOf returns a colour for viewers.
func inkOf(c color.NRGBA, alpha float64) foxglove.Color {
	return foxglove.Color{R: float64(c.R) / 255, G: float64(c.G) / 255, B: float64(c.B) / 255, A: alpha}
}

// vector returns the coordinates of point i of the frame as received.
func (s *Frame) vector(i int32) foxglove.Vector {
	x, y, z := s.at(s.place(i))
	return foxglove.Vector{X: x, Y: y, Z: z}
}

// lineWidth is the width of lines, in pixels.
const lineWidth = 2

// addHull adds the hull in the plane as a closed line through its points, at their height;
// at height 0 without table points.
func addHull(s *Frame, e *foxglove.Entity) {
	h := s.Hull
	if h == nil || len(h.X) == 0 {
		return
	}
	e.Metadata = append(e.Metadata, foxglove.KeyValue{Key: "area", Value: strconv.FormatFloat(h.Area, 'g', -1, 64)},
		foxglove.KeyValue{Key: "perimeter", Value: strconv.FormatFloat(h.Perimeter, 'g', -1, 64)})
	line := foxglove.Line{Type: foxglove.LineLoop, Thickness: lineWidth, ScaleInvariant: true, Color: inkOf(inkHull, 1)}
	for k, i := range h.Idx {
		v := foxglove.Vector{X: h.X[k], Y: h.Y[k]}
		if len(s.Points.Idx) > 0 {
			v.Z = s.vector(i).Z
		}
		line.Points = append(line.Points, v)
	}
	e.Lines = append(e.Lines, line)
}

// addHull3D adds the faces of the hull in space.
func addHull3D(s *Frame, e *foxglove.Entity) {
	addTriangles(s, e, s.Hull3.Faces, inkOf(inkHull3D, .3))
}

// addMesh adds the Delaunay triangles.
func addMesh(s *Frame, e *foxglove.Entity) {
	addTriangles(s, e, s.Triangles, inkOf(inkTriangles, .5))
}

// addTriangles adds triangles of points of the frame, each of which it names once.
func addTriangles(s *Frame, e *foxglove.Entity, corners []int32, ink foxglove.Color) {
	if len(corners) == 0 || len(s.Points.Idx) == 0 {
		return
	}
	t := foxglove.Triangles{Color: ink, Indices: make([]uint32, len(corners))}
	const unseen = -1
	at := make([]int32, len(s.Points.Idx)) // position in t.Points of each row of table points
	for k := range at {
		at[k] = unseen
	}
	for k, i := range corners {
		row := s.place(i)
		if at[row] == unseen {
			at[row] = int32(len(t.Points))
			x, y, z := s.at(row)
			t.Points = append(t.Points, foxglove.Vector{X: x, Y: y, Z: z})
		}
		t.Indices[k] = uint32(at[row])
	}
	e.Triangles = append(e.Triangles, t)
}

// addMaxima adds a cross of three strokes at each maximum. It is as large as a hundredth
// of the frame's hull.
func addMaxima(s *Frame, e *foxglove.Entity) {
	if len(s.Points.Idx) == 0 {
		return
	}
	arm := .1
	if s.Hull != nil && s.Hull.Perimeter > 0 {
		arm = s.Hull.Perimeter / 800
	}
	line := foxglove.Line{Type: foxglove.LineList, Thickness: lineWidth, ScaleInvariant: true,
		Color: inkOf(inkMaxima, 1)}
	for i := range s.Maxima {
		for _, p := range s.Maxima[i].Idx {
			v := s.vector(p)
			for _, d := range [3]foxglove.Vector{{X: arm}, {Y: arm}, {Z: arm}} {
				line.Points = append(line.Points, foxglove.Vector{X: v.X - d.X, Y: v.Y - d.Y, Z: v.Z - d.Z},
					foxglove.Vector{X: v.X + d.X, Y: v.Y + d.Y, Z: v.Z + d.Z})
			}
		}
	}
	if len(line.Points) > 0 {
		e.Lines = append(e.Lines, line)
	}
}
