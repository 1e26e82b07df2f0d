package hull

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

var campaign3 = flag.Int("campaign3", 600, "small sets to compare with the oracle in space")

// wantHull3 compares with the oracle by definition.
func wantHull3[T geom.Float](h *Hull3D[T], c geom.Cloud[T]) error {
	v, f, dim := h.Append(nil, nil, c)
	wantV, wantF, wantDim := geomtest.Hull3D(c)
	if dim != wantDim || !slices.Equal(v, wantV) || !slices.Equal(f, wantF) {
		return fmt.Errorf("hull of %#v: dimension %d, vertices %v, faces %v; want %d, %v, %v", c, dim, v, f,
			wantDim, wantV, wantF)
	}
	return nil
}

// Small sets of every kind: few values an axis give coplanar, collinear and
// equal points by the dozen.
func TestHull3DOfSmallSets(t *testing.T) {
	var h32 Hull3D[float32]
	var h64 Hull3D[float64]
	for round := range shorter(*campaign3, 100) {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		name, c := smallSet(r)
		if err := wantHull3(&h64, c); err != nil {
			t.Fatalf("%s, round %d, seed %d: %v", name, round, seed, err)
		}
		if err := wantHull3(&h32, narrowed(c)); err != nil {
			t.Fatalf("%s, round %d, seed %d: %v", name, round, seed, err)
		}
	}
}

// shorter is n, or less for slow machines.
func shorter(n, less int) int {
	if testing.Short() {
		return min(n, less)
	}
	return n
}

// narrowed rounds to float32, what is too large to the largest.
func narrowed(c geom.Cloud[float64]) geom.Cloud[float32] {
	narrow := func(v []float64) []float32 {
		w := make([]float32, len(v))
		for i := range v {
			w[i] = float32(max(-math.MaxFloat32, min(math.MaxFloat32, v[i])))
		}
		return w
	}
	return geom.Cloud[float32]{X: narrow(c.X), Y: narrow(c.Y), Z: narrow(c.Z)}
}

func smallSet(r *rand.Rand) (string, geom.Cloud[float64]) {
	n := r.IntN(11)
	kinds := []string{"grid", "uniform", "flat", "noise", "offset", "tiny", "huge", "line", "subnormal", "mixed"}
	kind := kinds[r.IntN(len(kinds))]
	side := 2 + r.IntN(4)
	c := geom.Cloud[float64]{X: []float64{}, Y: []float64{}, Z: []float64{}}
	u, v := [3]float64{float64(r.IntN(5)), float64(r.IntN(5)), 1}, [3]float64{1, float64(r.IntN(5)), float64(r.IntN(5))}
	for range n {
		var p [3]float64
		for k := range p {
			p[k] = float64(r.IntN(side))
		}
		switch kind {
		case "uniform":
			p = [3]float64{r.Float64(), r.Float64(), r.Float64()}
		case "flat":
			s, m := float64(r.IntN(side)), float64(r.IntN(side))
			for k := range p {
				p[k] = s*u[k] + m*v[k]
			}
		case "noise":
			s, m := float64(r.IntN(side)), float64(r.IntN(side))
			for k := range p {
				p[k] = nudge(r, 1+s*u[k]*0x1p-6+m*v[k]*0x1p-6)
			}
		case "offset":
			for k := range p {
				p[k] = 1e15 + p[k]
			}
		case "tiny":
			for k := range p {
				p[k] *= 1e-150
			}
		case "huge":
			for k := range p {
				p[k] *= 1e150 * float64(1-2*r.IntN(2))
			}
		case "line":
			s := float64(r.IntN(7))
			for k := range p {
				p[k] = s * u[k]
			}
		case "subnormal":
			for k := range p {
				p[k] *= 0x1p-149
			}
		case "mixed":
			for k := range p {
				p[k] *= []float64{0, 1, -1, 1e-300, 1e300, 5e-324, 1e15}[r.IntN(7)]
			}
		}
		c.X, c.Y, c.Z = append(c.X, p[0]), append(c.Y, p[1]), append(c.Z, p[2])
	}
	return kind, c
}

