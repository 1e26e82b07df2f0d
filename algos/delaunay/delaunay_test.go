package delaunay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/algos/delaunay"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

func check[T geom.Float](t testing.TB, name string, c geom.Cloud[T], tr *delaunay.Triangulator[T]) geom.Mesh {
	t.Helper()
	m := tr.Triangulate(c)
	for _, err := range []error{geomtest.CheckDelaunay(c, m), delaunay.Validate(c, m)} {
		if err != nil {
			if c.Len() <= 40 {
				t.Fatalf("%s: %v\ncloud %+v\nmesh %+v", name, err, c, m)
			}
			t.Fatalf("%s, %d points: %v", name, c.Len(), err)
		}
	}
	return m
}

// manyPoints are more than the 1024 from which a sample of the points chooses the frame.
const manyPoints = 1100

// One Triangulator, every generator, several sizes: the exact oracle agrees.
func TestEveryGeneratorAgainstTheOracle(t *testing.T) {
	t.Run("float64", every[float64])
	t.Run("float32", every[float32])
}

func every[T geom.Float](t *testing.T) {
	var tr delaunay.Triangulator[T]
	for _, g := range geomtest.Generators2D[T]() {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 20, 65, 300, manyPoints} {
			for seed := range uint64(2) {
				check(t, fmt.Sprintf("%s, seed %d", g.Name, seed), g.Make(n, seed), &tr)
			}
		}
	}
}

// Small integer clouds are full of ties, duplicates and collinear points.
func TestTiedCloudsAgainstTheOracle(t *testing.T) {
	var tr delaunay.Triangulator[float32]
	rapid.Check(t, func(rt *rapid.T) {
		c := geomtest.Tied[float32](2).Draw(rt, "cloud")
		m := tr.Triangulate(c)
		if err := geomtest.CheckDelaunay(c, m); err != nil {
			rt.Fatalf("%v\nmesh %+v", err, m)
		}
	})
}

// Unsorted meshes are valid, and have the triangles of sorted ones: also those of
// Update, and where points are equal.
func TestUnsortedIsTheSameMesh(t *testing.T) {
	t.Run("float64", unsorted[float64])
	t.Run("float32", unsorted[float32])
}

func unsorted[T geom.Float](t *testing.T) {
	var tr delaunay.Triangulator[T]
	free := delaunay.Triangulator[T]{Unsorted: true}
	for _, g := range geomtest.Generators2D[T]() {
		for _, n := range []int{0, 2, 3, 5, 65, 300, manyPoints} {
			c := g.Make(n, 4)
			twice := geom.Cloud[T]{X: slices.Concat(c.X, c.X), Y: slices.Concat(c.Y, c.Y)}
			for _, c := range []geom.Cloud[T]{c, twice,
				moved(twice, extentOr1(twice)/1000, 0.01, rand.New(rand.NewPCG(4, 0)))} {
				m, _ := free.Update(c)
				if err := delaunay.Validate(c, m); err != nil {
					t.Fatalf("%s, %d points, seed 4: %v", g.Name, c.Len(), err)
				}
				rows := make([][3]int32, 0, len(m.Triangles)/3)
				for r := range slices.Chunk(m.Triangles, 3) {
					k := slices.Index(r, slices.Min(r))
					rows = append(rows, [3]int32{r[k], r[(k+1)%3], r[(k+2)%3]})
				}
				slices.SortFunc(rows, func(a, b [3]int32) int { return slices.Compare(a[:], b[:]) })
				want := tr.Triangulate(c)
				for k, row := range rows {
					if !slices.Equal(row[:], want.Triangles[3*k:3*k+3]) {
						t.Fatalf("%s, %d points, seed 4: triangle %d is %v, want %v", g.Name, c.Len(), k, row,
							want.Triangles[3*k:3*k+3])
					}
				}
				if len(rows) != len(want.Triangles)/3 || !slices.Equal(m.Hull, want.Hull) {
					t.Fatalf("%s, %d points, seed 4: %d triangles, hull %v; want %d and %v", g.Name, c.Len(), len(rows),
						m.Hull, len(want.Triangles)/3, want.Hull)
				}
			}
		}
	}
}

func extentOr1[T geom.Float](c geom.Cloud[T]) float64 {
	if c.Len() == 0 {
		return 1
	}
	return extent(c)
}

