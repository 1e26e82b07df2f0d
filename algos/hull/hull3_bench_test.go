package hull

import (
	"fmt"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// BenchmarkHull3D: every distribution, both widths, one and two goroutines.
func BenchmarkHull3D(b *testing.B) {
	benchHull3[float64](b)
	benchHull3[float32](b)
}

func benchHull3[T geom.Float](b *testing.B) {
	for _, g := range []struct {
		name string
		n    int
		make func(int, uint64) geom.Cloud[T]
	}{
		{"lidar", 120_000, geomtest.Lidar[T]}, {"ball", 1_000_000, geomtest.Ball[T]},
		{"cube", 1_000_000, geomtest.Cube[T]},
		{"gauss", 1_000_000, geomtest.Gauss3[T]}, {"sphere", 100_000, geomtest.Sphere[T]},
		{"faces", 100_000, geomtest.CubeFaces[T]}, {"grid", 100_000, geomtest.Grid3[T]},
		{"ball", 10_000, geomtest.Ball[T]}, {"ball", 1000, geomtest.Ball[T]}, {"ball", 50, geomtest.Ball[T]},
	} {
		c := g.make(g.n, seed)
		for workers := 1; workers <= 2; workers++ {
			b.Run(fmt.Sprintf("%T/%s/%d/%dT", T(0), g.name, g.n, workers),
				func(b *testing.B) { benchClouds3(b, workers, c) })
		}
	}
}

// BenchmarkHull3DFrames: real LiDAR.
func BenchmarkHull3DFrames(b *testing.B) {
	clouds := cloudsOf(geomtest.RealFrames(b))
	for workers := 1; workers <= 2; workers++ {
		b.Run(fmt.Sprintf("%dT", workers), func(b *testing.B) { benchClouds3(b, workers, clouds...) })
	}
}

func benchClouds3[T geom.Float](b *testing.B, workers int, clouds ...geom.Cloud[T]) {
	h := Hull3D[T]{Workers: workers}
	var v, f []int32
	n, vertices := 0, 0
	for _, c := range clouds {
		v, f, _ = h.Append(v[:0], f[:0], c)
		n += c.Len()
		vertices += len(v)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range clouds {
			v, f, _ = h.Append(v[:0], f[:0], c)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(max(n, 1)), "ns/point")
	b.ReportMetric(float64(vertices), "vertices")
	b.ReportMetric(float64(h.body.touched)/float64(max(clouds[len(clouds)-1].Len(), 1)), "tests/point")
}
