// Package geomtest holds seeded point clouds, oracles in exact arithmetic and loaders of
// real data, for the tests and benchmarks of the operators.
//
// The program must not use it: only tests and benchmarks may import it. It shares no
// code with package exact, so that an error there cannot hide here. Oracles are written
// to be evidently right, not fast.
//
// A generator makes a cloud from a number of points and a seed; equal arguments give
// equal clouds on every machine with the same math library. An oracle computes the right
// result. A representative is the lowest index among points with equal coordinates,
// where -0 equals 0.
package geomtest

import (
	"math/rand/v2"

	"entropipe/algos/geom"
)

// Named is a cloud with the name of its generator, file or line.
type Named[T geom.Float] struct {
	Name  string
	Cloud geom.Cloud[T]
}

// Generator makes a cloud of n points from a seed, n >= 0. Generators of grids round n
// as their comments say; all other generators give exactly n points.
type Generator[T geom.Float] struct {
	Name string
	Make func(n int, seed uint64) geom.Cloud[T]
}

// Generators2D lists the generators of clouds in the plane: first friendly
// distributions, then clouds that break floating-point geometry, then clouds that break
// complexity.
func Generators2D[T geom.Float]() []Generator[T] {
	return []Generator[T]{
		{"square", Square[T]}, {"disk", Disk[T]}, {"gauss", Gauss[T]}, {"parabola", Parabola[T]},
		{"circle", Circle[T]}, {"strokes", Strokes[T]}, {"grid", Grid[T]}, {"rings", Rings[T]},
		{"collinear", Collinear[T]}, {"horizontal", Horizontal[T]}, {"vertical", Vertical[T]},
		{"equal", Equal[T]}, {"duplicates", Duplicates[T]}, {"integers", Integers[T]}, {"zeros", Zeros[T]},
		{"slivers", Slivers[T]}, {"utm", UTM[T]}, {"denormal", Denormal[T]}, {"huge", Huge[T]}, {"spread", Spread[T]},
		{"antichain", Antichain[T]}, {"sorted", Sorted[T]}, {"reversed", Reversed[T]}, {"outlier", Outlier[T]},
	}
}

// Generators3D lists the generators of clouds with z.
func Generators3D[T geom.Float]() []Generator[T] {
	return []Generator[T]{
		{"cube", Cube[T]}, {"lidar", Lidar[T]}, {"gauss3", Gauss3[T]}, {"octant", Octant[T]}, {"plane", Plane[T]},
		{"ridge", Ridge[T]}, {"grid3", Grid3[T]}, {"integers3", Integers3[T]}, {"duplicates3", Duplicates3[T]},
		{"equal3", Equal3[T]}, {"flat", Flat[T]}, {"sorted3", Sorted3[T]}, {"reversed3", Reversed3[T]},
		{"denormal3", Denormal3[T]}, {"huge3", Huge3[T]}, {"spread3", Spread3[T]}, {"zeros3", Zeros3[T]},
	}
}

// Clouds2D returns the clouds of all Generators2D.
func Clouds2D[T geom.Float](n int, seed uint64) []Named[T] {
	return run(Generators2D[T](), n, seed)
}

// Clouds3D returns the clouds of all Generators3D.
func Clouds3D[T geom.Float](n int, seed uint64) []Named[T] {
	return run(Generators3D[T](), n, seed)
}

func run[T geom.Float](gens []Generator[T], n int, seed uint64) []Named[T] {
	out := make([]Named[T], len(gens))
	for i, g := range gens {
		out[i] = Named[T]{g.Name, g.Make(n, seed)}
	}
	return out
}

// Points makes a cloud without z from coordinate pairs.
func Points[T geom.Float](xy ...[2]T) geom.Cloud[T] {
	c := geom.Cloud[T]{X: make([]T, len(xy)), Y: make([]T, len(xy))}
	for i, p := range xy {
		c.X[i], c.Y[i] = p[0], p[1]
	}
	return c
}

// Points3 makes a cloud with z from coordinate triples.
func Points3[T geom.Float](xyz ...[3]T) geom.Cloud[T] {
	c := geom.Cloud[T]{X: make([]T, len(xyz)), Y: make([]T, len(xyz)), Z: make([]T, len(xyz))}
	for i, p := range xyz {
		c.X[i], c.Y[i], c.Z[i] = p[0], p[1], p[2]
	}
	return c
}

// Permuted returns the points of c in a seeded random order, and the permutation:
// out[k] = c[perm[k]].
func Permuted[T geom.Float](c geom.Cloud[T], seed uint64) (out geom.Cloud[T], perm []int) {
	perm = rand.New(rand.NewPCG(seed, 0x9e4)).Perm(c.Len())
	return Gather(c, perm), perm
}

// Gather returns the points of c that idx names, in that order.
func Gather[T geom.Float, I int | int32](c geom.Cloud[T], idx []I) geom.Cloud[T] {
	axis := func(v []T) []T {
		if v == nil {
			return nil
		}
		w := make([]T, len(idx))
		for k, i := range idx {
			w[k] = v[i]
		}
		return w
	}
	return geom.Cloud[T]{X: axis(c.X), Y: axis(c.Y), Z: axis(c.Z)}
}
