package main

import (
	"fmt"
	"io"
	"strings"

	"entropipe/benchmarks/rig"
)

// sparseCell is a shape with a number of threads, and the times of all runs.
type sparseCell struct {
	Dim      int       `json:"dim"`
	Keys     int       `json:"keys"`
	Queries  int       `json:"queries"`
	Threads  int       `json:"threads"`
	Kept     float64   `json:"kept"` // share of the blocks that the layout reads
	Heads    int       `json:"heads,omitempty"`
	Block    int       `json:"block,omitempty"`    // keys and queries of a block
	Versions string    `json:"versions,omitempty"` // versions of the peers
	Ns       rig.Times `json:"ns"`
}

// sparseReport collects cells, and keeps each as soon as it is measured.
type sparseReport struct{ journal[sparseCell] }

func (c *sparseCmd) report() (*sparseReport, error) {
	r := &sparseReport{}
	return r, r.open("sparse", c.Results, rig.KindOf(c.Quick), resumed(c.Resume))
}

func (r *sparseReport) has(dim, keys, queries, threads int) bool {
	return r.journal.has(func(c *sparseCell) bool {
		return c.Dim == dim && c.Keys == keys && c.Queries == queries && c.Threads == threads
	})
}

func (r *sparseReport) add(c *sparseCell) error { return r.keep(c, sparseTable.Row(c)) }

func (r *sparseReport) write(out io.Writer) error { return r.publish(out, r.markdown()) }

func (c *sparseCell) times() rig.Times { return c.Ns }

var sparseTable = rig.Table[*sparseCell]{
	{Head: "dim", Text: func(c *sparseCell) string { return fmt.Sprint(c.Dim) }},
	{Head: "keys", Text: func(c *sparseCell) string { return fmt.Sprint(c.Keys) }},
	{Head: "threads", Text: func(c *sparseCell) string { return fmt.Sprint(c.Threads) }},
	{Head: "blocks read", Text: func(c *sparseCell) string { return fmt.Sprintf("%.0f %%", 100*c.Kept) }},
	rig.TimesOf("dense", kernDense, "%.3f", (*sparseCell).times),
	rig.TimesOf("all blocks", kernFull, "%.3f", (*sparseCell).times),
	rig.TimesOf("sparse", kernSparse, "%.3f", (*sparseCell).times),
	rig.TimesOf("SDPA", peerSDPA, "%.3f", (*sparseCell).times),
	rig.TimesOf("FlexAttention sparse", peerFlex, "%.3f", (*sparseCell).times),
	rig.RatioOf("dense / sparse", kernDense, kernSparse, (*sparseCell).times),
	rig.RatioOf("all blocks / dense", kernFull, kernDense, (*sparseCell).times),
	rig.RatioOf("SDPA / dense", peerSDPA, kernDense, (*sparseCell).times),
	rig.RatioOf("FlexAttention / sparse", peerFlex, kernSparse, (*sparseCell).times),
}

func (r *sparseReport) markdown() string {
	var b strings.Builder
	cells := r.cells(nil)
	b.WriteString("# Block-sparse attention beside FlexAttention and SDPA\n\n")
	fmt.Fprintf(&b, "`go run ./benchmarks/attention sparse`, %s, %s. Attention alone, %s heads, float32, no "+
		"causality; the layout reads the first block and those nearest to the diagonal, blocks of %s. Entries take "+
		"turns; ours and the peers' results agree within 1e-5, which the run checks. FlexAttention is compiled for "+
		"each shape and number of threads and gets every block as full; compiling is not in its time, packing of "+
		"keys and values is in ours. Milliseconds of the shortest run, the median in brackets; ratios of shortest "+
		"runs, of medians in brackets.\n\n",
		rig.Origin(r.Stamps()), rig.Each(cells, func(c *sparseCell) string { return c.Versions }),
		rig.Each(cells, func(c *sparseCell) string { return fmt.Sprint(c.Heads) }),
		rig.Each(cells, func(c *sparseCell) string { return fmt.Sprint(c.Block) }))
	b.WriteString(sparseTable.Markdown(r.cells(func(c *sparseCell) bool { return c.Queries > 1 })))
	b.WriteString("\nOne query at the end of a sequence, as in decoding: ours has keys and values in the pages of " +
		"`sparse/kv` and its time has the writing of the new ones; SDPA has them contiguous by head.\n\n")
	b.WriteString(sparseTable.Markdown(r.cells(func(c *sparseCell) bool { return c.Queries == 1 })))
	return b.String()
}
