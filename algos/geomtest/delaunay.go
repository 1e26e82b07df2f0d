package geomtest

import (
	"fmt"
	"slices"

	"entropipe/algos/geom"
)

// CheckDelaunay returns nil if m is the Delaunay triangulation of c, otherwise an error
// that names a fault. It checks in exact arithmetic:
//
//   - vertices: every representative is used, no other index;
//   - canonical order: triangles counter-clockwise, the smallest index first,
//     rows sorted;
//   - halfedges: twins point at each other and name the same edge;
//   - hull: the boundary, one convex cycle from the lexicographic minimum
//     (collinear boundary points included), which with counter-clockwise
//     triangles proves that they cover the hull once; Euler's count besides;
//   - the empty circle at every interior edge, which proves it everywhere
//     (Delaunay's lemma). Of four cocircular points the diagonal avoids the
//     lexicographically greatest: lifted a little, that point lies outside the
//     circle of the other three (Devillers and Teillaud, 2011).
//
// Only one mesh passes for a cloud. Cost: O(n log n), and a hash map of the points.
func CheckDelaunay[T geom.Float](c geom.Cloud[T], m geom.Mesh) error {
	k := checker[T]{c, m}
	if len(m.Triangles)%3 != 0 || len(m.Halfedges) != len(m.Triangles) {
		return fmt.Errorf("the mesh has %d triangle corners and %d halfedges", len(m.Triangles), len(m.Halfedges))
	}
	for _, v := range slices.Concat(m.Triangles, m.Hull) {
		if v < 0 || int(v) >= c.Len() {
			return fmt.Errorf("the mesh names vertex %d of a cloud of %d", v, c.Len())
		}
	}
	reps := distinctSorted(c)
	if hull := Hull2D(c); len(hull) < 3 {
		if len(m.Triangles) > 0 || !slices.Equal(m.Hull, hull) {
			return fmt.Errorf("the degenerate cloud has %d triangles and hull %v, want none and %v",
				len(m.Triangles)/3, m.Hull, hull)
		}
		return nil
	}
	for _, check := range []func() error{
		func() error { return k.vertices(reps) }, k.triangles, k.halfedges,
		func() error { return k.hull(reps) }, k.empty,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	if want := 2*len(reps) - 2 - len(m.Hull); len(m.Triangles)/3 != want {
		return fmt.Errorf("the mesh has %d triangles, Euler's count is %d", len(m.Triangles)/3, want)
	}
	return nil
}

type checker[T geom.Float] struct {
	c geom.Cloud[T]
	m geom.Mesh
}

func (k checker[T]) at(i int32) (x, y float64) { return float64(k.c.X[i]), float64(k.c.Y[i]) }

func (k checker[T]) orient(a, b, c int32) int {
	ax, ay := k.at(a)
	bx, by := k.at(b)
	cx, cy := k.at(c)
	return OrientExact(ax, ay, bx, by, cx, cy)
}

func (k checker[T]) inCircle(a, b, c, d int32) int {
	ax, ay := k.at(a)
	bx, by := k.at(b)
	cx, cy := k.at(c)
	dx, dy := k.at(d)
	return InCircleExact(ax, ay, bx, by, cx, cy, dx, dy)
}

// less is the lexicographic order of points.
func (k checker[T]) less(a, b int32) bool {
	ax, ay := k.at(a)
	bx, by := k.at(b)
	return ax < bx || ax == bx && ay < by
}

func (k checker[T]) vertices(reps []int32) error {
	used := make([]bool, k.c.Len())
	for _, v := range k.m.Triangles {
		used[v] = true
	}
	for _, v := range reps {
		if !used[v] {
			return fmt.Errorf("point %d is in no triangle", v)
		}
		used[v] = false
	}
	if v := slices.Index(used, true); v >= 0 {
		return fmt.Errorf("vertex %d equals a point of lower index", v)
	}
	return nil
}

func (k checker[T]) triangles() error {
	t := k.m.Triangles
	for e := 0; e < len(t); e += 3 {
		a, b, c := t[e], t[e+1], t[e+2]
		if k.orient(a, b, c) <= 0 {
			return fmt.Errorf("triangle %d (%d %d %d) is not counter-clockwise", e/3, a, b, c)
		}
		if a > b || a > c {
			return fmt.Errorf("triangle %d (%d %d %d) does not start with its smallest vertex", e/3, a, b, c)
		}
		if e > 0 && slices.Compare(t[e-3:e], t[e:e+3]) >= 0 {
			return fmt.Errorf("triangles %d %v and %d %v are out of order", e/3-1, t[e-3:e], e/3, t[e:e+3])
		}
	}
	return nil
}

// next is the halfedge after e in its triangle.
func next(e int) int { return e - e%3 + (e+1)%3 }

func (k checker[T]) halfedges() error {
	t := k.m.Triangles
	for e, twin := range k.m.Halfedges {
		if twin == -1 {
			continue
		}
		if twin < 0 || int(twin) >= len(t) || int(k.m.Halfedges[twin]) != e {
			return fmt.Errorf("halfedge %d has twin %d, which does not point back", e, twin)
		}
		if t[e] != t[next(int(twin))] || t[next(e)] != t[twin] {
			return fmt.Errorf("halfedge %d (%d to %d) and its twin %d are different edges", e, t[e], t[next(e)], twin)
		}
	}
	return nil
}

// hull checks that the boundary edges are exactly the edges of the cycle m.Hull, and
// that the cycle goes around once: x rises to the maximum, then falls.
func (k checker[T]) hull(reps []int32) error {
	h := k.m.Hull
	after := make(map[int32]int32, len(h))
	for e, twin := range k.m.Halfedges {
		if twin >= 0 {
			continue
		}
		from := k.m.Triangles[e]
		if _, twice := after[from]; twice {
			return fmt.Errorf("vertex %d is on the boundary twice", from)
		}
		after[from] = k.m.Triangles[next(e)]
	}
	if len(h) < 3 || len(after) != len(h) {
		return fmt.Errorf("the hull of %d vertices has %d boundary edges", len(h), len(after))
	}
	if h[0] != reps[0] {
		return fmt.Errorf("hull starts with %d, the lexicographic minimum is %d", h[0], reps[0])
	}
	falling := false
	for i, v := range h {
		w := h[(i+1)%len(h)]
		if to, ok := after[v]; !ok || to != w {
			return fmt.Errorf("hull edge %d to %d is no boundary edge", v, w)
		}
		if k.orient(v, w, h[(i+2)%len(h)]) < 0 {
			return fmt.Errorf("hull turns right at %d", w)
		}
		if falling && k.less(v, w) {
			return fmt.Errorf("hull goes round more than once: it rises again at %d", v)
		}
		falling = falling || k.less(w, v)
	}
	return nil
}

// empty checks the circle test at every interior edge, once.
func (k checker[T]) empty() error {
	t := k.m.Triangles
	for e, twin := range k.m.Halfedges {
		if int(twin) < e { // checked from the other side, or on the boundary
			continue
		}
		a, b := t[e], t[next(e)]
		c, d := t[next(next(e))], t[next(next(int(twin)))]
		switch s := k.inCircle(a, b, c, d); {
		case s > 0:
			return fmt.Errorf("edge %d-%d: point %d lies in the circle of %d %d %d", a, b, d, a, b, c)
		case s == 0:
			if (k.less(c, a) && k.less(d, a)) || (k.less(c, b) && k.less(d, b)) {
				if k.less(a, b) {
					a, b = b, a
				}
				return fmt.Errorf("edge %d-%d of the cocircular %d %d %d %d meets the greatest point, %d",
					a, b, a, b, c, d, a)
			}
		}
	}
	return nil
}
