package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/benchmarks/truth/estimate"
)

// againstPage is the page of a run with other seeds, beside the run whose folder has the name old.
func againstPage(seeds []uint64, name string, fresh, old run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Seeds %s beside the records of `%s`\n\n`go run ./benchmarks/truth --seeds %s` runs "+
		"these seeds and writes this page. A figure disagrees where its difference is outside its own 95 %% "+
		"interval after Holm's correction over all compared figures; a figure without an interval in one of the "+
		"two runs is not compared. A figure of time holds for one CPU.\n\n%s",
		listed(seeds, ", "), name, listed(seeds, ","), disagreements(fresh, old))
	var ran []string
	for _, e := range experiments {
		if fresh[e.name] != nil {
			ran = append(ran, e.name)
		}
	}
	fmt.Fprintf(&b, "\n## What ran\n\n%d of %d experiments. %s\n\n", len(ran), len(experiments),
		howLong(ran, name, fresh, old))
	if len(ran) < len(experiments) {
		b.WriteString("Verdicts of both runs are those of the rows that these experiments measure, corrected for " +
			"as many.\n\n")
	}
	b.WriteString(rig.Table[string]{
		{Head: "experiment", Text: func(e string) string { return e }},
		{Head: "cells", Align: rig.Right, Text: func(e string) string { return fmt.Sprint(len(fresh[e].done)) }},
		{Head: "time", Align: rig.Right, Text: fresh.time},
		{Head: "time of `" + name + "`", Align: rig.Right, Text: old.time},
		{Head: "CPU", Text: fresh.cpu},
		{Head: "CPU of `" + name + "`", Text: old.cpu},
	}.Markdown(ran))
	return b.String()
}

// longestRun is how long a run of all experiments may take on two cores.
const longestRun = 8 * time.Hour

// howLong says how long the experiments took, and judges that if all are there and say it.
func howLong(ran []string, name string, fresh, old run) string {
	var periods []period
	cells, timed, more := 0, 0, time.Duration(0)
	for _, e := range ran {
		some, took := fresh[e].took()
		cells, timed, periods = cells+len(fresh[e].done), timed+some, append(periods, fresh[e].periods()...)
		if l := old[e]; l != nil {
			_, before := l.took()
			more += max(0, before-took)
		}
	}
	clock := covered(periods)
	said := fmt.Sprintf("%d of their %d cells say how long they took: %v, where cells that ran beside each other "+
		"count once. Networks that an earlier cell or run has trained come from a cache, so the times of `%s` are "+
		"beside; where they are longer, they are %v longer, %v in all",
		timed, cells, clock.Round(time.Second), name, more.Round(time.Second), (clock + more).Round(time.Second))
	switch {
	case len(ran) < len(experiments) || timed < cells:
		return said + "."
	case clock+more > longestRun:
		return said + fmt.Sprintf("; at most %g hours: not met.", longestRun.Hours())
	}
	return said + fmt.Sprintf("; at most %g hours: met.", longestRun.Hours())
}

// only returns the records of the experiments that the other run has measured, too.
func (r run) only(other run) run {
	both := run{}
	for name, l := range r {
		if other[name] != nil {
			both[name] = l
		}
	}
	return both
}

// time says how long an experiment's cells took together, if all of them say it.
func (r run) time(experiment string) string {
	l := r[experiment]
	if l == nil {
		return ""
	}
	if timed, sum := l.took(); timed == len(l.done) {
		return sum.Round(time.Second).String()
	}
	return ""
}

// cpu names the CPUs of an experiment's records.
func (r run) cpu(experiment string) string {
	if l := r[experiment]; l != nil {
		return rig.Each(l.stamps(), func(s rig.Stamp) string { return s.CPU })
	}
	return ""
}

// mostDisagree is the share of figures that may disagree.
const mostDisagree = .05

// disagreements lists the figures of two sets of records that differ by more than chance
// allows, after Holm's correction for all that both have, and the verdicts that changed.
// Figures without an interval in one of the two are not compared.
func disagreements(freshRun, oldRun run) string {
	type pair struct {
		name, format string
		a, b         estimate.Estimate
	}
	// A run of some rows has fewer tests to correct for, so both verdicts are those of the same rows.
	fresh, old := linesOf(freshRun.only(oldRun).sheet()), linesOf(oldRun.only(freshRun).sheet())
	elsewhere := func(l *line) string {
		for _, name := range l.experiments {
			if experimentOf(name).timed && freshRun[name] != nil && freshRun.cpu(name) != oldRun.cpu(name) {
				return ", timed on another CPU"
			}
		}
		return ""
	}
	var pairs []pair
	var p []float64
	for k := range fresh {
		a, b := &fresh[k], &old[k]
		if !slices.ContainsFunc(a.experiments, func(e string) bool { return freshRun[e] != nil && oldRun[e] != nil }) {
			continue // arithmetic is the same without records
		}
		for _, part := range []pair{{"as printed", a.format, a.printedHere, b.printedHere},
			{"corrected", a.format, a.better, b.better}, {a.peerName, a.format, a.beside, b.beside}} {
			if one, ok := estimate.DifferenceP(part.a, part.b); ok {
				part.name = fmt.Sprintf("row %d, %s, %s%s", a.number, a.title, part.name, elsewhere(a))
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
			fmt.Fprintf(&b, "* verdict of row %d, %s: %s, was %s%s\n", a.number, a.title, a.word, b2.word, elsewhere(a))
		}
	}
	if len(pairs) == 0 {
		return "No figure can be compared: each needs an interval in both runs.\n\n" + b.String()
	}
	word := "met"
	if float64(found) > mostDisagree*float64(len(pairs)) {
		word = "not met"
	}
	return fmt.Sprintf("%d of %d compared figures disagree; at most %g %%: %s.\n\n", found, len(pairs),
		100*mostDisagree, word) + b.String()
}
