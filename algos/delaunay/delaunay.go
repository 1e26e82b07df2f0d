// Package delaunay computes the exact Delaunay triangulation of the x and y of
// a cloud.
//
//	var t delaunay.Triangulator[float64] // ready as it is; keep it for the next cloud
//	cloud := geom.Cloud[float64]{X: []float64{0, 2, 2, 0, 1}, Y: []float64{0, 0, 2, 2, 1}}
//	mesh := t.Triangulate(cloud) // valid until the next call
//	for e := 0; e < len(mesh.Triangles); e += 3 {
//		fmt.Println(mesh.Triangles[e : e+3]) // indices into cloud, counter-clockwise
//	}
//
// No point lies inside the circle of a triangle. Where four or more points lie on
// one circle, several triangulations have that property. This one is fixed by
// lifting the lexicographically greatest of four such points a little, so the
// result depends neither on the order of the points nor on the way it was
// computed.
//
// The triangulation is not constrained to given edges, and ignores z.
//
// # Words
//
//   - ghost: a triangle between an edge of the hull and a vertex at infinity. With
//     ghosts every edge has two triangles.
//   - code of a half-edge: triangle<<2 | slot; slot (0 to 2) is the place of the
//     edge in its triangle.
//   - round: a random part of the points, each larger than all rounds before it.
//     The points of a round are inserted along a Hilbert curve.
//   - hole, or cavity: the triangles whose circles hold a new point. A fan of
//     triangles around the point refills the hole.
//   - zone: the part of the curve that one goroutine works on.
//
// Sources: Bowyer (1981) and Watson (1981) for the holes; Amenta, Choi and Rote,
// "Incremental constructions con BRIO" (2003), for the order; Devillers and
// Teillaud, "Perturbations for Delaunay and weighted Delaunay 3D triangulations"
// (2011), for the ties; Lawson (1977) for the flips of Update.
package delaunay

import (
	"math"

	"entropipe/algos/geom"
)

// Triangulator computes Delaunay triangulations. The zero value is ready. A
// Triangulator keeps its working memory between calls, some 280 bytes a point. It
// must not be used by two goroutines at a time: make one for each goroutine.
type Triangulator[T geom.Float] struct {
	// Workers is the number of goroutines that share one large cloud. With 0 or 1
	// the caller's goroutine does all the work, and allocates nothing once the
	// working memory is large enough. The result is the same for any number.
	Workers int
	// NoHalfedges leaves Mesh.Halfedges nil, which saves a twentieth of the time.
	NoHalfedges bool
	// Unsorted leaves the triangles in the order of the curve along which the
	// points were inserted, instead of the canonical order; a triangle then begins
	// with any of its vertices. It saves up to a third of the time of a large
	// cloud whose neighbours in space have distant indices, and little of the time
	// of other clouds. This order depends on the order of the points, but not on
	// Workers.
	Unsorted bool

	order  orderer[T]
	pts    []point // in the order of insertion
	orig   []int32 // the index in the cloud of each point of pts
	tris   []triangle
	zones  zones
	ends   []int32 // the ends of a collinear cloud
	number []int32 // a number for each vertex, see settle
	mesh   meshWriter
	warm   bool // tris is the triangulation of pts
	mover  mover
}

// Panics at mistakes of the caller.
const (
	badLengths = "delaunay: coordinate slices of unequal lengths"
	badSize    = "delaunay: more than 2^28 points"
	badFinite  = "delaunay: non-finite coordinate"
)

// maxPoints keeps the codes of 2n-2 triangles within int32.
const maxPoints = 1 << 28

