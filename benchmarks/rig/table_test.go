package rig

import (
	"math"
	"testing"
)

func TestTable(t *testing.T) {
	table := Table[speed]{
		{Head: "case", Text: func(s speed) string { return s.Case }},
		Number("first", "%.1f", Right, func(s speed) (float64, bool) {
			if len(s.Ns) == 0 {
				return 0, false
			}
			return float64(s.Ns[0]), true
		}),
		TimesOf("times", "a", "%.1f", func(s speed) Times { return Times{"a": s.Ns} }),
	}
	want := `| case | first | times |
|---|---:|---|
| a\|b | 3000000.0 | 1.0 (3.0) |
| c |  |  |
`
	if got := table.Markdown([]speed{{"a|b", []int64{3e6, 1e6, 4e6}}, {"c", nil}}); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestTimes(t *testing.T) {
	times := Times{"a": {4e6, 2e6, 3e6}, "b": {1e6, 2e6}}
	if got := times.Ratio("a", "b"); got != "2.00 (1.50)" {
		t.Error(got)
	}
	if got := times.Ratio("a", "c"); got != "" || times.Least("c") != 0 || times.Median("c") != 0 {
		t.Errorf("of no runs: %q", got)
	}
}

func TestIntervalsAndTheirWords(t *testing.T) {
	i := Interval{1.5, 1.2, 2}
	if got := i.Text("%.1f"); got != "1.5 (1.2 to 2.0)" {
		t.Error(got)
	}
	if got := i.Span("%.1f"); got != "1.2 to 2.0" {
		t.Error(got)
	}
	for limit, want := range map[float64]Side{1: Above, 1.2: Above, 1.3: Undecided, 2: Undecided, 2.1: Below} {
		if got := i.Side(limit); got != want {
			t.Errorf("side of %v is %v, want %v", limit, got, want)
		}
	}
	for want, i := range map[string]Interval{"faster": i, "slower": {.8, .7, .9}, "not told apart": {1.1, 1, 1.2}} {
		if got := i.Word(); got != want {
			t.Errorf("%v is %q, want %q", i, got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	s := SpreadOf([]float64{.5, 2, 8})
	if math.Abs(s.Mean-2) > 1e-12 || s.Least != .5 || s.Most != 8 || s.Word("shapes") != "faster on 2 of 3 shapes" {
		t.Errorf("%+v, %s", s, s.Word("shapes"))
	}
	if SpreadOf(nil) != (Spread{}) || SpreadOf([]float64{.5}).Word("runs") != "slower on all 1 runs" {
		t.Error("of no ratio, or a single one")
	}
}

func TestMedian(t *testing.T) {
	if Median([]int{4, 1, 3, 2}) != 2 || Median([]int{3, 1, 2}) != 2 || Median[int](nil) != 0 {
		t.Error("medians are wrong")
	}
}

// Intervals leave out as many values on each side as 95 % allow.
func TestIntervalOfAMedian(t *testing.T) {
	for _, c := range []struct {
		n                  int
		mid, lowest, highe float64
	}{{1, 1, 1, 1}, {5, 3, 1, 5}, {6, 3, 1, 6}, {8, 4, 1, 8}, {9, 5, 2, 8}, {20, 10, 6, 15}} {
		var values []float64
		for i := c.n; i > 0; i-- {
			values = append(values, float64(i))
		}
		if got := MedianOf(values); got != (Interval{Mid: c.mid, Low: c.lowest, High: c.highe}) {
			t.Errorf("of 1 to %d: %+v", c.n, got)
		}
	}
	if MedianOf(nil) != (Interval{}) {
		t.Error("of none")
	}
}
