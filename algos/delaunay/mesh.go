package delaunay

import (
	"slices"

	"entropipe/algos/geom"
)

// meshWriter turns triangles with ghosts into a geom.Mesh in canonical order.
type meshWriter struct {
	triangles, halfedges, hull []int32
	start                      []int32 // of the rows whose smallest index is i
	rows                       []row
	place                      []int32 // 4*position + turn of each triangle, -1 of ghosts
}

// row is a triangle with its smallest index first, which came from slot turn
// of triangle tri.
type row struct{ v1, v2, tri, turn int32 }

// few rows are sorted by insertion.
const few = 12

// write returns the mesh of tris, whose vertices stand for the points orig of
// a cloud of n. It overwrites the vertices.
func (w *meshWriter) write(tris []triangle, orig []int32, n int, halfedges bool) geom.Mesh {
	w.turn(tris, orig, n)
	at := int32(0)
	for i, count := range w.start {
		w.start[i], at = at, at+count
	}
	w.rows = resize(w.rows, int(at))
	for k := range tris {
		if v := &tris[k].v; v[0] != infinity {
			w.rows[w.start[v[0]]] = row{v[1], v[2], int32(k), v[3]}
			w.start[v[0]]++ // in the end, where its rows end
		}
	}
	w.sortRows()
	m := geom.Mesh{Triangles: w.triangles, Hull: w.hull}
	if halfedges {
		w.twins(tris)
		m.Halfedges = w.halfedges
	}
	return m
}

// turn makes the vertices indices of the cloud, the smallest first, with the
// slot that it was in behind them, and counts triangles by it. A ghost gets
// infinity first.
func (w *meshWriter) turn(tris []triangle, orig []int32, n int) {
	w.start = resize(w.start, n+1)
	clear(w.start)
	for k := range tris {
		v := &tris[k].v
		if v[0]|v[1]|v[2] < 0 {
			v[0] = infinity
			continue
		}
		a, b, c := orig[v[0]], orig[v[1]], orig[v[2]]
		switch least := min(a, b, c); least {
		case a:
			*v = [4]int32{a, b, c, 0}
		case b:
			*v = [4]int32{b, c, a, 1}
		default:
			*v = [4]int32{c, a, b, 2}
		}
		w.start[v[0]]++
	}
}

// sortRows sorts the rows of each smallest index and writes the triangles. Two
// rows of one index differ in v1: an edge has one triangle on its left.
func (w *meshWriter) sortRows() {
	w.triangles = resize(w.triangles, 3*len(w.rows))
	lo, out := int32(0), w.triangles
	for v0, hi := range w.start[:len(w.start)-1] {
		rows := w.rows[lo:hi]
		if len(rows) > few {
			slices.SortFunc(rows, func(a, b row) int { return int(a.v1) - int(b.v1) })
		} else {
			insertionSort(rows)
		}
		for k := range rows {
			out[0], out[1], out[2] = int32(v0), rows[k].v1, rows[k].v2
			out = out[3:]
		}
		lo = hi
	}
}

func insertionSort(rows []row) {
	for i := 1; i < len(rows); i++ {
		if rows[i-1].v1 < rows[i].v1 {
			continue
		}
		r, j := rows[i], i
		for ; j > 0 && r.v1 < rows[j-1].v1; j-- {
			rows[j] = rows[j-1]
		}
		rows[j] = r
	}
}

// twins writes the half-edges. Slot s of the triangle at a position becomes
// half-edge 3*position + (s-turn) mod 3.
func (w *meshWriter) twins(tris []triangle) {
	w.place = resize(w.place, len(tris))
	for k := range tris {
		w.place[k] = tris[k].v[0] // infinity of ghosts
	}
	for pos, r := range w.rows {
		w.place[r.tri] = int32(pos)<<2 | r.turn
	}
	w.halfedges = resize(w.halfedges, 3*len(w.rows))
	out := w.halfedges
	for k := range w.rows {
		n := &tris[w.rows[k].tri].n
		s := w.rows[k].turn & 3
		out[0] = w.halfedge(n[s])
		s = next[s]
		out[1] = w.halfedge(n[s])
		out[2] = w.halfedge(n[next[s]])
		out = out[3:]
	}
}

// halfedge returns the number of the half-edge with a code, or -1 if it
// belongs to a ghost.
func (w *meshWriter) halfedge(code int32) int32 {
	p := w.place[code>>2]
	if p < 0 {
		return -1
	}
	return p>>2*3 + turned[code&3][p&3]
}

// turned[s][t] is (s-t) mod 3.
var turned = [4][4]int32{{0, 2, 1}, {1, 0, 2}, {2, 1, 0}}

// boundary finds the hull: the ghosts around infinity, counter-clockwise from
// the least point.
func (t *Triangulator[T]) boundary() {
	var at int32 // a ghost
	for at = range int32(len(t.tris)) {
		if v := &t.tris[at].v; v[0]|v[1]|v[2] < 0 {
			break
		}
	}
	slot := int32(slices.Index(t.tris[at].v[:3], infinity))
	hull := t.mesh.hull[:0]
	least := 0
	for first := at; ; {
		// The ghost (b, a, infinity) lies behind the edge of the hull from a to b.
		v := t.tris[at].v[prev[slot]]
		if len(hull) > 0 && t.pts[v].less(t.pts[hull[least]]) {
			least = len(hull)
		}
		hull = append(hull, v)
		// Across the edge from infinity to b lies the ghost of the next edge.
		twin := t.tris[at].n[slot]
		if at, slot = twin>>2, next[twin&3]; at == first {
			break
		}
	}
	slices.Reverse(hull[:least])
	slices.Reverse(hull[least:])
	slices.Reverse(hull)
	for k, v := range hull {
		hull[k] = t.orig[v]
	}
	t.mesh.hull = hull
}

// resize returns s with length n, its contents undefined.
func resize[E any](s []E, n int) []E { return slices.Grow(s[:0], n)[:n] }
