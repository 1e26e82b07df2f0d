package geomtest

import (
	"math"
	"math/rand/v2"

	"entropipe/algos/geom"
	"entropipe/algos/shapes"
)

// Ball is uniform in the unit ball: about √n points are extreme. It rejects points of
// a cube, so its points are not those of shapes.Ball.
func Ball[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return space[T](n, seed, func(r *rand.Rand, _ int) (x, y, z float64) {
		for {
			x, y, z = 2*r.Float64()-1, 2*r.Float64()-1, 2*r.Float64()-1
			if float64(x*x)+float64(y*y)+float64(z*z) < 1 {
				return x, y, z
			}
		}
	})
}

// Sphere is uniform on the unit sphere: nearly all points are extreme.
func Sphere[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return drawSpace[T](n, seed, shapes.Sphere)
}

// CubeFaces are lattice points on the surface of a cube: large facets with many collinear
// points on their edges.
func CubeFaces[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	const side = 1000
	return space[T](n, seed, func(r *rand.Rand, _ int) (x, y, z float64) {
		p := [3]float64{float64(r.IntN(side + 1)), float64(r.IntN(side + 1)), float64(r.IntN(side + 1))}
		p[r.IntN(3)] = side * float64(r.IntN(2))
		return p[0], p[1], p[2]
	})
}

// Moment lies on the curve (t, t², t³) in order of t. All points are vertices of the hull.
func Moment[T geom.Float](n int, _ uint64) geom.Cloud[T] {
	return space[T](n, 0, func(_ *rand.Rand, i int) (x, y, z float64) {
		t := float64(i)/float64(n)*2 - 1
		return t, t * t, t * t * t
	})
}

// Spiral winds around the paraboloid z = x² + y² upwards from its tip.
func Spiral[T geom.Float](n int, _ uint64) geom.Cloud[T] {
	return space[T](n, 0, func(_ *rand.Rand, i int) (x, y, z float64) {
		t := float64(i+1) / float64(n)
		s, c := math.Sincos(40 * math.Pi * t)
		return t * c, t * s, t * t
	})
}

// Discs lies on and inside two parallel circles, one turned by half a step against the
// other: the hull has two large facets with a ring of narrow faces between them.
func Discs[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return space[T](n, seed, func(r *rand.Rand, i int) (x, y, z float64) {
		d := 1.0
		if i%4 > 1 {
			d = math.Sqrt(r.Float64())
		}
		s, c := math.Sincos(2 * math.Pi * (float64(i) + 0.5*float64(i%2)) / float64(n))
		return d * c, d * s, float64(i % 2)
	})
}

// Needle is a circle with one point far above its middle, which has an edge to every
// other vertex.
func Needle[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return space[T](n, seed, func(r *rand.Rand, i int) (x, y, z float64) {
		if i == n/2 {
			return 0, 0, 10
		}
		s, c := math.Sincos(2 * math.Pi * r.Float64())
		return c, s, 0.001 * r.Float64()
	})
}

// Shells lies on circles around one axis, each with half the radius of the last and nearer
// to the tip. An algorithm that always inserts the farthest point meets the circles one
// by one.
func Shells[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return space[T](n, seed, func(r *rand.Rand, i int) (x, y, z float64) {
		size := math.Ldexp(1, -(i % 40))
		s, c := math.Sincos(2 * math.Pi * r.Float64())
		return size * c, size * s, -math.Sqrt(size)
	})
}
