package main

import (
	"fmt"
	"io"
	"strings"

	"entropipe/benchmarks/rig"
)

// denseCell is one model at one length with one number of threads, and the times
// of all runs of its entries.
type denseCell struct {
	Model    string    `json:"model"`
	Tokens   int       `json:"tokens"`
	Threads  int       `json:"threads"`
	Versions string    `json:"versions,omitempty"` // versions of the peers
	Weights  string    `json:"weights,omitempty"`  // origin of MiniLM's weights
	Ns       rig.Times `json:"ns"`
}

// The origins of MiniLM's weights.
const (
	trainedWeights = "weights of all-MiniLM-L6-v2, positions beyond 512 random"
	randomWeights  = "random weights"
)

// denseReport collects cells, and keeps each as soon as it is measured.
type denseReport struct{ journal[denseCell] }

func (c *denseCmd) report() (*denseReport, error) {
	r := &denseReport{}
	return r, r.open("dense", c.Results, rig.KindOf(c.Quick), resumed(c.Resume))
}

func (r *denseReport) has(name string, n, threads int) bool {
	return r.journal.has(func(c *denseCell) bool { return c.Model == name && c.Tokens == n && c.Threads == threads })
}

func (r *denseReport) add(c *denseCell) error { return r.keep(c, denseTable.Row(c)) }

func (r *denseReport) write(out io.Writer) error { return r.publish(out, r.markdown()) }

func (c *denseCell) times() rig.Times { return c.Ns }

var denseTable = rig.Table[*denseCell]{
	{Head: "model", Text: func(c *denseCell) string { return c.Model }},
	{Head: "tokens", Text: func(c *denseCell) string { return fmt.Sprint(c.Tokens) }},
	{Head: "threads", Text: func(c *denseCell) string { return fmt.Sprint(c.Threads) }},
	rig.TimesOf("entropipe", ours, "%.2f", (*denseCell).times),
	rig.TimesOf("ONNX Runtime", onnx, "%.2f", (*denseCell).times),
	rig.TimesOf("PyTorch", torch, "%.2f", (*denseCell).times),
	rig.RatioOf("over ONNX Runtime", onnx, ours, (*denseCell).times),
	rig.RatioOf("over PyTorch", torch, ours, (*denseCell).times),
	rig.TimesOf("75 % sparse", sparse, "%.2f", (*denseCell).times),
	rig.RatioOf("over dense", ours, sparse, (*denseCell).times),
}

// denseSummary is a line of the second table: quotients of two entries' times
// over all cells that have both, by the shortest runs and by the medians.
type denseSummary struct {
	over           string
	least, medians rig.Spread
}

var denseSummaries = rig.Table[denseSummary]{
	{Head: "over", Text: func(s denseSummary) string { return s.over }},
	{Head: "geometric mean", Text: func(s denseSummary) string {
		return fmt.Sprintf("%.3f (%.3f)", s.least.Mean, s.medians.Mean)
	}},
	{Head: "least cell", Text: func(s denseSummary) string {
		return fmt.Sprintf("%.3f (%.3f)", s.least.Least, s.medians.Least)
	}},
}

func (r *denseReport) summaries() (all []denseSummary) {
	for _, s := range []struct{ over, above, below string }{
		{onnx, onnx, ours}, {torch, torch, ours}, {"dense, of the sparse entry", ours, sparse},
	} {
		sum := denseSummary{over: s.over}
		var least, medians []float64
		for _, c := range r.cells(nil) {
			if len(c.Ns[s.above]) > 0 && len(c.Ns[s.below]) > 0 {
				least = append(least, c.Ns.Least(s.above)/c.Ns.Least(s.below))
				medians = append(medians, c.Ns.Median(s.above)/c.Ns.Median(s.below))
			}
		}
		if len(least) > 0 {
			sum.least, sum.medians = rig.SpreadOf(least), rig.SpreadOf(medians)
			all = append(all, sum)
		}
	}
	return all
}

func (r *denseReport) markdown() string {
	var b strings.Builder
	cells := r.cells(nil)
	b.WriteString("# Dense encoders beside ONNX Runtime and PyTorch\n\n")
	fmt.Fprintf(&b, "`go run ./benchmarks/attention dense`, %s, %s. One sequence, from ids to the last hidden "+
		"state. minilm: six layers of 384, 12 heads of 32, MLP of 1536, %s. bert: four layers of 768, 12 heads of "+
		"64, MLP of 3072, random weights. Entries take turns; all compute the same hidden states within %g, which "+
		"the run checks. Milliseconds of the shortest run, the median in brackets. A ratio is the peer's time over "+
		"ours, so above 1 ours is faster; by the shortest runs, by medians in brackets. The sparse entry reads a "+
		"quarter of the blocks of 64 keys, and its ratio is to our dense one: this forces a plan that serving would "+
		"not choose where it does not pay.\n\n",
		rig.Origin(r.Stamps()), rig.Each(cells, func(c *denseCell) string { return c.Versions }),
		rig.Each(cells, func(c *denseCell) string { return c.Weights }), tolerance)
	b.WriteString(denseTable.Markdown(cells))
	b.WriteString("\n" + denseSummaries.Markdown(r.summaries()))
	return b.String()
}
