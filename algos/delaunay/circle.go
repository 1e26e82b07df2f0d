package delaunay

import (
	"math"

	"entropipe/algos/exact"
)

// setCircle fills in the circle of a finite triangle from its vertices.
func (t *triangle) setCircle(pts []point) {
	p, e, f := pts[t.v[2]], pts[t.v[0]], pts[t.v[1]]
	ex, ey, fx, fy := e.x-p.x, e.y-p.y, f.x-p.x, f.y-p.y
	el := float64(ex*ex) + float64(ey*ey)
	fl := float64(fx*fx) + float64(fy*fy)
	t.a = float64(el*fy) - float64(ey*fl)
	t.b = float64(ex*fl) - float64(el*fx)
	t.c = float64(ey*fx) - float64(ex*fy)
	t.size = el + fl
}

// setGhost makes a triangle with infinity a ghost.
func (t *triangle) setGhost() {
	t.v[3], t.a, t.b, t.c, t.size = ghost, 0, 0, 0, math.Inf(1)
}

// inside tells whether p is in the circle of tr, where the filter of dig fails.
func (w *inserter) inside(tr *triangle, p point) bool {
	if tr.v[0]|tr.v[1] < 0 {
		return beyond(w.pts, tr, p)
	}
	a, b, c := w.pts[tr.v[0]], w.pts[tr.v[1]], w.pts[tr.v[2]]
	if !w.lattice {
		if sign := exact.InCircle(a.x, a.y, b.x, b.y, c.x, c.y, p.x, p.y); sign != 0 {
			return sign > 0
		}
	}
	return tie(a, b, c, p)
}

// beyond is inside for a ghost: its circle is the open half-plane beyond its
// edge of the hull, and the edge itself.
func beyond(pts []point, tr *triangle, p point) bool {
	s := 0
	for tr.v[prev[s]] != infinity {
		s++
	}
	a, b := pts[tr.v[s]], pts[tr.v[next[s]]]
	if o := orient(a, b, p); o != 0 {
		return o > 0
	}
	return a.less(p) == p.less(b) // between the two
}

// tie decides for four points on one circle, a, b, c counter-clockwise,
// whether d is inside when the lexicographically greatest of them is lifted a
// little: off the circle if it is d, else the circle through it moves.
func tie(a, b, c, d point) bool {
	switch {
	case a.less(d) && b.less(d) && c.less(d):
		return false // since a, b, c turn counter-clockwise
	case b.less(a) && c.less(a):
		return orient(d, b, c) > 0
	case c.less(b):
		return orient(a, d, c) > 0
	}
	return orient(a, b, d) > 0
}

func orient(a, b, c point) int { return exact.Orient2D(a.x, a.y, b.x, b.y, c.x, c.y) }
