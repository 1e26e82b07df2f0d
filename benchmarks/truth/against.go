package main

import (
	"fmt"
	"strings"

	"entropipe/benchmarks/truth/estimate"
)

// againstPage is the page of a run with other seeds.
func againstPage(seeds []uint64, old, said string) string {
	return fmt.Sprintf("# Seeds %s beside the records of `%s`\n\n`go run ./benchmarks/truth --seeds %s` runs "+
		"these seeds and writes this page. A figure disagrees where its difference is outside its own 95 %% "+
		"interval after Holm's correction over all compared figures; a figure without an interval in one of the "+
		"two runs is not compared.\n\n%s",
		listed(seeds, ", "), old, listed(seeds, ","), said)
}

// mostDisagree is the share of figures that may disagree.
const mostDisagree = .05

// disagreements lists the figures of two sets of records that differ by more than chance
// allows, after Holm's correction for all that both have, and the verdicts that changed.
// Figures without an interval in one of the two are not compared.
func disagreements(fresh, old []line) string {
	type pair struct {
		name, format string
		a, b         estimate.Estimate
	}
	var pairs []pair
	var p []float64
	for k := range fresh {
		a, b := &fresh[k], &old[k]
		for _, part := range []pair{{"as printed", a.format, a.printedHere, b.printedHere},
			{"corrected", a.format, a.better, b.better}, {a.peerName, a.format, a.beside, b.beside}} {
			if one, ok := estimate.DifferenceP(part.a, part.b); ok {
				part.name = fmt.Sprintf("row %d, %s, %s", a.number, a.title, part.name)
				pairs, p = append(pairs, part), append(p, one)
			}
		}
	}
	var b strings.Builder
	found := 0
	for k, one := range estimate.Holm(p) {
		if one > estimate.Level {
			continue
		}
		found++
		fmt.Fprintf(&b, "* %s: "+pairs[k].format+" (%s), was "+pairs[k].format+" (%s), p = %.2g\n", pairs[k].name,
			pairs[k].a.Mid, spanOf(pairs[k].a, pairs[k].format), pairs[k].b.Mid, spanOf(pairs[k].b, pairs[k].format),
			one)
	}
	for k := range fresh {
		if a, b2 := &fresh[k], &old[k]; a.word != b2.word && a.word != estimate.Unmeasured &&
			b2.word != estimate.Unmeasured {
			fmt.Fprintf(&b, "* verdict of row %d, %s: %s, was %s\n", a.number, a.title, a.word, b2.word)
		}
	}
	word := "met"
	if float64(found) > mostDisagree*float64(len(pairs)) {
		word = "not met"
	}
	return fmt.Sprintf("%d of %d compared figures disagree; at most %g %%: %s.\n\n", found, len(pairs),
		100*mostDisagree, word) + b.String()
}
