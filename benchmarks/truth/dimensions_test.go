package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// In the plane, what is computed for any dimension is what package entropy says:
// the maximal points, a cover within a nat of the entropy, H_diff.
func TestDimensionsInThePlane(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 2))
		points := drawSet([]string{"uniform", "correlated", "front"}[seed%3], 200, 2, r)
		var c geom.Cloud[float64]
		for _, x := range points {
			c.X, c.Y = append(c.X, x[0]), append(c.Y, x[1])
		}
		out := answerOf(c, entropy.Maxima2D)
		boxes, maximal := boxesBelow(points)
		if !slices.EqualFunc(maximal, out, func(a int, b int32) bool { return a == int(b) }) {
			t.Errorf("seed %d: maximal %v, want %v", seed, maximal, out)
		}
		h, _ := entropy.ExactMaxima(c, out)
		if g := new(entropy.Cover).Greedy(&boxes).Upper; g < h.Upper-1e-9 || g > h.Upper+1 {
			t.Errorf("seed %d: greedy %g, H %g", seed, g, h.Upper)
		}
		if f := softBoxes(points, &boxes, maximal, len(maximal), 2e-4); f > h.Upper+.2 || f < -1./200 {
			t.Errorf("seed %d: F %g, H %g", seed, f, h.Upper)
		}
		anchors := spreadMeans(points, 5, r)
		var flat [][3]float64
		for _, a := range anchors {
			flat = append(flat, [3]float64{a[0], a[1]})
		}
		want := (&entropy.BallEntropy[float64]{Alpha: 10}).Value(c, flat)
		if got, sure := ballsIn(points, anchors, 10); math.Abs(got-want) > 1e-9 || sure < .2 || sure > 1 {
			t.Errorf("seed %d: H_diff %g, want %g; largest p %g", seed, got, want, sure)
		}
	}
}

// Membership in cells is that of package entropy: the soft entropy comes to the
// hard one as temperatures fall, and the bounds hold.
func TestSoftAgainstHard(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := blobs(300, 4, .05, blobShape(seed%2), r)
		for _, tau := range []float64{1e-7, 1e-3, .1} {
			v := softAgainstHard(c, randomHalves(c, 4, r), tau)
			if v["error"] > v["exact"]+1e-9 || v["error"] > v["quantile"]+1e-9 {
				t.Errorf("seed %d, τ %g: entropies differ by %g, bounds %g and %g", seed, tau, v["error"],
					v["exact"], v["quantile"])
			}
			// A random point lies on each line, half in both cells: a few of 300.
			if tau < 1e-6 && v["error"] > .1 {
				t.Errorf("seed %d: at no temperature entropies differ by %g", seed, v["error"])
			}
		}
	}
}

// A descent on nothing changes nothing; one on F, its witnesses pinned, keeps them,
// and lowers the entropy of a circle.
func TestDescent(t *testing.T) {
	c := unitBox(geomtest.Circle[float64](200, 42))
	d := papers(measureF, 0, 20)
	if m := d.run(c, 42); m.before != m.after || m.err != 0 || m.shift != 0 {
		t.Errorf("λ = 0: %+v", m)
	}
	d.lambda, d.steps = .1, 60
	s := newDescending(&d, c, 42)
	for step := range d.steps {
		s.step(step)
	}
	for _, i := range s.pinned {
		if s.x.X[i] != c.X[i] || s.x.Y[i] != c.Y[i] {
			t.Errorf("witness %d has moved", i)
		}
	}
	for i := range c.X {
		if math.Abs(s.x.X[i]-c.X[i]) > reach || math.Abs(s.x.Y[i]-c.Y[i]) > reach {
			t.Errorf("point %d has moved beyond reach", i)
		}
	}
	if m := d.run(c, 42); m.after > .9*m.before {
		t.Errorf("F did not lower the entropy of a circle: %+v", m)
	}
}
