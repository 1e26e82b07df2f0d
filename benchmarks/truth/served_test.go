package main

import (
	"strings"
	"testing"
)

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

// The count is of lengths and sparsities, and its moral needs most of them.
func TestBeyondMass(t *testing.T) {
	row := func(method, sparsity string, cosine float64) record {
		return record{Text: map[string]string{"method": method, "length": "256", "sparsity": sparsity},
			Values: map[string]float64{"cosine": cosine}}
	}
	half := []record{row("mass", "50 %", .9), row("window", "50 %", .95), row("bigbird", "50 %", .96)}
	both := append(half, row("mass", "90 %", .8), row("window", "90 %", .7), row("bigbird", "90 %", .75))
	for want, rows := range map[string][]record{
		"in 1 and the window in 1 of 1 pairs of length and sparsity: " +
			"the mass that is kept is not what matters most.": half,
		"in 1 and the window in 1 of 2 pairs of length and sparsity.": both,
	} {
		if got := beyondMass(rows); !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want ... %q", got, want)
		}
	}
}
