package delaunay

import (
	"entropipe/algos/geom"
)

// Report says how Update computed its mesh.
type Report struct {
	// Rebuilt says that Triangulate computed the mesh from nothing: the last call
	// left no triangulation of as many points, or too much of it changed. The
	// numbers below are then 0.
	Rebuilt  bool
	Inverted int // number of triangles that the motion turned over, or flat
	Moved    int // number of points removed at their old and inserted at their new place
	Flips    int // number of edges that were no longer Delaunay, and flipped
}

// Limits beyond which a new triangulation is faster.
const (
	fewWarm     = 64 // points; below, Update triangulates anew
	invertedOf  = 50 // more than one inverted triangle for so many points are too many,
	fewInverted = 8  // but up to so many are always fine
	mostDegrees = 64 // largest degree of a vertex that is removed
)

// Update returns the mesh that Triangulate returns for c, and how it was computed.
// It is fast where the points of c are those of the last call, in the same order,
// and most of them moved by less than a tenth of the distance to their neighbours:
// Update begins with the last triangulation, and such points keep nearly all of it.
//
// First, the vertices of triangles that the motion turns over stay at their old
// places, until no triangle is turned over. Then edges are flipped until every edge
// is Delaunay and the border is convex. Last, the vertices that stayed are removed
// and inserted at their new places. The result proves itself: counter-clockwise
// triangles whose border is convex and goes around once cover its inside once; if
// in addition all edges are locally Delaunay, ties broken by the rule of the
// package, they are the one triangulation that Triangulate finds.
//
// Cost: O(n + flips), some 100 ns a point for small motions; the cost of
// Triangulate for large ones, and where the number of points differs. The mesh
// belongs to t and is valid until the next call. Update panics where Triangulate
// does.
func (t *Triangulator[T]) Update(c geom.Cloud[T]) (geom.Mesh, Report) {
	n := sizeOf(c)
	if !t.warm || n != len(t.pts) || n < fewWarm {
		return t.Triangulate(c), Report{Rebuilt: true}
	}
	all := boxOf(c)
	m := &t.mover
	m.was, t.pts = t.pts, resize(m.was, n)
	for k, i := range t.orig {
		t.pts[k] = point{float64(c.X[i]), float64(c.Y[i])}
	}
	t.warm = false
	t.giveRoom()
	t.zones.main = t.zones.main.over(t.pts, t.orig, t.tris, roundingIn(c, all))
	m.w = &t.zones.main
	if !m.move() {
		return t.Triangulate(c), Report{Rebuilt: true}
	}
	t.warm = true
	return t.write(), m.report
}

// giveRoom gives duplicates the memory for triangles that they need when they move
// apart.
func (t *Triangulator[T]) giveRoom() {
	w := &t.zones.main
	top := int32(len(t.tris))
	t.tris = t.tris[:len(t.tris)+2*len(w.idle)]
	w.tris = t.tris
	for _, i := range w.idle {
		w.setUnused(i, top, top+1)
		top += 2
	}
	w.idle = w.idle[:0]
}

// mover turns the triangulation of points into that of the moved points.
type mover struct {
	w      *inserter
	report Report
	was    []point // the points before the motion
	held   []int32 // vertices that stay at their old places for now
	isHeld []bool
	now    []point  // the new places of the held vertices
	idle   []idle   // points that were duplicates
	ghost  int32    // a triangle that was a ghost before the flips
	turned []int32  // inverted triangles
	edges  []int32  // half-edges to test
	link   []border // the vertices around a vertex
	free   []int32  // the triangles around that vertex
}

// idle is a point without triangles, with the memory for its two triangles.
type idle struct{ point, one, two int32 }

// border is a vertex of a link, and the outer half-edge from the next vertex of the
// link to it.
type border struct{ v, outside int32 }

// move makes the triangulation of the moved points. It returns false where it gave
// up; the triangles are then inconsistent.
func (m *mover) move() bool {
	m.report = Report{}
	return m.scan() && m.hold() && m.flipAll() && m.closes() && m.putBack()
}

