package delaunay

import "math"

// point is a copy of a coordinate pair, so that points inserted one after the
// other lie side by side in memory.
type point struct{ x, y float64 }

func (p point) less(q point) bool { return p.x < q.x || p.x == q.x && p.y < q.y }

// triangle is one line of the cache. Its vertices v[0..2] are counter-clockwise,
// v[2] never infinity; v[3] is its kind. n[i] is the code of the twin of the
// half-edge from v[i] to v[i+1].
//
// a, b, c, d are its circle, as a plane below the paraboloid over the frame: for
// the point at x, y in the frame a·x + b·y + c·(x² + y²) + d is the determinant of
// InCircle, which then needs no memory but this line, and every circle is asked
// some times. Where it is within err·(1 + x² + y²) it says nothing; of ghosts
// err is infinite, or NaN, so that no filter ever decides for one.
type triangle struct {
	v          [4]int32
	n          [3]int32
	err        float32
	a, b, c, d float64
}

// infinity is the vertex that all ghosts share.
const infinity = -1

// Kinds of triangles: zones from 0 on have all vertices in one zone of a
// parallel stage.
const (
	ghost  int32 = -1
	unused int32 = -2      // memory of a duplicate: v[0] is its number, v[1] its other triangle
	shared int32 = 1 << 30 // vertices in several zones
)

var (
	next = [4]int32{1, 2, 0, 0}
	prev = [4]int32{2, 0, 1, 0}
)

// rim is a vertex of the border of a hole, relative to the new point, in the
// frame's unit.
type rim struct {
	v       int32
	outside int32   // code of the half-edge outside from the next vertex to it
	slot    int32   // memory for the triangle on the inside of that
	x, y, l float64 // l = x² + y², or infinite
}

// room is what most holes have. Arrays of this size need no bounds checked and
// no lengths kept, for which the CPU has no registers left.
const room = 64

// inserter adds points to a triangulation. Several may work on one, each in a
// zone of its own, see parallel.go.
type inserter struct {
	pts  []point
	orig []int32 // the index in the cloud of each of pts
	tris []triangle
	rounding

	zone    int32
	guarded bool // stay in the zone, and walk at most as far as
	reach   int
	last    int32 // a finite triangle near the next point, in the zone

	small struct {
		ring  [room]rim
		hole  [room]int32 // new memory, and triangles whose circle holds the new point
		stack [room]int32 // half-edges to look across
	}
	ring  []rim // these three for large holes
	hole  []int32
	stack []int32
	left  []int32 // points that the zone's guard turned away
	idle  []int32 // duplicates without memory for triangles
	older []pair  // vertices that a point with a lower number equals
	steps int     // triangles walked through or dug out, for tests
}

// over returns w, with its memory, for another triangulation.
func (w inserter) over(pts []point, orig []int32, tris []triangle, r rounding) inserter {
	w.pts, w.orig, w.tris, w.rounding = pts, orig, tris, r
	w.last, w.steps, w.older = 0, 0, w.older[:0]
	return w
}

// insertAll inserts points lo to hi-1.
func (w *inserter) insertAll(lo, hi int) {
	for i := lo; i < hi; i++ {
		w.insert(int32(i))
	}
}

// insertCompact inserts all points from the third on of n, with triangles one
// after the other, and returns how many: without holes for duplicates, which
// would be read again and again where most points are that.
func (w *inserter) insertCompact(n int) (triangles int) {
	w.idle = w.idle[:0]
	top := int32(4)
	for i := int32(3); i < int32(n); i++ {
		if w.insertIn(i, top, top+1) == merged {
			w.idle = append(w.idle, i)
		} else {
			top += 2
		}
	}
	return int(top)
}

// What locate returns besides triangles.
const (
	foreign   = -1 // the guard turned the point away
	duplicate = -2
)

// What becomes of a point.
type outcome uint8

const (
	added   outcome = iota
	merged          // with an equal one
	refused         // by the guard
)

// insert adds point i, in memory of its own.
func (w *inserter) insert(i int32) outcome {
	one, two := 2*i-2, 2*i-1
	out := w.insertIn(i, one, two)
	if out == merged {
		w.setUnused(i, one, two)
	}
	return out
}

// setUnused marks the memory of a duplicate.
func (w *inserter) setUnused(i, one, two int32) {
	w.tris[one].v = [4]int32{i, two, 0, unused}
	w.tris[two].v = [4]int32{-1, 0, 0, unused}
}

