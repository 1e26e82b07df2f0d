package main

import (
	"testing"

	"pgregory.net/rapid"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
)

// Law: seeds of frames to learn from, of frames to test with, and the seeds of the run
// themselves, which some tests draw from, are apart, for every seed of a run.
func TestLearnAndTestSeedsAreApart(t *testing.T) {
	type span struct {
		name        string
		first, last uint64
	}
	check := func(t rapid.TB, all []uint64) {
		var spans []span
		add := func(name string, first uint64, count int) {
			spans = append(spans, span{name, first, first + uint64(count) - 1})
		}
		of := func() {
			add("learn", learnSeeds(), 2*wholeLesson.frames)
			add("test", testSeeds(), 100)
		}
		for _, seed := range all {
			add("seed", seed, 1)
			withSeed(seed, of)
		}
		for i, a := range spans {
			for _, b := range spans[:i] {
				if a.first <= b.last && b.first <= a.last {
					t.Fatalf("seeds %v: %+v and %+v meet", all, a, b)
				}
			}
		}
	}
	check(t, paperSeeds)
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.SliceOfNDistinct(rapid.Uint64Range(1, 900), 2, 5, rapid.ID).Draw(t, "seeds"))
	})
}

// No frame that a network is tested on is among those that it learned from or was chosen by.
func TestNoTestFrameIsLearned(t *testing.T) {
	for _, seed := range paperSeeds[:2] {
		withSeed(seed, func() {
			for _, f := range tradeoffFamilies() {
				l := asPrinted(f, 50, seed, wholeLesson)
				learn, err := l.frames(2*l.size.frames, learnSeeds())
				if err != nil {
					t.Fatal(err)
				}
				tests, _ := testFrames(f, tradeoffSize{50, 20, l.size})
				stream := drift(boxed([]geom.Cloud[float32]{f.make(50, seed)})[0], 3, seed)
				for _, c := range append(tests, stream...) {
					for _, d := range learn {
						if c.X[0] == d.X[0] && c.Y[1] == d.Y[1] {
							t.Fatalf("%s, seed %d: a frame to test with was learned", f.name, seed)
						}
					}
				}
			}
		})
	}
}

// What the kernel makes of a cloud has its polygon for a hull, and no point moved by more
// than the reach, where the polygon holds all points that moved.
func TestPulledInKeepsThePolygon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(tradeoffFamilies()).Draw(t, "family")
		c := boxed(f.frames(1, rapid.IntRange(20, 400).Draw(t, "points"), rapid.Uint64Range(0, 1e6).Draw(t, "seed")))[0]
		count, reach := rapid.SampledFrom([]int{4, 16, 64, 1024}).Draw(t, "corners"),
			rapid.SampledFrom([]float64{.01, .1}).Draw(t, "reach")
		corners := extremePoints(c, count)
		m := pulledIn(c, count, reach)
		found := outputOf(m, entropy.Hull2D)
		want := map[int32]bool{}
		part := chosen(c, corners)
		for _, i := range outputOf(part, entropy.Hull2D) {
			want[corners[i]] = true
		}
		if len(found) != len(want) {
			t.Fatalf("%d vertices, want %d", len(found), len(want))
		}
		for _, i := range found {
			if !want[i] || m.X[i] != c.X[i] || m.Y[i] != c.Y[i] {
				t.Fatalf("vertex %d is no extreme point in its place", i)
			}
		}
		if a, b := hullError(c, found), hullError(c, corners); a != b {
			t.Fatalf("error %v, that of the kernel is %v", a, b)
		}
		if k := kernelOf([]geom.Cloud[float32]{c}, 1e-9); k < 1024 && hullError(c, extremePoints(c, k)) > 1e-9 {
			t.Fatalf("%d directions err by more than asked", k)
		}
	})
}

// A curve is read as it was written.
func TestCurveOfARecord(t *testing.T) {
	c := curveOf("10 0.5 2.75 1.5; 20 0.25 2.5 1.25")
	for k, want := range [4][2]float64{{10, 20}, {.5, .25}, {2.75, 2.5}, {1.5, 1.25}} {
		if len(c[k]) != 2 || c[k][0] != want[0] || c[k][1] != want[1] {
			t.Errorf("column %d: %v, want %v", k, c[k], want)
		}
	}
	if c := curveOf(""); c[0] != nil {
		t.Errorf("no curve: %v", c)
	}
}

// A family with fewer seeds than another would weigh on some seeds alone.
func TestBalancedUnits(t *testing.T) {
	u := units{"square, seed 1": 1, "square, seed 2": 2, "ring, seed 1": 30}
	if got := u.balanced().bySeed(); len(got) != 2 || got["1"] != 1 || got["2"] != 2 {
		t.Errorf("%v, want the square's values", got)
	}
	u["ring, seed 2"] = 40
	if got := u.balanced().bySeed(); len(got) != 2 || got["1"] != 15.5 || got["2"] != 21 {
		t.Errorf("%v, want means of both", got)
	}
}
