package main

import (
	"fmt"
	"slices"

	"entropipe/benchmarks/rig"
	"entropipe/benchmarks/truth/estimate"
)

// sameQuantity is the time of hull.Hull2D on 10,000 uniform points, which five experiments
// measure on the way.
var sameQuantity = []struct {
	experiment, figure string
	where              []string
}{
	{"hulls", "total_ms", []string{"family=square", "method=" + oursMethod}},
	{"perturb", "hull_ms", []string{"family=square", "method=exact"}},
	{"breakdown", "hull_ms", []string{"family=square", "method=" + oursMethod}},
	{"breakeven", "plain_ms", []string{"family=mode perturb, planar hull"}},
	{"sorting", "operator_ms", []string{"family=square", "method=as it comes", "operator=" + oursMethod}},
}

// agreement is the part of the front page that sets the figures of one quantity beside one
// another, empty with records of fewer than two experiments.
func agreement(s sheet) string {
	type source struct {
		experiment string
		e          estimate.Estimate
	}
	var sources []source
	var figures []float64
	for _, q := range sameQuantity {
		if e := s.unitsOf(q.experiment, q.figure, q.where...).mean(); e.Kind != estimate.None {
			sources, figures = append(sources, source{q.experiment, e}), append(figures, e.Mid)
		}
	}
	if len(sources) < 2 {
		return ""
	}
	table := rig.Table[source]{
		{Head: "experiment", Text: func(x source) string { return x.experiment }},
		{Head: "ms", Align: rig.Right, Text: func(x source) string { return pointOf(x.e, "%.4f") }},
		{Head: "95 % interval", Text: func(x source) string { return spanOf(x.e, "%.4f") }},
		{Head: "units", Align: rig.Right, Text: func(x source) string { return fmt.Sprint(x.e.Units) }},
	}
	return fmt.Sprintf("\n## One quantity, one figure\n\nThe hull of 10,000 uniform points, hull.Hull2D, as %d "+
		"experiments measure it on their way; the largest figure is %.2f times the least. Each timed call begins "+
		"with its data out of the core's own caches and behind a sort of random numbers, so that no branch is "+
		"predicted by what an experiment ran before it. The figure to quote is that of `hulls`, over all seeds.\n\n%s",
		len(sources), slices.Max(figures)/slices.Min(figures), table.Markdown(sources))
}
