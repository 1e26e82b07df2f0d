package delaunay_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"entropipe/algos/delaunay"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// go test -run - -bench Triangulate ./algos/delaunay
func BenchmarkTriangulate(b *testing.B) {
	b.Run("float64", bench[float64])
	b.Run("float32", bench[float32])
}

// distributions are the names of those that benchmarks take.
var distributions = []string{"square", "gauss", "grid", "rings", "strokes"}

func bench[T geom.Float](b *testing.B) {
	all := append(geomtest.Generators2D[T](), geomtest.Generator[T]{Name: "cluster", Make: cluster[T]})
	for _, n := range []int{45, 1000, 10_000, 100_000, 1_000_000} {
		for _, g := range all {
			if g.Name != "cluster" && !slices.Contains(distributions, g.Name) {
				continue
			}
			c := g.Make(n, 1)
			for _, tr := range []delaunay.Triangulator[T]{{}, {Unsorted: true}, {Workers: 2},
				{Workers: 2, Unsorted: true}} {
				if tr.Workers > 1 && n < 100_000 {
					continue
				}
				order := "sorted"
				if tr.Unsorted {
					order = "unsorted"
				}
				b.Run(fmt.Sprintf("%d/%s/%s/%d", n, g.Name, order, max(1, tr.Workers)), func(b *testing.B) {
					tr.Triangulate(c)
					b.ReportAllocs()
					least := time.Duration(math.MaxInt64) // which other load disturbs least
					for b.Loop() {
						start := time.Now()
						tr.Triangulate(c)
						least = min(least, time.Since(start))
					}
					perPointIn(b, b.N*c.Len())
					b.ReportMetric(float64(least.Nanoseconds())/float64(c.Len()), "least-ns/pt")
				})
			}
		}
	}
}

func perPointIn(b *testing.B, points int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(points), "ns/pt")
}

// cluster is a hundred Gaussian clouds in a square.
func cluster[T geom.Float](n int, seed uint64) (c geom.Cloud[T]) {
	r := rand.New(rand.NewPCG(seed, 0xc1))
	var x, y [100]float64
	for k := range x {
		x[k], y[k] = r.Float64(), r.Float64()
	}
	for range n {
		k := r.IntN(len(x))
		c.X = append(c.X, T(x[k]+0.01*r.NormFloat64()))
		c.Y = append(c.Y, T(y[k]+0.01*r.NormFloat64()))
	}
	return c
}

// BenchmarkUpdate moves all points to and fro, by so much of their spacing.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{20_000, 200_000} {
		c := geomtest.Square[float64](n, 1)
		for _, motion := range []float64{0.001, 0.01, 0.03} {
			d := moved(c, motion/math.Sqrt(float64(n)), 1, rand.New(rand.NewPCG(1, 0)))
			b.Run(fmt.Sprintf("%d/%v", n, motion), func(b *testing.B) {
				var tr delaunay.Triangulator[float64]
				tr.Triangulate(c)
				var r delaunay.Report
				for i := 0; b.Loop(); i++ {
					to := d
					if i%2 == 1 {
						to = c
					}
					_, r = tr.Update(to)
				}
				perPointIn(b, b.N*n)
				b.ReportMetric(float64(r.Flips)/float64(n), "flips/pt")
				if r.Rebuilt {
					b.ReportMetric(1, "rebuilt")
				}
			})
		}
	}
}

func BenchmarkKITTI(b *testing.B) {
	frames := geomtest.RealFrames(b)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			tr := delaunay.Triangulator[float32]{Workers: workers, NoHalfedges: true}
			points, least := 0, math.Inf(1)
			for i := 0; b.Loop(); i++ {
				c := frames[i%len(frames)].Cloud
				start := time.Now()
				tr.Triangulate(c)
				least = min(least, float64(time.Since(start).Nanoseconds())/float64(c.Len()))
				points += c.Len()
			}
			perPointIn(b, points)
			b.ReportMetric(least, "least-ns/pt")
		})
	}
}