func TestHull3DOfTiedClouds(t *testing.T) {
	var h Hull3D[float32]
	rapid.Check(t, func(t *rapid.T) {
		c := geomtest.Tied[float32](3).Draw(t, "cloud")
		c = c.Slice(0, min(c.Len(), 16))
		if err := wantHull3(&h, c); err != nil {
			t.Fatal(err)
		}
	})
}

// spaces lists generators beyond those of geomtest.Generators3D.
func spaces[T geom.Float]() []geomtest.Generator[T] {
	return append(geomtest.Generators3D[T](), []geomtest.Generator[T]{
		{Name: "ball", Make: geomtest.Ball[T]}, {Name: "sphere", Make: geomtest.Sphere[T]},
		{Name: "faces", Make: geomtest.CubeFaces[T]}, {Name: "moment", Make: geomtest.Moment[T]},
		{Name: "spiral", Make: geomtest.Spiral[T]}, {Name: "discs", Make: geomtest.Discs[T]},
		{Name: "needle", Make: geomtest.Needle[T]}, {Name: "shells", Make: geomtest.Shells[T]},
	}...)
}

// Every distribution, with the surface checked rather than compared.
func TestHull3DOfEveryDistribution(t *testing.T) {
	testHull3Distributions[float32](t)
	testHull3Distributions[float64](t)
}

func testHull3Distributions[T geom.Float](t *testing.T) {
	var h Hull3D[T] // one for all: scratch must not leak from call to call
	for _, n := range []int{0, 1, 2, 3, 4, 50, shorter(200, 100)} {
		for _, g := range spaces[T]() {
			c := g.Make(n, seed)
			if err := checkHull3(&h, c); err != nil {
				t.Errorf("%s[%T], %d points, seed %d: %v", g.Name, T(0), n, seed, err)
			}
		}
	}
}

// checkHull3 checks a hull without the oracle: a solid by its surface, anything
// less by the hulls of its projections.
func checkHull3[T geom.Float](h *Hull3D[T], c geom.Cloud[T]) error {
	v, f, dim := h.Append(nil, nil, c)
	if dim == 3 {
		return geomtest.CheckHull3D(c, v, f)
	}
	corners := []int32{}
	for _, shadow := range []geom.Cloud[T]{{X: c.X, Y: c.Y}, {X: c.Y, Y: c.Z}, {X: c.Z, Y: c.X}} {
		if plane := geomtest.Hull2D(shadow); len(plane) > len(corners) {
			corners = plane
		}
	}
	slices.Sort(corners)
	if len(f) > 0 || dim != min(len(corners), 3)-1 || !slices.Equal(v, corners) {
		return fmt.Errorf("dimension %d, vertices %v, %d faces; want the vertices %v", dim, v, len(f)/3, corners)
	}
	return nil
}

// The triangles do not depend on the order of the points, nor on how many
// goroutines share them, nor on the vector units.
func TestHull3DIsAFunctionOfTheSet(t *testing.T) {
	testHull3Function[float32](t)
	testHull3Function[float64](t)
}

func testHull3Function[T geom.Float](t *testing.T) {
	for _, g := range spaces[T]() {
		n, workers := sieveFrom, []int{100} // too few points to share
		if g.Name == "ball" || g.Name == "lidar" || g.Name == "faces" {
			n, workers = shorter(2*lane3From+11, 5000), []int{1, 2, 100}
		}
		c := g.Make(n, seed)
		var h Hull3D[T]
		v, f, dim := h.Append(nil, nil, c)
		shuffled, perm := geomtest.Permuted(c, seed)
		for _, level := range []kernel.Level{kernel.Portable, kernel.AVX2, kernel.AVX512} {
			for _, h.Workers = range workers {
				restore := kernel.Limit(level)
				w, e, again := h.Append(nil, nil, c)
				restore()
				if !slices.Equal(v, w) || !slices.Equal(f, e) || dim != again {
					t.Fatalf("%s, %v, %d workers, seed %d: %d vertices, %d faces, want %d, %d", g.Name, level,
						h.Workers, seed, len(w), len(e), len(v), len(f))
				}
			}
		}
		w, e, again := h.Append(nil, nil, shuffled)
		w, e = renamed(shuffled, w, e, c, v)
		if dim != again || !slices.Equal(v, w) || !slices.Equal(f, e) {
			t.Fatalf("%s, permutation %d (%d first): other places", g.Name, seed, perm[0])
		}
	}
}

