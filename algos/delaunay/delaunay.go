// Package delaunay triangulates the points of a cloud in the plane, exactly.
//
// The triangulation is the Delaunay triangulation: no point lies inside the
// circle of a triangle. Where four or more points lie on one circle there are
// several; this one is fixed by lifting the lexicographically greatest of four
// such points a little, so it is a function of the points alone: not of their
// order, nor of how it was computed.
//
// It is not a constrained triangulation, and z is not looked at.
//
// Words: a ghost is a triangle between an edge of the hull and a vertex at
// infinity, so that every edge has two triangles. A half-edge code is
// triangle<<2 | slot, the slot being the edge's place (0 to 2) in its triangle.
// A round is a random part of the points, each larger than all before it; its
// points are inserted along a Hilbert curve.
//
// Sources: Lawson (1977) for the flips; Amenta, Choi and Rote, "Incremental
// constructions con BRIO" (2003), for the order; Devillers and Teillaud,
// "Perturbations for Delaunay and weighted Delaunay 3D triangulations" (2011),
// for the ties.
package delaunay

import (
	"math"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// Triangulator triangulates clouds. The zero value is ready. It keeps its
// scratch memory between calls, some 200 bytes a point: use one a goroutine,
// never two calls at a time.
type Triangulator[T geom.Float] struct {
	// NoHalfedges leaves Mesh.Halfedges nil, which saves about a tenth of the
	// time.
	NoHalfedges bool

	order    orderer[T]
	pts      []point[T] // in the order of insertion
	orig     []int32    // the index in the cloud of each of pts
	rounding rounding   // of determinants in this cloud
	tris     []triangle
	last     int32   // a triangle near the next point
	stack    []int32 // half-edges to look at
	steps    int     // triangles walked through and edges flipped, for tests
	mesh     meshWriter
}

// point is a copy of a coordinate pair, so that points inserted one after the
// other lie side by side in memory. float32 is not widened.
type point[T geom.Float] struct{ x, y T }

// triangle has its vertices counter-clockwise; v[3] and n[3] only make it 32
// bytes. n[i] is the code of the twin of the half-edge from v[i] to v[i+1].
type triangle struct{ v, n [4]int32 }

// infinity is the vertex that all ghosts share.
const infinity = -1

// Caller's mistakes.
const (
	badLengths = "delaunay: coordinate slices of unequal lengths"
	badSize    = "delaunay: more than 2^28 points"
	badFinite  = "delaunay: non-finite coordinate"
)

// maxPoints keeps the codes of 2n-2 triangles within int32.
const maxPoints = 1 << 28

var (
	next = [4]int32{1, 2, 0, 0}
	prev = [4]int32{2, 0, 1, 0}
)

// Triangulate returns the triangulation of the points of c, in canonical
// order: in every triangle the smallest index first, triangles sorted by their
// indices. Of equal points (-0 equals 0) only the lowest index is a vertex.
// Degenerate clouds, see geom.Mesh, have no triangles. The mesh is valid until
// the next call.
//
// It is exact for all finite coordinates. Cost: O(n log n) expected, with
// randomness that is fixed by the points' numbers; some 300 ns a point. It
// panics when slices differ in length, when x or y is not finite, or beyond
// 2^28 points.
func (t *Triangulator[T]) Triangulate(c geom.Cloud[T]) geom.Mesh {
	n := c.Len()
	if len(c.Y) != n || c.Z != nil && len(c.Z) != n {
		panic(badLengths)
	}
	if n > maxPoints {
		panic(badSize)
	}
	all := boxOf(c)
	t.rounding = roundingIn(c, all)
	t.orig = t.order.sort(c, all, t.orig[:0])
	t.pts = resize(t.pts, n)
	for k, i := range t.orig {
		t.pts[k] = point[T]{c.X[i], c.Y[i]}
	}
	first, ok := t.firstTriangle()
	if !ok {
		return geom.Mesh{Hull: t.ends()}
	}
	for i := range t.pts {
		if i := int32(i); i != first[0] && i != first[1] && i != first[2] {
			t.insert(i)
		}
	}
	t.boundary()
	return t.mesh.write(t.tris, t.orig, n, !t.NoHalfedges)
}

func (p point[T]) less(q point[T]) bool { return p.x < q.x || p.x == q.x && p.y < q.y }

// ends returns the extreme points of a collinear cloud: none, one or two
// indices, the lowest ones of equal points.
func (t *Triangulator[T]) ends() []int32 {
	if len(t.pts) == 0 {
		return nil
	}
	lo, hi := 0, 0
	for i, p := range t.pts {
		if p.less(t.pts[lo]) || p == t.pts[lo] && t.orig[i] < t.orig[lo] {
			lo = i
		}
		if t.pts[hi].less(p) || p == t.pts[hi] && t.orig[i] < t.orig[hi] {
			hi = i
		}
	}
	if t.pts[lo] == t.pts[hi] {
		return append(t.stack[:0], t.orig[lo])
	}
	return append(t.stack[:0], t.orig[lo], t.orig[hi])
}

// firstTriangle makes a triangle of the first three points that are not
// collinear, with its three ghosts. false: there are none.
func (t *Triangulator[T]) firstTriangle() (v [3]int32, ok bool) {
	p, n := t.pts, int32(len(t.pts))
	i := int32(1)
	for i < n && p[i] == p[0] {
		i++
	}
	j, turn := i+1, 0
	for ; j < n; j++ {
		if turn = orient(p[0], p[i], p[j]); turn != 0 {
			break
		}
	}
	if j >= n {
		return v, false
	}
	a, b, c := int32(0), i, j
	if turn < 0 {
		b, c = c, b
	}
	t.tris = append(resize(t.tris, 2*len(p))[:0],
		triangle{v: [4]int32{a, b, c}},
		triangle{v: [4]int32{b, a, infinity}},
		triangle{v: [4]int32{c, b, infinity}},
		triangle{v: [4]int32{a, c, infinity}})
	for s := range int32(3) {
		t.link(0<<2|s, (s+1)<<2)
		t.link((s+1)<<2|1, (s+2)%3<<2+4|2) // the ghost before this one around infinity
	}
	t.last = 0
	return [3]int32{0, i, j}, true
}

// link makes two half-edges twins.
func (t *Triangulator[T]) link(e, f int32) {
	t.tris[e>>2].n[e&3] = f
	t.tris[f>>2].n[f&3] = e
}

// insert adds point i. A point that is there already only lowers the index
// that stands for it.
//
// The triangle that holds the point is split in three; then every edge
// opposite the point is flipped if the triangle behind it has the point in its
// circle:
//
//	  q                 q
//	 / \               /|\
//	a---b      ->     a | b
//	 \ /               \|/
//	  p                 p
func (t *Triangulator[T]) insert(i int32) {
	p := t.pts[i]
	at := t.locate(p)
	t.last = at // also for a point that is there: the next one is near
	tr := &t.tris[at]
	for _, v := range tr.v[:3] {
		if v != infinity && t.pts[v] == p {
			t.orig[v] = min(t.orig[v], t.orig[i])
			return
		}
	}
	a, b, c := tr.v[0], tr.v[1], tr.v[2]
	bc, ca := tr.n[1], tr.n[2]
	t1 := int32(len(t.tris))
	t2 := t1 + 1
	t.tris = append(t.tris, triangle{v: [4]int32{b, c, i}}, triangle{v: [4]int32{c, a, i}})
	t.tris[at].v[2] = i
	t.link(t1<<2, bc)
	t.link(t2<<2, ca)
	t.link(at<<2|1, t1<<2|2)
	t.link(t1<<2|1, t2<<2|2)
	t.link(t2<<2|1, at<<2|2)
	t.stack = append(t.stack[:0], at, t1, t2)
	t.flip(i, p)
}

// flip restores the empty circles around the new vertex i at p. The triangles
// on the stack have i as v[2], so the edge to look at is in slot 0.
func (t *Triangulator[T]) flip(i int32, p point[T]) {
	tris, stack := t.tris, t.stack
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		near := &tris[e]
		o := near.n[0]
		f, s := o>>2, o&3
		far := &tris[f]
		if !t.inside(far, p) {
			stack = stack[:len(stack)-1]
			continue
		}
		t.steps++
		q := far.v[prev[s]]
		b, bp := near.v[1], near.n[1]
		qb, aq := far.n[prev[s]], far.n[next[s]]
		near.v[1] = q
		near.n[0], near.n[1] = aq, f<<2|2
		far.v[0], far.v[1], far.v[2] = q, b, i
		far.n[0], far.n[1], far.n[2] = qb, bp, e<<2|1
		tris[aq>>2].n[aq&3] = e << 2
		tris[qb>>2].n[qb&3] = f << 2
		tris[bp>>2].n[bp&3] = f<<2 | 1
		stack = append(stack, f) // above e, which has a new edge in slot 0
	}
	t.stack = stack
}

