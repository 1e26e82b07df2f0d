package delaunay_test

import (
	"slices"
	"strings"
	"testing"

	"entropipe/algos/delaunay"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// Validate finds every kind of fault that it names.
func TestValidateFindsFaults(t *testing.T) {
	var tr delaunay.Triangulator[float64]
	// A square with its centre twice, and a point beyond.
	c := geomtest.Points([2]float64{0, 0}, [2]float64{2, 0}, [2]float64{2, 2}, [2]float64{0, 2}, [2]float64{1, 1},
		[2]float64{1, 1}, [2]float64{5, 1})
	square := geomtest.Points([2]float64{0, 0}, [2]float64{1, 0}, [2]float64{1, 1}, [2]float64{0, 1})
	kite := geomtest.Points([2]float64{0, 0}, [2]float64{1, -3}, [2]float64{2, 0}, [2]float64{1, 3})
	otherDiagonal := geom.Mesh{Triangles: []int32{0, 1, 2, 0, 2, 3}, Halfedges: []int32{-1, -1, 3, 2, -1, -1},
		Hull: []int32{0, 1, 2, 3}}
	line := geomtest.Points([2]float64{0, 0}, [2]float64{1, 1}, [2]float64{2, 2})
	for _, test := range []struct {
		want  string
		c     geom.Cloud[float64]
		fault func(m *geom.Mesh)
	}{
		{"half-edges", c, func(m *geom.Mesh) { m.Halfedges = nil }},
		{"of a cloud of 7", c, func(m *geom.Mesh) { m.Triangles[4] = 7 }},
		{"of a cloud of 7", c, func(m *geom.Mesh) { m.Hull[1] = -1 }},
		{"not counter-clockwise", c, func(m *geom.Mesh) {
			m.Triangles[1], m.Triangles[2] = m.Triangles[2], m.Triangles[1]
		}},
		{"not one edge", c, func(m *geom.Mesh) { copy(m.Triangles[3:], m.Triangles[:3]) }},
		{"not twin", c, func(m *geom.Mesh) {
			m.Halfedges[slices.IndexFunc(m.Halfedges, func(h int32) bool { return h > 0 })] = 0
		}},
		{"not one edge", c, func(m *geom.Mesh) {
			var open []int32
			for e, h := range m.Halfedges {
				if h < 0 {
					open = append(open, int32(e))
				}
			}
			m.Halfedges[open[0]], m.Halfedges[open[1]] = open[1], open[0]
		}},
		{"hull of 3 vertices", c, func(m *geom.Mesh) { m.Hull = m.Hull[:3] }},
		{"not on the boundary", c, func(m *geom.Mesh) { slices.Reverse(m.Hull) }},
		{"hull begins with", c, func(m *geom.Mesh) { m.Hull = append(m.Hull[1:], m.Hull[0]) }},
		{"lower index", c, func(m *geom.Mesh) { replace(m.Triangles, 4, 5) }},
		{"wrong diagonal", square, func(m *geom.Mesh) { *m = otherDiagonal }},
		{"inside the circle", kite, func(m *geom.Mesh) {
			*m = geom.Mesh{Triangles: []int32{0, 1, 3, 1, 2, 3}, Halfedges: []int32{-1, 5, -1, -1, -1, 1},
				Hull: []int32{0, 1, 2, 3}}
		}},
		{"in no triangle", c, func(m *geom.Mesh) { *m = tr.Triangulate(c.Slice(0, 4)) }},
		{"collinear", line, func(m *geom.Mesh) { m.Hull = []int32{0} }},
		{"hull of 0", square, func(m *geom.Mesh) { *m = geom.Mesh{} }},
	} {
		m := tr.Triangulate(test.c)
		if err := delaunay.Validate(test.c, m); err != nil {
			t.Fatalf("%q: already before: %v", test.want, err)
		}
		m = geom.Mesh{Triangles: slices.Clone(m.Triangles), Halfedges: slices.Clone(m.Halfedges),
			Hull: slices.Clone(m.Hull)}
		test.fault(&m)
		if err := delaunay.Validate(test.c, m); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q\nmesh %+v", err, test.want, m)
		}
	}
}

func replace(s []int32, old, with int32) {
	for i, v := range s {
		if v == old {
			s[i] = with
		}
	}
}
