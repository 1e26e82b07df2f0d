package delaunay

import (
	"slices"

	"entropipe/algos/geom"
)

// meshWriter turns triangles with ghosts into a geom.Mesh in canonical order.
//
// The canonical order is that of the cloud, where neighbours may be far apart;
// triangles and vertices lie along a curve. So all look-ups go along the
// curve, in memory that is near, and only the finished rows of a vertex are
// written where they belong.
type meshWriter struct {
	triangles, halfedges, hull []int32
	ends                       []int32 // where the rows of a vertex end
	first                      []int32 // the place of the first triangle of an index
	rows                       []row
	place                      []int32 // 4*position + turn of each triangle, negative of ghosts
	ghost                      int32   // one of them
}

// row is a triangle that belongs to the vertex of least index, without it.
type row struct{ v1, v2, code int32 } // code: of the half-edge that begins at that vertex

// few rows are sorted by insertion.
const few = 12

// write returns the mesh of tris, whose vertices stand for the points orig of
// the cloud, except the hull.
func (w *meshWriter) write(tris []triangle, orig []int32, halfedges bool) geom.Mesh {
	w.count(tris, orig)
	w.position(orig)
	w.gather(tris, orig)
	w.sortRows(orig)
	m := geom.Mesh{Triangles: w.triangles}
	if halfedges {
		w.twins(tris)
		m.Halfedges = w.halfedges
	}
	return m
}

// count counts the triangles of each vertex, those in which it has the least
// index, and remembers its slot in place.
func (w *meshWriter) count(tris []triangle, orig []int32) {
	w.ends = resize(w.ends, len(orig)+1)
	clear(w.ends)
	w.place = resize(w.place, len(tris))
	for k := range tris {
		v := &tris[k].v
		if v[3] < 0 {
			w.place[k] = v[3]
			if v[3] == ghost {
				w.ghost = int32(k)
			}
			continue
		}
		a, b, c := orig[v[0]], orig[v[1]], orig[v[2]]
		s := int32(0)
		if b < a {
			s = 1
		}
		if c < min(a, b) {
			s = 2
		}
		w.place[k] = s
		w.ends[v[s&3]]++
	}
}

// position makes the counts positions: ends those of the rows of a vertex, first
// those in the mesh.
func (w *meshWriter) position(orig []int32) {
	w.first = resize(w.first, len(orig))
	at := int32(0)
	for i, o := range orig {
		n := w.ends[i]
		w.first[o] = n
		w.ends[i] = at
		at += n
	}
	w.rows = resize(w.rows, int(at))
	at = 0
	for o, n := range w.first {
		w.first[o] = at
		at += n
	}
}

// gather collects the rows.
func (w *meshWriter) gather(tris []triangle, orig []int32) {
	for k := range tris {
		s := w.place[k]
		if s < 0 {
			continue
		}
		v := &tris[k].v
		e := &w.ends[v[s&3]]
		w.rows[*e] = row{orig[v[next[s&3]]], orig[v[prev[s&3]]], int32(k)<<2 | s}
		*e++
	}
}

// sortRows sorts the rows of each vertex and writes the triangles. Two rows of
// one vertex differ in v1: an edge has one triangle on its left.
func (w *meshWriter) sortRows(orig []int32) {
	w.triangles = resize(w.triangles, 3*len(w.rows))
	lo := int32(0)
	for i, v0 := range orig {
		hi := w.ends[i]
		if lo == hi {
			continue
		}
		rows := w.rows[lo:hi]
		lo = hi
		if len(rows) > few {
			slices.SortFunc(rows, func(a, b row) int { return int(a.v1) - int(b.v1) })
		} else {
			insertionSort(rows)
		}
		at := w.first[v0]
		out := w.triangles[3*at:][:3*len(rows)]
		for _, r := range rows {
			out[0], out[1], out[2] = v0, r.v1, r.v2
			out = out[3:]
			w.place[r.code>>2] = at<<2 | r.code&3
			at++
		}
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
	w.halfedges = resize(w.halfedges, 3*len(w.rows))
	for k, p := range w.place {
		if p < 0 {
			continue
		}
		n, s := &tris[k].n, p&3
		out := w.halfedges[p>>2*3:][:3]
		out[0] = w.halfedge(n[s])
		out[1] = w.halfedge(n[next[s]])
		out[2] = w.halfedge(n[prev[s]])
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
func (w *meshWriter) boundary(tris []triangle, pts []point, orig []int32) []int32 {
	at := w.ghost
	slot := int32(slices.Index(tris[at].v[:3], infinity))
	hull := w.hull[:0]
	least := 0
	for first := at; ; {
		// The ghost (b, a, infinity) lies behind the edge of the hull from a to b.
		v := tris[at].v[prev[slot]]
		if len(hull) > 0 && pts[v].less(pts[hull[least]]) {
			least = len(hull)
		}
		hull = append(hull, v)
		// Across the edge from infinity to b lies the ghost of the next edge.
		twin := tris[at].n[slot]
		if at, slot = twin>>2, next[twin&3]; at == first {
			break
		}
	}
	slices.Reverse(hull[:least])
	slices.Reverse(hull[least:])
	slices.Reverse(hull)
	for k, v := range hull {
		hull[k] = orig[v]
	}
	w.hull = hull
	return hull
}

// resize returns s with length n, its contents undefined.
func resize[E any](s []E, n int) []E { return slices.Grow(s[:0], n)[:n] }
