package delaunay

// locate returns the triangle that holds p, its border included, or the ghost
// behind an edge of the hull that p lies beyond. It returns duplicate where p
// equals a vertex, foreign where the guard ends the walk.
//
// The walk begins in the last triangle and crosses, in each triangle, an edge that
// has p on its other side. In a Delaunay triangulation, with ties broken by a
// perturbation as here, such a walk never comes back to a triangle.
//
// All vertices are taken relative to p. The walk enters a triangle across the edge
// from left to right; apex is the third vertex.
func (w *inserter) locate(p point) int32 {
	tris, pts := w.tris, w.pts
	at := w.last
	tr := &tris[at]
	left, right, apex := pts[tr.v[0]], pts[tr.v[1]], pts[tr.v[2]]
	left, right = point{left.x - p.x, left.y - p.y}, point{right.x - p.x, right.y - p.y}
	apex = point{apex.x - p.x, apex.y - p.y}
	var code int32 // the half-edge to cross
	switch {
	case w.beyondEdge(left, right, tr, 0, p):
		code = tr.n[0]
		left, right = right, left
	case w.beyondEdge(right, apex, tr, 1, p):
		code = tr.n[1]
		left = apex
	case w.beyondEdge(apex, left, tr, 2, p):
		code = tr.n[2]
		right = apex
	default:
		return w.found(at, left, right, apex)
	}
	for steps := w.reach; ; steps-- {
		w.steps++
		number, slot := code>>2, code&3
		tr = &tris[number]
		if own := tr.v[kind]; own != w.zone || steps == 0 {
			if w.guarded {
				w.last = at
				return foreign
			}
			if own < 0 {
				return number
			}
		}
		at = number
		apex = pts[tr.v[prev[slot]]]
		apex = point{apex.x - p.x, apex.y - p.y}
		switch {
		case w.beyondEdge(right, apex, tr, next[slot], p):
			code = tr.n[next[slot]]
			left = apex
		case w.beyondEdge(apex, left, tr, prev[slot], p):
			code = tr.n[prev[slot]]
			right = apex
		default:
			return w.found(at, left, right, apex)
		}
	}
}

// found returns triangle at, or duplicate if the point is one of its vertices: the
// differences a, b, c to the vertices are then, and only then, zero.
func (w *inserter) found(at int32, a, b, c point) int32 {
	if a == (point{}) || b == (point{}) || c == (point{}) {
		w.last = at
		return duplicate
	}
	return at
}

// beyondEdge reports whether p lies to the right of the edge from a to b, both
// relative to p; the edge is in the given slot of tr.
func (w *inserter) beyondEdge(a, b point, tr *triangle, slot int32, p point) bool {
	det := float64(a.x*b.y) - float64(a.y*b.x)
	if det >= w.turn {
		return false
	}
	return det < -w.turn || w.exactlyBeyond(tr, slot, p)
}

// exactlyBeyond is beyondEdge in exact arithmetic.
func (w *inserter) exactlyBeyond(tr *triangle, slot int32, p point) bool {
	return orient(w.pts[tr.v[slot]], w.pts[tr.v[next[slot]]], p) < 0
}
