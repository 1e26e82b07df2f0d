package hull

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// BenchmarkMeasure: the measures alone, of one vertex or face.
func BenchmarkMeasure(b *testing.B) {
	for _, c := range []struct {
		name  string
		cloud geom.Cloud[float64]
	}{
		{"ball", geomtest.Ball[float64](10_000, seed)}, {"sphere", geomtest.Sphere[float64](20_000, seed)},
		{"flat", flatSphere(2000)}, // a hull whose measures doubles do not prove
	} {
		var h Hull2D[float64]
		idx := h.Append(nil, c.cloud)
		var h3 Hull3D[float64]
		_, faces, _ := h3.Append(nil, nil, c.cloud)
		b.Run("plane/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Measure(c.cloud, idx)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(idx)), "ns/vertex")
		})
		b.Run("space/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Measure3D(c.cloud, faces)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(faces)/3), "ns/face")
		})
	}
}

// flatSphere is a sphere whose y is a multiple of its x, and whose z of both,
// but for 2^-46.
func flatSphere(n int) geom.Cloud[float64] {
	c := geomtest.Sphere[float64](n, seed)
	for i := range c.X {
		c.Y[i] = c.X[i]/3 + c.Y[i]*0x1p-46
		c.Z[i] = c.X[i]/7 + c.Y[i]/5 + c.Z[i]*0x1p-46
	}
	return c
}

// BenchmarkMeasureRatio is how much slower hulls of real LiDAR with their
// measures are than with the measures of before, plain sums of products: both
// take every frame, in turns, in an order that changes; a round's ratio is that
// of its times. Reported are the median of the rounds' ratios and a 95 %
// interval of that median, from the order of the ratios; and "best", the ratio of
// the sums of each frame's shortest times, which a busy machine disturbs least.
//
//	go test ./algos/hull -run '^$' -bench MeasureRatio -benchtime 400x
func BenchmarkMeasureRatio(b *testing.B) {
	b.Run("hull2d/kitti", func(b *testing.B) {
		var h Hull2D[float32]
		var idx []int32
		ratio(b, func(c geom.Cloud[float32]) { idx = h.Append(idx[:0], c) },
			func(c geom.Cloud[float32]) { formerMeasure(c, idx) }, func(c geom.Cloud[float32]) { Measure(c, idx) })
	})
	b.Run("hull3d/kitti", func(b *testing.B) {
		var h Hull3D[float32]
		var v, f []int32
		ratio(b, func(c geom.Cloud[float32]) { v, f, _ = h.Append(v[:0], f[:0], c) },
			func(c geom.Cloud[float32]) { formerMeasure3D(c, f) }, func(c geom.Cloud[float32]) { Measure3D(c, f) })
	})
}

// ratio times hull and measure of every real frame, with either measure.
func ratio(b *testing.B, hull, former, measure func(c geom.Cloud[float32])) {
	clouds := cloudsOf(geomtest.RealFrames(b))
	r := rand.New(rand.NewPCG(seed, 0))
	var ratios []float64
	best := make([][2]time.Duration, len(clouds))
	for i := range best {
		best[i] = [2]time.Duration{math.MaxInt64, math.MaxInt64}
	}
	for b.Loop() {
		var took [2]time.Duration
		for i, c := range clouds {
			first := r.IntN(2)
			for _, k := range []int{first, 1 - first} {
				start := time.Now()
				hull(c)
				if k == 0 {
					former(c)
				} else {
					measure(c)
				}
				t := time.Since(start)
				took[k] += t
				best[i][k] = min(best[i][k], t)
			}
		}
		ratios = append(ratios, float64(took[1])/float64(took[0]))
	}
	slices.Sort(ratios)
	n := len(ratios)
	// Ranks n/2 ± 0.98·√n hold the median in 95 of 100 samples.
	half := 0.98 * math.Sqrt(float64(n))
	at := func(rank float64) float64 { return ratios[min(max(int(rank), 0), n-1)] }
	b.ReportMetric(at(float64(n)/2-half), "low")
	b.ReportMetric(ratios[n/2], "ratio")
	b.ReportMetric(at(math.Ceil(float64(n)/2+half)), "high")
	var sums [2]time.Duration
	for _, t := range best {
		sums[0] += t[0]
		sums[1] += t[1]
	}
	b.ReportMetric(float64(sums[1])/float64(sums[0]), "best")
}