// renamed gives vertices and faces of cloud from the indices that vertices
// names have in cloud to, in canonical order; -1 where there is none.
func renamed[T geom.Float](from geom.Cloud[T], vertices, faces []int32, to geom.Cloud[T],
	names []int32) (v, f []int32) {
	index := map[[3]T]int32{} // 0 and -0 are one key
	for _, i := range names {
		index[[3]T{to.X[i], to.Y[i], to.Z[i]}] = i
	}
	name := func(i int32) int32 {
		if k, is := index[[3]T{from.X[i], from.Y[i], from.Z[i]}]; is {
			return k
		}
		return -1
	}
	for _, i := range vertices {
		v = append(v, name(i))
	}
	slices.Sort(v)
	var triangles [][3]int32
	for k := 0; k < len(faces); k += 3 {
		t := [3]int32{name(faces[k]), name(faces[k+1]), name(faces[k+2])}
		for t[0] > min(t[1], t[2]) {
			t = [3]int32{t[1], t[2], t[0]}
		}
		triangles = append(triangles, t)
	}
	slices.SortFunc(triangles, func(a, b [3]int32) int { return slices.Compare(a[:], b[:]) })
	for _, t := range triangles {
		f = append(f, t[:]...)
	}
	return v, f
}

// One sieve, or two for large clouds, give the hull that all points give.
func TestHull3DSievesChangeNothing(t *testing.T) {
	for _, g := range spaces[float32]() {
		sizes := []int{sieveFrom}
		switch g.Name {
		case "ball", "lidar", "octant", "grid3":
			sizes = append(sizes, shorter(20_000, 5000), shorter(150_000, 5000))
		}
		for _, n := range sizes {
			c := g.Make(n, seed)
			h := Hull3D[float32]{Workers: 2}
			v, f, dim := h.Append(nil, nil, c)
			h.takeAll(c)
			w, e, again := h.finish(nil, nil, c)
			if !slices.Equal(v, w) || !slices.Equal(f, e) || dim != again {
				t.Errorf("%s, %d points, seed %d: dimension %d, %d vertices, %d faces, want %d, %d, %d", g.Name, n,
					seed, dim, len(v), len(f)/3, again, len(w), len(e)/3)
			}
		}
	}
}

