package maxima

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/internal/kernel"
)

// Names are distribution/points/type/level/workers. Each benchmark reports
// ns/point and, as floor, what one read of the same coordinates took in the
// same run.

// BenchmarkSpace: distributions with few, some and only maximal points.
func BenchmarkSpace(b *testing.B) {
	spaces[float64](b, 1_000_000, 1)
	spaces[float32](b, 1_000_000, 1)
	spaces[float64](b, 1_000_000, 2)
	for n := 100; n <= 100_000; n *= 10 {
		spaces[float64](b, n, 1)
	}
	atLevels(b, func() { spaces[float32](b, 120_000, 1) })
}

func spaces[T geom.Float](b *testing.B, n, workers int) {
	for _, g := range []geomtest.Generator[T]{
		{Name: "cube", Make: geomtest.Cube[T]}, {Name: "gauss", Make: geomtest.Gauss3[T]},
		{Name: "lidar", Make: geomtest.Lidar[T]},
		{Name: "anti", Make: anticorrelated[T]}, {Name: "octant", Make: geomtest.Octant[T]},
		{Name: "plane", Make: geomtest.Plane[T]},
		{Name: "ridge", Make: geomtest.Ridge[T]}, {Name: "integers", Make: geomtest.Integers3[T]},
		{Name: "spread", Make: geomtest.Spread3[T]},
	} {
		c := g.Make(n, seed)
		bench(b, fmt.Sprintf("%s/%d/%T/%v/%d", g.Name, n, T(0), kernel.Best(), workers), workers, [][]T{c.X, c.Y, c.Z})
	}
}

// BenchmarkPlane: every distribution of the plane.
func BenchmarkPlane(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		for _, g := range geomtest.Generators2D[float64]() {
			c := g.Make(n, seed)
			bench(b, fmt.Sprintf("%s/%d/float64/%v/1", g.Name, n, kernel.Best()), 1, [][]float64{c.X, c.Y})
		}
	}
}

// BenchmarkFrames: real LiDAR, with z and from above.
func BenchmarkFrames(b *testing.B) {
	for _, f := range geomtest.RealFrames(b)[:3] {
		atLevels(b, func() {
			bench(b, fmt.Sprintf("%s/space/%v", f.Name, kernel.Best()), 1, [][]float32{f.Cloud.X, f.Cloud.Y, f.Cloud.Z})
			bench(b, fmt.Sprintf("%s/plane/%v", f.Name, kernel.Best()), 1, [][]float32{f.Cloud.X, f.Cloud.Y})
		})
	}
}

// BenchmarkDrawings: thousands of small clouds.
func BenchmarkDrawings(b *testing.B) {
	var clouds [][][]float32
	for _, d := range geomtest.Drawings[float32](b) {
		clouds = append(clouds, [][]float32{d.Cloud.X, d.Cloud.Y})
	}
	atLevels(b, func() { bench(b, kernel.Best().String(), 1, clouds...) })
}

// BenchmarkAxes: uniform points, most of them maximal when axes are many, and
// points of equal sum, all of them maximal.
func BenchmarkAxes(b *testing.B) {
	r := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{1000, 10_000, 100_000} {
		for dims := 2; dims <= MaxDims; dims++ {
			if n == 100_000 && dims > 6 {
				continue // a minute a run
			}
			uniform := make([][]float64, dims)
			for k := range uniform {
				uniform[k] = geomtest.Square[float64](n, uint64(k)).X
			}
			bench(b, fmt.Sprintf("uniform/%d/%d axes", n, dims), 1, uniform)
			bench(b, fmt.Sprintf("simplex/%d/%d axes", n, dims), 1, simplex(r, dims, n, 0))
		}
	}
}

// anticorrelated points lie near the plane x + y + z = 3/2 in the unit cube:
// what is good on one axis is bad on others, as among goods on a market.
func anticorrelated[T geom.Float](n int, seed uint64) geom.Cloud[T] {
	r := rand.New(rand.NewPCG(seed, 0xa))
	var c geom.Cloud[T]
	for len(c.X) < n {
		x, y, z := r.Float64(), r.Float64(), r.Float64()
		s := (1.5 + 0.12*r.NormFloat64()) / (x + y + z)
		if x, y, z = s*x, s*y, s*z; max(x, y, z) <= 1 {
			c.X, c.Y, c.Z = append(c.X, T(x)), append(c.Y, T(y)), append(c.Z, T(z))
		}
	}
	return c
}

// atLevels calls f at each level that this CPU has.
func atLevels(b *testing.B, f func()) {
	for _, l := range []kernel.Level{kernel.Portable, kernel.AVX2, kernel.AVX512} {
		if l <= kernel.Best() {
			restore := kernel.Limit(l)
			f()
			restore()
		}
	}
}

func bench[T geom.Float](b *testing.B, name string, workers int, clouds ...[][]T) {
	b.Run(name, func(b *testing.B) {
		m := Maxima[T]{Workers: workers}
		var dst []int32
		n := 0
		for _, c := range clouds {
			n += len(c[0])
			dst = m.AppendD(dst[:0], c)
		}
		b.ReportAllocs()
		for b.Loop() {
			for _, c := range clouds {
				dst = m.AppendD(dst[:0], c)
			}
		}
		perPoint := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(n)
		b.ReportMetric(perPoint, "ns/point")
		b.ReportMetric(floor(clouds)/float64(n), "floor")
	})
}

// floor is the time of one read of all coordinates, the best of several.
func floor[T geom.Float](clouds [][][]T) float64 {
	best := math.Inf(1)
	for range 10 {
		start := time.Now()
		for _, c := range clouds {
			for _, v := range c {
				if !kernel.Finite(v) {
					panic("not finite")
				}
			}
		}
		best = min(best, float64(time.Since(start).Nanoseconds()))
	}
	return best
}
