package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/maxima"
	"entropipe/benchmarks/truth/solids"
)

// Law: shapes to judge by are other solids than those to learn from, every class has
// equally many, and the same seed draws the same ones.
func TestShapesAreApart(t *testing.T) {
	size := shapeSize{points: 20, learn: 3, test: 2}
	learn, test := shapesOf(size, 7)
	again, _ := shapesOf(size, 7)
	if len(learn.truth) != 3*len(solids.Classes) || len(test.truth) != 2*len(solids.Classes) {
		t.Fatalf("%d and %d shapes", len(learn.truth), len(test.truth))
	}
	for k, points := range learn.truth {
		if !slices.Equal(points, again.truth[k]) {
			t.Errorf("shape %d differs when it is drawn again", k)
		}
		if slices.ContainsFunc(test.truth, func(other []float32) bool { return slices.Equal(points, other) }) {
			t.Errorf("shape %d is one to judge by", k)
		}
		if slices.Equal(points, learn.again[k]) || len(points) != 3*size.points {
			t.Errorf("shape %d has %d numbers, and its other points are the same", k, len(points))
		}
	}
}

// Law: what moves the inputs leaves the truth as it was drawn.
func TestTruthOfShapesStays(t *testing.T) {
	s, _ := shapesOf(shapeSize{points: 500, learn: 2}, 7)
	moved := s.given(jittered(.1, rand.New(rand.NewPCG(1, 1))))
	if got := displacement(moved); math.Abs(got-.1) > .005 {
		t.Errorf("displacement %v, want 0.1", got)
	}
	if got := displacement(s); got != 0 {
		t.Errorf("shapes as they are have displacement %v", got)
	}
	if few := s.given(thinned(4)); len(few.inputs[0]) != 3*125 || len(few.truth[0]) != 3*500 {
		t.Errorf("of %d numbers every fourth point leaves %d", len(few.truth[0]), len(few.inputs[0]))
	}
}

// Law: no frame is both learned from and timed, with any number of frames.
func TestFramesAreParted(t *testing.T) {
	for n := 2; n < 12; n++ {
		var frames []geom.Cloud[float32]
		for k := range n {
			frames = append(frames, geomtest.Square[float32](4, uint64(k)))
		}
		for seed := range uint64(30) {
			learn, test := parted(frames, seed)
			if len(learn) == 0 || len(test) == 0 {
				t.Fatalf("%d frames, seed %d: %d to learn from, %d to time", n, seed, len(learn), len(test))
			}
			for _, a := range learn {
				for _, b := range test {
					if slices.Equal(a.X, b.X) {
						t.Fatalf("%d frames, seed %d: one frame is in both", n, seed)
					}
				}
			}
		}
	}
}

// Law: kinds of drawings and pairs of scans are parted, and half of the pairs are alike.
func TestRealPairsAreApart(t *testing.T) {
	groups := make([][][]float64, 9)
	for g := range groups {
		for k := range 6 {
			groups[g] = append(groups[g], []float64{float64(10*g + k)})
		}
	}
	groups[4][3] = nil // too few points there
	for name, apart := range map[string]func([][][]float64, *rand.Rand) (learn, test [][][]float64){
		"kinds": kindsApart, "scans": scansApart} {
		r := rand.New(rand.NewPCG(5, 5))
		learn, test := apart(groups, r)
		seen := map[float64]bool{}
		for _, g := range learn {
			for _, x := range g {
				if x != nil {
					seen[x[0]] = true
				}
			}
		}
		if len(learn) < 4 || len(test) < 4 {
			t.Errorf("%s: %d and %d groups", name, len(learn), len(test))
		}
		for _, g := range test {
			for _, x := range g {
				if x != nil && seen[x[0]] {
					t.Errorf("%s: %v is learned from and tested", name, x[0])
				}
			}
		}
		if name == "kinds" {
			continue
		}
		differences, alike := drawPairs(400, test, r)
		for k, d := range differences {
			if same := math.Abs(d[0]) < 9; same != (alike[k] == 1) || d[0] == 0 {
				t.Fatalf("pair %d differs by %v, alike %v", k, d[0], alike[k])
			}
		}
	}
}

// Law: moocore, where it is built, finds as many maxima as the operator.
func TestMoocoreFindsTheSame(t *testing.T) {
	m, err := startMoocore(t.Context())
	if err != nil {
		t.Skip(err)
	}
	for seed := range uint64(3) {
		c := geomtest.Lidar[float32](2000, seed)
		ms, count, err := m.maxima3D(c, 2)
		if want := len((&maxima.Maxima[float32]{}).Append3D(nil, c)); err != nil || count != want || ms <= 0 {
			t.Errorf("seed %d: %d maxima in %v ms, want %d (%v)", seed, count, ms, want, err)
		}
	}
	if err := m.close(); err != nil {
		t.Error(err)
	}
}