// scan computes all circles, and collects the inverted triangles, the edges that
// are no longer Delaunay and the corners of the border. It returns false where
// there are too many inverted triangles or duplicates.
func (m *mover) scan() bool {
	w := m.w
	m.idle, m.turned, m.edges = m.idle[:0], m.turned[:0], m.edges[:0]
	most := max(fewInverted, len(w.pts)/invertedOf)
	flat := w.turn*w.scale*w.scale + 0x1p-1000 // -c is the determinant of locate, in the frame
	for k := range w.tris {
		t := &w.tris[k]
		if t.v[kind] == unused {
			if t.v[0] >= 0 {
				m.idle = append(m.idle, idle{t.v[0], int32(k), t.v[1]})
			}
			continue
		}
		if t.v[kind] >= 0 {
			t.v[kind] = w.zone
			w.setCircle(t)
			if !(-t.c > flat) && w.inverted(t) {
				if m.turned = append(m.turned, int32(k)); len(m.turned) > most {
					return false
				}
			}
		} else {
			m.ghost = int32(k)
		}
		for s := range int32(3) {
			e, o := int32(k)<<2|s, t.n[s]
			if o > e {
				continue // tested from the other triangle, when both are in the cache
			}
			far := &w.tris[o>>2]
			if far.v[kind]^t.v[kind] >= 0 && (far.v[kind] < 0 || w.holds(t, w.pts[far.v[prev[o&3]]])) {
				m.edges = append(m.edges, e)
			}
		}
	}
	m.report.Inverted = len(m.turned)
	return len(m.idle) <= len(w.pts)/8
}

// hold moves the vertices of inverted triangles back to their old places, and the
// vertices of triangles that this inverts. At worst all vertices move back, and
// then no triangle is inverted.
func (m *mover) hold() bool {
	m.held, m.now = m.held[:0], m.now[:0]
	m.isHeld = resize(m.isHeld, len(m.w.pts))
	clear(m.isHeld)
	for len(m.turned) > 0 {
		at := m.turned[len(m.turned)-1]
		m.turned = m.turned[:len(m.turned)-1]
		for s := range int32(3) {
			m.holdVertex(at, s)
		}
	}
	return true
}

// inverted reports whether a triangle turns clockwise or is flat, exactly.
func (w *inserter) inverted(t *triangle) bool {
	return orient(w.pts[t.v[0]], w.pts[t.v[1]], w.pts[t.v[2]]) <= 0
}

// holdVertex moves vertex s of triangle at back. It adds the triangles around the
// vertex that are inverted now to m.turned, and the edges of all triangles around
// the vertex to m.edges.
func (m *mover) holdVertex(at, s int32) {
	w := m.w
	v := w.tris[at].v[s]
	if m.isHeld[v] {
		return
	}
	m.isHeld[v] = true
	m.held, m.now = append(m.held, v), append(m.now, w.pts[v])
	w.pts[v] = m.was[v]
	for first := at; ; {
		t := &w.tris[at]
		if t.v[kind] >= 0 {
			w.setCircle(t)
			if w.inverted(t) {
				m.turned = append(m.turned, at)
			}
		}
		m.edges = append(m.edges, at<<2, at<<2|1, at<<2|2)
		twin := t.n[prev[s]]
		if at, s = twin>>2, twin&3; at == first {
			return
		}
	}
}

// flipAll flips edges until all are locally Delaunay and the border has no reflex
// corner. It returns false where a flip is impossible or there are too many.
func (m *mover) flipAll() bool {
	for len(m.edges) > 0 {
		e := m.edges[len(m.edges)-1]
		m.edges = m.edges[:len(m.edges)-1]
		bad, ok := m.w.bad(e)
		if bad {
			ok = ok && m.flip(e) && m.report.Flips <= len(m.w.pts)
		}
		if !ok {
			return false
		}
	}
	return true
}

// bad reports whether an edge must be flipped. ok is false where the triangles are
// inconsistent.
func (w *inserter) bad(e int32) (bad, ok bool) {
	near, s := &w.tris[e>>2], e&3
	o := near.n[s]
	far := &w.tris[o>>2]
	if near.v[kind] >= 0 {
		if far.v[kind] < 0 {
			return false, true // an edge of the border
		}
		return w.holds(near, w.pts[far.v[prev[o&3]]]), true
	}
	if far.v[kind] >= 0 {
		return false, true
	}
	// Two ghosts: the corner of the border between them.
	a, b, c := near.v[s], near.v[next[s]], near.v[prev[s]]
	d := far.v[prev[o&3]]
	p, corner, q := c, b, d // e goes from infinity to the corner
	if b == infinity {
		p, corner, q = d, a, c
	}
	switch turn := orient(w.pts[p], w.pts[corner], w.pts[q]); {
	case p == q:
		return false, false
	case turn != 0:
		return turn < 0, true
	}
	return false, w.pts[p].less(w.pts[corner]) == w.pts[corner].less(w.pts[q])
}

