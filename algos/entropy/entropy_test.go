package entropy

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// hostile are clouds of a few points and of all generators, those that break
// floating-point geometry among them.
func hostile[T geom.Float]() []geomtest.Named[T] {
	var out []geomtest.Named[T]
	for _, n := range []int{0, 1, 2, 3, 50} {
		for _, c := range slices.Concat(geomtest.Clouds2D[T](n, seed), geomtest.Clouds3D[T](n, seed)) {
			c.Name = fmt.Sprint(c.Name, " ", n)
			out = append(out, c)
		}
	}
	return out
}

func scaled(c geom.Cloud[float64], by float64) geom.Cloud[float64] {
	return geom.Cloud[float64]{X: widen(nil, c.X, by), Y: widen(nil, c.Y, by), Z: widen(nil, c.Z, by)}
}

func TestHostileClouds(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testHostile(t, hostile[float32]()) })
	t.Run("float64", func(t *testing.T) {
		clouds := hostile[float64]()
		for _, c := range hostile[float64]() {
			if strings.HasPrefix(c.Name, "cube") || strings.HasPrefix(c.Name, "square") {
				clouds = append(clouds, geomtest.Named[float64]{Name: c.Name + " 1e150", Cloud: scaled(c.Cloud, 1e150)},
					geomtest.Named[float64]{Name: c.Name + " 1e-150", Cloud: scaled(c.Cloud, 1e-150)})
			}
		}
		testHostile(t, clouds)
	})
}

func testHostile[T geom.Float](t *testing.T, clouds []geomtest.Named[T]) {
	for _, named := range clouds {
		c, n := named.Cloud, named.Cloud.Len()
		most := math.Log(float64(max(n, 1))) + 1e-12
		for _, p := range problems {
			if p.dims() == 3 && c.Z == nil {
				continue
			}
			limit := most
			if p == Hull2D {
				limit *= 2
			}
			for _, tau := range []float64{0, 5e-324, 1e-299, 1e-3, 1, 1e300} {
				s := Surrogate[T]{Problem: p, Tau: tau}
				w := s.Witnesses(nil, c, 10)
				grad := geom.Cloud[T]{X: make([]T, n), Y: make([]T, n), Z: make([]T, n)}
				f := s.Gradient(grad, c, w)
				if !(f >= -3/float64(n+1)) || !(f <= limit) || f != s.Value(c, w) {
					t.Errorf("%s, seed %d, %v, Tau %v: F is %v, again %v", named.Name, seed, p, tau, f, s.Value(c, w))
				}
				if b := s.Hard(c, w); !(b.Lower >= 0 && b.Upper <= limit) || b.Lower != 0 {
					t.Errorf("%s, seed %d, %v: G is %+v", named.Name, seed, p, b)
				}
				s.Estimate(c, 7, 3)
				if e := s.EstimateGiven(c, w, 20, 10); e.Points != min(n, 20) || e.Of != n || !(e.F <= limit) {
					t.Errorf("%s, seed %d, %v: %+v", named.Name, seed, p, e)
				}
				if len(w) == 0 && n > 0 {
					t.Errorf("%s, seed %d, %v: no witnesses", named.Name, seed, p)
				}
			}
		}
		testHostileLosses(t, named)
	}
}

// testHostileLosses runs the paper's losses.
func testHostileLosses[T geom.Float](t *testing.T, named geomtest.Named[T]) {
	c, n := named.Cloud, named.Cloud.Len()
	grad := geom.Cloud[T]{X: make([]T, n), Y: make([]T, n), Z: make([]T, n)}
	ball := BallEntropy[T]{Alpha: 10}
	anchors := make([][3]float64, 4)
	for j := range anchors {
		if n > 0 {
			anchors[j] = at(c, j%n)
		}
	}
	if h, _ := ball.Gradient(grad, make([][3]float64, 4), c, anchors); !(h >= 0 && h <= math.Log(4)+1e-12) {
		t.Errorf("%s, seed %d: H_diff is %v", named.Name, seed, h)
	}
	cells := CellEntropy[T]{Tau: .1}
	halves := PrincipalHalves(c, 5)
	list := cells.Cells(nil, c, halves)
	if h := cells.Gradient(grad, make([]HalfSpace, 5), c, halves,
		list); !(h >= 0 && h <= math.Log(float64(len(list)))+1e-12 || n == 0 && h == 0) {
		t.Errorf("%s, seed %d: H_soft is %v of %d cells", named.Name, seed, h, len(list))
	}
}