// The triangulation is a function of the points: a permutation renames the
// indices and does nothing else.
func TestPermutationOnlyRenames(t *testing.T) {
	var tr delaunay.Triangulator[float64]
	rapid.Check(t, func(rt *rapid.T) {
		c := distinct(geomtest.Tied[float64](2).Draw(rt, "cloud"))
		perm := rapid.Permutation(count(c.Len())).Draw(rt, "perm")
		d := geom.Cloud[float64]{X: make([]float64, c.Len()), Y: make([]float64, c.Len())}
		for i, j := range perm {
			d.X[j], d.Y[j] = c.X[i], c.Y[i]
		}
		want := shapes(c, tr.Triangulate(c))
		if got := shapes(d, tr.Triangulate(d)); !cmp.Equal(got, want) {
			rt.Fatalf("permuted: %v, want %v", got, want)
		}
	})
}

func count(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func distinct(c geom.Cloud[float64]) (d geom.Cloud[float64]) {
	seen := map[[2]float64]bool{}
	for i := range c.X {
		if p := [2]float64{c.X[i] + 0, c.Y[i] + 0}; !seen[p] {
			seen[p] = true
			d.X, d.Y = append(d.X, p[0]), append(d.Y, p[1])
		}
	}
	return d
}

// shapes lists the triangles by their coordinates.
func shapes(c geom.Cloud[float64], m geom.Mesh) []string {
	var s []string
	for e := 0; e < len(m.Triangles); e += 3 {
		var p []string
		for _, v := range m.Triangles[e : e+3] {
			p = append(p, fmt.Sprint(c.X[v], c.Y[v]))
		}
		slices.Sort(p)
		s = append(s, fmt.Sprint(p))
	}
	slices.Sort(s)
	return s
}

// All real frames and drawings.
func TestRealClouds(t *testing.T) {
	var tr delaunay.Triangulator[float32]
	t.Run("frames", func(t *testing.T) {
		for i, f := range geomtest.RealFrames(t) {
			if testing.Short() && i > 2 {
				break
			}
			check(t, f.Name, f.Cloud, &tr)
		}
	})
	t.Run("drawings", func(t *testing.T) {
		for _, d := range geomtest.Drawings[float32](t) {
			check(t, d.Name, d.Cloud, &tr)
		}
	})
}

// Walks went on from the last new vertex, not from the last point: in a cloud
// whose late points are all duplicates each came from afar, a hundred steps
// here.
func TestDuplicatesAreFoundNearEachOther(t *testing.T) {
	var tr delaunay.Triangulator[float64]
	few := geomtest.Slivers[float64](900, 1)
	idx := make([]int, 40_000)
	for k := range idx {
		idx[k] = k * 7919 % few.Len()
	}
	mostSteps(t, &tr, "duplicates", geomtest.Gather(few, idx), 20)
}

// Points that no cell of one grid tells apart: powers of two from the least to
// the largest, a thousand points at each of some.
func TestOrderOfPointsOnAllScales(t *testing.T) {
	var tr delaunay.Triangulator[float64]
	rng := rand.New(rand.NewPCG(3, 0))
	var c geom.Cloud[float64]
	for e := -1074; e <= 1023; e += 60 {
		for range 1000 {
			c.X, c.Y = append(c.X, math.Ldexp(rng.Float64(), e)), append(c.Y, math.Ldexp(rng.Float64(), e))
		}
	}
	mostSteps(t, &tr, "all scales, seed 3", c, 20)
	if err := delaunay.Validate(c, tr.Triangulate(c)); err != nil {
		t.Errorf("all scales, seed 3: %v", err)
	}
}

// Large clouds of ties, by Validate alone: the oracle takes longer.
func TestLargeTies(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 points six times take seconds; run without -short")
	}
	var tr delaunay.Triangulator[float64]
	for _, g := range geomtest.Generators2D[float64]() {
		if !slices.Contains([]string{"grid", "circle", "duplicates", "equal", "collinear", "strokes"}, g.Name) {
			continue
		}
		c := g.Make(100_000, 5)
		if err := delaunay.Validate(c, tr.Triangulate(c)); err != nil {
			t.Errorf("%s, 100000 points: %v", g.Name, err)
		}
	}
}

