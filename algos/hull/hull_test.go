package hull

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/internal/kernel"
	"entropipe/ops/leaktest"
)

const seed = 1

func TestMain(m *testing.M) { leaktest.Main(m) }

// wantHull compares with the exact oracle.
func wantHull[T geom.Float](t *testing.T, h *Hull2D[T], name string, c geom.Cloud[T]) {
	t.Helper()
	if got, want := h.Append(nil, c), geomtest.Hull2D(c); !slices.Equal(got, want) {
		t.Errorf("%s[%T], %d points, %d workers, seed %d: %d vertices, want %d; first difference %s",
			name, T(0), c.Len(), h.Workers, seed, len(got), len(want), difference(got, want))
	}
}

func difference(got, want []int32) string {
	return cmp.Diff(want[:min(len(want), 50)], got[:min(len(got), 50)])
}

func testDistributions[T geom.Float](t *testing.T, levels ...kernel.Level) {
	var h Hull2D[T] // one for all: scratch must not leak from call to call
	for _, n := range []int{0, 1, 2, 3, 50, filterFrom, sampleRate*sampleLeast + 7, 10000} {
		for _, c := range geomtest.Clouds2D[T](n, seed) {
			want := geomtest.Hull2D(c.Cloud) // exact, and slower than all levels
			for _, l := range levels {
				restore := kernel.Limit(l)
				got := h.Append(nil, c.Cloud)
				restore()
				if !slices.Equal(got, want) {
					t.Errorf("%s[%T], %v, %d points, seed %d: %d vertices, want %d; first difference %s", c.Name, T(0),
						l, n, seed, len(got), len(want), difference(got, want))
				}
			}
		}
	}
}

// The hull does not depend on how many goroutines share the cloud.
func TestHullOfAnyNumberOfWorkers(t *testing.T) {
	const n = 2*laneFrom + 11
	h := Hull2D[float32]{}
	for _, f := range []func(int, uint64) geom.Cloud[float32]{
		geomtest.Square[float32], geomtest.Disk[float32], geomtest.Strokes[float32], geomtest.Grid[float32],
		geomtest.Circle[float32], geomtest.Sorted[float32], geomtest.Outlier[float32],
	} {
		c := f(n, seed)
		want := geomtest.Hull2D(c)
		for _, h.Workers = range []int{-1, 0, 1, 2, 100} {
			if got := h.Append(nil, c); !slices.Equal(got, want) {
				t.Errorf("%d workers, seed %d: %d vertices, want %d", h.Workers, seed, len(got), len(want))
			}
		}
	}
}

// Clouds full of equal and collinear points.
func TestHullOfTiedClouds(t *testing.T) {
	var h32 Hull2D[float32]
	var h64 Hull2D[float64]
	rapid.Check(t, func(t *rapid.T) {
		c := geomtest.Tied[float32](2).Draw(t, "cloud")
		if got, want := h32.Append(nil, c), geomtest.Hull2D(c); !slices.Equal(got, want) {
			t.Fatalf("hull of %#v: %v, want %v", c, got, want)
		}
		d := geom.Cloud[float64]{X: rapid.SliceOfN(finite, 5, 5).Draw(t, "x"),
			Y: rapid.SliceOfN(finite, 5, 5).Draw(t, "y")}
		if got, want := h64.Append(nil, d), geomtest.Hull2D(d); !slices.Equal(got, want) {
			t.Fatalf("hull of %#v: %v, want %v", d, got, want)
		}
	})
}

// finite draws any finite float64, often zero, denormal or enormous.
var finite = rapid.Float64().Filter(func(v float64) bool { return v-v == 0 })