// F falls as ranges get softer, does not change with the unit of length, nor, but
// for rounding, with the order of the points.
//
// The least F falls. The F of Steps rounds of expectation and maximisation is above the
// least F by at most log K / Steps for K ranges, as the roundings of the
// minimisation add up to the divergence of the best weights from equal ones
// (Csiszár and Tusnády, 1984). In another order sums of n points and K ranges are
// off by (n+K)·2⁻⁵³, and each of 10 rounds at most doubles that: 1e-11 of 60 points.
func TestSurrogateLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := geomtest.Cube[float64](rapid.IntRange(1, 60).Draw(t, "n"), rapid.Uint64().Draw(t, "seed"))
		p := rapid.SampledFrom(problems).Draw(t, "problem")
		s := Surrogate[float64]{Problem: p, Steps: 500}
		w := s.Witnesses(nil, c, rapid.IntRange(1, 12).Draw(t, "k"))
		last := math.Inf(1)
		for _, tau := range []float64{0, 1e-3, 1e-2, .1, 1} {
			s.Tau = tau
			f := s.Value(c, w)
			above := math.Log(float64(max(s.table.ranges, 1))) / float64(s.Steps)
			if p == Hull2D { // two sides, each with at most all pairs of 12 witnesses
				above = 2 * math.Log(12*11/2) / float64(s.Steps)
			}
			if f > last+above+1e-9 {
				t.Fatalf("%v: F %v at Tau %v, %v at the smaller one before", p, f, tau, last)
			}
			last = f
		}
		s.Tau, s.Steps = .02, 10
		f := s.Value(c, w)
		if g := s.Value(scaled(c, 0x1p-30), w); g != f {
			t.Fatalf("%v: F %v, in another unit %v", p, f, g)
		}
		other, perm := geomtest.Permuted(c, 1)
		var moved []int32
		for _, i := range w {
			moved = append(moved, int32(slices.Index(perm, int(i))))
		}
		slices.Sort(moved)
		if g := s.Value(other, moved); math.Abs(g-f) > 1e-9 && p != Hull3D { // fans begin with the first vertex
			t.Fatalf("%v: F %v, in another order %v", p, f, g)
		}
	})
}

// Directions find the extreme points, which suffice for a polygon.
func TestAlong(t *testing.T) {
	c := geomtest.Points([2]float64{0, 0}, [2]float64{4, 0}, [2]float64{4, 2}, [2]float64{0, 2},
		[2]float64{1, 1}, [2]float64{4, 2})
	for _, row := range []struct {
		p    Problem
		d    [][3]float64
		want []int32
	}{
		{UpperHull, [][3]float64{{1, 1, 9}, {-1, 1}}, []int32{0, 1, 2, 3}},
		{Hull2D, nil, []int32{0, 1, 2, 3}},
		{Maxima2D, [][3]float64{{1, 1}}, []int32{2}},
		{Maxima2D, nil, nil},
	} {
		s := Surrogate[float64]{Problem: row.p}
		if got := s.Along(nil, c, row.d); !slices.Equal(got, row.want) {
			t.Errorf("%v along %v: %v, want %v", row.p, row.d, got, row.want)
		}
	}
}

func TestBracketArithmetic(t *testing.T) {
	a, b, c := Bracket{1, 3, Greedy}, Bracket{2, 4, Tree}, Bracket{0, 5, Size}
	if got := a.And(b); got != (Bracket{2, 3, Joint}) {
		t.Error(got)
	}
	if got := c.And(a); got != a {
		t.Error(got)
	}
	if got := a.Plus(b); got != (Bracket{3, 7, Joint}) {
		t.Error(got)
	}
	if got := a.Plus(a); got != (Bracket{2, 6, Greedy}) || got.Gap() != 4 {
		t.Error(got)
	}
	if got := fromTrace([]int32{1, 2, 1}); got != (Bracket{0, 1.5 * math.Ln2, Trace}) {
		t.Error(got)
	}
	for _, got := range []float64{OfSizes([]int{}), OfSizes([]int{7, 0})} {
		if got != 0 {
			t.Error(got)
		}
	}
	for k := Size; k <= Joint; k++ {
		if k.String() == "" {
			t.Errorf("kind %d has no name", k)
		}
	}
}

func TestCallersMistakesPanic(t *testing.T) {
	flat := geomtest.Square[float64](4, seed)
	space := geomtest.Cube[float64](4, seed)
	bad := geom.Cloud[float64]{X: []float64{1, math.NaN()}, Y: []float64{1, 1}}
	short := geom.Cloud[float64]{X: []float64{1, 2}, Y: []float64{1}}
	var s, s3 Surrogate[float64]
	s3.Problem = Maxima3D
	var f Family
	var cells CellEntropy[float64]
	for want, call := range map[string]func(){
		badLengths: func() { s.Value(short, nil) },
		badFinite:  func() { s.Value(bad, nil) },
		badSpace:   func() { s3.Value(flat, nil) },
		badIndex:   func() { s.Value(flat, []int32{4}) },
		badRoom:    func() { s3.Gradient(flat, space, nil) },
		badProblem: func() { Ranges(&f, flat, nil, Hull2D) },
		badHalves:  func() { cells.Cells(nil, flat, make([]HalfSpace, 65)) },
		badTau:     func() { cells.Value(flat, nil, nil) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("got %v, want %q", got, want)
				}
			}()
			call()
		}()
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	c := geomtest.Cube[float32](500, seed)
	grad := geomtest.Cube[float32](500, seed)
	for _, p := range problems {
		s := Surrogate[float32]{Problem: p, Tau: 1e-2}
		var w []int32
		run := func() {
			w = s.Witnesses(w[:0], c, 32)
			s.Gradient(grad, c, w)
			s.EstimateGiven(c, w, 200, 32)
		}
		run()
		if got := testing.AllocsPerRun(5, run); got > 0 {
			t.Errorf("%v: %v allocations", p, got)
		}
	}
	ball, cells := BallEntropy[float32]{Alpha: 10}, CellEntropy[float32]{Tau: .1}
	anchors, gradAnchors := make([][3]float64, 8), make([][3]float64, 8)
	halves, gradHalves := PrincipalHalves(c, 8), make([]HalfSpace, 8)
	var list []uint64
	run := func() {
		ball.Gradient(grad, gradAnchors, c, anchors)
		list = cells.Cells(list[:0], c, halves)
		cells.Gradient(grad, gradHalves, c, halves, list)
	}
	run()
	if got := testing.AllocsPerRun(5, run); got > 0 {
		t.Errorf("the paper's losses: %v allocations", got)
	}
}
