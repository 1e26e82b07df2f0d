package delaunay

import (
	"cmp"
	"slices"

	"entropipe/algos/internal/kernel"
)

// alongCurve writes the triangles by the numbers of their newest vertices, the
// order of insertion; triangles with the same newest vertex are ordered by the
// vertex that follows it. All reads and writes are near in memory.
func (w *meshWriter) alongCurve() {
	w.all((*meshWriter).countNewest)
	w.all((*meshWriter).totalNewest)
	n := w.sum(func(p *part) *int32 { return &p.rows })
	w.all((*meshWriter).positionNewest)
	w.room(int(n))
	w.all((*meshWriter).gatherNewest)
	w.all((*meshWriter).writeNewest)
}

// settle gives each vertex the lowest number among the points that equal it. In
// parallel rounds, points left for later make vertices of other numbers. After
// settle, the order along the curve is that of a single goroutine.
func (t *Triangulator[T]) settle() {
	w := &t.zones.main
	for k := range t.zones.each {
		w.older = append(w.older, t.zones.each[k].older...)
	}
	if len(w.older) == 0 {
		return
	}
	number := resize(t.number, len(t.pts))
	t.number = number
	for i := range number {
		number[i] = int32(i)
	}
	for _, p := range w.older {
		number[p.vertex] = min(number[p.vertex], p.point)
	}
	for _, p := range w.older {
		v := p.vertex
		if least := number[v]; number[least] == least {
			number[least] = v
			t.orig[v], t.orig[least] = t.orig[least], t.orig[v]
		}
	}
	for k := range t.tris {
		v := &t.tris[k].v
		corners := v[:3]
		if v[kind] == unused {
			corners = v[:1]
		}
		for s, i := range corners {
			if i >= 0 {
				corners[s] = number[i]
			}
		}
	}
}

// countNewest counts for each vertex the triangles whose newest vertex it is, and
// stores the slot of each triangle's newest vertex in place.
func (w *meshWriter) countNewest(p int) {
	n := len(w.orig)
	ends := w.ends[p*n : (p+1)*n]
	clear(ends)
	w.parts[p].ghost = -1
	lo, hi := kernel.Part(len(w.tris), p, len(w.parts))
	place := w.place[lo:hi]
	for k := range place {
		v := &w.tris[lo+k].v
		if v[kind] < 0 {
			place[k] = v[kind]
			if v[kind] == ghost {
				w.parts[p].ghost = int32(lo + k)
			}
			continue
		}
		s, newest := int32(2), v[2]
		if v[1] > newest {
			s, newest = 1, v[1]
		}
		if v[0] > newest {
			s, newest = 0, v[0]
		}
		place[k] = s
		ends[newest]++
	}
}

// totalNewest counts the rows of the vertices of part p.
func (w *meshWriter) totalNewest(p int) {
	lo, hi := kernel.Part(len(w.orig), p, len(w.parts))
	sum := int32(0)
	for k := 0; k < len(w.ends); k += len(w.orig) {
		for _, count := range w.ends[k+lo : k+hi] {
			sum += count
		}
	}
	w.parts[p].rows = sum
}

// positionNewest turns the counts in ends into places of rows.
func (w *meshWriter) positionNewest(p int) {
	n := len(w.orig)
	lo, hi := kernel.Part(n, p, len(w.parts))
	at := w.parts[p].rows
	if len(w.parts) == 1 {
		for i, count := range w.ends {
			w.ends[i] = at
			at += count
		}
		return
	}
	for i := lo; i < hi; i++ {
		for k := i; k < len(w.ends); k += n {
			w.ends[k], at = at, at+w.ends[k]
		}
	}
}

// gatherNewest writes the rows of the triangles of part p.
func (w *meshWriter) gatherNewest(p int) {
	n := len(w.orig)
	ends := w.ends[p*n : (p+1)*n]
	lo, hi := kernel.Part(len(w.tris), p, len(w.parts))
	for k := lo; k < hi; k++ {
		s := w.place[k]
		if s < 0 {
			continue
		}
		v := &w.tris[k].v
		e := &ends[v[s&3]]
		r := &w.rows[*e]
		r.v1, r.v2, r.code = v[next[s&3]], v[prev[s&3]], int32(k)<<2|s
		*e++
	}
}

// writeNewest sorts the rows of each vertex and writes the triangles. Two rows of
// one vertex differ in v1: an edge has one triangle on its left.
func (w *meshWriter) writeNewest(p int) {
	n := len(w.orig)
	lo, hi := kernel.Part(n, p, len(w.parts))
	ends := w.ends[len(w.ends)-n:] // the last part ends where all parts do
	at := w.parts[p].rows
	for i := lo; i < hi; i++ {
		rows := w.rows[at:ends[i]]
		switch {
		case len(rows) == 2:
			if rows[0].v1 > rows[1].v1 {
				rows[0], rows[1] = rows[1], rows[0]
			}
		case len(rows) > 2:
			sortFew(rows)
		}
		v0 := w.orig[i]
		out := w.triangles[3*at:][:3*len(rows)]
		for k := range rows {
			r := &rows[k]
			t := out[3*k:][:3]
			t[0], t[1], t[2] = v0, w.orig[r.v1], w.orig[r.v2]
			if w.places {
				w.place[r.code>>2] = at<<2 | r.code&3
			}
			at++
		}
	}
}

// sortFew sorts rows by v1.
func sortFew(rows []row) {
	if len(rows) > 2*few {
		slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.v1, b.v1) })
		return
	}
	for i := 1; i < len(rows); i++ {
		r, k := rows[i], i
		for ; k > 0 && rows[k-1].v1 > r.v1; k-- {
			rows[k] = rows[k-1]
		}
		rows[k] = r
	}
}
