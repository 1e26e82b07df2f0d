package hull

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/internal/kernel"
)

// seedings are ways to choose seeds, good and bad ones.
var seedings = []struct {
	name string
	pick func(r *rand.Rand, n int, vertices []int32) []int32
}{
	{"one point", func(r *rand.Rand, n int, _ []int32) []int32 { return slices.Repeat([]int32{int32(r.IntN(n))}, 10) }},
	{"few points", func(r *rand.Rand, n int, _ []int32) []int32 { return someOf(r, n, 4) }},
	{"many points", func(r *rand.Rand, n int, _ []int32) []int32 { return someOf(r, n, n/seedRate) }},
	{"too many points", func(r *rand.Rand, n int, _ []int32) []int32 { return someOf(r, n, n) }},
	{"the hull", func(_ *rand.Rand, _ int, vertices []int32) []int32 { return vertices }},
	{"half of the hull, twice", func(_ *rand.Rand, _ int, vertices []int32) []int32 {
		return append(vertices[:len(vertices)/2:len(vertices)/2], vertices[:len(vertices)/2]...)
	}},
}

func someOf(r *rand.Rand, n, count int) []int32 {
	s := make([]int32, count)
	for i := range s {
		s[i] = int32(r.IntN(n))
	}
	return s
}

// Seeds change no vertex and no triangle.
func TestHull3DSeedsChangeNothing(t *testing.T) {
	testHull3Seeds[float32](t)
	testHull3Seeds[float64](t)
}

func testHull3Seeds[T geom.Float](t *testing.T) {
	used := 0
	for _, g := range spaces[T]() {
		if g.Name == "spread3" {
			continue // seconds of exact arithmetic, and no box that a sieve could have
		}
		for round, n := range []int{10, sieveFrom + 1} {
			c := g.Make(n, seed)
			var h Hull3D[T]
			v, f, dim := h.Append(nil, nil, c)
			r := rand.New(rand.NewPCG(seed, uint64(round)))
			for _, s := range seedings {
				h.Seeds = s.pick(r, n, v)
				w, e, d := h.Append(nil, nil, c)
				if d != dim || !slices.Equal(v, w) || !slices.Equal(f, e) {
					t.Errorf("%s[%T], %d points, seed %d, seeds %s: dimension %d, %d vertices, %d faces, want %d, "+
						"%d, %d",
						g.Name, T(0), n, seed, s.name, d, len(w), len(e), dim, len(v), len(f))
				}
				if _, seeded := h.Survivors(); seeded {
					used++
				}
			}
		}
	}
	if used < 6 {
		t.Errorf("%T: seeds were used %d times: nothing was tested", T(0), used)
	}
}

// Nor do they for clouds just large enough for a sieve that break sieves:
// lattices, few distinct points, points in a plane but for some, and sizes from
// denormal to huge.
func TestHull3DSeedsOfHostileClouds(t *testing.T) {
	var plain, seeded Hull3D[float64]
	for round := range shorter(*campaign3/12, 20) {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		n := sieveFrom + r.IntN(200)
		side, scale := 1+r.IntN(12), []float64{1, 1e150, 1e-150, 5e-324, 0x1p-100, 0x1p100}[r.IntN(6)]
		kind := r.IntN(4)
		c := geom.Cloud[float64]{Z: []float64{}}
		for i := range n {
			p := [3]float64{float64(r.IntN(side)), float64(r.IntN(side)), float64(r.IntN(side))}
			switch {
			case kind == 1:
				p = [3]float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
			case kind == 2 && i%500 > 0: // a plane, and some points off it
				p[2] = p[0] + p[1]
			case kind == 3 && i%500 > 0: // a line
				p = [3]float64{p[0], 2 * p[0], 3 * p[0]}
			}
			c.X, c.Y, c.Z = append(c.X, p[0]*scale), append(c.Y, p[1]*scale), append(c.Z, p[2]*scale)
		}
		v, f, dim := plain.Append(nil, nil, c)
		s := seedings[r.IntN(len(seedings))]
		seeded.Seeds = s.pick(r, n, v)
		if w, e, d := seeded.Append(nil, nil, c); d != dim || !slices.Equal(v, w) || !slices.Equal(f, e) {
			t.Fatalf("round %d, seed %d, kind %d, %d values an axis, scaled %g, seeds %s: dimension %d, %d "+
				"vertices, %d faces, want %d, %d, %d",
				round, seed, kind, side, scale, s.name, d, len(w), len(e), dim, len(v), len(f))
		}
	}
}

