package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"entropipe/benchmarks/rig"
)

// latencyKernels is the table of latencies: which masks, which kernels, and what
// of it reaches a whole layer. Records belong to one of four parts, by text
// "part"; the page's first table is part masks, the verdict has the others.
var latencyKernels = &experiment{
	name:  "latency",
	title: "Attention at equal budget in one kernel",
	claim: "The paper prints, for ViT-Small with as many keys a query (b) in the same kernel, 43 ms for masks by " +
		"magnitude or L1 with runs (\"mean block length\") of 8.1 and 8.4, and 41 ms for its own with 12.7, where " +
		"dense attention takes 52; and against dense attention of 85 ms FlashAttention 1.63 times as fast, RetNet " +
		"1.20, LongNet 1.15, L1 1.05, its masks 1.47 (ViT-Base and LLaMA-2: 1.60), FlashAttention with its masks " +
		"2.07. Here: the same kernel for all masks, 12 heads, float32, no causality, one thread, entries in turns, " +
		"the same number of blocks in every row of every mask. The first table is the time of a mask as a share of " +
		"dense attention by the same kernel (median of paired turns, 95 % of resamples), and the mean length of the " +
		"runs of neighbouring keys that a query reads, in the order in which the kernel has them. The share of the " +
		"blocks that are read is what their count alone would promise. Masks are drawn, for time does not depend on " +
		"which blocks are chosen, only on how they lie: a window and the first block; LongNet's dilation (Ding et " +
		"al. 2023), heads by turns with every, every second, fourth … block of a segment; BigBird (Zaheer et al. " +
		"2020), half near, half by lot; clusters of keys, which the kernel sorts by cluster, as for affinity; and " +
		"blocks by lot for each head, as masks by mass may lie. Beside PyTorch's kernels: ../attention-sparse.md.",
	timed: true,
	cells: latencyCells,
	rows:  latencyRows,
	columns: append(rig.Table[*record]{
		value("keys", "keys", "%.0f"), value("of a head", "dim", "%.0f"), value("block", "block", "%.0f"),
		value("read and promised, %", "read", "%.1f"),
	}, latencyMaskColumns()...),
	verdict: latencyVerdict,
}

// latencyShape is what the cells of a part share.
type latencyShape struct {
	keys, dim, heads int
	rounds, repeats  int // a turn is the least of some runs
}

func latencyCells(how effort) (cells []cell) {
	lengths, dims, blocks := []int{256, 1024, 4096}, []int{64, 32}, []int{16, 32, 64, 128}
	if how == quick {
		lengths, dims, blocks = []int{128}, []int{16}, []int{16}
	}
	add := func(key string, run func(context.Context) ([]record, error)) { cells = append(cells, cell{key, run}) }
	for _, n := range lengths {
		for _, dim := range dims {
			s := latencyShape{keys: n, dim: dim, heads: 12, rounds: max(8, 1<<15/n), repeats: max(1, 1024/n)}
			if how == quick {
				s.heads, s.rounds, s.repeats = 3, 2, 1
			}
			for _, block := range blocks {
				if len(latencyBudgets(n/block)) == 0 {
					continue
				}
				add(fmt.Sprintf("masks keys=%d dim=%d block=%d rounds=%d", n, dim, block, s.rounds),
					func(context.Context) ([]record, error) { return latencyMasks(s, block) })
			}
			add(fmt.Sprintf("forms keys=%d dim=%d rounds=%d", n, dim, s.rounds),
				func(context.Context) ([]record, error) { return latencyForms(s) })
		}
	}
	n := 512
	if how == quick {
		n = 64
	}
	add(fmt.Sprintf("exactness keys=%d seed=%d", n, seeds[0]),
		func(context.Context) ([]record, error) { return latencyExactness(n) })
	for _, l := range latencyLayers(how) {
		add(fmt.Sprintf("layer %s tokens=%d rounds=%d", l.name, l.tokens, l.rounds),
			func(context.Context) ([]record, error) { return l.measure() })
	}
	return cells
}

// partOf returns the records of a part.
func partOf(records []record, part string) (some []record) {
	for _, r := range records {
		if r.Text["part"] == part {
			some = append(some, r)
		}
	}
	return some
}

// inTurns runs the entries in rounds, another one first in each, and returns the
// milliseconds of every round by entry: the least of some runs in it. A first
// round does not count, for memory is new.
func inTurns(rounds, repeats int, entries ...func()) [][]float64 {
	ms := make([][]float64, len(entries))
	for round := range rounds + 1 {
		for i := range entries {
			k := (i + round) % len(entries)
			least := math.Inf(1)
			for range repeats {
				least = min(least, onceTimed(entries[k]))
			}
			if round > 0 {
				ms[k] = append(ms[k], least)
			}
		}
	}
	return ms
}

// quotients are a[k]/b[k].
func quotients(a, b []float64) []float64 {
	q := make([]float64, len(a))
	for k := range q {
		q[k] = a[k] / b[k]
	}
	return q
}

// geometric is the geometric mean; NaN of none.
func geometric(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(v)))
}

func latencyVerdict(records []record) string {
	var b strings.Builder
	b.WriteString(latencyMasksVerdict(partOf(records, "masks")))
	b.WriteString("\n\n## Forms of attention\n\n" + latencyFormsText + "\n\n")
	some := partOf(records, "forms")
	latencyTable(&b, latencyFormColumns, some)
	b.WriteString("\n" + latencyFormsVerdict(some))
	b.WriteString("\n\n## Is the tiled kernel the same function?\n\n" + latencyExactText + "\n\n")
	some = partOf(records, "exactness")
	latencyTable(&b, latencyExactColumns, some)
	b.WriteString("\n" + latencyExactVerdict(some))
	b.WriteString("\n\n## What reaches a whole layer\n\n" + latencyLayerText + "\n\n")
	some = partOf(records, "layer")
	latencyTable(&b, latencyLayerColumns, some)
	b.WriteString("\n" + latencyLayerVerdict(some))
	return b.String()
}

// latencyTable writes a further table of the page.
func latencyTable(b *strings.Builder, columns rig.Table[*record], records []record) {
	b.WriteString(columns.Markdown(pointers(records)))
}
