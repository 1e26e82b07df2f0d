package hull

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/internal/kernel"
)

// BenchmarkHull2D: every distribution, from drawings to large surveys, named
// distribution/points/type/level/workers.
func BenchmarkHull2D(b *testing.B) {
	for _, n := range []int{50, 10_000, 1_000_000} {
		benchDistributions[float64](b, n)
		benchDistributions[float32](b, n)
	}
}

func benchDistributions[T geom.Float](b *testing.B, n int) {
	for _, g := range geomtest.Generators2D[T]() {
		for _, workers := range []int{1, 2} {
			if workers*laneFrom > n && workers > 1 {
				continue
			}
			name := fmt.Sprintf("%s/%d/%T/%v/%d", g.Name, n, T(0), kernel.Best(), workers)
			b.Run(name, func(b *testing.B) { bench(b, workers, g.Make(n, seed)) })
		}
	}
}

// BenchmarkLarge: more points than any cache holds.
func BenchmarkLarge(b *testing.B) {
	c := geomtest.Square[float64](10_000_000, seed)
	for workers := 1; workers <= 2; workers++ {
		b.Run(fmt.Sprintf("square/10000000/float64/%v/%d", kernel.Best(), workers),
			func(b *testing.B) { bench(b, workers, c) })
	}
}

// BenchmarkLevels compares the levels of vector units.
func BenchmarkLevels(b *testing.B) {
	for _, l := range []kernel.Level{kernel.Portable, kernel.AVX2, kernel.AVX512} {
		if l > kernel.Best() {
			continue
		}
		b.Run(fmt.Sprintf("square/1000000/float64/%v/1", l), func(b *testing.B) {
			defer kernel.Limit(l)()
			bench(b, 1, geomtest.Square[float64](1_000_000, seed))
		})
		b.Run(fmt.Sprintf("kitti/all/float32/%v/1", l), func(b *testing.B) {
			defer kernel.Limit(l)()
			bench(b, 1, cloudsOf(geomtest.RealFrames(b))...)
		})
	}
}

// BenchmarkFrames: real LiDAR.
func BenchmarkFrames(b *testing.B) {
	for workers := 1; workers <= 2; workers++ {
		b.Run(fmt.Sprintf("kitti/all/float32/%v/%d", kernel.Best(), workers), func(b *testing.B) {
			bench(b, workers, cloudsOf(geomtest.RealFrames(b))...)
		})
	}
}

// BenchmarkDrawings: thousands of small clouds.
func BenchmarkDrawings(b *testing.B) {
	b.Run(fmt.Sprintf("quickdraw/all/float32/%v/1", kernel.Best()), func(b *testing.B) {
		bench(b, 1, cloudsOf(geomtest.Drawings[float32](b))...)
	})
}

func cloudsOf[T geom.Float](named []geomtest.Named[T]) (out []geom.Cloud[T]) {
	for _, c := range named {
		out = append(out, c.Cloud)
	}
	return out
}

// bench reports nanoseconds a point, the mean and the best of all runs, and
// what part of the best a plain read of the same coordinates takes: the floor,
// measured between the runs.
func bench[T geom.Float](b *testing.B, workers int, clouds ...geom.Cloud[T]) {
	h := Hull2D[T]{Workers: workers}
	var dst []int32
	n, vertices, touched := 0, 0, 0
	for _, c := range clouds {
		dst = h.Append(dst[:0], c)
		n += c.Len()
		vertices += len(dst)
		for _, l := range h.lanes {
			touched += l.touched
		}
	}
	turns := 1 + 2000/n // a clock read costs as much as some points
	best, floor := time.Duration(1<<62), time.Duration(1<<62)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		for range turns {
			for _, c := range clouds {
				dst = h.Append(dst[:0], c)
			}
		}
		middle := time.Now()
		best = min(best, middle.Sub(start))
		b.StopTimer()
		for range turns {
			for _, c := range clouds {
				if read(c.X)+read(c.Y) == -1 {
					b.Fatal("a sum of the coordinates' bits is negative")
				}
			}
		}
		floor = min(floor, time.Since(middle))
		b.StartTimer()
	}
	points := float64(max(n, 1) * turns)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/points, "ns/point")
	b.ReportMetric(float64(best.Nanoseconds())/points, "best-ns/point")
	b.ReportMetric(float64(floor.Nanoseconds())/float64(best.Nanoseconds()), "floor/best")
	b.ReportMetric(float64(touched)/float64(max(n, 1)), "touched/point")
	b.ReportMetric(float64(vertices), "vertices")
}

// read reads all of v as fast as this machine can, here by asking whether it is
// finite.
func read[T geom.Float](v []T) int {
	if !kernel.Finite(v) {
		return 0
	}
	return int(unsafe.Sizeof(v[0])) * len(v)
}
