package geomtest

import (
	"math"
	"math/rand/v2"
	"slices"

	"entropipe/algos/geom"
	"entropipe/algos/shapes"
)

// plane draws n points of a cloud without z.
func plane[T geom.Float](n int, seed uint64, f func(r *rand.Rand, i int) (x, y float64)) geom.Cloud[T] {
	return drawPlane[T](n, seed, func(r *rand.Rand, i, _ int) (x, y float64) { return f(r, i) })
}

// drawPlane draws n points of a distribution of package shapes.
func drawPlane[T geom.Float](n int, seed uint64, draw shapes.Point2) geom.Cloud[T] {
	return shapes.Plane[T](n, rand.New(rand.NewPCG(seed, 0x2d)), draw)
}

// is32 reports whether T is float32.
func is32[T geom.Float]() bool { return T(1)+T(1e-10) == 1 }

// Square is uniform in the unit square.
func Square[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return drawPlane[T](n, seed, shapes.Square)
}

// Disk is uniform in the unit disk.
func Disk[T geom.Float](n int, seed uint64) geom.Cloud[T] { return drawPlane[T](n, seed, shapes.Disk) }

// Gauss is normal with unit variance.
func Gauss[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return drawPlane[T](n, seed, shapes.Gauss)
}

// Parabola is y = x² + N(0, 0.01), x uniform in [-1, 1].
func Parabola[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return drawPlane[T](n, seed, shapes.Parabola)
}

// Circle has every point on the unit circle, as far as rounding allows. Its hull and its
// Delaunay triangulation are the largest, and most of their signs are hard.
func Circle[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return drawPlane[T](n, seed, shapes.Circle)
}

// Strokes are the points of a pen on a 256 x 256 canvas of integers: smooth lines of
// some thirty points, many of which are equal or collinear.
func Strokes[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	var x, y, dir float64
	return plane[T](n, seed, func(r *rand.Rand, _ int) (float64, float64) {
		if x == 0 || r.IntN(30) == 0 {
			x, y, dir = 256*r.Float64(), 256*r.Float64(), 2*math.Pi*r.Float64()
		}
		dir += 0.4 * r.NormFloat64()
		s, c := math.Sincos(dir)
		x, y = min(max(x+4*c, 1), 255), min(max(y+4*s, 0), 255)
		return math.Floor(x), math.Floor(y)
	})
}

// Grid is a square lattice in row order. It rounds n down to a square.
func Grid[T geom.Float](n int, _ uint64) geom.Cloud[T] {
	side := int(math.Sqrt(float64(n)))
	return drawPlane[T](side*side, 0, shapes.Grid)
}

// Rings is Lidar seen from above.
func Rings[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	c := Lidar[T](n, seed)
	c.Z = nil
	return c
}

// Collinear lies exactly on y = 2x + 1, in random order. Some points occur twice.
func Collinear[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return plane[T](n, seed, func(r *rand.Rand, _ int) (x, y float64) {
		x = float64(r.IntN(n))
		return x, 2*x + 1
	})
}

// Horizontal lies on y = 7.
func Horizontal[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return plane[T](n, seed, func(r *rand.Rand, _ int) (x, y float64) { return r.Float64(), 7 })
}

// Vertical lies on x = -3.
func Vertical[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return plane[T](n, seed, func(r *rand.Rand, _ int) (x, y float64) { return -3, r.NormFloat64() })
}

// Equal is one point, n times.
func Equal[T geom.Float](n int, _ uint64) geom.Cloud[T] {
	return plane[T](n, 0, func(*rand.Rand, int) (x, y float64) { return 1.5, -2.25 })
}

// Duplicates has n points and only 37 distinct ones.
func Duplicates[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	few := Gauss[T](37, seed+1)
	return plane[T](n, seed, func(r *rand.Rand, _ int) (x, y float64) {
		i := r.IntN(37)
		return float64(few.X[i]), float64(few.Y[i])
	})
}

