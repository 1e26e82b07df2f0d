package delaunay

import (
	"cmp"
	"fmt"
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// Validate returns nil if m is the mesh that Triangulate returns for c, half-edges
// included and in any order of triangles; otherwise an error that names the first
// fault. It checks with exact signs that
//
//   - each triangle is counter-clockwise;
//   - twins are the two sides of one edge;
//   - the edges without a twin go once around a convex Hull;
//   - the vertices are the distinct points;
//   - the circles beside each inner edge are empty, ties broken by the rule of the
//     package.
//
// Only one mesh passes: locally empty circles are empty (Delaunay 1934).
//
// Cost: O(n log n), and memory for some copies of the indices. Validate may be
// called concurrently.
func Validate[T geom.Float](c geom.Cloud[T], m geom.Mesh) error {
	v := validator[T]{c, m}
	for _, check := range []func() error{v.ranges, v.triangles, v.twins} {
		if err := check(); err != nil {
			return err
		}
	}
	distinct := v.distinct()
	if v.collinear(distinct) {
		return v.degenerate(distinct)
	}
	for _, check := range []func() error{v.boundary, v.circles} {
		if err := check(); err != nil {
			return err
		}
	}
	return v.count(distinct)
}

type validator[T geom.Float] struct {
	c geom.Cloud[T]
	m geom.Mesh
}

func (v validator[T]) point(i int32) point {
	return point{float64(v.c.X[i]), float64(v.c.Y[i])}
}

func (v validator[T]) turn(a, b, c int32) int { return orient(v.point(a), v.point(b), v.point(c)) }

func (v validator[T]) ranges() error {
	if len(v.c.Y) != v.c.Len() {
		return fmt.Errorf("delaunay: the cloud has %d x, but %d y", v.c.Len(), len(v.c.Y))
	}
	if len(v.m.Triangles)%3 != 0 || len(v.m.Halfedges) != len(v.m.Triangles) {
		return fmt.Errorf("delaunay: the mesh has %d indices of triangles and %d half-edges, want equal multiples of 3",
			len(v.m.Triangles), len(v.m.Halfedges))
	}
	for _, indices := range [][]int32{v.m.Triangles, v.m.Hull} {
		for _, i := range indices {
			if i < 0 || int(i) >= v.c.Len() {
				return fmt.Errorf("delaunay: the mesh names vertex %d of a cloud of %d points", i, v.c.Len())
			}
		}
	}
	return nil
}

func (v validator[T]) triangles() error {
	t := v.m.Triangles
	for e := 0; e < len(t); e += 3 {
		if a, b, c := t[e], t[e+1], t[e+2]; v.turn(a, b, c) <= 0 {
			return fmt.Errorf("delaunay: triangle %d (%d %d %d) is not counter-clockwise", e/3, a, b, c)
		}
	}
	return nil
}

// after returns the half-edge that follows e in its triangle.
func after(e int32) int32 {
	if e%3 == 2 {
		return e - 2
	}
	return e + 1
}

func (v validator[T]) twins() error {
	t := v.m.Triangles
	for e, twin := range v.m.Halfedges {
		e := int32(e)
		switch {
		case twin == -1:
		case twin < 0 || int(twin) >= len(t) || v.m.Halfedges[twin] != e:
			return fmt.Errorf("delaunay: half-edge %d has twin %d, but half-edge %d has not twin %d", e, twin, twin, e)
		case t[e] != t[after(twin)] || t[after(e)] != t[twin]:
			return fmt.Errorf("delaunay: half-edges %d and %d are twins, but not one edge", e, twin)
		}
	}
	return nil
}

// distinct returns the lowest index of each distinct point, in lexicographic
// order of the points.
func (v validator[T]) distinct() []int32 {
	d := make([]int32, v.c.Len())
	for i := range d {
		d[i] = int32(i)
	}
	slices.SortFunc(d, func(a, b int32) int {
		switch p, q := v.point(a), v.point(b); {
		case p.less(q):
			return -1
		case q.less(p):
			return 1
		}
		return cmp.Compare(a, b)
	})
	return slices.CompactFunc(d, func(a, b int32) bool { return v.point(a) == v.point(b) })
}

func (v validator[T]) collinear(distinct []int32) bool {
	for _, i := range distinct {
		if v.turn(distinct[0], i, distinct[len(distinct)-1]) != 0 {
			return false
		}
	}
	return true
}

func (v validator[T]) degenerate(distinct []int32) error {
	want := distinct
	if len(want) > 2 {
		want = []int32{want[0], want[len(want)-1]}
	}
	if len(v.m.Triangles) > 0 || !slices.Equal(v.m.Hull, want) {
		return fmt.Errorf("delaunay: collinear points have %d triangles and hull %v, want none and %v",
			len(v.m.Triangles)/3, v.m.Hull, want)
	}
	return nil
}

// boundary checks that the half-edges without twin are the edges of the hull, that
// the hull turns nowhere to the right, and that it goes around once: its points
// rise once and fall once in lexicographic order.
func (v validator[T]) boundary() error {
	next := make(map[int32]int32, len(v.m.Hull))
	for e, twin := range v.m.Halfedges {
		if twin < 0 {
			next[v.m.Triangles[e]] = v.m.Triangles[after(int32(e))]
		}
	}
	h := v.m.Hull
	if len(h) < 3 || len(next) != len(h) {
		return fmt.Errorf("delaunay: the hull of %d vertices has %d edges on the boundary", len(h), len(next))
	}
	tops := 0
	for k, a := range h {
		b, c := h[(k+1)%len(h)], h[(k+2)%len(h)]
		if to, ok := next[a]; !ok || to != b {
			return fmt.Errorf("delaunay: edge %d-%d of the hull is not on the boundary", a, b)
		}
		if v.turn(a, b, c) < 0 {
			return fmt.Errorf("delaunay: the hull turns right at %d", b)
		}
		if v.point(a).less(v.point(b)) && v.point(c).less(v.point(b)) {
			tops++
		}
		if v.point(a).less(v.point(h[0])) {
			return fmt.Errorf("delaunay: the hull begins with %d, but %d is less", h[0], a)
		}
	}
	if tops != 1 {
		return fmt.Errorf("delaunay: the hull goes around %d times", tops)
	}
	return nil
}

// circles checks one of the two circles at every inner edge: the other circle
// gives the same sign.
func (v validator[T]) circles() error {
	t := v.m.Triangles
	for e, twin := range v.m.Halfedges {
		e := int32(e)
		if twin < e {
			continue
		}
		ia, ib, ic, id := t[e], t[after(e)], t[after(after(e))], t[after(after(twin))]
		a, b, c, d := v.point(ia), v.point(ib), v.point(ic), v.point(id)
		sign := exact.InCircle(a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y)
		if sign > 0 {
			return fmt.Errorf("delaunay: point %d lies inside the circle of triangle %d (%d %d %d)",
				id, e/3, ia, ib, ic)
		}
		if sign == 0 && tie(a, b, c, d) {
			return fmt.Errorf("delaunay: edge %d-%d is the wrong diagonal of the cocircular points %d %d %d %d",
				ia, ib, ia, id, ib, ic)
		}
	}
	return nil
}

// count checks that the vertices are the lowest indices of the distinct points, and
// that their number fits Euler's formula.
func (v validator[T]) count(distinct []int32) error {
	const lowest, vertex = 1, 2
	marks := make([]uint8, v.c.Len())
	for _, i := range distinct {
		marks[i] = lowest
	}
	for _, i := range v.m.Triangles {
		if marks[i] == 0 {
			return fmt.Errorf("delaunay: vertex %d equals a point with a lower index", i)
		}
		marks[i] |= vertex
	}
	if i := slices.Index(marks, lowest); i >= 0 {
		return fmt.Errorf("delaunay: point %d is in no triangle", i)
	}
	if got, want := len(v.m.Triangles)/3, 2*len(distinct)-2-len(v.m.Hull); got != want {
		return fmt.Errorf("delaunay: the mesh has %d triangles, want %d for %d points with %d on the hull",
			got, want, len(distinct), len(v.m.Hull))
	}
	return nil
}