// flip replaces an edge by the other diagonal of the two triangles beside it, and
// adds the four other edges of these triangles to m.edges. It returns false where
// the two triangles share another edge.
func (m *mover) flip(e int32) bool {
	w := m.w
	one, slot := e>>2, e&3
	near := w.tris[one]
	two, twin := near.n[slot]>>2, near.n[slot]&3
	far := w.tris[two]
	// The edge leads from a to b; c is the third vertex of near, d that of far.
	a, b, c, d := near.v[slot], near.v[next[slot]], near.v[prev[slot]], far.v[prev[twin]]
	outside := [4]int32{near.n[next[slot]], near.n[prev[slot]], far.n[next[twin]], far.n[prev[twin]]}
	for _, code := range outside {
		if code>>2 == one || code>>2 == two {
			return false
		}
	}
	w.set(one, a, d, c)
	w.set(two, d, b, c)
	w.link(w.from(two, b), outside[0])
	w.link(w.from(one, c), outside[1])
	w.link(w.from(one, a), outside[2])
	w.link(w.from(two, d), outside[3])
	w.link(w.from(one, d), w.from(two, c))
	m.edges = append(m.edges, outside[:]...)
	m.report.Flips++
	return true
}

// set makes triangle at of three vertices, at most one of them infinity. It does
// not set the links.
func (w *inserter) set(at, a, b, c int32) {
	t := &w.tris[at]
	if c == infinity {
		a, b, c = c, a, b
	}
	t.v = [4]int32{a, b, c, w.zone}
	if a < 0 || b < 0 {
		t.setGhost()
		return
	}
	w.setCircle(t)
}

// from returns the code of the half-edge of triangle at that begins at vertex v.
func (w *inserter) from(at, v int32) int32 {
	t := &w.tris[at]
	s := int32(0)
	for t.v[s] != v {
		s++
	}
	return at<<2 | s
}

// link makes two half-edges twins.
func (w *inserter) link(e, f int32) {
	w.tris[e>>2].n[e&3] = f
	w.tris[f>>2].n[f&3] = e
}

// closes reports whether the border, which turns left everywhere, goes around
// exactly once. Then the triangles cover no place twice.
func (m *mover) closes() bool {
	w := m.w
	at := m.ghost
	for k := int32(0); w.tris[at].v[kind] != ghost; k++ {
		at = k // m.ghost is no ghost any more: a flip took it
	}
	e := w.from(at, infinity)
	tops, corners := 0, 0
	for first := e; ; {
		// The ghost (b, a, infinity) lies behind the edge from a to b; the next
		// one lies across the edge from infinity to b.
		a, b := w.tris[e>>2].v[prev[e&3]], w.tris[e>>2].v[next[e&3]]
		twin := w.tris[e>>2].n[e&3]
		e = twin>>2<<2 | next[twin&3]
		c := w.tris[e>>2].v[next[e&3]]
		if w.pts[a].less(w.pts[b]) && w.pts[c].less(w.pts[b]) {
			tops++
		}
		corners++
		if e == first {
			return tops == 1 && corners >= 3
		}
	}
}

// putBack removes the held vertices, and inserts them, and the points that were
// duplicates, at their new places.
func (m *mover) putBack() bool {
	w := m.w
	w.last = 0
	for w.tris[w.last].v[kind] < 0 {
		w.last++
	}
	for k, v := range m.held {
		if m.now[k] == w.pts[v] {
			continue
		}
		if w.locate(w.pts[v]) != duplicate || !m.takeOut(v) {
			return false
		}
		w.pts[v] = m.now[k]
		if w.insertIn(v, m.free[0], m.free[1]) == merged {
			w.setUnused(v, m.free[0], m.free[1])
		}
		m.report.Moved++
	}
	for _, d := range m.idle {
		if w.insertIn(d.point, d.one, d.two) == merged {
			w.setUnused(d.point, d.one, d.two)
		}
	}
	return true
}