// locate returns a triangle that holds p, its border included, or the ghost
// behind an edge of the hull that p lies beyond. It walks from the last
// triangle, always across an edge that has p on its other side; in a Delaunay
// triangulation, ties broken by a perturbation included, such a walk never
// comes back to a triangle.
func (t *Triangulator[T]) locate(p point[T]) int32 {
	tris, pts := t.tris, t.pts
	at := t.last
	for s, v := range tris[at].v[:3] {
		if v == infinity {
			at = tris[at].n[next[s]] >> 2 // across the edge of the hull
			break
		}
	}
	px, py := float64(p.x), float64(p.y)
	from := int32(-1) // the slot of the edge that was crossed last
	for {
		t.steps++
		tr := &tris[at]
		if tr.v[0]|tr.v[1]|tr.v[2] < 0 {
			return at
		}
		a, b, c := pts[tr.v[0]], pts[tr.v[1]], pts[tr.v[2]]
		ax, ay, bx, by, cx, cy := float64(a.x), float64(a.y), float64(b.x), float64(b.y), float64(c.x), float64(c.y)
		var o int32
		switch {
		case from != 0 && beside(ax, ay, bx, by, px, py) < 0:
			o = tr.n[0]
		case from != 1 && beside(bx, by, cx, cy, px, py) < 0:
			o = tr.n[1]
		case from != 2 && beside(cx, cy, ax, ay, px, py) < 0:
			o = tr.n[2]
		default:
			return at
		}
		at, from = o>>2, o&3
	}
}