// Many lanes find the same hull as one lane, for every spread of the vertices over them.
func TestHullOfManyLanes(t *testing.T) {
	const n = 3*laneFrom + 3
	inputs := append(hostile[float64]()[:6],
		geomtest.Generator[float64]{Name: "circle", Make: geomtest.Circle[float64]},
		geomtest.Generator[float64]{Name: "strokes", Make: geomtest.Strokes[float64]},
		geomtest.Generator[float64]{Name: "disk", Make: geomtest.Disk[float64]})
	for _, g := range inputs {
		c := g.Make(n, seed)
		h := Hull2D[float64]{}
		want := h.Append(nil, c)
		for _, h.Workers = range []int{2, 3} {
			if got := h.Append(nil, c); !slices.Equal(got, want) {
				t.Errorf("%s, seed %d, %d workers: %s", g.Name, seed, h.Workers, difference(got, want))
			}
		}
	}
}

func TestHullOfRealFrames(t *testing.T) {
	for _, f := range geomtest.RealFrames(t) {
		want := geomtest.Hull2D(f.Cloud)
		for _, workers := range []int{1, 2} {
			h := Hull2D[float32]{Workers: workers}
			if got := h.Append(nil, f.Cloud); !slices.Equal(got, want) {
				t.Errorf("%s, %d workers: %s", f.Name, workers, difference(got, want))
			}
		}
	}
}

func TestHullOfRealDrawings(t *testing.T) {
	var h32 Hull2D[float32]
	for _, d := range geomtest.Drawings[float32](t) {
		wantHull(t, &h32, d.Name, d.Cloud)
	}
	var h64 Hull2D[float64]
	for _, d := range geomtest.Drawings[float64](t) {
		wantHull(t, &h64, d.Name, d.Cloud)
	}
}

// Degenerate clouds have defined hulls, from the lowest indices.
func TestHullOfDegenerateClouds(t *testing.T) {
	negative := math.Copysign(0, -1)
	for _, test := range []struct {
		name string
		c    geom.Cloud[float64]
		want []int32
	}{
		{"no point", geomtest.Points[float64](), nil},
		{"equal points, zeros of both signs", geomtest.Points([2]float64{0, negative}, [2]float64{negative, 0},
			[2]float64{0, 0}), []int32{0}},
		{"two points, the greater first", geomtest.Points([2]float64{1, 1}, [2]float64{1, 0}), []int32{1, 0}},
		{"vertical line", geomtest.Points([2]float64{2, 5}, [2]float64{2, 9}, [2]float64{2, 1}, [2]float64{2, 1}),
			[]int32{2, 1}},
		{"sloping line", geomtest.Points([2]float64{1, 2}, [2]float64{0, 0}, [2]float64{3, 6}, [2]float64{2, 4}),
			[]int32{1, 2}},
		{"points on edges", geomtest.Points([2]float64{1, 0}, [2]float64{0, 0}, [2]float64{2, 0}, [2]float64{2, 1},
			[2]float64{2, 2}, [2]float64{1, 1}), []int32{1, 2, 4}},
		{"lowest index of equal vertices", geomtest.Points([2]float64{0, 0}, [2]float64{1, 0}, [2]float64{0, 1},
			[2]float64{1, 0}, [2]float64{0, 0}), []int32{0, 1, 2}},
		{"ends of the number line", geomtest.Points([2]float64{-math.MaxFloat64, 0}, [2]float64{math.MaxFloat64, 0},
			[2]float64{0, math.SmallestNonzeroFloat64}), []int32{0, 1, 2}},
	} {
		var h Hull2D[float64]
		if got := h.Append([]int32{-9}, test.c); !slices.Equal(got, append([]int32{-9}, test.want...)) {
			t.Errorf("%s: %v, want -9 and %v", test.name, got, test.want)
		}
	}
}

// The hull of the vertices is all of them, in their order.
func TestHullOfHullIsItself(t *testing.T) {
	var h Hull2D[float64]
	for _, c := range geomtest.Clouds2D[float64](3000, seed) {
		vertices := geomtest.Gather(c.Cloud, h.Append(nil, c.Cloud))
		again := h.Append(nil, vertices)
		for k, i := range again {
			if int(i) != k || len(again) != vertices.Len() {
				t.Fatalf("%s: the hull of %d vertices is %v", c.Name, vertices.Len(), again)
			}
		}
	}
}

