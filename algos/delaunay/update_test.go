package delaunay_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/algos/delaunay"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// moved returns c with noise of a size added to a share of its points.
func moved[T geom.Float](c geom.Cloud[T], size, share float64, r *rand.Rand) geom.Cloud[T] {
	d := geom.Cloud[T]{X: slices.Clone(c.X), Y: slices.Clone(c.Y)}
	for i := range d.X {
		if r.Float64() < share {
			d.X[i] = plus(d.X[i], size*r.NormFloat64())
			d.Y[i] = plus(d.Y[i], size*r.NormFloat64())
		}
	}
	return d
}

// plus adds where the sum is finite.
func plus[T geom.Float](v T, by float64) T {
	if sum := v + T(by); sum-sum == 0 {
		return sum
	}
	return v
}

// updates checks that Update follows a cloud as Triangulate would find it.
func updates[T geom.Float](t *testing.T, name string, tr *delaunay.Triangulator[T], c geom.Cloud[T]) delaunay.Report {
	t.Helper()
	var fresh delaunay.Triangulator[T]
	got, report := tr.Update(c)
	if want := fresh.Triangulate(c); !equal(got, want) {
		t.Fatalf("%s, %+v: not the mesh of Triangulate; %v", name, report, delaunay.Validate(c, got))
	}
	return report
}

// Update gives the mesh of Triangulate after motions of any size, one after
// the other, and rebuilds only after large ones.
func TestUpdateFollowsMotions(t *testing.T) {
	const n, seed = 3000, 5
	spacing := 1 / 55.0
	var tr delaunay.Triangulator[float64]
	for _, test := range []struct {
		motion  float64 // in spacings
		rebuilt bool
	}{{1e-3, false}, {1e-2, false}, {3e-2, false}, {0.1, true}, {0.3, true}} {
		r := rand.New(rand.NewPCG(seed, 0))
		c := geomtest.Square[float64](n, seed)
		tr.Triangulate(c)
		var all delaunay.Report
		for step := range 10 {
			c = moved(c, test.motion*spacing, 1, r)
			report := updates(t, fmt.Sprintf("motion %v, step %d, seed %d", test.motion, step, seed), &tr, c)
			if report.Rebuilt && !test.rebuilt {
				t.Errorf("motion %v, step %d, seed %d: rebuilt", test.motion, step, seed)
			}
			all.Inverted += report.Inverted
			all.Flips += report.Flips
			all.Moved += report.Moved
		}
		if test.motion >= 1e-2 && !test.rebuilt && (all.Inverted == 0 || all.Flips == 0 || all.Moved == 0) {
			t.Errorf("motion %v, seed %d: %+v tests nothing", test.motion, seed, all)
		}
	}
}

// Every generator, with all or few points moving: ties that come and go,
// duplicates that part and meet, borders that were straight.
func TestUpdateOfEveryGenerator(t *testing.T) {
	t.Run("float64", updateEvery[float64])
	t.Run("float32", updateEvery[float32])
}

func updateEvery[T geom.Float](t *testing.T) {
	warm := 0
	for _, g := range geomtest.Generators2D[T]() {
		for _, share := range []float64{0, 0.01, 1} {
			r := rand.New(rand.NewPCG(6, 0))
			c := g.Make(400, 6)
			size := extent(c) / 20
			var tr delaunay.Triangulator[T]
			tr.Triangulate(c)
			for _, motion := range []float64{1e-6, 1e-3, 1e-2, 0.05} {
				d := moved(c, motion*size, share, r)
				name := fmt.Sprintf("%s, motion %v of %v points, seed 6", g.Name, motion, share)
				for _, to := range []geom.Cloud[T]{d, c} { // there and back
					if report := updates(t, name, &tr, to); !report.Rebuilt {
						warm++
					}
				}
			}
		}
	}
	if warm < 200 {
		t.Errorf("only %d updates were warm", warm)
	}
}

func extent[T geom.Float](c geom.Cloud[T]) float64 {
	return max(float64(slices.Max(c.X))/2-float64(slices.Min(c.X))/2,
		float64(slices.Max(c.Y))/2-float64(slices.Min(c.Y))/2)
}

// Points on a lattice that step to other places of it meet and part.
func TestUpdateOnALattice(t *testing.T) {
	warm, moved := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		c := geomtest.Grid[float32](900, 0)
		var tr delaunay.Triangulator[float32]
		tr.Triangulate(c)
		for range 6 {
			for range 1 + r.IntN(4) {
				i := r.IntN(c.Len())
				c.X[i] += float32(r.IntN(3) - 1)
				c.Y[i] += float32(r.IntN(3) - 1)
			}
			report := updates(t, fmt.Sprintf("seed %d", seed), &tr, c)
			moved += report.Moved
			if !report.Rebuilt {
				warm++
			}
		}
	}
	if warm < 100 || moved < 100 {
		t.Errorf("%d warm updates, %d points moved", warm, moved)
	}
}

// Another number of points, or none before, is a new triangulation.
func TestUpdateOfAnotherCloudRebuilds(t *testing.T) {
	var tr delaunay.Triangulator[float64]
	for _, n := range []int{300, 400, 0, 2, 400} {
		if report := updates(t, fmt.Sprint(n, " points"), &tr, geomtest.Gauss[float64](n, 1)); !report.Rebuilt {
			t.Errorf("%d points after another number: %+v, want rebuilt", n, report)
		}
	}
	line := geomtest.Horizontal[float64](400, 1)
	if report := updates(t, "line", &tr, line); !report.Rebuilt {
		t.Errorf("a square that becomes a line: %+v, want rebuilt", report)
	}
	if report := updates(t, "square", &tr, geomtest.Square[float64](400, 2)); !report.Rebuilt {
		t.Errorf("a line that becomes a square: %+v, want rebuilt", report)
	}
}

// After parallel rounds the triangles carry the marks of their zones.
func TestUpdateAfterWorkers(t *testing.T) {
	tr := delaunay.Triangulator[float64]{Workers: 2}
	c := geomtest.Gauss[float64](20_000, 3)
	tr.Triangulate(c)
	report := updates(t, "gauss", &tr, moved(c, 1e-5, 1, rand.New(rand.NewPCG(8, 0))))
	if report.Rebuilt {
		t.Errorf("%+v, want warm", report)
	}
}

func TestUpdateDoesNotAllocate(t *testing.T) {
	var tr delaunay.Triangulator[float64]
	a := geomtest.Square[float64](3000, 1)
	b := moved(a, 3e-4, 1, rand.New(rand.NewPCG(9, 0)))
	tr.Triangulate(a)
	tr.Update(b)
	tr.Update(a)
	if n := testing.AllocsPerRun(10, func() { tr.Update(b); tr.Update(a) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleTriangulator_Update() {
	c := geomtest.Square[float64](1000, 1)
	var tr delaunay.Triangulator[float64]
	tr.Triangulate(c)
	c.X[500] += 1e-4
	m, report := tr.Update(c)
	fmt.Println(report.Rebuilt, delaunay.Validate(c, m))
	// Output: false <nil>
}
