package delaunay

// takeOut removes vertex v of the last triangle, and triangulates the hole that v
// leaves. Two triangles are then free, and the last triangle is one of the new
// ones. It returns false where the degree of v is above mostDegrees, or where the
// other points have no triangle.
//
// The hole is filled by cutting ears whose circles hold no other vertex of the
// link, ears with ghosts included. Cost: O(degree³); the mean degree is six.
// Devillers, "On deletion in Delaunay triangulations" (1999), does better for
// large degrees.
func (m *mover) takeOut(v int32) bool {
	w := m.w
	m.link, m.free = m.link[:0], m.free[:0]
	e := w.from(w.last, v)
	for first := e; ; {
		t, s := &w.tris[e>>2], e&3
		m.link = append(m.link, border{t.v[next[s]], t.n[next[s]]})
		m.free = append(m.free, e>>2)
		if e = t.n[prev[s]]; e == first {
			break
		}
	}
	if len(m.link) > mostDegrees {
		return false
	}
	w.last = -1
	for len(m.link) > 3 {
		j := 0
		for ; j < len(m.link); j++ {
			if m.ear(j) {
				break
			}
		}
		if j == len(m.link) {
			return false
		}
		m.cut(j)
	}
	if !m.ear(1) {
		return false
	}
	at := m.cut(1)
	// The edge from the third vertex to the first remains, seen from both sides.
	w.link(m.link[0].outside, m.link[1].outside)
	if w.last < 0 {
		w.last = m.link[1].outside >> 2 // all new triangles are ghosts: take a neighbour
		if w.tris[w.last].v[kind] < 0 {
			w.last = w.beside(at)
		}
	}
	return w.last >= 0
}

// beside returns a finite neighbour of triangle at, or -1.
func (w *inserter) beside(at int32) int32 {
	for _, o := range w.tris[at].n[:] {
		if w.tris[o>>2].v[kind] >= 0 {
			return o >> 2
		}
	}
	return -1
}

// ear reports whether vertex j of the link and its two neighbours there are a
// triangle of the triangulation without the removed vertex.
func (m *mover) ear(j int) bool {
	w, n := m.w, len(m.link)
	a, b, c := m.link[(j+n-1)%n].v, m.link[j].v, m.link[(j+1)%n].v
	for c < 0 || a < 0 && b < 0 {
		a, b, c = c, a, b
	}
	t := triangle{v: [4]int32{a, b, c}}
	if a < 0 || b < 0 {
		t.setGhost()
	} else {
		w.setCircle(&t)
		if w.inverted(&t) {
			return false
		}
	}
	for _, x := range m.link {
		if x.v >= 0 && x.v != a && x.v != b && x.v != c && w.holds(&t, w.pts[x.v]) {
			return false
		}
	}
	return true
}

// cut makes a triangle of vertex j of the link and its two neighbours there, and
// removes j from the link. It returns the triangle.
func (m *mover) cut(j int) (at int32) {
	w, n := m.w, len(m.link)
	i, k := (j+n-1)%n, (j+1)%n
	a, b, c := m.link[i], m.link[j], m.link[k]
	at = m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	w.set(at, a.v, b.v, c.v)
	w.link(w.from(at, a.v), a.outside)
	w.link(w.from(at, b.v), b.outside)
	m.link[i].outside = w.from(at, c.v)
	m.link = append(m.link[:j], m.link[j+1:]...)
	if w.tris[at].v[kind] >= 0 {
		w.last = at
	}
	return at
}
