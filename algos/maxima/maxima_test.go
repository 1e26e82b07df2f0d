package maxima

import (
	"cmp"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/internal/kernel"
)

const seed = 1

// masks are all choices of minimised axes.
func masks() (out [][3]bool) {
	for k := range 8 {
		out = append(out, [3]bool{k&1 > 0, k&2 > 0, k&4 > 0})
	}
	return out
}

// axes gives the choice to an operator.
func axes(low [3]bool) (out [MaxDims]bool) {
	copy(out[:], low[:])
	return out
}

// run is Append2D or Append3D.
func (m *Maxima[T]) run(dims int, c geom.Cloud[T]) []int32 {
	if dims == 2 {
		return m.Append2D(nil, c)
	}
	return m.Append3D(nil, c)
}

// On clouds full of ties the answer is the definition's.
func TestMaximaAreWhatTheDefinitionSays(t *testing.T) {
	t.Run("2-D float32", func(t *testing.T) { testDefinition[float32](t, 2) })
	t.Run("3-D float64", func(t *testing.T) { testDefinition[float64](t, 3) })
}

func testDefinition[T geom.Float](t *testing.T, dims int) {
	var m Maxima[T] // one for all draws: scratch must not leak from call to call
	rapid.Check(t, func(t *rapid.T) {
		c := geomtest.Tied[T](dims).Draw(t, "cloud")
		low := rapid.SampledFrom(masks()).Draw(t, "min")
		m.Min = axes(low)
		if d := gocmp.Diff(geomtest.MaximaBrute(c, dims, low), m.run(dims, c)); d != "" {
			t.Fatalf("%dD min %v of %#v\n-want +got %s", dims, low, c, d)
		}
	})
}

// Every distribution, on both sides of every threshold, in every direction.
func TestMaximaOfEveryDistribution(t *testing.T) {
	testDistributions[float32](t)
	testDistributions[float64](t)
}

func testDistributions[T geom.Float](t *testing.T) {
	var m Maxima[T]
	check := func(c geomtest.Named[T], dims int, low [3]bool) {
		m.Min = axes(low)
		if got, want := m.run(dims, c.Cloud), geomtest.Maxima(c.Cloud, dims, low); !slices.Equal(got, want) {
			t.Errorf("%s[%T], %d points, seed %d, %dD min %v: %d maxima, want %d", c.Name, T(0), c.Cloud.Len(), seed,
				dims, low, len(got), len(want))
		}
	}
	for _, n := range []int{0, 1, 2, 3, 50, filterFrom, 3000} {
		plane, space := geomtest.Clouds2D[T](n, seed), geomtest.Clouds3D[T](n, seed)
		for _, low := range masks() {
			if n > 1000 && low != [3]bool{} && low != [3]bool{true, false, true} {
				continue // two directions will do for large clouds
			}
			for _, c := range plane {
				check(c, 2, low)
			}
			for _, c := range space {
				check(c, 3, low)
			}
		}
	}
}

// A hundred thousand duplicates, anti-chains and chains, against the sweep
// along another axis.
func TestMaximaOfLargeAdversaries(t *testing.T) {
	const n = 100_000
	var m Maxima[float64]
	for _, g := range []geomtest.Generator[float64]{
		{Name: "plane", Make: geomtest.Plane[float64]}, {Name: "ridge", Make: geomtest.Ridge[float64]},
		{Name: "equal", Make: geomtest.Equal3[float64]},
		{Name: "duplicates", Make: geomtest.Duplicates3[float64]}, {Name: "grid", Make: geomtest.Grid3[float64]},
	} {
		c := g.Make(n, seed)
		if got, want := m.Append3D(nil, c), geomtest.Maxima(c, 3, [3]bool{}); !slices.Equal(got, want) {
			t.Errorf("%s, %d points, seed %d: %d maxima, want %d", g.Name, n, seed, len(got), len(want))
		}
	}
}

func TestMaximaOfRealFrames(t *testing.T) {
	var m Maxima[float32]
	check := func(f geomtest.Named[float32], dims int, low [3]bool) {
		m.Min = axes(low)
		if got, want := m.run(dims, f.Cloud), geomtest.Maxima(f.Cloud, dims, low); !slices.Equal(got, want) {
			t.Errorf("%s, %dD min %v: %d maxima, want %d", f.Name, dims, low, len(got), len(want))
		}
	}
	for k, f := range geomtest.RealFrames(t) {
		check(f, 3, [3]bool{})
		check(f, 3, masks()[k%8]) // the frames together see every direction
		check(f, 2, masks()[k%4])
	}
}

