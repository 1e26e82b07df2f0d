package maxima

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/internal/kernel"
)

var campaign = flag.Int("campaign", 2000, "random small sets to compare with the definition, for each coordinate type")

// brute is the definition: a point stays unless another is as good on every
// axis and differs, or equals it and has a lower index.
func brute[T geom.Float](axes [][]T, low [MaxDims]bool) (out []int32) {
	n := len(axes[0])
	for i := range n {
		beaten := false
		for j := 0; j < n && !beaten; j++ {
			asGood, equal := true, true
			for k, v := range axes {
				p, q := v[i], v[j]
				if low[k] {
					p, q = -p, -q
				}
				asGood = asGood && q >= p
				equal = equal && q == p
			}
			beaten = asGood && (!equal || j < i)
		}
		if !beaten {
			out = append(out, int32(i))
		}
	}
	return out
}

// shapes are what coordinates of small sets look like. v is the value before,
// of the same point.
var shapes = []struct {
	name string
	make func(r *rand.Rand, v float64) float64
}{
	{"uniform", func(r *rand.Rand, _ float64) float64 { return r.Float64() }},
	{"grid", func(r *rand.Rand, _ float64) float64 { return float64(r.IntN(4)) }},
	{"binary", func(r *rand.Rand, _ float64) float64 { return float64(r.IntN(2)) }},
	{"zeros", func(r *rand.Rand, _ float64) float64 { return []float64{-1, math.Copysign(0, -1), 0, 1}[r.IntN(4)] }},
	{"against", func(r *rand.Rand, v float64) float64 { return 1 - v + 0.1*r.NormFloat64() }},
	{"neighbours", func(r *rand.Rand, _ float64) float64 { return steps32(1, r.IntN(3)) }},
	{"offset", func(r *rand.Rand, _ float64) float64 { return 1e7 + float64(r.IntN(8)) }},
	{"large", func(r *rand.Rand, _ float64) float64 { return float64(r.IntN(5)-2) * 1e150 }},
	{"small", func(r *rand.Rand, _ float64) float64 { return float64(r.IntN(5)-2) * 1e-150 }},
	{"subnormal", func(r *rand.Rand, _ float64) float64 {
		return float64(r.IntN(5)-2) * []float64{math.SmallestNonzeroFloat32, math.SmallestNonzeroFloat64}[r.IntN(2)]
	}},
	{"extreme", func(r *rand.Rand, _ float64) float64 {
		return []float64{math.MaxFloat64, -math.MaxFloat64, math.MaxFloat32, -math.MaxFloat32, 1, 0}[r.IntN(6)]
	}},
	{"chain", func(r *rand.Rand, v float64) float64 { return v }},
}

// steps32 is n float32 numbers above v.
func steps32(v float64, n int) float64 {
	for range n {
		v = float64(math.Nextafter32(float32(v), math.MaxFloat32))
	}
	return v
}

// smallSet draws dims axes of n points, finite in T, of one shape or of one an
// axis, with some points repeated.
func smallSet[T geom.Float](r *rand.Rand, dims, n int) (string, [][]T) {
	shape, mixed := r.IntN(len(shapes)), r.IntN(4) == 0
	name := shapes[shape].name
	axes := make([][]T, dims)
	last := make([]float64, n)
	for i := range last {
		last[i] = r.Float64()
	}
	for k := range axes {
		if mixed {
			shape = r.IntN(len(shapes))
			name += "+" + shapes[shape].name
		}
		axes[k] = make([]T, n)
		for i := range axes[k] {
			last[i] = shapes[shape].make(r, last[i])
			v := T(last[i])
			if v-v != 0 {
				v = T(math.Copysign(math.MaxFloat32, last[i]))
			}
			axes[k][i] = v
		}
	}
	for range r.IntN(3) * n / 8 {
		from, to := r.IntN(n), r.IntN(n)
		for _, v := range axes {
			v[to] = v[from]
		}
	}
	return name, axes
}

