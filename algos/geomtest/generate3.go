package geomtest

import (
	"math"
	"math/rand/v2"
	"slices"

	"entropipe/algos/geom"
	"entropipe/algos/shapes"
)

// space draws n points of a cloud with z.
func space[T geom.Float](n int, seed uint64, f func(r *rand.Rand, i int) (x, y, z float64)) geom.Cloud[T] {
	return drawSpace[T](n, seed, func(r *rand.Rand, i, _ int) (x, y, z float64) { return f(r, i) })
}

// drawSpace draws n points of a distribution of package shapes.
func drawSpace[T geom.Float](n int, seed uint64, draw shapes.Point3) geom.Cloud[T] {
	return shapes.Space[T](n, rand.New(rand.NewPCG(seed, 0x3d)), draw)
}

// Cube is uniform in the unit cube.
func Cube[T geom.Float](n int, seed uint64) geom.Cloud[T] { return drawSpace[T](n, seed, shapes.Cube) }

// Gauss3 is normal with unit variance.
func Gauss3[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return space[T](n, seed, func(r *rand.Rand, _ int) (x, y, z float64) {
		return r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
	})
}

// Lidar is one turn of a 64-beam scanner, ring after ring: the ground lies 1.73 m below
// the sensor, and the distance of walls depends on the bearing.
func Lidar[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	const beams, height = 64, 1.73
	turn := max(1, (n+beams-1)/beams)
	return space[T](n, seed, func(r *rand.Rand, i int) (x, y, z float64) {
		elevation := (2 - 26.8*float64(i/turn)/beams) * math.Pi / 180
		azimuth := 2 * math.Pi * float64(i%turn) / float64(turn)
		wall := 20 + 15*math.Sin(3*azimuth+float64(seed%7)) + 40*math.Abs(math.Sin(math.Floor(11*azimuth)))
		d := wall / math.Cos(elevation)
		if elevation < 0 {
			d = min(d, height/math.Sin(-elevation))
		}
		d += 0.02 * r.NormFloat64()
		s, c := math.Sincos(azimuth)
		return d * math.Cos(elevation) * c, d * math.Cos(elevation) * s, d * math.Sin(elevation)
	})
}

// Octant lies on the part of the unit sphere with positive coordinates:
// almost all points are maximal.
func Octant[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return drawSpace[T](n, seed, shapes.Octant)
}

// Plane lies on x + y + z = 2^21 in integers: no point dominates another, whether all
// axes are maximised or all are minimised.
func Plane[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return space[T](n, seed, func(r *rand.Rand, _ int) (x, y, z float64) {
		i, j := r.IntN(1<<20), r.IntN(1<<20)
		return float64(i), float64(j), float64(1<<21 - i - j)
	})
}

// Ridge has constant x + y and random z: all points are maximal, and a sweep along z
// keeps a staircase of all points so far, which enter at random places.
func Ridge[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	c := Antichain[T](n, seed)
	r := rand.New(rand.NewPCG(seed, 0x51d6e))
	c.Z = make([]T, n)
	for i := range c.Z {
		c.Z[i] = T(r.Float64())
	}
	return c
}

// Grid3 is a cubic lattice. It rounds n down to a cube.
func Grid3[T geom.Float](n int, _ uint64) geom.Cloud[T] {
	side := int(math.Cbrt(float64(n) + 0.5))
	return space[T](side*side*side, 0, func(_ *rand.Rand, i int) (x, y, z float64) {
		return float64(i % side), float64(i / side % side), float64(i / side / side)
	})
}

// Integers3 has coordinates 0 to 7.
func Integers3[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return space[T](n, seed, func(r *rand.Rand, _ int) (x, y, z float64) {
		return float64(r.IntN(8)), float64(r.IntN(8)), float64(r.IntN(8))
	})
}

// Duplicates3 has n points and only 37 distinct ones.
func Duplicates3[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	few := Gauss3[T](37, seed+1)
	return space[T](n, seed, func(r *rand.Rand, _ int) (x, y, z float64) {
		i := r.IntN(37)
		return float64(few.X[i]), float64(few.Y[i]), float64(few.Z[i])
	})
}

// Equal3 is one point, n times.
func Equal3[T geom.Float](n int, _ uint64) geom.Cloud[T] {
	return space[T](n, 0, func(*rand.Rand, int) (x, y, z float64) { return 1.5, -2.25, 4 })
}

// Flat is Square at z = 3.
func Flat[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return space[T](n, seed, func(r *rand.Rand, _ int) (x, y, z float64) { return r.Float64(), r.Float64(), 3 })
}

// Sorted3 is a chain: every point dominates those before it.
func Sorted3[T geom.Float](n int, _ uint64) geom.Cloud[T] {
	return space[T](n, 0, func(_ *rand.Rand, i int) (x, y, z float64) {
		return float64(i), float64(i / 2), float64(i / 3)
	})
}

// Reversed3 is Sorted3 backwards.
func Reversed3[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	c := Sorted3[T](n, seed)
	slices.Reverse(c.X)
	slices.Reverse(c.Y)
	slices.Reverse(c.Z)
	return c
}

// Denormal3 is Denormal with z.
func Denormal3[T geom.Float](n int, seed uint64) geom.Cloud[T] { return lift(Denormal[T], n, seed) }

// Huge3 is Huge with z.
func Huge3[T geom.Float](n int, seed uint64) geom.Cloud[T] { return lift(Huge[T], n, seed) }

// Spread3 is Spread with z.
func Spread3[T geom.Float](n int, seed uint64) geom.Cloud[T] { return lift(Spread[T], n, seed) }

// Zeros3 is Zeros with z.
func Zeros3[T geom.Float](n int, seed uint64) geom.Cloud[T] { return lift(Zeros[T], n, seed) }

// lift takes z from the x of a second cloud.
func lift[T geom.Float](f func(int, uint64) geom.Cloud[T], n int, seed uint64) geom.Cloud[T] {
	c := f(n, seed)
	c.Z = f(n, seed+1).X
	return c
}
