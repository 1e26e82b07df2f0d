package entropy

import (
	"fmt"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// BenchmarkSurrogate measures F: on batches of 2048 float32 points as training has
// them, with witnesses given, and choosing witnesses and measuring a sample, as a
// stream does every now and then.
func BenchmarkSurrogate(b *testing.B) {
	clouds := []geomtest.Named[float32]{
		{Name: "square", Cloud: geomtest.Square[float32](2048, seed)},
		{Name: "ring", Cloud: geomtest.Rings[float32](2048, seed)},
		{Name: "cube", Cloud: geomtest.Cube[float32](2048, seed)},
		{Name: "lidar", Cloud: geomtest.Lidar[float32](120_000, seed)},
	}
	for _, c := range clouds {
		for _, p := range []Problem{Maxima2D, Maxima3D, Hull2D, Hull3D} {
			if p.dims() == 3 && c.Cloud.Z == nil {
				continue
			}
			n := c.Cloud.Len()
			grad := geom.Cloud[float32]{X: make([]float32, n), Y: make([]float32, n), Z: make([]float32, n)}
			for _, tau := range []float64{1e-2, 5e-4} {
				s := Surrogate[float32]{Problem: p, Tau: tau}
				if n == 2048 {
					w := s.Witnesses(nil, c.Cloud, 64)
					run(b, fmt.Sprint("value/", c.Name, "/", p, "/tau=", tau), n, func() { s.Value(c.Cloud, w) })
					run(b, fmt.Sprint("gradient/", c.Name, "/", p, "/tau=", tau), n,
						func() { s.Gradient(grad, c.Cloud, w) })
					continue
				}
				if tau > 5e-4 {
					continue
				}
				out := s.Witnesses(nil, c.Cloud, 64)
				for _, m := range []int{512, 2048, n} {
					run(b, fmt.Sprint("estimate/", c.Name, "/", p, "/", m), m,
						func() { s.EstimateGiven(c.Cloud, out, m, 64) })
				}
			}
		}
	}
}

func run(b *testing.B, name string, n int, f func()) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/point")
	})
}

// BenchmarkGroundTruth measures the costliest answers: exact with as many maximal
// points as it takes, greedy where all points are vertices.
func BenchmarkGroundTruth(b *testing.B) {
	stairs, circle := geomtest.Antichain[float64](MaxSteps, seed), geomtest.Circle[float64](8000, seed)
	top, vertices := outputs(stairs, Maxima2D), outputs(circle, UpperHull)
	lidar := geomtest.Lidar[float64](120_000, seed)
	space, solid := outputs(lidar, Maxima3D), outputs(lidar, Hull3D)
	run(b, fmt.Sprint("exact/", len(top)), len(top), func() { ExactMaxima(stairs, top) })
	run(b, fmt.Sprint("chords/", len(vertices)), circle.Len(), func() { GroundTruth(circle, vertices, UpperHull) })
	run(b, fmt.Sprint("lidar/maxima3d/", len(space)), lidar.Len(), func() { GroundTruth(lidar, space, Maxima3D) })
	run(b, fmt.Sprint("lidar/hull3d/", len(solid)), lidar.Len(), func() { GroundTruth(lidar, solid, Hull3D) })
}
