package estimate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Quantiles and tails of Student's t are those that tables print.
func TestStudent(t *testing.T) {
	for _, c := range []struct{ freedom, p, quantile float64 }{
		{1, .975, 12.7062}, {2, .975, 4.30265}, {4, .975, 2.77645}, {4, .995, 4.60409}, {9, .975, 2.26216},
		{30, .975, 2.04227}, {100, .95, 1.66023},
	} {
		if q := Quantile(c.p, c.freedom); math.Abs(q-c.quantile) > 1e-4 {
			t.Errorf("%v degrees of freedom, p %v: quantile %.5f, want %.5f", c.freedom, c.p, q, c.quantile)
		}
		if p := TwoSided(-c.quantile, c.freedom); math.Abs(p-2*(1-c.p)) > 1e-5 {
			t.Errorf("%v degrees of freedom, t %v: p %.6f, want %.6f", c.freedom, c.quantile, p, 2*(1-c.p))
		}
	}
	if p := TwoSided(1.959964, math.Inf(1)); math.Abs(p-.05) > 1e-6 {
		t.Errorf("normal: p %.7f, want 0.05", p)
	}
	// 4 degrees of freedom have a closed form.
	for _, x := range []float64{.1, 1, 3, 20} {
		s := x / 2 / math.Sqrt(1+x*x/4)
		if p, want := TwoSided(x, 4), 1-1.5*(s-s*s*s/3); math.Abs(p-want) > 1e-12 {
			t.Errorf("t %v: p %.15f, want %.15f", x, p, want)
		}
	}
}

// The mean of known values has the interval that a hand computes.
func TestMean(t *testing.T) {
	e := Of([]float64{1, 2, 3, 4, 5})
	if e.Mid != 3 || math.Abs(e.High-4.96324) > 1e-4 || math.Abs(e.Low-1.03676) > 1e-4 || e.Kind != Student ||
		e.Units != 5 {
		t.Errorf("%+v", e)
	}
	if p, ok := e.P(0); !ok || math.Abs(p-.0132) > 2e-4 { // t = 4.2426, 4 degrees of freedom
		t.Errorf("p %v, %v", p, ok)
	}
	if e := OfRatios([]float64{2, 8}); math.Abs(e.Mid-4) > 1e-12 || e.Low > 2 || e.High < 8 {
		t.Errorf("ratios: %+v", e)
	}
	for name, e := range map[string]Estimate{"none": Of(nil), "one": Of([]float64{2}),
		"NaN": Of([]float64{1, math.NaN()}), "negative ratio": OfRatios([]float64{1, -1}),
		"one family": OfFamilies([]string{"a", "a"}, 1, mid)} {
		if _, ok := e.P(0); ok || e.Kind > Single {
			t.Errorf("%s: %+v has an interval", name, e)
		}
	}
}

func mid(take []int) float64 {
	sum := 0.0
	for _, i := range take {
		sum += float64(i)
	}
	return sum / float64(len(take))
}

// Families move together: a bootstrap by family has the width that the number of families
// allows, not that of the number of records.
func TestFamilies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var family []string
	var values []float64
	for f := range 12 {
		shift := r.NormFloat64()
		for range 20 {
			family, values = append(family, string(rune('a'+f))), append(values, shift+.01*r.NormFloat64())
		}
	}
	e := OfFamilies(family, 7, func(take []int) float64 {
		sum := 0.0
		for _, i := range take {
			sum += values[i]
		}
		return sum / float64(len(take))
	})
	if e.Kind != Bootstrap || e.Units != 12 || e.High-e.Low < .5 || e.High-e.Low > 2.5 || e.Mid < e.Low ||
		e.Mid > e.High {
		t.Errorf("%v units, %v in %v to %v", e.Units, e.Mid, e.Low, e.High)
	}
	if p, _ := e.P(e.Mid); p < .5 {
		t.Errorf("p of the estimate itself: %v", p)
	}
	if p, _ := e.P(e.Mid + 10); p > .001 {
		t.Errorf("p of a far limit: %v", p)
	}
	if p, ok := DifferenceP(e, e); !ok || p < .999 {
		t.Errorf("p of no difference: %v", p)
	}
}

// Intervals hold the truth about as often as they say.
func TestCoverage(t *testing.T) {
	r, held := rand.New(rand.NewPCG(3, 4)), 0
	const tries = 4000
	for range tries {
		v := make([]float64, 5)
		for i := range v {
			v[i] = r.NormFloat64()
		}
		if e := Of(v); e.Low <= 0 && e.High >= 0 {
			held++
		}
	}
	if share := float64(held) / tries; share < .94 || share > .96 {
		t.Errorf("%.3f of the intervals hold the mean, want 0.95", share)
	}
}

// Holm's example: 0.01, 0.04, 0.03, 0.005 become 0.03, 0.06, 0.06, 0.02.
func TestHolm(t *testing.T) {
	got := Holm([]float64{.01, .04, .03, .005})
	for i, want := range []float64{.03, .06, .06, .02} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("corrected %v", got)
			break
		}
	}
	if got := Holm(nil); len(got) != 0 {
		t.Errorf("of no test: %v", got)
	}
	if got := Holm([]float64{.9, .8}); !slices.Equal(got, []float64{1, 1}) {
		t.Errorf("above 1: %v", got)
	}
}

// Each verdict comes from its interval, on both sides of a limit, after the correction.
func TestVerdicts(t *testing.T) {
	far, near := Of([]float64{1, 1.1, .9, 1, 1.05}), Of([]float64{1, 3, -1, 2, 0})
	for _, c := range []struct {
		name string
		e    Estimate
		c    Claim
		want Word
	}{
		{"above, at least", far, Claim{AtLeast, 0.5}, Confirmed},
		{"above, at most", far, Claim{AtMost, 0.5}, Refuted},
		{"below, at least", far, Claim{AtLeast, 1.5}, Refuted},
		{"below, at most", far, Claim{AtMost, 1.5}, Confirmed},
		{"around", near, Claim{AtLeast, 0.5}, Undecided},
		{"one", Of([]float64{7}), Claim{AtLeast, 0}, Untested},
		{"none", Estimate{}, Claim{AtLeast, 0}, Unmeasured},
		{"exact, reached", OfExact(4), Claim{AtLeast, 4}, Confirmed},
		{"exact, missed", OfExact(4), Claim{AtMost, 3}, Refuted},
		{"equal values", Of([]float64{2, 2, 2}), Claim{AtLeast, 3}, Refuted},
	} {
		if words, _, _ := Verdicts([]Estimate{c.e}, []Claim{c.c}); words[0] != c.want {
			t.Errorf("%s: %s, want %s", c.name, words[0], c.want)
		}
	}
	// A p of 0.013 does not survive a page of twenty.
	some := Of([]float64{1, 2, 3, 4, 5})
	estimates, claims := make([]Estimate, 20), make([]Claim, 20)
	for i := range estimates {
		estimates[i] = some
	}
	if words, p, count := Verdicts(estimates, claims); words[0] != Undecided || p[0] < .2 ||
		count != len(estimates) {
		t.Errorf("%s, p %v", words[0], p[0])
	}
	if words, _, _ := Verdicts(estimates[:1], claims[:1]); words[0] != Confirmed {
		t.Errorf("alone: %s", words[0])
	}
}