// formerMeasure is Measure without error bounds, as it was before. The ratio compares
// with it.
func formerMeasure[T geom.Float](c geom.Cloud[T], idx []int32) (area, perimeter float64) {
	largest := 0.0
	for _, i := range idx {
		largest = max(largest, math.Abs(float64(c.X[i])), math.Abs(float64(c.Y[i])))
	}
	s := scaleOf(largest)
	of := func(v float64) float64 { return v * s.down * s.rest }
	x0, y0 := of(float64(c.X[idx[0]])), of(float64(c.Y[idx[0]]))
	var px, py, twice float64
	for k := 1; k <= len(idx); k++ {
		i := idx[k%len(idx)]
		x, y := of(float64(c.X[i]))-x0, of(float64(c.Y[i]))-y0
		twice += float64(px*y) - float64(x*py)
		dx, dy := x-px, y-py
		perimeter += math.Sqrt(float64(dx*dx) + float64(dy*dy))
		px, py = x, y
	}
	return s.back(max(twice, 0)/2, 2), s.back(perimeter, 1)
}

// formerMeasure3D is Measure3D as it was.
func formerMeasure3D[T geom.Float](c geom.Cloud[T], faces []int32) (area, volume float64) {
	largest := 0.0
	for _, i := range faces {
		largest = max(largest, math.Abs(float64(c.X[i])), math.Abs(float64(c.Y[i])), math.Abs(float64(c.Z[i])))
	}
	s := scaleOf(largest)
	of := func(v float64) float64 { return v * s.down * s.rest }
	at := func(i int32) (x, y, z float64) {
		return of(float64(c.X[i])), of(float64(c.Y[i])), of(float64(c.Z[i]))
	}
	var a, v neumaier
	x0, y0, z0 := at(faces[0])
	for k := 0; k+2 < len(faces); k += 3 {
		px, py, pz := at(faces[k])
		qx, qy, qz := at(faces[k+1])
		rx, ry, rz := at(faces[k+2])
		ux, uy, uz := qx-px, qy-py, qz-pz
		vx, vy, vz := rx-px, ry-py, rz-pz
		nx := float64(uy*vz) - float64(uz*vy)
		ny := float64(uz*vx) - float64(ux*vz)
		nz := float64(ux*vy) - float64(uy*vx)
		a.add(math.Sqrt(float64(nx*nx) + float64(ny*ny) + float64(nz*nz)))
		v.add(float64(nx*(px-x0)) + float64(ny*(py-y0)) + float64(nz*(pz-z0)))
	}
	return s.back((a.sum+a.lost)/2, 2), s.back((v.sum+v.lost)/6, 3)
}

// neumaier is the sum of formerMeasure3D.
type neumaier struct{ sum, lost float64 }

func (s *neumaier) add(v float64) {
	t := s.sum + v
	if math.Abs(s.sum) >= math.Abs(v) {
		s.lost += (s.sum - t) + v
	} else {
		s.lost += (v - t) + s.sum
	}
	s.sum = t
}

// The former measures are wrong for flat hulls; otherwise the ratio would compare with
// something else.
func TestFormerMeasuresWereWrong(t *testing.T) {
	wrong := 0
	for round := range 400 {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		_, c := nearFlat(r, 8)
		var h Hull3D[float64]
		_, faces, dim := h.Append(nil, nil, c)
		if dim < 3 {
			continue
		}
		_, was := formerMeasure3D(c, faces)
		if _, is := Measure3D(c, faces); math.Abs(was-is) > 1e-9*is {
			wrong++
		}
	}
	if wrong < 100 {
		t.Errorf("%d of 400 volumes differ by more than 1e-9", wrong)
	}
}
