package hull

import (
	"fmt"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// BenchmarkHull2D: every distribution, from drawings to large surveys.
func BenchmarkHull2D(b *testing.B) {
	for _, n := range []int{50, 10_000, 1_000_000} {
		for _, g := range geomtest.Generators2D[float64]() {
			b.Run(fmt.Sprintf("%d/%s", n, g.Name), func(b *testing.B) { bench(b, 1, g.Make(n, seed)) })
		}
	}
}

// BenchmarkWorkers: one cloud shared by two goroutines.
func BenchmarkWorkers(b *testing.B) {
	for workers := 1; workers <= 2; workers++ {
		b.Run(fmt.Sprint(workers), func(b *testing.B) { bench(b, workers, geomtest.Square[float32](1_000_000, seed)) })
	}
}

// BenchmarkFrames: real LiDAR.
func BenchmarkFrames(b *testing.B) { bench(b, 1, cloudsOf(geomtest.RealFrames(b))...) }

// BenchmarkDrawings: thousands of small clouds.
func BenchmarkDrawings(b *testing.B) { bench(b, 1, cloudsOf(geomtest.Drawings[float32](b))...) }

func cloudsOf[T geom.Float](named []geomtest.Named[T]) (out []geom.Cloud[T]) {
	for _, c := range named {
		out = append(out, c.Cloud)
	}
	return out
}

// bench reports nanoseconds a point.
func bench[T geom.Float](b *testing.B, workers int, clouds ...geom.Cloud[T]) {
	h := Hull2D[T]{Workers: workers}
	var dst []int32
	n, vertices := 0, 0
	for _, c := range clouds {
		dst = h.Append(dst[:0], c)
		n += c.Len()
		vertices += len(dst)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range clouds {
			dst = h.Append(dst[:0], c)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(max(n, 1)), "ns/point")
	b.ReportMetric(float64(vertices), "vertices")
}
