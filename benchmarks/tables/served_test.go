package main

import "testing"

// The rule needs an interval, a small loss at its upper end, and a gain on the
// window beyond it.
func TestServe(t *testing.T) {
	for _, c := range []struct {
		lost, gained []float64
		want         string
	}{
		{[]float64{0}, []float64{.1}, "too few seeds"},
		{[]float64{0, 0}, []float64{.1, .1}, "too few seeds"},
		{[]float64{0, 0, 0}, []float64{.1, .1, .1}, "sparse"},
		{[]float64{.001, .002, .003}, []float64{.1, .1, .1}, "dense: loses too much"}, // at the upper end
		{[]float64{.004, .004, .004}, []float64{0, .01, .02}, "dense: no better than the window"},
	} {
		if got := serve(c.lost, c.gained, .0043); got != c.want {
			t.Errorf("lost %v, gained %v: %q, want %q", c.lost, c.gained, got, c.want)
		}
	}
}
