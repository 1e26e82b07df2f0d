package delaunay

// inserter adds points to a triangulation. Several inserters may work on one
// triangulation, each in a zone of its own, see parallel.go.
type inserter struct {
	pts  []point
	orig []int32 // the index in the cloud of each point
	tris []triangle
	rounding

	zone    int32
	guarded bool // stay in the zone, and walk across at most reach triangles
	reach   int
	last    int32 // a finite triangle near the next point, in the zone

	small struct {
		ring  [room]rim
		hole  [room]int32 // two new triangles, then the triangles whose circles hold the new point
		stack [room]int32 // half-edges to look across
	}
	ring  []rim // ring, hole and stack for large holes
	hole  []int32
	stack []int32
	left  []int32 // points that the zone's guard turned away
	idle  []int32 // duplicates without memory for triangles
	older []pair  // vertices that a point with a lower number equals
	steps int     // number of triangles walked through or dug out, for tests
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

// insertCompact inserts points 3 to n-1 with their triangles one after the other,
// and returns the number of triangles. Duplicates take no memory: where most
// points are duplicates, gaps among the triangles would be read again and again.
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

// Results of locate that are no triangles.
const (
	foreign   = -1 // the guard turned the point away
	duplicate = -2 // the point equals a vertex of the last triangle
)

// outcome says what became of a point.
type outcome uint8

const (
	added   outcome = iota
	merged          // the point equals a vertex
	refused         // the guard turned the point away
)

// insert adds point i; its triangles take memory that belongs to its number.
func (w *inserter) insert(i int32) outcome {
	one, two := 2*i-2, 2*i-1
	out := w.insertIn(i, one, two)
	if out == merged {
		w.setUnused(i, one, two)
	}
	return out
}

// setUnused marks two triangles as the memory of duplicate i.
func (w *inserter) setUnused(i, one, two int32) {
	w.tris[one].v = [4]int32{i, two, 0, unused}
	w.tris[two].v = [4]int32{-1, 0, 0, unused}
}

// insertIn adds point i; its triangles take the memory of its hole and of
// triangles one and two. A point that equals a vertex only lowers the index that
// stands for the vertex, and leaves one and two as they are.
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

// certainlyHolds reports whether the filter proves that the circle of a triangle
// holds p. Then the hole can be dug from that triangle, and p equals no vertex.
func (w *inserter) certainlyHolds(at int32, p point) bool {
	t := &w.tris[at]
	here := w.in(p)
	return t.at(here) > float64(float64(t.err)*here.margin())
}

// merge gives the vertex of the last triangle that equals p the lower of its own
// index and the index of point i.
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

// pair is a vertex and a point that equals it.
type pair struct{ vertex, point int32 }
