package main

import (
	"fmt"
	"strings"

	"entropipe/benchmarks/rig"
)

// ladderReport collects cells, and keeps each as soon as it is measured.
type ladderReport struct{ journal[ladderCell] }

// ladderLine is one way to attend of a cell.
type ladderLine struct {
	*ladderCell
	way ladderResult
}

func (x *ladderCell) lines() (lines []ladderLine) {
	for _, w := range x.Ways {
		lines = append(lines, ladderLine{x, w})
	}
	return lines
}

// ifLadder returns a column that is empty for ways without a ladder.
func ifLadder(head, format string, get func(ladderResult) float64) rig.Column[ladderLine] {
	return rig.Number(head, format, rig.Default, func(l ladderLine) (float64, bool) {
		return get(l.way), strings.HasPrefix(l.way.Way, "ladder")
	})
}

var ladderTable = rig.Table[ladderLine]{
	{Head: "tokens", Text: func(l ladderLine) string { return fmt.Sprint(l.Length) }},
	{Head: "mask", Text: func(l ladderLine) string { return l.Select }},
	{Head: "attention", Text: func(l ladderLine) string { return l.way.Way }},
	{Head: "ms a piece", Text: func(l ladderLine) string { return fmt.Sprintf("%.1f", l.way.Ns/1e6) }},
	{Head: "dense / this", Text: func(l ladderLine) string { return fmt.Sprintf("%.2f", l.Ways[0].Ns/l.way.Ns) }},
	ifLadder("stay", "%.1f %%", func(w ladderResult) float64 { return 100 * w.Stay }),
	ifLadder("summaries", "%.1f %%", func(w ladderResult) float64 { return 100 * w.Summaries }),
	{Head: "cosine to dense", Text: func(l ladderLine) string { return fmt.Sprintf("%.4f", l.way.Cosine) }},
	ifLadder("error / certificate", "%.2f", func(w ladderResult) float64 { return w.Worst }),
}

func (r *ladderReport) markdown() string {
	var b strings.Builder
	cells := r.cells(nil)
	b.WriteString("# What a ladder costs\n\n")
	fmt.Fprintf(&b, "`go run ./benchmarks/attention ladder`, %s. MiniLM-L6 on %s pieces of WikiText-2, one at a "+
		"time, one thread; masks of blocks of 16 tokens that leave out %s %% of the blocks, frozen on 12 other "+
		"pieces. A ladder lets every row of a head that misses more than its limit of the softmax read all keys. "+
		"Ways take turns; milliseconds are the mean over pieces of each one's fastest of three runs. `stay` is the "+
		"share of rows that read what the mask says, `summaries` the share that would stay if bounds from block "+
		"summaries decided instead of all scores (some rows of one piece); error is the largest distance of a row "+
		"of a head from dense attention, over its certificate 2·B·δ.\n\n",
		rig.Origin(r.Stamps()), rig.Each(cells, func(c *ladderCell) string { return fmt.Sprint(c.Pieces) }),
		rig.Each(cells, func(c *ladderCell) string { return fmt.Sprintf("%.0f", 100*c.Sparsity) }))
	var lines []ladderLine
	for _, x := range cells {
		lines = append(lines, x.lines()...)
	}
	b.WriteString(ladderTable.Markdown(lines))
	return b.String()
}