func TestMaximaOfRealDrawings(t *testing.T) {
	var m Maxima[float32]
	for _, f := range geomtest.Drawings[float32](t) {
		for _, low := range masks()[:4] {
			m.Min = axes(low)
			if got, want := m.Append2D(nil, f.Cloud), geomtest.Maxima(f.Cloud, 2, low); !slices.Equal(got, want) {
				t.Errorf("%s, min %v: %v, want %v", f.Name, low, got, want)
			}
		}
	}
}

// Maxima of maxima are all of them; those of a union come from those of its
// parts; another order of the points gives the same coordinates.
func TestMaximaLaws(t *testing.T) {
	var m Maxima[float64]
	sortedXYZ := func(c geom.Cloud[float64], idx []int32) [][3]float64 {
		var out [][3]float64
		for _, i := range idx {
			out = append(out, [3]float64{c.X[i] + 0, c.Y[i] + 0, c.Z[i] + 0})
		}
		slices.SortFunc(out, func(a, b [3]float64) int { return slices.Compare(a[:], b[:]) })
		return out
	}
	for _, c := range geomtest.Clouds3D[float64](3000, seed) {
		idx := m.Append3D(nil, c.Cloud)
		front := geomtest.Gather(c.Cloud, idx)
		if again := m.Append3D(nil, front); len(again) != len(idx) {
			t.Errorf("%s: %d maxima, of which %d are maximal", c.Name, len(idx), len(again))
		}
		half := c.Cloud.Len() / 2
		parts := m.Append3D(nil, c.Cloud.Slice(0, half))
		for _, i := range m.Append3D(nil, c.Cloud.Slice(half, c.Cloud.Len())) {
			parts = append(parts, i+int32(half))
		}
		for _, i := range idx {
			if !slices.Contains(parts, i) {
				t.Errorf("%s: %d is maximal in the whole and not in its half", c.Name, i)
			}
		}
		shuffled, _ := geomtest.Permuted(c.Cloud, seed)
		if d := gocmp.Diff(sortedXYZ(c.Cloud, idx), sortedXYZ(shuffled, m.Append3D(nil, shuffled))); d != "" {
			t.Errorf("%s, permutation %d: other points %s", c.Name, seed, d)
		}
	}
}

// Minimising an axis is maximising its negative.
func TestMinimisingIsNegating(t *testing.T) {
	for _, c := range geomtest.Clouds3D[float32](2000, seed) {
		low := Maxima[float32]{Min: [MaxDims]bool{true, false, true}}
		var high Maxima[float32]
		neg := geomtest.Gather(c.Cloud, low.allOf(c.Cloud))
		for i := range neg.X {
			neg.X[i], neg.Z[i] = -neg.X[i], -neg.Z[i]
		}
		if got, want := low.Append3D(nil, c.Cloud), high.Append3D(nil, neg); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.Name, got, want)
		}
	}
}

func (m *Maxima[T]) allOf(c geom.Cloud[T]) []int32 { return appendAll(nil, c.Len()) }

// The contents of dst stay; z means nothing in the plane.
func TestAppendKeepsDstAndIgnoresZ(t *testing.T) {
	var m Maxima[float64]
	c := geomtest.Points3([3]float64{1, 2, math.NaN()}, [3]float64{2, 1, 0}, [3]float64{0, 0, 9})
	if got := m.Append2D([]int32{-7}, c); !slices.Equal(got, []int32{-7, 0, 1}) {
		t.Errorf("got %v", got)
	}
}

// One non-finite coordinate anywhere, also in a point that others dominate,
// panics and never gives an answer.
func TestNonFiniteCoordinatePanics(t *testing.T) {
	for _, n := range []int{1, 2, 50, 3000} {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			for axis := range 3 {
				for _, mask := range masks() {
					c := geomtest.Cube[float64](n, seed)
					[][]float64{c.X, c.Y, c.Z}[axis][n/2] = bad
					m := Maxima[float64]{Min: axes(mask)}
					wantPanic(t, badFinite, func() { m.Append3D(nil, c) })
					if axis < 2 {
						wantPanic(t, badFinite, func() { m.Append2D(nil, c) })
					}
				}
			}
		}
	}
}