// Triangulate returns the triangulation of the points of c. Unless Unsorted is
// set, triangles are in canonical order: each begins with its smallest index, and
// they ascend by their indices. Equal points (-0 equals 0) share one vertex, the
// lowest of their indices. Clouds with no, one or only collinear points have
// no triangles, see geom.Mesh.
//
// The mesh is exact for all finite coordinates. Its slices belong to t and are
// valid until the next call of Triangulate or Update. Triangulate only reads c,
// and keeps no reference to it.
//
// Cost: expected O(n log n), some 250 ns a point; the random choices are a
// function of the points' indices. Triangulate panics when slices differ in
// length, when x or y is not finite, and for more than 2^28 points.
func (t *Triangulator[T]) Triangulate(c geom.Cloud[T]) geom.Mesh {
	n := sizeOf(c)
	t.warm = false
	all := boxOf(c)
	t.orig, t.pts = resize(t.orig, n), resize(t.pts, n)
	t.order.parts = t.parts(n)
	t.order.sort(c, all, t.orig, t.pts)
	if !t.firstTriangle() {
		return geom.Mesh{Hull: t.extremes()}
	}
	t.zones.main = t.zones.main.over(t.pts, t.orig, t.tris, roundingIn(c, all))
	t.zones.main.setCircle(&t.tris[0])
	if t.order.parts == 1 {
		t.tris = t.tris[:t.zones.main.insertCompact(n)]
	} else {
		t.zones.insert(t.order.cuts)
	}
	t.warm = true
	return t.write()
}

// sizeOf returns the number of points of c. It panics when slices differ in
// length and for too many points.
func sizeOf[T geom.Float](c geom.Cloud[T]) int {
	n := c.Len()
	if len(c.Y) != n || c.Z != nil && len(c.Z) != n {
		panic(badLengths)
	}
	if n > maxPoints {
		panic(badSize)
	}
	return n
}

func (t *Triangulator[T]) write() geom.Mesh {
	t.settle()
	m := t.mesh.write(t.tris, t.orig,
		writing{parts: t.parts(len(t.pts)), halfedges: !t.NoHalfedges, canonical: !t.Unsorted})
	m.Hull = t.mesh.boundary(t.tris, t.pts, t.orig)
	return m
}

// parts returns the number of goroutines that n points are worth.
func (t *Triangulator[T]) parts(n int) int { return max(1, min(t.Workers, n/pointsAWorker, maxZones)) }

// extremes returns the two ends of a collinear cloud, one index where all points
// are equal, nil for no point. Equal points count as the one with the lowest index.
func (t *Triangulator[T]) extremes() []int32 {
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
	t.ends = append(t.ends[:0], t.orig[lo])
	if t.pts[lo] != t.pts[hi] {
		t.ends = append(t.ends, t.orig[hi])
	}
	return t.ends
}

// firstTriangle moves the first three points that are not collinear to the front,
// and makes a triangle of them with its three ghosts. It returns false where all
// points are collinear.
func (t *Triangulator[T]) firstTriangle() bool {
	p, n := t.pts, len(t.pts)
	i := 1
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
		return false
	}
	for to, from := range [3]int{0, i, j} {
		p[to], p[from] = p[from], p[to]
		t.orig[to], t.orig[from] = t.orig[from], t.orig[to]
	}
	a, b, c := int32(0), int32(1), int32(2)
	if turn < 0 {
		b, c = c, b
	}
	t.tris = resize(t.tris, 2*n-2)
	inf := float32(math.Inf(1))
	copy(t.tris, []triangle{
		{v: [4]int32{a, b, c}, n: [3]int32{1<<2 | 1, 2<<2 | 1, 3<<2 | 1}},
		{v: [4]int32{infinity, b, a, ghost}, n: [3]int32{2<<2 | 2, 0 << 2, 3 << 2}, err: inf},
		{v: [4]int32{infinity, c, b, ghost}, n: [3]int32{3<<2 | 2, 0<<2 | 1, 1 << 2}, err: inf},
		{v: [4]int32{infinity, a, c, ghost}, n: [3]int32{1<<2 | 2, 0<<2 | 2, 2 << 2}, err: inf},
	})
	return true
}