// insertIn adds point i, whose triangles take the memory of its hole and of two
// more. A point that is there already only lowers the index that stands for
// it, and leaves that memory as it is.
func (w *inserter) insertIn(i, one, two int32) outcome {
	p := w.pts[i]
	at := w.last
	if !w.certainlyHolds(at, p) {
		at = w.locate(p)
		switch at {
		case duplicate:
			w.merge(i, p)
			return merged
		case foreign:
			return refused
		}
	}
	ring, ok := w.dig(at, p, one, two)
	if !ok {
		return refused
	}
	w.fill(ring, i, p)
	return added
}

// certainlyHolds tells whether the circle of a triangle certainly holds p. Then
// the hole can be dug from there, and p equals no vertex.
func (w *inserter) certainlyHolds(at int32, p point) bool {
	t := &w.tris[at]
	q := w.in(p)
	return t.at(q) > float64(float64(t.err)*q.margin())
}

// merge lets the vertex of the last triangle that equals p stand for point i
// too, with the lower of their indices.
func (w *inserter) merge(i int32, p point) {
	for _, v := range w.tris[w.last].v[:3] {
		if v < 0 || w.pts[v] != p {
			continue
		}
		if w.orig[i] < w.orig[v] {
			w.orig[i], w.orig[v] = w.orig[v], w.orig[i]
		}
		if i < v {
			w.older = append(w.older, pair{v, i})
		}
	}
}

// pair is a vertex, and a point that equals it.
type pair struct{ vertex, point int32 }

// locate returns a triangle that holds p, its border included, or the ghost
// behind an edge of the hull that p lies beyond. It walks from the last
// triangle, always across an edge that has p on its other side; in a Delaunay
// triangulation, ties broken by a perturbation included, such a walk never
// comes back to a triangle.
//
// All vertices are taken relative to p. A triangle is entered across the edge
// from l to r, and its third vertex is q.
func (w *inserter) locate(p point) int32 {
	tris, pts := w.tris, w.pts
	at := w.last
	tr := &tris[at]
	l, r, q := pts[tr.v[0]], pts[tr.v[1]], pts[tr.v[2]]
	l, r, q = point{l.x - p.x, l.y - p.y}, point{r.x - p.x, r.y - p.y}, point{q.x - p.x, q.y - p.y}
	var o int32
	switch {
	case w.beyondEdge(l, r, tr, 0, p):
		o = tr.n[0]
		l, r = r, l
	case w.beyondEdge(r, q, tr, 1, p):
		o = tr.n[1]
		l = q
	case w.beyondEdge(q, l, tr, 2, p):
		o = tr.n[2]
		r = q
	default:
		return w.found(at, l, r, q)
	}
	for left := w.reach; ; left-- {
		w.steps++
		f, s := o>>2, o&3
		tr = &tris[f]
		if kind := tr.v[3]; kind != w.zone || left == 0 {
			if w.guarded {
				w.last = at
				return foreign
			}
			if kind < 0 {
				return f
			}
		}
		at = f
		q = pts[tr.v[prev[s]]]
		q = point{q.x - p.x, q.y - p.y}
		switch {
		case w.beyondEdge(r, q, tr, next[s], p):
			o = tr.n[next[s]]
			l = q
		case w.beyondEdge(q, l, tr, prev[s], p):
			o = tr.n[prev[s]]
			r = q
		default:
			return w.found(at, l, r, q)
		}
	}
}

// found returns the triangle at hand, or duplicate if the point is one of its
// vertices: the differences are then, and only then, zero.
func (w *inserter) found(at int32, a, b, c point) int32 {
	if a == (point{}) || b == (point{}) || c == (point{}) {
		w.last = at
		return duplicate
	}
	return at
}

// beyondEdge tells whether p lies to the right of the edge from a to b, both
// relative to p, which is in slot s of tr.
func (w *inserter) beyondEdge(a, b point, tr *triangle, s int32, p point) bool {
	det := float64(a.x*b.y) - float64(a.y*b.x)
	if det >= w.turn {
		return false
	}
	return det < -w.turn || w.exactlyBeyond(tr, s, p)
}

func (w *inserter) exactlyBeyond(tr *triangle, s int32, p point) bool {
	return orient(w.pts[tr.v[s]], w.pts[tr.v[next[s]]], p) < 0
}