// Random small sets, of all shapes, dimensions and directions, on every level:
// the answer is the definition's.
func TestCampaign(t *testing.T) {
	for _, l := range []kernel.Level{kernel.Portable, kernel.AVX2, kernel.AVX512} {
		if l > kernel.Best() {
			continue
		}
		restore := kernel.Limit(l)
		runCampaign[float32](t, uint64(l))
		runCampaign[float64](t, uint64(l))
		restore()
	}
}

func runCampaign[T geom.Float](t *testing.T, seed uint64) {
	var m Maxima[T]
	counts := map[string]int{}
	for k := range *campaign {
		r := rand.New(rand.NewPCG(seed, uint64(k)))
		dims := 1 + r.IntN(MaxDims)
		n := 1 + r.IntN([]int{4, 12, 40}[r.IntN(3)])
		if k%100 == 99 {
			n = filterFrom + r.IntN(500) // where the filter begins
		}
		name, axes := smallSet[T](r, dims, n)
		for k := range dims {
			m.Min[k] = r.IntN(2) == 0
		}
		if got, want := m.AppendD(nil, axes), brute(axes, m.Min); !slices.Equal(got, want) {
			t.Fatalf("%v, seed %d, set %d, %s: %d axes, min %v\n%#v\ngot  %v\nwant %v", kernel.Best(), seed, k, name,
				dims, m.Min, axes, got, want)
		}
		counts[fmt.Sprintf("%d axes", dims)]++
	}
	t.Logf("%v, %T: %d sets as defined: %v", kernel.Best(), T(0), *campaign, counts)
}

// Sets too wide for the list are divided; all shapes, against the definition.
func TestMaximaOfManyAxes(t *testing.T) {
	if testing.Short() {
		t.Skip("quadratic oracle")
	}
	var m Maxima[float64]
	for dims := 1; dims <= MaxDims; dims++ {
		for seed := range uint64(5) {
			r := rand.New(rand.NewPCG(seed, uint64(dims)))
			name, axes := smallSet[float64](r, dims, 1500)
			if seed < 3 {
				name, axes = "simplex", simplex(r, dims, 1500, int(seed)*6)
			}
			if got, want := m.AppendD(nil, axes), brute(axes, m.Min); !slices.Equal(got, want) {
				t.Errorf("%d axes, seed %d, %s: %d maxima, want %d", dims, seed, name, len(got), len(want))
			}
		}
	}
}

// simplex has points of equal sum, all of them maximal; with levels, on a grid
// of so many, so that ties abound and whole points are equal.
func simplex(r *rand.Rand, dims, n, levels int) [][]float64 {
	axes := make([][]float64, dims)
	for k := range axes {
		axes[k] = make([]float64, n)
	}
	for i := range n {
		sum := 0.0
		for k := range dims - 1 {
			v := r.Float64()
			if levels > 0 {
				v = float64(r.IntN(levels))
			}
			axes[k][i] = v
			sum += v
		}
		axes[dims-1][i] = -sum
	}
	return axes
}

// One axis: the first of the best values.
func TestOneAxis(t *testing.T) {
	m := Maxima[float32]{}
	v := [][]float32{{1, 3, 0, 3, -2, -2}}
	if got := m.AppendD([]int32{7}, v); !slices.Equal(got, []int32{7, 1}) {
		t.Errorf("got %v", got)
	}
	m.Min[0] = true
	if got := m.AppendD(nil, v); !slices.Equal(got, []int32{4}) {
		t.Errorf("minimised: got %v", got)
	}
}

// AppendD with two and three axes agrees with Append2D and Append3D.
func TestAxesOfACloud(t *testing.T) {
	var m Maxima[float32]
	for _, c := range geomtest.Clouds3D[float32](3000, seed) {
		if got, want := m.AppendD(nil, [][]float32{c.Cloud.X, c.Cloud.Y, c.Cloud.Z}),
			m.Append3D(nil, c.Cloud); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.Name, got, want)
		}
		if got, want := m.AppendD(nil, [][]float32{c.Cloud.Y, c.Cloud.X}),
			m.Append2D(nil, c.Cloud); !slices.Equal(got, want) {
			t.Errorf("%s, axes exchanged: %v, want %v", c.Name, got, want)
		}
	}
}

