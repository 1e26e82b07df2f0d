package net

import (
	"math"
	"slices"

	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
)

// Judge computes the error of a predicted answer: the exact value up to the
// rounding of a distance, not a bound. The zero value is ready. A Judge keeps its
// scratch memory and is not safe for concurrent use.
//
// The error of a hull is a maximum over all points of the cloud, found at the
// vertices of the exact hull alone: the distance to a convex set is a convex
// function, so over conv S it is largest at a vertex. The error of maxima is found
// at the exact maxima, which dominate all other points.
type Judge[T geom.Float] struct {
	Workers int // goroutines for the exact operators; 0 and 1 mean the caller's

	hull2  hull.Hull2D[T]
	hull3  hull.Hull3D[T]
	maxima maxima.Maxima[T]

	outer, inner []int32
	faces        []int32
	part         geom.Cloud[T] // the predicted points
	z            []T           // memory of its z
	corners      [][3]float64  // corners of the inner hull, scaled
	triangles    [][3]int32    // triangles of the inner hull, as indices of corners; a segment repeats one
	boxes        []box
	tree         boxTree
	rank         []int32 // rank of a vertex of the inner hull among its corners
	in           []bool  // whether a point is a vertex of the inner hull
}

// Texts of panics about the caller's mistakes.
const (
	badNone = "net: no predicted point of a cloud that has some"
	badFlat = "net: three dimensions asked of a cloud without z"
)

// Hull2D appends the vertices of the hull of the predicted points to dst, in the
// canonical order of hull.Hull2D. It returns the largest distance of a point of c to
// that hull, in the units of c: the Hausdorff distance of the two hulls. An empty
// cloud has error 0.
//
// predicted may have any order and repeat indices. Hull2D panics if predicted is
// empty and c is not. Cost: the exact hull of c, plus O(log m) for each of its
// vertices, where the predicted hull has m vertices.
func (j *Judge[T]) Hull2D(dst []int32, c geom.Cloud[T], predicted []int32) (idx []int32, err float64) {
	if c.Len() == 0 {
		return dst, 0
	}
	flat := geom.Cloud[T]{X: c.X, Y: c.Y}
	at := len(dst)
	dst = j.pick(dst, flat, predicted)
	j.hull2.Workers = j.Workers
	j.inner = j.hull2.Append(j.inner[:0], j.part)
	dst = translate(dst, at, j.inner)
	j.outer = j.hull2.Append(j.outer[:0], flat)
	size := scale(flat)
	j.setCorners(size)
	for i := range j.corners {
		j.triangles = append(j.triangles, [3]int32{int32(i), int32((i + 1) % len(j.corners)), int32(i)})
	}
	return dst, j.farthest(flat, dst[at:], size)
}

// Hull3D is Hull2D in space. It appends vertices and faces of the hull of the
// predicted points as hull.Hull3D does, and returns the dimension of that hull, -1
// for an empty cloud, and the error. Hull3D panics if c has points without z.
func (j *Judge[T]) Hull3D(vertices, faces []int32, c geom.Cloud[T], predicted []int32) (v, f []int32,
	dim int, err float64) {
	if c.Len() == 0 {
		return vertices, faces, -1, 0
	}
	if c.Z == nil {
		panic(badFlat)
	}
	at, first := len(vertices), len(faces)
	vertices = j.pick(vertices, c, predicted)
	j.hull3.Workers = j.Workers
	j.inner, faces, dim = j.hull3.Append(j.inner[:0], faces, j.part)
	size := scale(c)
	j.setCorners(size)
	j.surface(dim, faces[first:])
	for k, i := range faces[first:] { // the order by indices survives: they ascend
		faces[first+k] = vertices[at+int(i)]
	}
	vertices = translate(vertices, at, j.inner)
	j.outer, j.faces, _ = j.hull3.Append(j.outer[:0], j.faces[:0], c)
	return vertices, faces, dim, j.farthest(c, vertices[at:], size)
}

// pick sets j.part to the predicted points, each once and ascending, and appends
// their indices to dst.
func (j *Judge[T]) pick(dst []int32, c geom.Cloud[T], predicted []int32) []int32 {
	if len(predicted) == 0 {
		panic(badNone)
	}
	at := len(dst)
	dst = append(dst, predicted...)
	slices.Sort(dst[at:])
	dst = dst[:at+len(slices.Compact(dst[at:]))]
	x, y, z := j.part.X[:0], j.part.Y[:0], j.z[:0]
	for _, i := range dst[at:] {
		x, y = append(x, c.X[i]), append(y, c.Y[i])
		if c.Z != nil {
			z = append(z, c.Z[i])
		}
	}
	j.part = geom.Cloud[T]{X: x, Y: y}
	if c.Z != nil {
		j.part.Z, j.z = z, z
	}
	return dst
}

// translate replaces dst[at:], the indices of the points of j.part, by the indices
// of the chosen points, in the order of chosen.
func translate(dst []int32, at int, chosen []int32) []int32 {
	n := len(dst)
	for _, k := range chosen {
		dst = append(dst, dst[at+int(k)])
	}
	return append(dst[:at], dst[n:]...)
}

// scale returns the power of two by which coordinates are divided so that
// squares neither overflow nor vanish.
func scale[T geom.Float](c geom.Cloud[T]) float64 {
	most := 0.0
	for _, axis := range [...][]T{c.X, c.Y, c.Z} {
		for _, v := range axis {
			most = max(most, math.Abs(float64(v)))
		}
	}
	if most == 0 {
		return 1
	}
	_, e := math.Frexp(most)
	return math.Ldexp(1, max(e-1, -1022))
}

