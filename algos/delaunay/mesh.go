package delaunay

import (
	"slices"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// meshWriter turns triangles with ghosts into a geom.Mesh, in canonical order or
// along the curve.
//
// The canonical order is that of the cloud, where neighbours may be far apart;
// triangles and vertices lie along a curve. So all look-ups go along the curve,
// in memory that is near, and only the finished rows of a vertex are written to
// distant places. In the order of the curve those places are near, too.
//
// A row belongs to one vertex: the vertex with the least index or, along the
// curve, the newest vertex, which has the greatest number. The work is done in
// phases. In each phase every part has a stretch of the triangles, of the vertices
// or of the indices of the cloud.
type meshWriter struct {
	triangles, halfedges, hull []int32
	first                      []int32 // for each index, the place of its first triangle
	rows                       []row
	place                      []int32 // for each triangle, 4*position + turn; negative for ghosts
	ends                       []int32 // for each part and vertex, the end of its rows

	tris   []triangle
	orig   []int32
	parts  []part
	places bool // half-edges need the places of triangles
}

// part holds one part's numbers for the sums over parts.
type part struct {
	rows  int32 // number of rows of the part's vertices
	index int32 // number of rows of the part's indices
	ghost int32 // a ghost of the part, or -1
}

// row is a triangle without the vertex that it belongs to. v1 and v2 are the other
// vertices, as indices of the cloud or, along the curve, as numbers; code is the
// half-edge that begins at the omitted vertex.
type row struct{ v1, v2, code int32 }

// few is the number of rows up to which counting finds their order.
const few = 8

// writing says what write makes of triangles.
type writing struct {
	parts     int // number of goroutines
	halfedges bool
	canonical bool // canonical order; otherwise along the curve
}

// write returns the mesh of tris, without its hull. orig holds the index in the
// cloud of each vertex.
func (w *meshWriter) write(tris []triangle, orig []int32, to writing) geom.Mesh {
	w.tris, w.orig, w.parts, w.places = tris, orig, resize(w.parts, to.parts), to.halfedges
	w.place = resize(w.place, len(tris))
	w.ends = resize(w.ends, to.parts*len(orig))
	if to.canonical {
		w.sorted()
	} else {
		w.alongCurve()
	}
	m := geom.Mesh{Triangles: w.triangles}
	if to.halfedges {
		w.halfedges = resize(w.halfedges, len(w.triangles))
		w.all((*meshWriter).twins)
		m.Halfedges = w.halfedges
	}
	w.tris, w.orig = nil, nil
	return m
}

// sorted writes the triangles in canonical order.
func (w *meshWriter) sorted() {
	w.first = resize(w.first, len(w.orig))
	w.all((*meshWriter).count)
	w.all((*meshWriter).total)
	n := w.sum(func(p *part) *int32 { return &p.rows })
	w.all((*meshWriter).position)
	w.sum(func(p *part) *int32 { return &p.index })
	w.room(int(n))
	w.all((*meshWriter).gather)
	w.all((*meshWriter).sortRows)
}

// room makes room for n triangles.
func (w *meshWriter) room(n int) {
	w.rows = resize(w.rows, n)
	w.triangles = resize(w.triangles, 3*n)
}

// all runs a phase in all parts.
func (w *meshWriter) all(phase func(*meshWriter, int)) {
	if len(w.parts) == 1 {
		phase(w, 0)
		return
	}
	kernel.Parallel(len(w.parts), func(p int) { phase(w, p) })
}

// sum replaces the number of each part by the sum over the parts before it, and
// returns the sum over all parts.
func (w *meshWriter) sum(number func(*part) *int32) (total int32) {
	for p := range w.parts {
		n := number(&w.parts[p])
		*n, total = total, total+*n
	}
	return total
}

// count counts for each vertex the triangles in which it has the least index, and
// stores the slot of each triangle's least index in place.
func (w *meshWriter) count(p int) {
	orig, n := w.orig, len(w.orig)
	ends := w.ends[p*n : (p+1)*n]
	clear(ends)
	w.parts[p].ghost = -1
	lo, hi := kernel.Part(len(w.tris), p, len(w.parts))
	for k := lo; k < hi; k++ {
		v := &w.tris[k].v
		if v[kind] < 0 {
			w.place[k] = v[kind]
			if v[kind] == ghost {
				w.parts[p].ghost = int32(k)
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
		ends[v[s&3]]++
	}
}

// total adds up the counts of each vertex of part p into first, by its index, and
// all of them into the part's rows.
func (w *meshWriter) total(p int) {
	n := len(w.orig)
	lo, hi := kernel.Part(n, p, len(w.parts))
	sum := int32(0)
	for i := lo; i < hi; i++ {
		count := w.ends[i]
		for k := i + n; k < len(w.ends); k += n {
			count += w.ends[k]
		}
		w.first[w.orig[i]] = count
		sum += count
	}
	w.parts[p].rows = sum
}

// position turns the counts in ends into places of rows, and adds up the counts in
// first of the indices of part p.
func (w *meshWriter) position(p int) {
	n := len(w.orig)
	lo, hi := kernel.Part(n, p, len(w.parts))
	at := w.parts[p].rows
	for i := lo; i < hi; i++ {
		for k := i; k < len(w.ends); k += n {
			w.ends[k], at = at, at+w.ends[k]
		}
	}
	sum := int32(0)
	for _, count := range w.first[lo:hi] {
		sum += count
	}
	w.parts[p].index = sum
}

// gather turns the counts in first into places in the mesh, and writes the rows of
// the triangles of part p.
func (w *meshWriter) gather(p int) {
	orig, n := w.orig, len(w.orig)
	lo, hi := kernel.Part(n, p, len(w.parts))
	at := w.parts[p].index
	for i, count := range w.first[lo:hi] {
		w.first[lo+i] = at
		at += count
	}
	ends := w.ends[p*n : (p+1)*n]
	lo, hi = kernel.Part(len(w.tris), p, len(w.parts))
	for k := lo; k < hi; k++ {
		s := w.place[k]
		if s < 0 {
			continue
		}
		v := &w.tris[k].v
		e := &ends[v[s&3]]
		r := &w.rows[*e]
		r.v1, r.v2, r.code = orig[v[next[s&3]]], orig[v[prev[s&3]]], int32(k)<<2|s
		*e++
	}
}

// sortRows sorts the rows of each vertex and writes the triangles. Two rows of
// one vertex differ in v1: an edge has one triangle on its left.
func (w *meshWriter) sortRows(p int) {
	n := len(w.orig)
	lo, hi := kernel.Part(n, p, len(w.parts))
	ends := w.ends[len(w.ends)-n:] // the last part ends where all parts do
	at := w.parts[p].rows
	for i := lo; i < hi; i++ {
		end := ends[i]
		if at == end {
			continue
		}
		rows, v0 := w.rows[at:end], w.orig[i]
		at = end
		if len(rows) > few {
			slices.SortFunc(rows, func(a, b row) int { return int(a.v1) - int(b.v1) })
		}
		place := w.first[v0]
		out := w.triangles[3*place:][:3*len(rows)]
		for k := range rows {
			r := &rows[k]
			rank := k
			if len(rows) <= few {
				rank = rankOf(rows, r.v1)
			}
			t := out[3*rank:][:3]
			t[0], t[1], t[2] = v0, r.v1, r.v2
			if w.places {
				w.place[r.code>>2] = (place+int32(rank))<<2 | r.code&3
			}
		}
	}
}

// rankOf counts the rows with a vertex before v1, without branches: they would be
// mispredicted every other time.
func rankOf(rows []row, v1 int32) int {
	rank := 0
	for k := range rows {
		before := 0
		if rows[k].v1 < v1 {
			before = 1
		}
		rank += before
	}
	return rank
}

// twins writes the half-edges. Slot s of the triangle at a position becomes
// half-edge 3*position + (s-turn) mod 3.
func (w *meshWriter) twins(p int) {
	lo, hi := kernel.Part(len(w.tris), p, len(w.parts))
	for k := lo; k < hi; k++ {
		at := w.place[k]
		if at < 0 {
			continue
		}
		n, s := &w.tris[k].n, at&3
		out := w.halfedges[at>>2*3:][:3]
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

// boundary returns the hull, counter-clockwise from the least point: the vertices
// of the ghosts around infinity.
func (w *meshWriter) boundary(tris []triangle, pts []point, orig []int32) []int32 {
	at := int32(-1)
	for p := 0; at < 0; p++ {
		at = w.parts[p].ghost
	}
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

// resize returns s with length n; its contents are undefined.
func resize[E any](s []E, n int) []E { return slices.Grow(s[:0], n)[:n] }