// Lattices take determinants without an error bound while these are exact:
// 12 bits wide, anywhere, with any unit. One bit more, or half a unit, and
// they must not.
func TestLatticesOfAnyUnitAndPlace(t *testing.T) {
	var tr delaunay.Triangulator[float64]
	rng := rand.New(rand.NewPCG(4, 0))
	for _, bits := range []int{3, 11, 12, 13, 26, 52} {
		for _, unit := range []int{-1074, -300, -250, -200, -52, -3, 0, 7, 180, 200, 230, 240, 960} {
			for _, offset := range []float64{0, 1e6, 1e9, 0x1p49} {
				var c geom.Cloud[float64]
				for range 60 {
					v := [2]float64{float64(rng.Int64N(1 << bits)), float64(rng.Int64N(1 << bits))}
					if rng.IntN(8) == 0 {
						v = [2]float64{math.Ldexp(1, bits) - 1, 0}
					}
					c.X = append(c.X, math.Ldexp(v[0]+offset, unit))
					c.Y = append(c.Y, math.Ldexp(v[1]-offset, unit))
				}
				c.X, c.Y = append(c.X, c.Y...), append(c.Y, c.X...) // a mirror: more ties
				check(t, fmt.Sprintf("%d bits, unit 2^%d, offset %g, seed 4", bits, unit, offset), c, &tr)
			}
		}
	}
	almost := geomtest.Grid[float64](100, 0)
	almost.X[57] = math.Nextafter(almost.X[57], 9)
	check(t, "grid with one point off by a rounding", almost, &tr)
}

// Every report against other triangulators that is published as a cloud.
func TestPublishedClouds(t *testing.T) {
	var tr delaunay.Triangulator[float64]
	clouds := 0
	files, err := filepath.Glob(filepath.Join(geomtest.TestData(t, "oracles", "delaunator_js"), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var xy [][2]float64
		if err := json.Unmarshal(b, &xy); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		check(t, filepath.Base(f), geomtest.Points(xy...), &tr)
		clouds++
	}
	for _, name := range []string{"cdt", "ditch", "island"} {
		b, err := os.ReadFile(geomtest.TestData(t, "oracles", "cdt", "inputs", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		in := bytes.NewReader(b)
		var n, edges int
		if _, err := fmt.Fscan(in, &n, &edges); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		xy := make([][2]float64, n)
		for i := range xy {
			if _, err := fmt.Fscan(in, &xy[i][0], &xy[i][1]); err != nil {
				t.Fatalf("%s, point %d: %v", name, i, err)
			}
		}
		check(t, name, geomtest.Points(xy...), &tr)
		clouds++
	}
	if clouds < 11 {
		t.Errorf("%d clouds, want 11", clouds)
	}
}

func TestMistakesOfTheCallerPanic(t *testing.T) {
	for name, c := range map[string]geom.Cloud[float64]{
		"delaunay: coordinate slices of unequal lengths": {X: []float64{1, 2}, Y: []float64{1}},
		"delaunay: non-finite coordinate":                {X: []float64{0, 1, math.NaN(), 3}, Y: []float64{0, 1, 5, 2}},
	} {
		func() {
			defer func() {
				if got := recover(); got != name {
					t.Errorf("panic %v, want %q", got, name)
				}
			}()
			new(delaunay.Triangulator[float64]).Triangulate(c)
		}()
	}
}

func TestWarmTriangulatorDoesNotAllocate(t *testing.T) {
	var tr delaunay.Triangulator[float32]
	for _, n := range []int{45, 5000} {
		c := geomtest.Square[float32](n, 1)
		tr.Triangulate(c)
		if a := testing.AllocsPerRun(10, func() { tr.Triangulate(c) }); a != 0 {
			t.Errorf("%d points: %v allocations", n, a)
		}
	}
}

// Run it with -fuzzminimizetime 10x: making large clouds smaller takes most of
// the time otherwise.
func FuzzTriangulate(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 0, 1, 1, 1})
	f.Add([]byte("collinear and other things, some bytes to start with"))
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzz[float32](t, b)
		fuzz[float64](t, b)
	})
}

func fuzz[T geom.Float](t *testing.T, b []byte) {
	var tr delaunay.Triangulator[T]
	c := geomtest.FromBytes[T](b, 2)
	triangles := len(check(t, "fuzz", c, &tr).Triangles)
	other, _ := geomtest.Permuted(c, 1)
	if got := len(check(t, "fuzz, permuted", other, &tr).Triangles); got != triangles {
		t.Errorf("%d corners of triangles, %d after a permutation\ncloud %+v", triangles, got, c)
	}
}

func ExampleTriangulator_Triangulate() {
	var tr delaunay.Triangulator[float64]
	m := tr.Triangulate(geom.Cloud[float64]{X: []float64{0, 1, 1, 0}, Y: []float64{0, 0, 1, 1}})
	fmt.Println(m.Triangles, m.Halfedges, m.Hull)
	// Output: [0 1 3 1 2 3] [-1 5 -1 -1 -1 1] [0 1 2 3]
}