// Nor do they with several goroutines, or without vector units.
func TestHull3DSeedsAtEveryLevel(t *testing.T) {
	c := geomtest.Lidar[float32](shorter(2*lane3From+11, lane3From+11), seed)
	var h Hull3D[float32]
	v, f, _ := h.Append(nil, nil, c)
	for k := 0; k < len(v); k += 2 {
		h.Seeds = append(h.Seeds, v[k])
	}
	for _, level := range []kernel.Level{kernel.Portable, kernel.AVX2, kernel.AVX512} {
		restore := kernel.Limit(level)
		for _, h.Workers = range []int{1, 2, 100} {
			w, e, _ := h.Append(nil, nil, c)
			if _, seeded := h.Survivors(); !seeded || !slices.Equal(v, w) || !slices.Equal(f, e) {
				t.Errorf("%v, %d workers, seeded %v: %d vertices, %d faces, want %d, %d", level, h.Workers, seeded,
					len(w), len(e), len(v), len(f))
			}
		}
		restore()
	}
}

// The seeds of a moment ago, and seeds at points that are not finite, do no
// harm either: the first change only the time, the second are found out.
func TestHull3DSeedsOutOfDate(t *testing.T) {
	var h Hull3D[float32]
	for k := range uint64(5) {
		c := geomtest.Lidar[float32](shorter(20_000, sieveFrom), k)
		h.Seeds = append([]int32(nil), h.Seeds...)
		v, f, _ := h.Append(nil, nil, c)
		if err := geomtest.CheckHull3D(c, v, f); err != nil {
			t.Errorf("frame %d: %v", k, err)
		}
		h.Seeds = v
	}
	c := geomtest.Lidar[float32](sieveFrom, seed)
	c.X[h.Seeds[0]%sieveFrom] = float32(math.NaN())
	for i := range h.Seeds {
		h.Seeds[i] %= sieveFrom
	}
	defer func() {
		if recover() != badFinite {
			t.Error("a seed that is not finite was not seen")
		}
	}()
	h.Append(nil, nil, c)
}

// Good seeds leave less than a sample does, bad ones are refused.
func TestHull3DSurvivors(t *testing.T) {
	c := geomtest.Lidar[float64](20_000, seed)
	var h Hull3D[float64]
	v, _, _ := h.Append(nil, nil, c)
	without, seeded := h.Survivors()
	if seeded || without >= c.Len() {
		t.Errorf("%d survivors, seeded %v, without seeds", without, seeded)
	}
	h.Seeds = v
	h.Append(nil, nil, c)
	if with, seeded := h.Survivors(); !seeded || with >= without {
		t.Errorf("%d survivors, seeded %v, with the hull as seeds, %d without", with, seeded, without)
	}
	near := make([]int32, 8)
	for k := range near { // the points nearest to the origin
		for i := range c.X {
			if math.Hypot(math.Hypot(c.X[i], c.Y[i]), c.Z[i]) < 10 {
				near[k] = int32(i)
			}
		}
	}
	h.Seeds = append(near, 1, 2, 3)
	h.Append(nil, nil, c)
	if n, seeded := h.Survivors(); seeded || n != without {
		t.Errorf("%d survivors, seeded %v, with bad seeds, %d without", n, seeded, without)
	}
	if h.Append(nil, nil, c.Slice(0, 50)); h.survivors != 50 {
		t.Errorf("%d survivors of 50 points without a sieve", h.survivors)
	}
}
