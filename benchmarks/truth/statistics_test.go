package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/algos/entropy"
	"entropipe/algos/geomtest"
)

// Five differences that do not vary decide without a doubt, unless they are 0.
func TestPairedDifferences(t *testing.T) {
	if _, p := pairedT([]float64{1, 1, 1, 1, 1}); p != 0 {
		t.Errorf("five equal differences: p %g", p)
	}
	if _, p := pairedT([]float64{0, 0, 0, 0, 0}); p != 1 {
		t.Errorf("no difference: p %g", p)
	}
}

// R² and ranks know nothing of scale; ranks nothing of any growing function.
func TestCorrelations(t *testing.T) {
	x := []float64{3, -1, 4, 1, -5, 9}
	line, curve, ties := make([]float64, len(x)), make([]float64, len(x)), []float64{1, 1, 2, 2, 2, 3}
	for i, v := range x {
		line[i], curve[i] = 7-2*v, math.Exp(v)
	}
	if r2, slope, offset := fitLine(x, line); math.Abs(r2-1) > 1e-12 || math.Abs(slope+2) > 1e-12 ||
		math.Abs(offset-7) > 1e-12 {
		t.Errorf("a line: R² %g, %g + %g x", r2, offset, slope)
	}
	if s := spearman(x, curve); math.Abs(s-1) > 1e-12 {
		t.Errorf("a growing function: ranks %g", s)
	}
	if s := spearman(x, line); math.Abs(s+1) > 1e-12 {
		t.Errorf("a falling line: ranks %g", s)
	}
	if got, want := ranksOf(ties), []float64{.5, .5, 3, 3, 3, 5}; !slices.Equal(got, want) {
		t.Errorf("ranks %v, want %v", got, want)
	}
	if r2, _, _ := fitLine(x, make([]float64, len(x))); r2 != 0 {
		t.Errorf("a constant: R² %g", r2)
	}
	if got := within([]float64{1, 3, 10, 10}, []string{"a", "a", "b", "b"}); !slices.Equal(got,
		[]float64{-1, 1, 0, 0}) {
		t.Errorf("within groups %v", got)
	}
}

// A bootstrap's interval holds the statistic of most samples, and is one point
// where nothing varies.
func TestBootstrap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float64, 200), make([]float64, 200)
	for i := range x {
		x[i] = r.NormFloat64()
		y[i] = x[i] + r.NormFloat64()
	}
	r2, _, _ := fitLine(x, y)
	if lo, hi := bootstrapR2(x, y); lo >= r2 || hi <= r2 || hi-lo > .3 {
		t.Errorf("R² %g, interval %g to %g", r2, lo, hi)
	}
	if lo, hi := bootstrapR2(x, x); math.Abs(lo-1) > 1e-12 || math.Abs(hi-1) > 1e-12 {
		t.Errorf("R² with itself: %g to %g", lo, hi)
	}
}

// No two distributions differ more in entropy than the continuity bound says.
func TestContinuity(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 20000 {
		k := 2 + r.IntN(9)
		p, q := shares(r, k), shares(r, k)
		far, mix := 0.0, r.Float64()
		for i := range p {
			q[i] = p[i] + mix*(q[i]-p[i])
			far += math.Abs(p[i] - q[i])
		}
		if d := math.Abs(entropy.OfSizes(p) - entropy.OfSizes(q)); d > continuity(far, k)+1e-9 {
			t.Fatalf("round %d, %d values at distance %g: entropies differ by %g, at most %g", round, k, far, d,
				continuity(far, k))
		}
	}
	if c := continuity(2, 5); math.Abs(c-math.Log(5)) > 1e-12 {
		t.Errorf("the farthest two: %g", c)
	}
}

// shares are k that add up to 1, often near 0.
func shares(r *rand.Rand, k int) []float64 {
	s, sum := make([]float64, k), 0.0
	for i := range s {
		s[i] = math.Pow(r.Float64(), 6)
		sum += s[i]
	}
	for i := range s {
		s[i] /= sum
	}
	return s
}

// The upper side of a hull has the vertices that are also those of the upper hull.
func TestSizeOf(t *testing.T) {
	square := geomtest.Points([][2]float64{{0, 0}, {1, 0}, {1, 1}, {0, 1}, {.5, 1.5}, {.5, .5}}...)
	if h := sizeOf(square, answerOf(square, entropy.UpperHull), entropy.UpperHull); h != 3 {
		t.Errorf("a house has %d upper vertices, want 3", h)
	}
}
