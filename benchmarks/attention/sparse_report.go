package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
)

// sparseCell is a shape with a number of threads, and the times of all runs.
type sparseCell struct {
	Dim     int     `json:"dim"`
	Keys    int     `json:"keys"`
	Queries int     `json:"queries"`
	Threads int     `json:"threads"`
	Kept    float64 `json:"kept"` // share of the blocks
	Ns      times   `json:"ns"`
}

// sparseReport collects cells, and keeps each as soon as it is measured.
type sparseReport struct {
	Versions string
	cmd      *sparseCmd
	journal[sparseCell]
}

func (c *sparseCmd) report() (*sparseReport, error) {
	r := &sparseReport{cmd: c}
	return r, r.open("attention-sparse", c.Results, c.Quick, c.Resume)
}

func (r *sparseReport) has(dim, keys, queries, threads int) bool {
	return slices.ContainsFunc(r.cells, func(c *sparseCell) bool {
		return c.Dim == dim && c.Keys == keys && c.Queries == queries && c.Threads == threads
	})
}

func (r *sparseReport) add(c *sparseCell) error {
	fmt.Fprintln(os.Stderr, c.row())
	return r.keep(c)
}

func (r *sparseReport) write(out io.Writer) error { return r.publish(out, r.markdown()) }

func (r *sparseReport) markdown() string {
	var b strings.Builder
	versions := r.Versions
	if versions == "" {
		versions = "no peer"
	}
	fmt.Fprintf(&b, "# Block-sparse attention beside FlexAttention and SDPA\n\n")
	fmt.Fprintf(&b, "`go run ./benchmarks/attention sparse`, %s, %d CPUs (%s), %v kernels, %s, %s. Attention alone, %d heads, float32, no causality; the layout reads the first block and those nearest to the diagonal, blocks of %d. Entries take turns; ours and the peers' results agree within 1e-5, which the run checks. FlexAttention is compiled for each shape and number of threads and gets every block as full; compiling is not in its time, packing of keys and values is in ours. Milliseconds of the shortest run, the median in brackets; ratios of shortest runs, of medians in brackets.\n\n",
		time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), rig.CPU(), mat.Best(), runtime.Version(), versions, r.cmd.Heads, r.cmd.Block)
	r.table(&b, func(c *sparseCell) bool { return c.Queries > 1 })
	b.WriteString("\nOne query at the end of a sequence, as in decoding: ours has keys and values in the pages of `sparse/kv` and its time has the writing of the new ones; SDPA has them contiguous by head.\n\n")
	r.table(&b, func(c *sparseCell) bool { return c.Queries == 1 })
	return b.String()
}

func (r *sparseReport) table(b *strings.Builder, of func(*sparseCell) bool) {
	b.WriteString("| dim | keys | threads | blocks read | dense | all blocks | sparse | SDPA | FlexAttention sparse | dense / sparse | all blocks / dense | SDPA / dense | FlexAttention / sparse |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, c := range r.cells {
		if of(c) {
			fmt.Fprintf(b, "%s\n", c.row())
		}
	}
}

func (c *sparseCell) row() string {
	cells := []string{fmt.Sprint(c.Dim), fmt.Sprint(c.Keys), fmt.Sprint(c.Threads), fmt.Sprintf("%.0f %%", 100*c.Kept)}
	for _, e := range []string{kernDense, kernFull, kernSparse, peerSDPA, peerFlex} {
		text := ""
		if len(c.Ns[e]) > 0 {
			text = fmt.Sprintf("%.3f (%.3f)", c.Ns.least(e), c.Ns.middle(e))
		}
		cells = append(cells, text)
	}
	cells = append(cells, c.Ns.ratio(kernDense, kernSparse), c.Ns.ratio(kernFull, kernDense), c.Ns.ratio(peerSDPA, kernDense), c.Ns.ratio(peerFlex, kernSparse))
	return "| " + strings.Join(cells, " | ") + " |"
}
