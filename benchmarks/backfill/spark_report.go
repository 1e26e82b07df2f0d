package main

import (
	"fmt"

	"entropipe/benchmarks/rig"
)

// goalSpark is the goal of processor times: a UDF over backfill.
const goalSpark = 10.0

// sparkLine is a way on the page.
type sparkLine struct {
	way        string
	whole, one []measurement // turns over the archive, and over one scan
}

var sparkTable = rig.Table[sparkLine]{
	{Head: "way", Text: func(l sparkLine) string { return l.way }},
	{Head: "processor time, s", Text: func(l sparkLine) string {
		return rig.MedianOf(each(l.whole, l.way, cpu)).Text("%.1f")
	}},
	{Head: "over one scan, s", Text: func(l sparkLine) string {
		return rig.MedianOf(each(l.one, l.way, cpu)).Text("%.1f")
	}},
	{Head: "ms a further scan", Text: func(l sparkLine) string {
		return rig.MedianOf(l.further(l.way)).Text("%.2f")
	}},
	{Head: "processor time over backfill's", Text: func(l sparkLine) string {
		return l.ratio(paired(l.whole, l.way, wayAlone, cpu))
	}},
	{Head: "of further scans", Text: func(l sparkLine) string {
		theirs, ours := l.further(l.way), l.further(wayAlone)
		var ratios []float64
		for i := range min(len(theirs), len(ours)) {
			ratios = append(ratios, theirs[i]/ours[i])
		}
		return l.ratio(ratios)
	}},
	{Head: "largest process, MB", Align: rig.Right, Text: func(l sparkLine) string {
		return fmt.Sprintf("%.0f", rig.MedianOf(each(l.whole, l.way, func(f *figures) float64 {
			return float64(f.MaxRSS) / 1e6
		})).Mid)
	}},
}

// ratio is a cell of a ratio, with the verdict where the way has a goal.
func (l sparkLine) ratio(ratios []float64) string {
	r := rig.MedianOf(ratios)
	switch l.way {
	case wayAlone:
		return ""
	case wayTasks:
		return r.Text("%.1f")
	}
	return fmt.Sprintf("%s; at least %.0f: %s", r.Text("%.1f"), goalSpark, r.Verdict(goalSpark))
}

// further returns the processor time of a scan beyond the first, in milliseconds, by rounds.
func (l sparkLine) further(way string) (all []float64) {
	for i := range l.whole {
		for k := range l.one {
			whole, one := &l.whole[i].Figures, &l.one[k].Figures
			if whole.Way == way && one.Way == way && whole.Round == one.Round {
				all = append(all, 1e3*(whole.CPUS-one.CPUS)/float64(whole.Frames-one.Frames))
			}
		}
	}
	return all
}

// spark returns the section of Spark.
func (r *report) spark() string {
	run := r.newest("spark")
	var whole, one []measurement
	for _, m := range run {
		if m.Figures.Case == startOnly {
			one = append(one, m)
		} else {
			whole = append(whole, m)
		}
	}
	if len(whole) == 0 {
		return ""
	}
	var lines []sparkLine
	for _, way := range sparkWays {
		lines = append(lines, sparkLine{way, whole, one})
	}
	f := whole[0].Figures
	return fmt.Sprintf("## Spark\n\n%s. %d KITTI frames of %.1f MB, hulls and maxima3d, %d tasks or workers at a "+
		"time, %d rounds.\n"+
		"Processor time is user and system time of all processes: the virtual machine, Python's workers, the program. "+
		"A turn over\n"+
		"one scan is what a way costs before it works. NumPy reads for the UDFs, moocore finds their maxima, Spark "+
		"writes their\n"+
		"rows. Before the turns all ways must find the same vertices and maxima of a small archive, and both forms of "+
		"backfill the\n"+
		"same tables.\n\n%s", rig.Origin(rig.StampsOf(run)), f.Frames, float64(f.Bytes)/float64(f.Frames)/1e6, f.Jobs,
		len(each(whole, wayAlone, cpu)), sparkTable.Markdown(lines))
}