func TestCallersMistakesPanic(t *testing.T) {
	var m Maxima[float32]
	one, two := []float32{1}, []float32{1, 2}
	wantPanic(t, badLengths, func() { m.Append2D(nil, geom.Cloud[float32]{X: one, Y: two}) })
	wantPanic(t, badLengths, func() { m.Append2D(nil, geom.Cloud[float32]{X: two, Y: two, Z: one}) })
	wantPanic(t, badLengths, func() { m.Append3D(nil, geom.Cloud[float32]{X: two, Y: two, Z: one}) })
	wantPanic(t, badDimension, func() { m.Append3D(nil, geom.Cloud[float32]{X: two, Y: two}) })
	if got := m.Append3D(nil, geom.Cloud[float32]{}); len(got) != 0 {
		t.Errorf("empty cloud: %v", got)
	}
}

func wantPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := recover(); got != want {
			t.Errorf("panic %v, want %q", got, want)
		}
	}()
	f()
}

func TestWarmCallsDoNotAllocate(t *testing.T) {
	for _, g := range geomtest.Generators3D[float32]() {
		c := g.Make(5000, seed)
		var m Maxima[float32]
		dst := m.Append3D(m.Append2D(nil, c), c)
		if n := testing.AllocsPerRun(5, func() { dst = m.Append3D(m.Append2D(dst[:0], c), c) }); n > 0 {
			t.Errorf("%s: %v allocations", g.Name, n)
		}
	}
}

// The order of every distribution is that of a comparison sort.
func TestSortIsDescending(t *testing.T) {
	testSort[float32](t)
	testSort[float64](t)
}

func testSort[T geom.Float](t *testing.T) {
	var s sorter[T]
	for _, n := range []int{1, 2, radixFrom - 1, radixFrom, 5000} {
		for _, c := range geomtest.Clouds2D[T](n, seed) {
			s.sort(c.Cloud.X, c.Cloud.Y)
			want := make([]int, c.Cloud.Len())
			for i := range want {
				want[i] = i
			}
			slices.SortStableFunc(want, func(a, b int) int {
				return cmp.Or(cmp.Compare(c.Cloud.X[b]+0, c.Cloud.X[a]+0), cmp.Compare(c.Cloud.Y[b]+0, c.Cloud.Y[a]+0))
			})
			for k, e := range s.order {
				if int(uint32(e)) != want[k] {
					t.Errorf("%s[%T], %d points: place %d holds %d, want %d", c.Name, T(0), n, k, uint32(e), want[k])
					break
				}
			}
		}
	}
}

// When every point is maximal a point is touched little more often among 2^18
// than among 2^12, and a few times each of its 18 bits; a staircase that moves its
// tail writes thousands of entries for each.
func TestAllMaximalIsNotQuadratic(t *testing.T) {
	if testing.Short() {
		t.Skip("the same on every processor, and an emulated one is slow")
	}
	defer kernel.Limit(kernel.AVX2)() // where what a staircase writes is counted
	for _, g := range []geomtest.Generator[float64]{{Name: "octant", Make: geomtest.Octant[float64]},
		{Name: "plane", Make: geomtest.Plane[float64]}, {Name: "ridge", Make: geomtest.Ridge[float64]}} {
		small, large := g.Make(1<<12, seed), g.Make(1<<18, seed)
		checkGrowth(t, g.Name, 1.5, [][]float64{small.X, small.Y, small.Z}, [][]float64{large.X, large.Y, large.Z})
		var m Maxima[float64]
		m.Append3D(nil, large)
		if most := 4 * 18 * large.Len(); m.touched > most {
			t.Errorf("%s: %d points are touched %d times, more than %d", g.Name, large.Len(), m.touched, most)
		}
	}
}

func FuzzMaxima(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 3, 3, 2, 1, 2, 2, 2}, byte(0))
	f.Add([]byte{0x11, 63, 0, 0, 0, 255, 1, 128, 7, 7, 7, 9, 9, 1}, byte(5))
	f.Add(append([]byte{2, 3}, make([]byte, 96)...), byte(2))
	f.Fuzz(func(t *testing.T, b []byte, mask byte) {
		low := masks()[mask&7]
		fuzzOne[float32](t, b, low)
		fuzzOne[float64](t, b, low)
	})
}

func fuzzOne[T geom.Float](t *testing.T, b []byte, low [3]bool) {
	m := Maxima[T]{Min: axes(low)}
	for _, dims := range []int{2, 3} {
		c := geomtest.FromBytes[T](b, dims)
		if got, want := m.run(dims, c), geomtest.Maxima(c, dims, low); !slices.Equal(got, want) {
			t.Errorf("%dD min %v of %#v:\ngot  %v\nwant %v", dims, low, c, got, want)
		}
	}
}