// inside tells whether p is in the circle of tr. It is exact.InCircle, whose
// filter stands here again: half of all time goes by in it.
func (t *Triangulator[T]) inside(tr *triangle, p point[T]) bool {
	if tr.v[0]|tr.v[1]|tr.v[2] < 0 {
		return t.beyond(tr, p)
	}
	a, b, c := t.pts[tr.v[0]], t.pts[tr.v[1]], t.pts[tr.v[2]]
	px, py := float64(p.x), float64(p.y)
	ax, ay := float64(a.x)-px, float64(a.y)-py
	bx, by := float64(b.x)-px, float64(b.y)-py
	cx, cy := float64(c.x)-px, float64(c.y)-py
	bc, cb := float64(bx*cy), float64(cx*by)
	ca, ac := float64(cx*ay), float64(ax*cy)
	ab, ba := float64(ax*by), float64(bx*ay)
	al := float64(ax*ax) + float64(ay*ay)
	bl := float64(bx*bx) + float64(by*by)
	cl := float64(cx*cx) + float64(cy*cy)
	det := float64(al*(bc-cb)) + float64(bl*(ca-ac)) + float64(cl*(ab-ba))
	permanent := float64(al*(math.Abs(bc)+math.Abs(cb))) +
		float64(bl*(math.Abs(ca)+math.Abs(ac))) +
		float64(cl*(math.Abs(ab)+math.Abs(ba)))
	switch bound := float64(t.rounding.relative*permanent) + t.rounding.absolute; {
	case det > bound:
		return true
	case -det > bound:
		return false
	}
	if !t.rounding.none {
		sign := exact.InCircle(float64(a.x), float64(a.y), float64(b.x), float64(b.y), float64(c.x), float64(c.y), px, py)
		if sign != 0 {
			return sign > 0
		}
	}
	return tie(a, b, c, p)
}

// beyond is inside for a ghost: its circle is the open half-plane beyond its
// edge of the hull, and the edge itself.
func (t *Triangulator[T]) beyond(tr *triangle, p point[T]) bool {
	s := 0
	for tr.v[prev[s]] != infinity {
		s++
	}
	a, b := t.pts[tr.v[s]], t.pts[tr.v[next[s]]]
	if o := orient(a, b, p); o != 0 {
		return o > 0
	}
	return a.less(p) == p.less(b) // between the two
}

// tie decides for four points on one circle, a, b, c counter-clockwise,
// whether d is inside when the lexicographically greatest of them is lifted a
// little: off the circle if it is d, else the circle through it moves.
func tie[T geom.Float](a, b, c, d point[T]) bool {
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

func orient[T geom.Float](a, b, c point[T]) int {
	return exact.Orient2D(float64(a.x), float64(a.y), float64(b.x), float64(b.y), float64(c.x), float64(c.y))
}

// beside is a filter in front of exact.Orient2D that the compiler can inline:
// most steps of a walk need no more.
func beside(ax, ay, bx, by, px, py float64) float64 {
	l, r := float64((ax-px)*(by-py)), float64((ay-py)*(bx-px))
	if d := l - r; math.Abs(d) > 0x1p-50*(math.Abs(l)+math.Abs(r))+0x1p-1000 {
		return d
	}
	return float64(exact.Orient2D(ax, ay, bx, by, px, py))
}
