package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// What a call takes where the archive and the output are mounted from a network. The page
// says so.
const (
	callSeconds = 0.5e-3 // a call that looks: open, stat, read of a folder
	syncSeconds = 5e-3   // a call that makes something durable
	readSeconds = 8e-9   // a byte that a process reads: 1 Gbit/s
)

// limit is a part of a backfill that takes time beside the computing.
type limit struct {
	name  string
	hours float64
}

// limits returns what a backfill takes beside its computing, the longest part first, and the
// computing itself. All are hours of the clock.
func (t totals) limits() (beside []limit, work float64) {
	looks := func(phase string) float64 {
		return callSeconds * (t.of(phase, "open") + t.of(phase, "stat") + t.of(phase, "list"))
	}
	durable := syncSeconds * (t.of(phaseWork, "sync") + t.of(phaseWork, "link") + t.of(phaseWork, "rename") +
		t.of(phaseWork, "mkdir") + t.of(phaseWork, "remove"))
	const hour = 3600
	beside = []limit{
		{"making the plan in one process: its processor time", t.of(phasePlan, costCPU) / hour},
		{"making the plan in one process: its calls, one after the other", looks(phasePlan) / hour},
		{"looking for what is done, in each process: its processor time", t.of(phaseStart, costCPU) / hour},
		{"looking for what is done, in each process: its calls", looks(phaseStart) / hour},
		{"opening files for the work, shared by all processes", looks(phaseWork) / t.processes / hour},
		{"commits, shared by all processes", durable / t.processes / hour},
		{"reading the archive, shared by all processes", readSeconds * t.Frames * t.frameBytes / t.processes / hour},
		{"a reader of one table that lists its files", callSeconds * t.of(phaseWork, costFiles) / tablesOfModel / hour},
	}
	slices.SortStableFunc(beside, func(a, b limit) int { return cmp.Compare(b.hours, a.hours) })
	return beside, t.of(phaseWork, costCPU) / t.processes / hour
}

// tablesOfModel is the number of tables that hulls and maxima fill.
const tablesOfModel = 3

// breaks returns the table of limits of an archive, and says what breaks first.
func (t totals) breaks(name string) string {
	beside, work := t.limits()
	var b strings.Builder
	fmt.Fprintf(&b, `Hours of %s, each with one processor. A call that looks takes %.1f ms, a call that makes
something durable %.0f ms, and a process reads 1 Gbit/s. Calls come one after the other. The computing takes %s hours:

`, name, 1e3*callSeconds, 1e3*syncSeconds, number(work))
	b.WriteString("| part | hours | times the computing |\n|---|---:|---:|\n")
	for _, l := range beside {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l.name, number(l.hours), number(l.hours/work))
	}
	first, times := beside[0], beside[0].hours/work
	word := fmt.Sprintf("it takes %s times as long as the computing", number(times))
	if times < 1 {
		word = "it is still shorter than the computing"
	}
	fmt.Fprintf(&b, "\nThe first to break is %s:\n%s.\n", first.name, word)
	return b.String()
}