// Integers has coordinates 0 to 7: ties, collinear and cocircular points
// everywhere.
func Integers[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return plane[T](n, seed, func(r *rand.Rand, _ int) (x, y float64) { return float64(r.IntN(8)), float64(r.IntN(8)) })
}

// Zeros has coordinates -1, -0, 0 and 1.
func Zeros[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	values := [4]float64{-1, math.Copysign(0, -1), 0, 1}
	return plane[T](n, seed, func(r *rand.Rand, _ int) (x, y float64) { return values[r.IntN(4)], values[r.IntN(4)] })
}

// Slivers are points of y = 0.1x + 0.3, rounded: they are almost collinear, so that a
// determinant in floating point has a random sign.
func Slivers[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return plane[T](n, seed, func(r *rand.Rand, _ int) (x, y float64) {
		x = float64(r.IntN(1000)) / 7
		return x, 0.1*x + 0.3
	})
}

// UTM is a metre-sized neighbourhood ten thousand kilometres from the origin.
func UTM[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return plane[T](n, seed, func(r *rand.Rand, _ int) (x, y float64) { return 1e7 + r.Float64(), 5e6 + r.Float64() })
}

// Denormal has coordinates of a few hundred times the smallest number.
func Denormal[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	tiny := tiniest[T]()
	return plane[T](n, seed, func(r *rand.Rand, _ int) (x, y float64) {
		return tiny * float64(r.IntN(600)-300), tiny * float64(r.IntN(600)-300)
	})
}

func tiniest[T geom.Float]() float64 {
	if is32[T]() {
		return math.SmallestNonzeroFloat32
	}
	return math.SmallestNonzeroFloat64
}

// Huge has coordinates up to the largest finite number on either side, so that their
// differences overflow.
func Huge[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	top := largest[T]()
	return plane[T](n, seed, func(r *rand.Rand, i int) (x, y float64) {
		if i == n/2 {
			return top, -top
		}
		return top * (2*r.Float64() - 1), top * (2*r.Float64() - 1)
	})
}

func largest[T geom.Float]() float64 {
	if is32[T]() {
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

// Spread mixes magnitudes from denormal to huge.
func Spread[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return plane[T](n, seed, func(r *rand.Rand, _ int) (x, y float64) { return magnitude[T](r), magnitude[T](r) })
}

func magnitude[T geom.Float](r *rand.Rand) float64 {
	lo, hi := -1074, 1023
	if is32[T]() {
		lo, hi = -149, 127
	}
	return math.Ldexp(2*r.Float64()-1, lo+r.IntN(hi-lo+1))
}

// Antichain has constant x + y, so that every point is maximal; all x are distinct if T
// can represent them.
func Antichain[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	perm := rand.New(rand.NewPCG(seed, 0xac)).Perm(n)
	return plane[T](n, seed, func(_ *rand.Rand, i int) (x, y float64) { return float64(perm[i]), float64(n - perm[i]) })
}

// Sorted is Square in ascending order of x, then y.
func Sorted[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	c := Square[T](n, seed)
	idx := make([]int, n)
	for i := range idx {
		idx[i] = i
	}
	slices.SortFunc(idx, func(a, b int) int {
		switch {
		case c.X[a] < c.X[b], c.X[a] == c.X[b] && c.Y[a] < c.Y[b]:
			return -1
		case c.X[a] == c.X[b] && c.Y[a] == c.Y[b]:
			return a - b
		}
		return 1
	})
	return Gather(c, idx)
}

// Reversed is Sorted backwards.
func Reversed[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	c := Sorted[T](n, seed)
	slices.Reverse(c.X)
	slices.Reverse(c.Y)
	return c
}

// Outlier is a cluster of one nanometre with one point a million kilometres away, which
// stretches the bounding box.
func Outlier[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	return plane[T](n, seed, func(r *rand.Rand, i int) (x, y float64) {
		if i == n/3 {
			return 1e9, 1e9
		}
		return 1e-9 * r.Float64(), 1e-9 * r.Float64()
	})
}