// Another order of the points gives the same vertices in the same order.
func TestHullDoesNotDependOnTheOrder(t *testing.T) {
	var h Hull2D[float32]
	for _, c := range geomtest.Clouds2D[float32](3000, seed) {
		shuffled, _ := geomtest.Permuted(c.Cloud, seed)
		a, b := geomtest.Gather(c.Cloud, h.Append(nil, c.Cloud)), geomtest.Gather(shuffled, h.Append(nil, shuffled))
		if !slices.Equal(a.X, b.X) || !slices.Equal(a.Y, b.Y) {
			t.Errorf("%s, permutation %d: %d and %d vertices", c.Name, seed, a.Len(), b.Len())
		}
	}
}

// Moving and scaling without rounding moves and scales the hull; a mirror
// turns it round.
func TestHullUnderExactMaps(t *testing.T) {
	var h Hull2D[float64]
	c := geomtest.Strokes[float64](4000, seed)
	base := h.Append(nil, c)
	mapped := func(f func(x, y float64) (float64, float64)) []int32 {
		m := geom.Cloud[float64]{}
		for i := range c.X {
			x, y := f(c.X[i], c.Y[i])
			m.X, m.Y = append(m.X, x), append(m.Y, y)
		}
		return h.Append(nil, m)
	}
	for _, k := range []float64{0x1p-500, 0x1p-20, 1, 0x1p30, 0x1p900} {
		if got := mapped(func(x, y float64) (float64, float64) {
			return k * (x + 0x1p20), k * (y - 0x1p40)
		}); !slices.Equal(got, base) {
			t.Errorf("scaled by %g: %s", k, difference(got, base))
		}
	}
	mirrored := mapped(func(x, y float64) (float64, float64) { return -x, y })
	slices.Reverse(mirrored)
	slices.Sort(mirrored)
	want := slices.Clone(base)
	slices.Sort(want)
	if !slices.Equal(mirrored, want) {
		t.Errorf("mirrored: %s", difference(mirrored, want))
	}
}

// Every point that the filter calls inside lies inside, by exact arithmetic. Points are at
// the corners, on the edges and a few units in the last place beside them, for
// polygons of every shape and scale.
func TestFilterNeverDropsAVertex(t *testing.T) {
	testFilter[float32](t)
	testFilter[float64](t)
}

func testFilter[T geom.Float](t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 2))
	built := 0
	for round := range 40 {
		for _, g := range geomtest.Generators2D[T]() {
			c := g.Make(3+r.IntN(300), uint64(round))
			var h []vertex[T]
			for _, i := range geomtest.Hull2D(c) {
				h = append(h, vertex[T]{c.X[i], c.Y[i], i})
			}
			var f filter[T]
			byLeft := slices.Clone(h)
			slices.SortFunc(byLeft, byX[T])
			f.scales = scalesOf(byLeft)
			if !f.build(h) {
				continue
			}
			f.refine(h)
			built++
			for k, a := range h {
				b := h[(k+1)%len(h)]
				part := T(r.Float64())
				x, y := nudge(r, a.x+part*(b.x-a.x)), nudge(r, a.y+part*(b.y-a.y))
				if drops(&f, x, y) && !strictlyInside(h, x, y) || drops(&f, a.x, a.y) {
					t.Fatalf("%s, round %d, seed %d: (%v, %v) near edge %d of %v is called inside", g.Name,
						round, seed, x, y, k, h)
				}
			}
		}
	}
	if built < 400 {
		t.Errorf("only %d filters were built", built)
	}
}

// drops reports whether one of the tables calls a point inside.
func drops[T geom.Float](f *filter[T], x, y T) bool {
	var dst [kernel.OutsideRoom]int32
	x, y = T(float64(x)*f.scales.x), T(float64(y)*f.scales.y)
	_, outside := f.coarse.Outside([]T{x}, []T{y}, 0, dst[:])
	return outside == 0 || f.fine.inside(x, y)
}

