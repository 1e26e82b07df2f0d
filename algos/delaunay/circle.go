package delaunay

import (
	"math"

	"entropipe/algos/exact"
)

// place is a point in the frame, with l = x² + y².
type place struct{ x, y, l float64 }

// in returns the place of p in the frame.
func (f *frame) in(p point) place {
	x, y := (p.x-f.x)*f.scale, (p.y-f.y)*f.scale
	return place{x, y, float64(x*x) + float64(y*y)}
}

// margin returns 1 + x² + y², the factor of a circle's err, or +Inf where terms of
// the determinant might overflow: then the filter decides nothing.
func (q place) margin() float64 {
	if q.l > 0x1p500 {
		return math.Inf(1)
	}
	return 1 + q.l
}

// at returns the determinant of InCircle for a point q of the frame.
func (t *triangle) at(q place) float64 {
	return float64(t.a*q.x) + float64(t.b*q.y) + (float64(t.c*q.l) + t.d)
}

// lift sets the circle of a triangle with a vertex at v, whose determinant for a
// point v+d is a·d.x + b·d.y + c·|d|², all in the frame's unit.
func (t *triangle) lift(a, b, c float64, v place) {
	t.a = a - 2*float64(c*v.x)
	t.b = b - 2*float64(c*v.y)
	t.c = c
	t.d = float64(c*v.l) - (float64(a*v.x) + float64(b*v.y))
}

// setCircle computes the circle of a finite triangle from its vertices.
func (w *inserter) setCircle(t *triangle) {
	p, e, f := w.pts[t.v[2]], w.pts[t.v[0]], w.pts[t.v[1]]
	ex, ey := (e.x-p.x)*w.scale, (e.y-p.y)*w.scale
	fx, fy := (f.x-p.x)*w.scale, (f.y-p.y)*w.scale
	el := float64(ex*ex) + float64(ey*ey)
	fl := float64(fx*fx) + float64(fy*fy)
	here := w.in(p)
	t.lift(float64(el*fy)-float64(ey*fl), float64(ex*fl)-float64(el*fx), float64(ey*fx)-float64(ex*fy), here)
	t.err = w.errorOf(el+fl, here)
}

// setGhost makes a triangle with the vertex at infinity a ghost.
func (t *triangle) setGhost() {
	t.v[kind], t.a, t.b, t.c, t.d, t.err = ghost, 0, 0, 0, 0, float32(math.Inf(1))
}

// holds reports whether the circle of t holds p, exactly.
func (w *inserter) holds(t *triangle, p point) bool {
	q := w.in(p)
	det, bound := t.at(q), float64(float64(t.err)*q.margin())
	return det > bound || !(-det > bound) && w.inside(t, p)
}

// inside is holds for the triangles that the filter does not decide.
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

// beyond is inside for a ghost. The circle of a ghost is the open half-plane
// beyond its edge of the hull together with the inside of that edge.
func beyond(pts []point, tr *triangle, p point) bool {
	s := 0
	for tr.v[prev[s]] != infinity {
		s++
	}
	a, b := pts[tr.v[s]], pts[tr.v[next[s]]]
	if o := orient(a, b, p); o != 0 {
		return o > 0
	}
	return a.less(p) == p.less(b) // p lies between the two
}

// tie decides for four points on one circle, a, b, c counter-clockwise, whether d
// counts as inside. The lexicographically greatest of the four is lifted a little:
// if that is d, d leaves the circle; otherwise the circle of a, b, c moves.
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
