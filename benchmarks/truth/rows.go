package main

import (
	"slices"

	"entropipe/benchmarks/truth/estimate"
)

// row is a table or figure of the paper, or a part of one: the unit of the grid.
type row struct {
	number  int
	title   string
	lines   string // lines of the paper's source
	claim   string // in our words
	printed string // the figure as the paper prints it
	figure  string // what is measured, with its unit
	format  string // of the figure
	limit   estimate.Claim

	// judgesCorrected is set for rows whose claim is ours.
	judgesCorrected bool

	experiments []string // whose records it needs
	asPrinted   func(sheet) estimate.Estimate
	corrected   func(sheet) estimate.Estimate
	peer        func(sheet) estimate.Estimate
	peerName    string
	form        string // what the corrected figure is of

	here    string // how what is measured here differs from the paper's setting
	missing string // what is still to be built
	change  string // what would change our mind
}

// judged returns the estimate that the verdict is about.
func (r *row) judged(s sheet) estimate.Estimate {
	if r.judgesCorrected {
		return estimated(r.corrected, s)
	}
	return estimated(r.asPrinted, s)
}

// estimated is the estimate of a part of a row, the zero value for parts that it lacks.
func estimated(part func(sheet) estimate.Estimate, s sheet) estimate.Estimate {
	if part == nil {
		return estimate.Estimate{}
	}
	return part(s)
}

// rows are the 36 rows in order.
var rows = slices.Concat(geometryRows, entropyRows, sceneRows, visionRows, languageRows, restRows)

func atLeast(limit float64) estimate.Claim {
	return estimate.Claim{Sense: estimate.AtLeast, Limit: limit}
}
func atMost(limit float64) estimate.Claim {
	return estimate.Claim{Sense: estimate.AtMost, Limit: limit}
}

// times returns the total time of a method on a family, a value a seed.
func times(s sheet, experiment, family, method string) units {
	return s.unitsOf(experiment, "total_ms", "family="+family, "method="+method)
}

// faster returns how many times as fast the second method is as the first.
func faster(experiment, family, plain, method string) func(sheet) estimate.Estimate {
	return func(s sheet) estimate.Estimate {
		return times(s, experiment, family, plain).over(times(s, experiment, family, method)).ratio()
	}
}
