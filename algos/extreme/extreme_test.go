package extreme

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/vector"
)

// sphere spreads directions evenly.
func sphere(k int) (u []float32) {
	for i := range k {
		z := 1 - (2*float64(i)+1)/float64(k)
		r, a := math.Sqrt(1-z*z), math.Pi*(1+math.Sqrt(5))*float64(i)
		u = append(u, float32(r*math.Cos(a)), float32(r*math.Sin(a)), float32(z))
	}
	return u
}

// Every result lies at least nearly as far out as every point of the sample, in the cube
// to which the sample's box is stretched.
func TestAppendFindsTheFarthest(t *testing.T) {
	testFarthest[float32](t)
	testFarthest[float64](t)
}

func testFarthest[T geom.Float](t *testing.T) {
	for _, g := range geomtest.Generators3D[T]() {
		for _, n := range []int{1, 2, 63, 64, 65, 700} {
			for _, every := range []int{0, 1, 7, 1000} {
				c, dirs := g.Make(n, 1), sphere(20)
				n := c.Len()
				f := Finder[T]{Every: every}
				f.Look(c)
				got := f.Append([]int32{-1}, dirs)[1:]
				size, center := boxOf(c, max(1, every))
				if least, most := slices.Min(size[:]), slices.Max(size[:]); !(least > sizeLeast*2) ||
					!(most < sizeMost/2) {
					continue // no box, or one at the limit of what is looked at
				}
				if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) || len(got) == 0 {
					t.Fatalf("%s[%T], %d points, every %d: %v", g.Name, T(0), n, every, got)
				}
				for k := 0; k < len(dirs); k += 3 {
					height := func(i int) float64 {
						return float64(dirs[k])*(float64(c.X[i])-center[0])/size[0] +
							float64(dirs[k+1])*(float64(c.Y[i])-center[1])/size[1] +
							float64(dirs[k+2])*(float64(c.Z[i])-center[2])/size[2]
					}
					best := math.Inf(-1)
					for _, i := range got {
						best = max(best, height(int(i)))
					}
					for i := 0; i < n; i += max(1, every) {
						if height(i) > best+1e-5 {
							t.Fatalf("%s[%T], %d points, every %d, direction %d: point %d is farther out than any "+
								"of %v", g.Name, T(0), n, every, k/3, i, got)
						}
					}
				}
			}
		}
	}
}

func boxOf[T geom.Float](c geom.Cloud[T], every int) (size, low [3]float64) {
	for k, v := range [][]T{c.X, c.Y, c.Z} {
		lo, hi := math.Inf(1), math.Inf(-1)
		for i := 0; i < len(v); i += every {
			lo, hi = min(lo, float64(v[i])), max(hi, float64(v[i]))
		}
		size[k], low[k] = hi-lo, lo
	}
	return size, low
}

// For any input, indices are in range, and levels agree.
func TestAppendTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := geomtest.Tied[float64](3).Draw(t, "cloud")
		dirs := rapid.SliceOfN(rapid.Float32(), 0, 30).Draw(t, "directions")
		f := Finder[float64]{Every: rapid.IntRange(-1, 9).Draw(t, "every")}
		ok := f.Look(c)
		at := f.Append(nil, dirs[:len(dirs)/3*3])
		if !ok && len(at) > 0 {
			t.Fatalf("%v, though there was nothing to see", at)
		}
		for _, i := range at {
			if i < 0 || int(i) >= c.Len() {
				t.Fatalf("point %d of %d", i, c.Len())
			}
		}
	})
	c, dirs := geomtest.Lidar[float32](5000, 1), sphere(33)
	f := Finder[float32]{Every: 3}
	f.Look(c)
	want := f.Append(nil, dirs)
	for _, l := range []vector.Level{vector.Portable, vector.AVX2} {
		restore := vector.Limit(l)
		f.Look(c)
		if got := f.Append(nil, dirs); !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", l, got, want)
		}
		restore()
	}
	if a := testing.AllocsPerRun(5, func() {
		f.Look(c)
		want = f.Append(want[:0], dirs)
	}); a > 0 {
		t.Errorf("%v allocations", a)
	}
	if f.Look(geom.Cloud[float32]{X: c.X, Y: c.Y}) {
		t.Error("a cloud in the plane has a box")
	}
}

func ExampleFinder_Append() {
	c := geom.Cloud[float64]{X: []float64{0, 1, 2, 1}, Y: []float64{0, 1, 2, 9}, Z: []float64{0, 8, 1, 0}}
	var f Finder[float64]
	f.Look(c)
	fmt.Println(f.Append(nil, []float32{0, 0, 1, 0, 1, 0}))
	// Output: [1 3]
}

func BenchmarkAppend(b *testing.B) {
	c, dirs := geomtest.Lidar[float32](120_000, 1), sphere(32)
	for _, every := range []int{1, 7} {
		b.Run(fmt.Sprint(every), func(b *testing.B) {
			f := Finder[float32]{Every: every}
			var at []int32
			for b.Loop() {
				f.Look(c)
				at = f.Append(at[:0], dirs)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.Len()), "ns/point")
		})
	}
}
