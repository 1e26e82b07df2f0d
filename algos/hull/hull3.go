package hull

import (
	"math"
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// Hull3D finds convex hulls in space. The zero value is ready. It keeps its
// scratch memory between calls: some 100 bytes for each point that its sieve
// cannot drop, a few in a hundred for most clouds, and 500 for each vertex. Use
// one a goroutine, never two calls at a time.
//
// A "face" is a triangle of the surface, counter-clockwise seen from outside; a
// "facet" is the polygon that faces in one plane make up.
type Hull3D[T geom.Float] struct {
	// Workers is the number of goroutines that share one large cloud; 0 and 1
	// mean the caller's alone. The result does not depend on it.
	Workers int

	// Seeds are points of the next cloud thought to be far out: indices, in any
	// order, also repeated. Their hull then is the first sieve, in place of that
	// of a sample; the better they are, the less is left to do. The result does
	// not depend on them, and seeds that turn out bad on a few blocks of points
	// are not used. An index out of range panics. Append only reads them.
	Seeds []int32

	seeded    bool
	survivors int

	body  polytope
	sieve sieve[T]
	lanes []lane3
	plane Hull2D[T]
}

const badSpace = "hull: cloud without z"

// Append appends to vertices the indices of the extreme points of c, ascending,
// and to faces the triangles of the hull's surface, three indices each; it
// returns both and the dimension of the hull. It is 3 for a solid; anything
// less has no faces: -1 for no point, 0 for equal points (one vertex), 1 for
// collinear points (the two ends), 2 for points in one plane (the corners of
// the polygon).
//
// A point in the inside of an edge or a facet is no vertex; of equal points (-0
// equals 0) the lowest index stands. Faces close the surface: every edge
// belongs to two, in opposite directions. A facet with more than three corners
// is a fan around the lexicographically least one (x, then y, then z), so the
// triangles are a function of the set of points alone. Each begins with its
// lowest index, and they ascend by first, then second index.
//
// It is exact for all finite coordinates. Cost: one pass over the coordinates
// where few points are near the surface, and expected O(n log n) in the worst
// case. It panics when slices differ in length, when there is no z, when a
// coordinate is not finite, or beyond 2^31-1 points.
//
// Sources: Barber, Dobkin and Huhdanpaa, "The Quickhull algorithm for convex
// hulls" (1996), for the order of insertion and the lists of outside points;
// Clarkson and Shor, "Applications of random sampling in computational
// geometry, II" (1989), for the order where that one turns out badly.
func (h *Hull3D[T]) Append(vertices, faces []int32, c geom.Cloud[T]) (v, f []int32, dim int) {
	n := c.Len()
	if c.Z == nil && n > 0 {
		panic(badSpace)
	}
	if len(c.Y) != n || len(c.Z) != n {
		panic(badLengths)
	}
	if n > math.MaxInt32 {
		panic(badSize)
	}
	h.seeded, h.survivors = false, n
	if n >= sieveFrom && (h.takeSeeded(c) || h.takeSieved(c)) {
		vertices, faces = h.body.appendSurface(vertices, faces)
		return vertices, faces, 3
	}
	if !c.Finite() {
		panic(badFinite)
	}
	h.takeAll(c)
	return h.finish(vertices, faces, c)
}

// Survivors returns how many points of the last cloud its sieve could not drop,
// all of them where there was no sieve, and whether the sieve was that of Seeds.
func (h *Hull3D[T]) Survivors() (n int, seeded bool) { return h.survivors, h.seeded }

// finish finds the hull of candidates of any dimension.
func (h *Hull3D[T]) finish(vertices, faces []int32, c geom.Cloud[T]) (v, f []int32, dim int) {
	b := &h.body
	seed, dim := b.simplex()
	switch dim {
	case 0:
		vertices = append(vertices, b.points[seed[0]].index)
	case 1:
		vertices = b.appendEnds(vertices)
	case 2:
		vertices = h.appendPolygon(vertices, c, seed)
	case 3:
		b.start(seed)
		b.grow()
		vertices, faces = b.appendSurface(vertices, faces)
	}
	return vertices, faces, dim
}

// appendPolygon appends the corners of the polygon of a cloud in one plane, of
// which seed holds three that are not collinear: those of its projection along
// an axis that leaves these so.
func (h *Hull3D[T]) appendPolygon(vertices []int32, c geom.Cloud[T], seed [4]int32) []int32 {
	p, q, r := &h.body.points[seed[0]], &h.body.points[seed[1]], &h.body.points[seed[2]]
	shadow := geom.Cloud[T]{X: c.X, Y: c.Y}
	if exact.Orient2D(p.x, p.y, q.x, q.y, r.x, r.y) == 0 {
		shadow = geom.Cloud[T]{X: c.Y, Y: c.Z}
		if exact.Orient2D(p.y, p.z, q.y, q.z, r.y, r.z) == 0 {
			shadow = geom.Cloud[T]{X: c.Z, Y: c.X}
		}
	}
	base := len(vertices)
	vertices = h.plane.Append(vertices, shadow)
	slices.Sort(vertices[base:])
	return vertices
}

// appendEnds appends the ends of collinear candidates.
func (p *polytope) appendEnds(vertices []int32) []int32 {
	a, b := p.ends()
	i, j := p.points[a].index, p.points[b].index
	return append(vertices, min(i, j), max(i, j))
}