func nudge[T geom.Float](r *rand.Rand, v T) T {
	for range r.IntN(4) {
		if T(1)+T(0x1p-30) == 1 {
			v = T(math.Nextafter32(float32(v), float32(r.IntN(2)*2-1)*math.MaxFloat32))
		} else {
			v = T(math.Nextafter(float64(v), float64(r.IntN(2)*2-1)*math.MaxFloat64))
		}
	}
	return v
}

// strictlyInside also holds for the inner points of a vertical edge, which are
// no vertices either.
func strictlyInside[T geom.Float](h []vertex[T], x, y T) bool {
	for k, a := range h {
		b := h[(k+1)%len(h)]
		s := geomtest.OrientExact(float64(a.x), float64(a.y), float64(b.x), float64(b.y), float64(x), float64(y))
		if s < 0 || s == 0 && !(a.x == b.x && min(a.y, b.y) < y && y < max(a.y, b.y)) {
			return false
		}
	}
	return true
}

// A filter that nothing passes, or everything, would be right and useless.
func TestFilterLeavesFewSurvivors(t *testing.T) {
	const n = 100_000
	for _, name := range []string{"square", "disk", "gauss", "parabola", "rings", "utm", "sorted"} {
		for _, g := range geomtest.Generators2D[float64]() {
			if g.Name != name {
				continue
			}
			c := g.Make(n, seed)
			var l lane[float64]
			if !l.takeSample(c, 512) || !l.filter.build(l.points) {
				t.Fatalf("%s: no filter", name)
			}
			dst := make([]int32, n+kernel.OutsideRoom)
			_, coarse := l.filter.coarse.Outside(c.X, c.Y, 0, dst)
			l.filter.refine(l.points)
			if fine := l.filter.fine.sift(c.X, c.Y, dst[:coarse]); coarse > n/6 || fine > n/10 {
				t.Errorf("%s: %d of %d points pass the coarse table, %d of these the fine one", name, coarse, n, fine)
			}
		}
	}
}

// One non-finite coordinate anywhere panics and never gives an answer.
func TestNonFiniteCoordinatePanics(t *testing.T) {
	for _, n := range []int{1, 2, 50, filterFrom, 5000, 2*laneFrom + 1} {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			for _, at := range []int{0, n / 2, n - 1} {
				h := Hull2D[float64]{Workers: 2}
				c := geomtest.Square[float64](n, seed)
				c.X[at] = bad
				wantPanic(t, badFinite, func() { h.Append(nil, c) })
				c = geomtest.Square[float64](n, seed)
				c.Y[at] = bad
				wantPanic(t, badFinite, func() { h.Append(nil, c) })
				c.Y[at] = 0
				wantHull(t, &h, "square, after a panic", c)
			}
		}
	}
}

func TestCallersMistakesPanic(t *testing.T) {
	var h Hull2D[float32]
	one, two := []float32{1}, []float32{1, 2}
	wantPanic(t, badLengths, func() { h.Append(nil, geom.Cloud[float32]{X: one, Y: two}) })
	wantPanic(t, badLengths, func() { h.Append(nil, geom.Cloud[float32]{X: two, Y: two, Z: one}) })
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

func FuzzHull2D(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 3, 3, 2, 1, 2, 2, 2})
	f.Add([]byte{0x11, 63, 0, 0, 0, 255, 1, 128, 7, 7, 7, 9, 9, 1, 100, 100})
	f.Add(append([]byte{1, 40}, "near-collinear points, a few steps apart, many times over"...))
	f.Add(append([]byte{2, 3}, make([]byte, 96)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzzOne[float32](t, b)
		fuzzOne[float64](t, b)
	})
}

func fuzzOne[T geom.Float](t *testing.T, b []byte) {
	var h Hull2D[T]
	c := geomtest.FromBytes[T](b, 2)
	if got, want := h.Append(nil, c), geomtest.Hull2D(c); !slices.Equal(got, want) {
		t.Errorf("hull of %#v:\ngot  %v\nwant %v", c, got, want)
	}
}