func TestHull3DOfRealFrames(t *testing.T) {
	frames := geomtest.RealFrames(t)
	for i, f := range frames {
		if testing.Short() && i%8 > 0 {
			continue
		}
		var h Hull3D[float32]
		v, e, dim := h.Append(nil, nil, f.Cloud)
		if dim != 3 {
			t.Errorf("%s: dimension %d", f.Name, dim)
		} else if err := geomtest.CheckHull3D(f.Cloud, v, e); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

// Every answer that the comments promise for degenerate clouds.
func TestHull3DOfDegenerateClouds(t *testing.T) {
	p := geomtest.Points3[float64]
	for _, test := range []struct {
		name     string
		c        geom.Cloud[float64]
		dim      int
		vertices []int32
	}{
		{"nothing", p(), -1, nil},
		{"one", p([3]float64{1, 2, 3}), 0, []int32{0}},
		{"equal, with both zeros", p([3]float64{0, 1, 0}, [3]float64{math.Copysign(0, -1), 1, 0}), 0, []int32{0}},
		{"two", p([3]float64{1, 2, 3}, [3]float64{1, 2, 2}), 1, []int32{0, 1}},
		{"line", p([3]float64{1, 1, 1}, [3]float64{3, 3, 3}, [3]float64{2, 2, 2}, [3]float64{3, 3, 3}), 1,
			[]int32{0, 1}},
		{"square, its middle and an edge's", p([3]float64{1, 1, 1}, [3]float64{0, 0, 1}, [3]float64{2, 0, 1},
			[3]float64{2, 2, 1}, [3]float64{0, 2, 1}, [3]float64{1, 0, 1}), 2, []int32{1, 2, 3, 4}},
		{"upright triangle", p([3]float64{1, 1, 0}, [3]float64{2, 2, 0}, [3]float64{1, 1, 5}), 2, []int32{0, 1, 2}},
		{"upright, across x", p([3]float64{1, 1, 0}, [3]float64{1, 2, 0}, [3]float64{1, 1, 5}), 2, []int32{0, 1, 2}},
	} {
		var h Hull3D[float64]
		v, f, dim := h.Append([]int32{-7}, []int32{-9}, test.c)
		if dim != test.dim || !slices.Equal(v, append([]int32{-7}, test.vertices...)) || !slices.Equal(f, []int32{-9}) {
			t.Errorf("%s: dimension %d, vertices %v, faces %v; want %d, %v and none", test.name, dim, v, f,
				test.dim, test.vertices)
		}
	}
}

// A cube with points in its edges and facets has twelve triangles, those of
// each side around its least corner.
func TestHull3DOfCube(t *testing.T) {
	var h Hull3D[float64]
	c := geomtest.Grid3[float64](27, 0)
	v, f, dim := h.Append(nil, nil, c)
	want := []int32{0, 2, 6, 8, 18, 20, 24, 26}
	if dim != 3 || !slices.Equal(v, want) || len(f) != 36 {
		t.Fatalf("dimension %d, vertices %v, faces %v", dim, v, f)
	}
	around := 0 // number of triangles at the least corner: three fans of two
	for _, i := range f {
		if i == 0 {
			around++
		}
	}
	if area, volume := Measure3D(c, f); around != 6 || area != 24 || volume != 8 {
		t.Errorf("%d triangles at the least corner, area %v, volume %v: %v", around, area, volume, f)
	}
}

func TestHull3DCallersMistakesPanic(t *testing.T) {
	var h Hull3D[float64]
	one, two := []float64{1}, []float64{1, 2}
	wantPanic(t, badSpace, func() { h.Append(nil, nil, geom.Cloud[float64]{X: one, Y: one}) })
	wantPanic(t, badLengths, func() { h.Append(nil, nil, geom.Cloud[float64]{X: two, Y: two, Z: one}) })
	for _, n := range []int{1, 50, sieveFrom, 2*lane3From + 1} {
		for _, at := range []int{0, n / 2, n - 1} {
			for axis := range 3 {
				h := Hull3D[float64]{Workers: 2}
				c := geomtest.Ball[float64](n, seed)
				bad := [][]float64{c.X, c.Y, c.Z}[axis]
				was := bad[at]
				bad[at] = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[axis]
				wantPanic(t, badFinite, func() { h.Append(nil, nil, c) })
				bad[at] = was
				if v, f, _ := h.Append(nil, nil, c); n < 100 && checkHull3(&h, c) != nil ||
					n > 100 && len(f) != 6*len(v)-12 {
					t.Fatalf("%d points, after a panic: %d vertices, %d indices of faces", n, len(v), len(f))
				}
			}
		}
	}
}

func FuzzHull3D(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 9, 3, 3, 3})
	f.Add([]byte{1, 0, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 9, 3, 3, 3, 9, 9, 9})
	f.Add(append([]byte{0x30, 63}, []byte("points repeated, each copy a little off, enough for the sieve: "+
		"sixty-four times sixteen")...))
	f.Add(append([]byte{2, 0}, make([]byte, 120)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h32 Hull3D[float32]
		if c := geomtest.FromBytes[float32](b, 3); checkHull3(&h32, c) != nil {
			t.Fatalf("%#v: %v", c, checkHull3(&h32, c))
		}
		var h64 Hull3D[float64]
		if c := geomtest.FromBytes[float64](b, 3); checkHull3(&h64, c) != nil {
			t.Fatalf("%#v: %v", c, checkHull3(&h64, c))
		}
	})
}
