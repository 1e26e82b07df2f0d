package hull

import (
	"math"
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// Hull3D computes convex hulls in space. The zero value is ready. A Hull3D keeps
// its working memory between calls: some 100 bytes for each point that its sieve
// cannot drop (a few points in a hundred for most clouds), and 500 bytes for each
// vertex. It must not be used by two goroutines at a time: make one for each
// goroutine.
//
// A face is a triangle of the surface, counter-clockwise seen from outside. A facet
// is the polygon that all faces in one plane make up.
type Hull3D[T geom.Float] struct {
	// Workers is the number of goroutines that share one large cloud. With 0 or 1
	// the caller's goroutine does all the work. The result is the same for any
	// number.
	Workers int

	// Seeds are indices of points of the next cloud that lie far out, in any order;
	// an index may be repeated. The hull of the seeds replaces the hull of a sample
	// as the first sieve: the farther out the seeds are, the more points the sieve
	// drops. The result does not depend on them. Append tries seeds on a few blocks
	// of points, and does not use seeds that drop too little. It only reads them,
	// and panics at an index out of range.
	Seeds []int32

	seeded    bool
	survivors int

	body  polytope
	sieve sieve[T]
	lanes []lane3
	plane Hull2D[T]
}

const badSpace = "hull: cloud without z"

// Append appends the indices of the vertices of the hull of c, ascending, to
// vertices, and the triangles of the hull's surface, three indices each, to faces.
// It returns the two extended slices and the dimension of the hull: 3 for a solid.
// Hulls of lower dimension have no faces: -1 for no point, 0 for equal points (one
// vertex), 1 for collinear points (the two ends), 2 for points in one plane (the
// corners of the polygon).
//
// A point inside an edge or a facet is no vertex; equal points (-0 equals 0) count
// as the one with the lowest index. The faces close the surface: every edge belongs
// to two faces, in opposite directions. A facet with more than three corners is a
// fan around its lexicographically least corner (x, then y, then z), so the faces
// are a function of the set of points alone. Each face begins with its lowest
// index; faces ascend by their first, then by their second index.
//
// The result is exact for all finite coordinates. Append only reads c, and keeps no
// reference to c or to the slices. Cost: one pass over the coordinates where few
// points are near the surface; expected O(n log n) in the worst case. It panics
// when slices differ in length, when there is no z, when a coordinate is not
// finite, and for more than 2^31-1 points.
//
// Sources: Barber, Dobkin and Huhdanpaa, "The Quickhull algorithm for convex
// hulls" (1996), for the order of insertion and the lists of outside points;
// Clarkson and Shor, "Applications of random sampling in computational
// geometry, II" (1989), for the random order where Quickhull's order is slow.
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

// Survivors returns the number of points of the last cloud that the sieve did not
// drop, which is the number of all points where there was no sieve. seeded reports
// whether the sieve was made of Seeds.
func (h *Hull3D[T]) Survivors() (n int, seeded bool) { return h.survivors, h.seeded }

// finish appends the hull of the candidates, whatever its dimension.
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

// appendPolygon appends the corners of the polygon of a cloud in one plane. seed
// holds three points that are not collinear. The corners are those of the cloud
// projected along an axis that keeps the three points from being collinear.
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