// Any number of workers gives the same answer, and none keeps the cloud.
func TestWorkersAgree(t *testing.T) {
	n := 3*workerFrom + 11
	r := rand.New(rand.NewPCG(seed, 0))
	for _, dims := range []int{2, 3, 5} {
		axes := make([][]float32, dims)
		for k := range axes {
			axes[k] = make([]float32, n)
			for i := range axes[k] {
				axes[k][i] = float32(r.Float64() * r.Float64())
			}
		}
		var one Maxima[float32]
		want := one.AppendD(nil, axes)
		for _, workers := range []int{-1, 2, 3, 4, 50} {
			m := Maxima[float32]{Workers: workers}
			if got := m.AppendD(nil, axes); !slices.Equal(got, want) {
				t.Errorf("%d axes, seed %d, %d workers: %d maxima, want %d", dims, seed, workers, len(got), len(want))
			}
			for _, w := range m.filter.workers {
				if w.axes[0] != nil {
					t.Errorf("%d workers: one still points to the cloud", workers)
				}
			}
		}
	}
}

// A non-finite value in any worker's part, on any axis, panics.
func TestNonFiniteOnManyAxes(t *testing.T) {
	for _, n := range []int{5, 1000, 2*workerFrom + 5} {
		for _, dims := range []int{1, 2, 4} {
			axes := make([][]float64, dims)
			for k := range axes {
				axes[k] = geomtest.Square[float64](n, uint64(k)).X
			}
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				for _, low := range []bool{false, true} {
					m := Maxima[float64]{Workers: 2}
					m.Min[dims-1] = low
					was := axes[dims-1][n-2]
					axes[dims-1][n-2] = bad
					wantPanic(t, badFinite, func() { m.AppendD(nil, axes) })
					axes[dims-1][n-2] = was
					m.AppendD(nil, axes) // and the scratch is still good
				}
			}
		}
	}
}

func TestWrongAxesPanic(t *testing.T) {
	var m Maxima[float64]
	wantPanic(t, badAxes, func() { m.AppendD(nil, nil) })
	wantPanic(t, badAxes, func() { m.AppendD(nil, make([][]float64, MaxDims+1)) })
	wantPanic(t, badLengths, func() { m.AppendD(nil, [][]float64{{1}, {1, 2}, {1}, {1}}) })
	if got := m.AppendD(nil, make([][]float64, 5)); len(got) != 0 {
		t.Errorf("no points: %v", got)
	}
}

func TestWarmCallsWithManyAxesDoNotAllocate(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 0))
	for _, dims := range []int{1, 2, 4, 6, 8} {
		for _, axes := range [][][]float64{simplex(r, dims, 3000, 0), simplex(r, dims, 3000, 8),
			simplex(r, dims, 30, 0)} {
			var m Maxima[float64]
			dst := m.AppendD(nil, axes)
			if n := testing.AllocsPerRun(5, func() { dst = m.AppendD(dst[:0], axes) }); n > 0 {
				t.Errorf("%d axes, %d points: %v allocations", dims, len(axes[0]), n)
			}
		}
	}
	c := geomtest.Cube[float32](2*workerFrom, seed)
	m := Maxima[float32]{Workers: 2}
	dst := m.Append3D(nil, c)
	if n := testing.AllocsPerRun(20, func() { dst = m.Append3D(dst[:0], c) }); n > 0 {
		t.Errorf("two workers: %v allocations", n)
	}
}

