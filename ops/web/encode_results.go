package web

import (
	"encoding/binary"
	"math"
	"slices"
)

// hulls writes hulls and maxima. A corner that the scene does not hold leaves its section out.
func (e *encoder) hulls() {
	s, h := e.scene, &e.header
	if s.Hull != nil {
		if finite(s.Hull.Area) {
			h.Area = &s.Hull.Area
		}
		e.vertices("hull", s.Hull.Idx)
	}
	if s.Hull3 != nil {
		if finite(s.Hull3.Volume) {
			h.Volume = &s.Hull3.Volume
		}
		if e.vertices("hull3", s.Hull3.Idx) {
			faces := make([]int32, len(s.Hull3.Faces))
			for k, number := range s.Hull3.Faces {
				at, _ := slices.BinarySearch(s.Hull3.Idx, number)
				faces[k] = int32(at)
			}
			e.indices("faces", faces, len(s.Hull3.Idx))
		}
	}
	if len(s.Maxima) > 0 {
		var all []int32
		for i := range s.Maxima {
			all = append(all, s.Maxima[i].Idx...)
		}
		e.vertices("maxima", all)
	}
}

// vertices writes the coordinates of the points with these numbers; false if one is missing.
func (e *encoder) vertices(name string, numbers []int32) bool {
	at := make([]int32, len(numbers))
	for k, number := range numbers {
		i, found := e.scene.Position(number)
		if !found {
			return false
		}
		at[k] = i
	}
	e.corners(name, at)
	return true
}

// mesh writes the triangles, with corners of their own if not all points are sent.
func (e *encoder) mesh() {
	s := e.scene
	if s.Triangles == nil || !e.exact && len(s.Triangles) > 3*maxMesh {
		return
	}
	at := make([]int32, len(s.Triangles))
	for k, number := range s.Triangles {
		i, found := s.Position(number)
		if !found {
			return
		}
		at[k] = i
	}
	if len(e.sent) == s.Len() {
		e.indices("mesh", at, s.Len())
		return
	}
	corners := slices.Clone(at)
	slices.Sort(corners)
	corners = slices.Compact(corners)
	place := make(map[int32]int32, len(corners))
	for k, i := range corners {
		place[i] = int32(k)
	}
	for k, i := range at {
		at[k] = place[i]
	}
	e.corners("meshxyz", corners)
	e.indices("mesh", at, len(corners))
}

// corners writes the coordinates of the points at some positions of the scene.
func (e *encoder) corners(name string, at []int32) {
	to := e.begin(name, "f32", 4, 3*len(at))
	for k, i := range at {
		for axis := range 3 {
			binary.LittleEndian.PutUint32(to[12*k+4*axis:], math.Float32bits(e.at(axis, i)))
		}
	}
}

// indices writes positions below n: u16 if they fit.
func (e *encoder) indices(name string, at []int32, n int) {
	if n <= 1<<16 {
		to := e.begin(name, "u16", 2, len(at))
		for k, i := range at {
			binary.LittleEndian.PutUint16(to[2*k:], uint16(i))
		}
		return
	}
	to := e.begin(name, "u32", 4, len(at))
	for k, i := range at {
		binary.LittleEndian.PutUint32(to[4*k:], uint32(i))
	}
}
