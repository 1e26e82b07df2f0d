package maxima

import (
	"fmt"
	"math"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// BenchmarkMaxima3D: every distribution at a million points.
func BenchmarkMaxima3D(b *testing.B) {
	for _, g := range geomtest.Generators3D[float32]() {
		b.Run(g.Name, func(b *testing.B) { bench(b, 3, g.Make(1_000_000, seed)) })
	}
}

// BenchmarkMaxima2D: every distribution at a million points.
func BenchmarkMaxima2D(b *testing.B) {
	for _, g := range geomtest.Generators2D[float64]() {
		b.Run(g.Name, func(b *testing.B) { bench(b, 2, g.Make(1_000_000, seed)) })
	}
}

// BenchmarkAllMaximal shows n log n where all points stay: the column
// ns/point/log2 is flat but for what caches add.
func BenchmarkAllMaximal(b *testing.B) {
	for _, g := range []geomtest.Generator[float64]{{Name: "octant", Make: geomtest.Octant[float64]}, {Name: "plane", Make: geomtest.Plane[float64]}, {Name: "ridge", Make: geomtest.Ridge[float64]}} {
		for n := 1000; n <= 1_000_000; n *= 10 {
			b.Run(fmt.Sprintf("%s/%d", g.Name, n), func(b *testing.B) {
				b.ReportMetric(bench(b, 3, g.Make(n, seed))/math.Log2(float64(n)), "ns/point/log2")
			})
		}
	}
}

// BenchmarkFrames: real LiDAR, z and all.
func BenchmarkFrames(b *testing.B) {
	for _, f := range geomtest.RealFrames(b)[:3] {
		b.Run(f.Name, func(b *testing.B) { bench(b, 3, f.Cloud) })
	}
}

// BenchmarkDrawings: thousands of small clouds.
func BenchmarkDrawings(b *testing.B) { bench(b, 2, cloudsOf(geomtest.Drawings[float32](b))...) }

func cloudsOf[T geom.Float](named []geomtest.Named[T]) (out []geom.Cloud[T]) {
	for _, c := range named {
		out = append(out, c.Cloud)
	}
	return out
}

// bench reports and returns nanoseconds a point.
func bench[T geom.Float](b *testing.B, dims int, clouds ...geom.Cloud[T]) float64 {
	var m Maxima[T]
	var dst []int32
	n := 0
	for _, c := range clouds {
		n += c.Len()
		if dims == 3 {
			dst = m.Append3D(dst[:0], c)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range clouds {
			if dims == 2 {
				dst = m.Append2D(dst[:0], c)
			} else {
				dst = m.Append3D(dst[:0], c)
			}
		}
	}
	perPoint := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(max(n, 1))
	b.ReportMetric(perPoint, "ns/point")
	return perPoint
}