// Work is counted, not timed: from n to 4n points, a point is looked at about
// as often, or by the logarithms that many axes cost more often.
func TestTouchedPointsGrowAsPromised(t *testing.T) {
	defer kernel.Limit(kernel.AVX2)() // where what a staircase writes is counted
	n := 1 << 15
	if testing.Short() {
		n = 1 << 13
	}
	for _, g := range geomtest.Generators3D[float64]() {
		small, large := g.Make(n, seed), g.Make(4*n, seed)
		checkGrowth(t, g.Name, 1.5, [][]float64{small.X, small.Y, small.Z}, [][]float64{large.X, large.Y, large.Z})
		checkGrowth(t, g.Name+" in the plane", 1.5, [][]float64{small.X, small.Y}, [][]float64{large.X, large.Y})
	}
	for _, g := range geomtest.Generators2D[float64]() {
		small, large := g.Make(n, seed), g.Make(4*n, seed)
		checkGrowth(t, g.Name, 1.5, [][]float64{small.X, small.Y}, [][]float64{large.X, large.Y})
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for dims := 3; dims <= 6; dims++ {
		n, logs := 1<<10, math.Pow(12.0/10, float64(dims-2))
		for _, levels := range []int{0, 12} {
			name := fmt.Sprintf("%d axes, %d levels", dims, levels)
			checkGrowth(t, name, 1.3*logs, simplex(r, dims, n, levels), simplex(r, dims, 4*n, levels))
		}
	}
}

// checkGrowth allows a point among many factor times more than among few, and
// a little.
func checkGrowth(t *testing.T, name string, factor float64, small, large [][]float64) {
	t.Helper()
	var m Maxima[float64]
	per := func(axes [][]float64) float64 {
		m.AppendD(nil, axes)
		return float64(m.touched) / float64(len(axes[0]))
	}
	few, many := per(small), per(large)
	if many > factor*few+3 {
		t.Errorf("%s: a point is touched %.1f times among %d, %.1f times among %d", name, few, len(small[0]),
			many, len(large[0]))
	}
	t.Logf("%-40s %8.2f %8.2f", name, few, many)
}

// Laws of any number of axes: covered points are dropped; repeating the last axis, or
// adding a constant axis, changes nothing; all maxima of maxima are maximal.
func TestLawsOfAxes(t *testing.T) {
	var m Maxima[float64]
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		dims := rapid.IntRange(2, MaxDims-1).Draw(t, "dims")
		n := rapid.SampledFrom([]int{1, 7, 60, 900}).Draw(t, "n")
		name, axes := smallSet[float64](rand.New(rand.NewPCG(seed, 1)), dims, n)
		idx := m.AppendD(nil, axes)
		if got := m.AppendD(nil, append(slices.Clone(axes), axes[dims-1])); !slices.Equal(got, idx) {
			t.Fatalf("%s: an axis repeated: %v, want %v", name, got, idx)
		}
		if got := m.AppendD(nil, append([][]float64{make([]float64, n)}, axes...)); !slices.Equal(got, idx) {
			t.Fatalf("%s: a constant axis: %v, want %v", name, got, idx)
		}
		front := make([][]float64, dims)
		for k, v := range axes {
			for _, i := range idx {
				front[k] = append(front[k], v[i])
			}
		}
		if again := m.AppendD(nil, front); len(again) != len(idx) {
			t.Fatalf("%s: %d maxima, of which %d are maximal", name, len(idx), len(again))
		}
	})
}

func FuzzAxes(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 3, 3, 2, 1, 2, 2, 2}, byte(3), byte(0))
	f.Add([]byte{0x11, 63, 0, 0, 0, 255, 1, 128, 7, 7, 7, 9, 9, 1}, byte(5), byte(5))
	f.Add(append([]byte{2, 3}, make([]byte, 96)...), byte(7), byte(2))
	f.Fuzz(func(t *testing.T, b []byte, dims, mask byte) {
		// Pairs of axes from stretches of one cloud.
		c := geomtest.FromBytes[float32](b, 2)
		n := c.Len() / 4
		if n == 0 {
			return
		}
		all := [MaxDims][]float32{}
		var m Maxima[float32]
		for k := range 4 {
			part := c.Slice(k*n, (k+1)*n)
			all[2*k], all[2*k+1] = part.X, part.Y
		}
		for k := range m.Min {
			m.Min[k] = mask>>k&1 > 0
		}
		axes := all[:1+dims%MaxDims]
		if got, want := m.AppendD(nil, axes), brute(axes, m.Min); !slices.Equal(got, want) {
			t.Errorf("min %v of %#v:\ngot  %v\nwant %v", m.Min, axes, got, want)
		}
	})
}
