package picture

import (
	"strconv"

	"entropipe/schemas/codec/foxglove"
)

// vector returns the coordinates of point i of the frame as received.
func (s *Frame) vector(i int32) foxglove.Vector { return s.vectorAt(s.place(i)) }

// vectorAt returns the coordinates of the point that stands k-th in table points.
func (s *Frame) vectorAt(k int) foxglove.Vector {
	x, y, z := s.at(k)
	return foxglove.Vector{X: x, Y: y, Z: z}
}

// addHull adds the hull in the plane as a closed line through its points, at their height;
// at height 0 without table points.
func addHull(s *Frame, e *foxglove.Entity) {
	h := s.Hull
	if h == nil || len(h.X) == 0 {
		return
	}
	e.Metadata = append(e.Metadata, foxglove.KeyValue{Key: "area", Value: strconv.FormatFloat(h.Area, 'g', -1, 64)},
		foxglove.KeyValue{Key: "perimeter", Value: strconv.FormatFloat(h.Perimeter, 'g', -1, 64)})
	corners := make([]foxglove.Vector, len(h.Idx))
	for k, i := range h.Idx {
		corners[k] = foxglove.Vector{X: h.X[k], Y: h.Y[k]}
		if len(s.Points.Idx) > 0 {
			corners[k].Z = s.vector(i).Z
		}
	}
	e.Lines = append(e.Lines, foxglove.HullLine(corners))
}

// addHull3D adds the faces of the hull in space.
func addHull3D(s *Frame, e *foxglove.Entity) {
	addTriangles(s, e, s.Hull3.Faces, foxglove.Hull3DColor)
}

// addMesh adds the Delaunay triangles.
func addMesh(s *Frame, e *foxglove.Entity) {
	addTriangles(s, e, s.Triangles, foxglove.MeshColor)
}

func addTriangles(s *Frame, e *foxglove.Entity, corners []int32, ink foxglove.Color) {
	if len(corners) == 0 || len(s.Points.Idx) == 0 {
		return
	}
	t := foxglove.TrianglesOf(corners, len(s.Points.Idx), s.place, s.vectorAt)
	t.Color = ink
	e.Triangles = append(e.Triangles, t)
}

// addMaxima adds a cross at each maximum. It is as large as a hundredth of the frame's hull.
func addMaxima(s *Frame, e *foxglove.Entity) {
	if len(s.Points.Idx) == 0 {
		return
	}
	arm := .1
	if s.Hull != nil && s.Hull.Perimeter > 0 {
		arm = s.Hull.Perimeter / 800
	}
	var points []foxglove.Vector
	for i := range s.Maxima {
		for _, p := range s.Maxima[i].Idx {
			points = append(points, s.vector(p))
		}
	}
	if len(points) > 0 {
		e.Lines = append(e.Lines, foxglove.Crosses(points, arm))
	}
}