// point returns point i of c, divided by size.
func point[T geom.Float](c geom.Cloud[T], i int32, size float64) [3]float64 {
	p := [3]float64{float64(c.X[i]) / size, float64(c.Y[i]) / size}
	if c.Z != nil {
		p[2] = float64(c.Z[i]) / size
	}
	return p
}

func (j *Judge[T]) setCorners(size float64) {
	j.corners, j.triangles = j.corners[:0], j.triangles[:0]
	for _, i := range j.inner {
		j.corners = append(j.corners, point(j.part, i, size))
	}
}

// surface makes the triangles of the inner hull in space from its faces, which
// hold indices of j.part.
func (j *Judge[T]) surface(dim int, faces []int32) {
	if dim == 3 {
		j.rank = grown(j.rank, j.part.Len())
		for k, i := range j.inner {
			j.rank[i] = int32(k)
		}
		for ; len(faces) > 0; faces = faces[3:] {
			j.triangles = append(j.triangles, [3]int32{j.rank[faces[0]], j.rank[faces[1]], j.rank[faces[2]]})
		}
		return
	}
	ring := []int32{0, int32(len(j.corners) - 1)}
	if dim == 2 {
		ring = j.ring()
	}
	if len(ring) < 3 {
		j.triangles = append(j.triangles, [3]int32{ring[0], ring[1], ring[0]})
		return
	}
	for k := 2; k < len(ring); k++ {
		j.triangles = append(j.triangles, [3]int32{ring[0], ring[k-1], ring[k]})
	}
}

// ring orders the corners of a polygon in space: as those of its shadow along
// the axis in which its plane is seen largest.
func (j *Judge[T]) ring() []int32 {
	var best []int32
	area := -1.0
	var planar hull.Hull2D[float64]
	for drop := range 3 {
		var shadow geom.Cloud[float64]
		for _, p := range j.corners {
			shadow.X, shadow.Y = append(shadow.X, p[(drop+1)%3]), append(shadow.Y, p[(drop+2)%3])
		}
		idx := planar.Append(nil, shadow)
		if a, _ := hull.Measure(shadow, idx); len(idx) > len(best) || len(idx) == len(best) && a > area {
			best, area = idx, a
		}
	}
	return best
}

// farthest returns the largest distance of an outer vertex to the inner hull.
// An outer vertex is a vertex of the inner hull too or lies outside it, so the
// distance to the surface is that to the body.
func (j *Judge[T]) farthest(c geom.Cloud[T], inner []int32, size float64) float64 {
	j.boxes = j.boxes[:0]
	for _, t := range j.triangles {
		b := emptyBox()
		for _, k := range t {
			b.add(j.corners[k])
		}
		j.boxes = append(j.boxes, b)
	}
	j.tree.build(j.boxes)
	j.in = append(j.in[:0], make([]bool, c.Len())...)
	for _, i := range inner {
		j.in[i] = true
	}
	worst := 0.0
	for _, i := range j.outer {
		if j.in[i] {
			continue
		}
		p := point(c, i, size)
		worst = max(worst, j.tree.least(
			func(b *box) float64 { return b.squaredDistance(p) },
			func(k int32) float64 {
				t := j.triangles[k]
				return toTriangle(p, j.corners[t[0]], j.corners[t[1]], j.corners[t[2]])
			}))
	}
	return math.Sqrt(worst) * size
}

// Maxima returns the additive ε-dominance error of the predicted points: the least
// ε >= 0 such that every point of c is weakly dominated by a predicted point with ε
// added on each axis. Axes are x and y, and z if dims is 3; low marks the axes that
// are minimised. An empty cloud has error 0. Maxima panics if predicted is empty and
// c is not, or if dims is 3 and c has points without z.
//
// Cost: the exact maxima of c, plus a search among the predicted points for each.
func (j *Judge[T]) Maxima(c geom.Cloud[T], predicted []int32, dims int, low [3]bool) float64 {
	if c.Len() == 0 {
		return 0
	}
	if len(predicted) == 0 {
		panic(badNone)
	}
	axes := [][]T{c.X, c.Y, c.Z}[:dims]
	if dims == 3 && c.Z == nil {
		panic(badFlat)
	}
	copy(j.maxima.Min[:], low[:])
	j.maxima.Workers = j.Workers
	j.outer = j.maxima.AppendD(j.outer[:0], axes)
	size := scale(c)
	at := func(i int32) (p [3]float64) {
		for d, axis := range axes {
			if p[d] = float64(axis[i]) / size; low[d] {
				p[d] = -p[d]
			}
		}
		return p
	}
	j.boxes = j.boxes[:0]
	for _, i := range predicted {
		b := emptyBox()
		b.add(at(i))
		j.boxes = append(j.boxes, b)
	}
	j.tree.build(j.boxes)
	worst := 0.0
	for _, i := range j.outer {
		p := at(i)
		behind := func(b *box) float64 {
			e := 0.0
			for d := range axes {
				e = max(e, p[d]-b.hi[d])
			}
			return e
		}
		worst = max(worst, j.tree.least(behind, func(k int32) float64 { return behind(&j.boxes[k]) }))
	}
	return worst * size
}
