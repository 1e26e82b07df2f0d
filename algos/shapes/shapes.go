// Package shapes draws clouds of named distributions from a source of random
// numbers.
//
//	r := rand.New(rand.NewPCG(1, 2))
//	cloud := shapes.Plane[float32](1000, r, shapes.Disk) // 1000 points, uniform in the unit disk
//	solid := shapes.Space[float64](1000, r, shapes.Sphere)
//
// The same source in the same state gives the same points, bit by bit, where the
// math library and the fusing of products are the same. Package geomtest, which
// only tests import, has the clouds that are hard for geometry.
package shapes

import (
	"math"
	"math/rand/v2"

	"entropipe/algos/geom"
)

// Point2 draws point i of n, 0 <= i < n, in the plane. Points are drawn in the order
// of i.
type Point2 func(r *rand.Rand, i, n int) (x, y float64)

// Point3 draws point i of n, 0 <= i < n, in space. Points are drawn in the order of
// i.
type Point3 func(r *rand.Rand, i, n int) (x, y, z float64)

// Plane returns a cloud of n points without z. The cloud belongs to the caller. It
// may be called concurrently with different sources.
func Plane[T geom.Float](n int, r *rand.Rand, draw Point2) geom.Cloud[T] {
	c := geom.Cloud[T]{X: make([]T, n), Y: make([]T, n)}
	for i := range n {
		x, y := draw(r, i, n)
		c.X[i], c.Y[i] = T(x), T(y)
	}
	return c
}

// Space returns a cloud of n points with z. The cloud belongs to the caller. It may
// be called concurrently with different sources.
func Space[T geom.Float](n int, r *rand.Rand, draw Point3) geom.Cloud[T] {
	c := geom.Cloud[T]{X: make([]T, n), Y: make([]T, n), Z: make([]T, n)}
	for i := range n {
		x, y, z := draw(r, i, n)
		c.X[i], c.Y[i], c.Z[i] = T(x), T(y), T(z)
	}
	return c
}

// Square is uniform in the unit square.
func Square(r *rand.Rand, _, _ int) (x, y float64) { return r.Float64(), r.Float64() }

// Disk is uniform in the unit disk.
func Disk(r *rand.Rand, _, _ int) (x, y float64) {
	sin, cos := math.Sincos(2 * math.Pi * r.Float64())
	d := math.Sqrt(r.Float64())
	return d * cos, d * sin
}

// Gauss is normal with unit variance.
func Gauss(r *rand.Rand, _, _ int) (x, y float64) { return r.NormFloat64(), r.NormFloat64() }

// Parabola is y = x² + N(0, 0.01), with x uniform in [-1, 1].
func Parabola(r *rand.Rand, _, _ int) (x, y float64) {
	x = 2*r.Float64() - 1
	return x, x*x + 0.01*r.NormFloat64()
}

// Circle has every point on the unit circle, as far as rounding allows.
func Circle(r *rand.Rand, _, _ int) (x, y float64) {
	y, x = math.Sincos(2 * math.Pi * r.Float64())
	return x, y
}

// Front is the segment from (0, 1) to (1, 0): no point dominates another.
func Front(r *rand.Rand, _, _ int) (x, y float64) {
	x = r.Float64()
	return x, 1 - x
}

// Grid is a square lattice of whole numbers, row by row; the last rows are missing
// where n is no square.
func Grid(_ *rand.Rand, i, n int) (x, y float64) {
	side := int(math.Ceil(math.Sqrt(float64(n))))
	return float64(i % side), float64(i / side)
}

// Clusters returns a distribution of normal clusters in the unit square, √n/4 but at
// least 16 of them, whose widths differ by up to twenty times. It draws the clusters
// from r.
func Clusters(n int, r *rand.Rand) Point2 {
	type cluster struct{ x, y, width float64 }
	clusters := make([]cluster, max(16, int(math.Sqrt(float64(n)))/4))
	for i := range clusters {
		clusters[i] = cluster{r.Float64(), r.Float64(), 0.0005 * math.Pow(20, r.Float64())}
	}
	return func(r *rand.Rand, _, _ int) (x, y float64) {
		c := clusters[r.IntN(len(clusters))]
		return c.x + c.width*r.NormFloat64(), c.y + c.width*r.NormFloat64()
	}
}

// Cube is uniform in the unit cube.
func Cube(r *rand.Rand, _, _ int) (x, y, z float64) { return r.Float64(), r.Float64(), r.Float64() }

// Ball is uniform in the unit ball.
func Ball(r *rand.Rand, i, n int) (x, y, z float64) {
	x, y, z = Sphere(r, i, n)
	d := math.Cbrt(r.Float64())
	return d * x, d * y, d * z
}

// Sphere is uniform on the unit sphere: nearly all points are vertices of the hull.
func Sphere(r *rand.Rand, _, _ int) (x, y, z float64) {
	x, y, z = r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
	d := math.Sqrt(x*x + y*y + z*z)
	return x / d, y / d, z / d
}

// Octant is uniform on the part of the unit sphere with positive coordinates: almost
// all points are maximal.
func Octant(r *rand.Rand, i, n int) (x, y, z float64) {
	x, y, z = Sphere(r, i, n)
	return math.Abs(x), math.Abs(y), math.Abs(z)
}

// Anti lies near the plane x + y + z = 1.5, which falls along every axis.
func Anti(r *rand.Rand, _, _ int) (x, y, z float64) {
	x, y, z = r.Float64(), r.Float64(), r.Float64()
	s := (1.5 + 0.12*r.NormFloat64()) / (x + y + z)
	return s * x, s * y, s * z
}