// dig finds the hole that p makes: triangle at, whose circle holds p, and all
// around it whose circles do. It returns the border, counter-clockwise, with
// memory for the triangles on its inside: one, two and the hole's. Since p is in
// the circles of connected triangles that keep all their vertices, the hole is
// a tree of triangles, and each is reached once. false: it reaches out of the
// zone.
func (w *inserter) dig(at int32, p point, one, two int32) (ring []rim, ok bool) {
	tris, pts := w.tris, w.pts
	scale, here := w.scale, w.in(p)
	margin := here.margin()
	m := &w.small
	m.hole[0], m.hole[1], m.hole[2] = one, two, at
	n := &tris[at].n
	m.stack[0], m.stack[1] = n[2], n[1]
	o := n[0]
	dug, top, edges := 3, 2, 0
	for {
		f, s := o>>2, o&3
		far := &tris[f]
		det := far.at(here)
		bound := float64(float64(far.err) * margin)
		in := det > bound
		if !in && !(-det > bound) {
			in = w.inside(far, p)
		}
		if in {
			if w.guarded && far.v[3] != w.zone {
				return nil, false
			}
			if dug == room-3 {
				return w.digLarge(at, p, one, two)
			}
			m.hole[dug&(room-1)] = f
			dug++
			m.stack[top&(room-1)] = far.n[prev[s]]
			top++
			o = far.n[next[s]]
			continue
		}
		v := far.v[next[s]&3]
		// In place: copying a finished rim stalls on its parts still in flight.
		e := &m.ring[edges&(room-1)]
		e.v, e.outside, e.slot = v, o, m.hole[edges&(room-1)]
		edges++
		if v >= 0 {
			q := &pts[v]
			x, y := (q.x-p.x)*scale, (q.y-p.y)*scale
			e.x, e.y, e.l = x, y, float64(x*x)+float64(y*y)
		} else {
			e.x, e.y, e.l = 0, 0, math.Inf(1)
		}
		if top--; top < 0 {
			break
		}
		o = m.stack[top&(room-1)]
	}
	w.steps += dug - 2
	return m.ring[:edges], true
}

// digLarge is dig for holes of any size.
func (w *inserter) digLarge(at int32, p point, one, two int32) (ring []rim, ok bool) {
	ring = w.ring[:0]
	hole := append(w.hole[:0], one, two, at)
	n := &w.tris[at].n
	stack := append(w.stack[:0], n[2], n[1], n[0])
	for len(stack) > 0 {
		o := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		far, s := &w.tris[o>>2], o&3
		if w.holds(far, p) {
			if w.guarded && far.v[3] != w.zone {
				return nil, false
			}
			hole = append(hole, o>>2)
			stack = append(stack, far.n[prev[s]], far.n[next[s]])
			continue
		}
		e := rim{v: far.v[next[s]], outside: o, slot: hole[len(ring)], l: math.Inf(1)}
		if e.v >= 0 {
			e.x, e.y = (w.pts[e.v].x-p.x)*w.scale, (w.pts[e.v].y-p.y)*w.scale
			e.l = float64(e.x*e.x) + float64(e.y*e.y)
		}
		ring = append(ring, e)
	}
	w.steps += len(hole) - 2
	w.ring, w.hole, w.stack = ring, hole, stack
	return ring, true
}

// fill makes the hole a fan of triangles around point i.
func (w *inserter) fill(ring []rim, i int32, p point) {
	tris, zone := w.tris, w.zone
	here := w.in(p)
	r := w.rounding
	// The walk to the next point begins in the triangle that faces it.
	var toX, toY float64
	if int(i)+1 < len(w.pts) {
		q := &w.pts[i+1]
		toX, toY = q.x-p.x, q.y-p.y
	}
	last, before := int32(-1), ring[len(ring)-1].slot
	first := &ring[0]
	v, slot, x, y, l := first.v, first.slot, first.x, first.y, first.l
	for j := range ring {
		outside := ring[j].outside
		f := first
		if j+1 < len(ring) {
			f = &ring[j+1]
		}
		kind := zone | (v|f.v)>>31 // ghost if one is infinity
		t := &tris[slot]
		t.v[0], t.v[1], t.v[2], t.v[3] = v, f.v, i, kind
		t.n[0], t.n[1], t.n[2] = outside, f.slot<<2|2, before<<2|1
		t.lift(float64(l*f.y)-float64(y*f.l), float64(x*f.l)-float64(l*f.x), float64(y*f.x)-float64(x*f.y), here)
		t.err = r.errorOf(l+f.l, here)
		tris[outside>>2].n[outside&3] = slot << 2
		// Branches here would go wrong as often as not.
		left, right := int32(0), int32(0)
		if float64(x*toY) >= float64(y*toX) {
			left = 1
		}
		if float64(f.x*toY) < float64(f.y*toX) {
			right = 1
		}
		if left&right&(1+kind>>31) != 0 {
			last = slot
		}
		before = slot
		v, slot, x, y, l = f.v, f.slot, f.x, f.y, f.l
	}
	if last < 0 {
		last = w.anyFinite(ring)
	}
	w.last = last
}

// anyFinite returns one of the triangles around a point that is no ghost. Of
// three around a point, one is none.
func (w *inserter) anyFinite(ring []rim) int32 {
	for k := range ring {
		if at := ring[k].slot; w.tris[at].v[3] >= 0 {
			return at
		}
	}
	panic("delaunay: a point between ghosts")
}
