package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

// A latencyMask draws the layout of one head of n keys, in which every block of
// queries reads budget blocks.
type latencyMask struct {
	name, title string
	draw        func(n, block, budget, head int) *support.Layout
}

const (
	windowMask   = "window"
	dilatedMask  = "dilated"
	bigBirdMask  = "bigbird"
	clustersMask = "clusters"
	scatterMask  = "scattered"
)

var latencyMaskList = []latencyMask{
	{windowMask, "window", drawWindow},
	{dilatedMask, "dilated (LongNet)", drawDilated},
	{bigBirdMask, "BigBird", drawBigBird},
	{clustersMask, "clusters, sorted", drawClusters},
	{scatterMask, "by lot, as mass", drawScattered},
}

// latencyBudgets are the shares of blocks that are not to be read, as far as a
// row of so many keeps a block.
func latencyBudgets(blocks int) (sparsities []float64) {
	for _, s := range []float64{.75, .9} {
		if (1-s)*float64(blocks) > .75 {
			sparsities = append(sparsities, s)
		}
	}
	return sparsities
}

// near scores blocks by their distance from the row's own.
func near(r, blocks int) []float64 {
	score := make([]float64, blocks)
	for c := range score {
		score[c] = -math.Abs(float64(c - r))
	}
	return score
}

func drawWindow(n, block, budget, _ int) *support.Layout {
	return support.New(n, block, false, func(r int) []int32 {
		return support.Top(near(r, support.Blocks(n, block)), budget, r, 0)
	})
}

// drawDilated gives heads by turns the rates 1, 2, 4, … as far as the sequence
// is long enough: of the segment of budget·rate blocks that the row is in every
// rate-th, so that all heads read as much; heads of one rate begin at other
// blocks.
func drawDilated(n, block, budget, head int) *support.Layout {
	blocks, rates := support.Blocks(n, block), 1
	for budget<<rates <= blocks {
		rates++
	}
	rate := 1 << (head % rates)
	first := head / rates % rate
	return support.New(n, block, false, func(r int) (row []int32) {
		segment := min(r/(budget*rate)*budget*rate, blocks-budget*rate)
		for k := range budget {
			row = append(row, int32(segment+first+k*rate))
		}
		return row
	})
}

func drawBigBird(n, block, budget, head int) *support.Layout {
	draw, blocks := rand.New(rand.NewPCG(seeds[1], uint64(head))), support.Blocks(n, block)
	return support.New(n, block, false, func(r int) []int32 {
		score := lots(draw, blocks)
		for _, c := range support.Top(near(r, blocks), (budget+1)/2, r, 0) {
			score[c] = 2
		}
		return support.Top(score, budget, r, 0)
	})
}

func drawScattered(n, block, budget, head int) *support.Layout {
	draw, blocks := rand.New(rand.NewPCG(seeds[2], uint64(head))), support.Blocks(n, block)
	return support.New(n, block, false, func(r int) []int32 { return support.Top(lots(draw, blocks), budget, r, 0) })
}

func lots(draw *rand.Rand, blocks int) []float64 {
	score := make([]float64, blocks)
	for c := range score {
		score[c] = draw.Float64()
	}
	return score
}

// drawClusters puts every key into one of √n clusters, by lot and of unlike
// sizes, and sorts keys by cluster. A block of queries reads the blocks of one
// cluster after the other, in an order by lot, until the budget is spent.
func drawClusters(n, block, budget, head int) *support.Layout {
	draw, blocks := rand.New(rand.NewPCG(seeds[3], uint64(head))), support.Blocks(n, block)
	clusters := make([][]int32, int(math.Sqrt(float64(n))))
	for j := range n {
		u := draw.Float64()
		c := int(u * math.Sqrt(u) * float64(len(clusters)))
		clusters[c] = append(clusters[c], int32(j))
	}
	order, starts := make([]int32, 0, n), []int{0}
	for _, keys := range clusters {
		order = append(order, keys...)
		starts = append(starts, len(order))
	}
	l := support.New(n, block, false, func(int) []int32 {
		score := make([]float64, blocks)
		for place, c := range draw.Perm(len(clusters)) {
			for at := starts[c] / block; at*block < starts[c+1]; at++ {
				score[at] = max(score[at], float64(len(clusters)-place))
			}
		}
		return support.Top(score, budget)
	})
	l.Order = order
	return l
}

// runs returns the mean length of the runs of neighbouring keys that queries
// read, in the order of the layout's columns and in that of the sequence.
func runs(l *support.Layout, n int) (kernel, sequence float64) {
	keys, inKernel, inSequence := 0, 0, 0
	var read []int32
	for r := range l.Rows {
		cols, _ := l.Row(r)
		for k, c := range cols {
			if k == 0 || c != cols[k-1]+1 {
				inKernel++
			}
		}
		read = l.AppendKeys(read[:0], r*l.Block, n, false)
		slices.Sort(read)
		keys += len(read)
		for k, j := range read {
			if k == 0 || j != read[k-1]+1 {
				inSequence++
			}
		}
	}
	return float64(keys) / float64(inKernel), float64(keys) / float64(inSequence)
}

// newLatencyJob draws queries, keys and values, columns of one matrix as in a
// model.
func newLatencyJob(s latencyShape) kern.Job {
	r := rand.New(rand.NewPCG(uint64(s.keys), uint64(s.dim)))
	e := s.heads * s.dim
	fused := mat.Of(s.keys, 3*e, make([]float32, s.keys*3*e))
	for i := range fused.Data {
		fused.Data[i] = float32(r.NormFloat64())
	}
	return kern.Job{
		Q: fused.Columns(0, e), K: fused.Columns(e, 2*e), V: fused.Columns(2*e, 3*e),
		Out:   mat.Of(s.keys, e, make([]float32, s.keys*e)),
		Heads: s.heads, KVHeads: s.heads, Dim: s.dim, Scale: float32(1 / math.Sqrt(float64(s.dim))),
	}
}

// masked is the job with a mask.
func (m *latencyMask) masked(j kern.Job, block, budget int) kern.Job {
	for h := range j.KVHeads {
		j.Layouts = append(j.Layouts, m.draw(j.K.Rows, block, budget, h))
	}
	return j
}

// latencyMasks times all masks of one shape beside dense attention, at every
// sparsity at which a row keeps a block.
func latencyMasks(s latencyShape, block int) (records []record, err error) {
	job, blocks := newLatencyJob(s), support.Blocks(s.keys, block)
	var scratch kern.Scratch
	run := func(j kern.Job) func() {
		jobs := []kern.Job{j}
		return func() { scratch.Attend(jobs, 1) }
	}
	entries := []func(){run(job)}
	for _, sparsity := range latencyBudgets(blocks) {
		budget := support.Budget(sparsity, 0, blocks, false)
		for i := range latencyMaskList {
			m := &latencyMaskList[i]
			j := m.masked(job, block, budget)
			r := record{Text: map[string]string{"part": "masks", "mask": m.name}, Values: map[string]float64{
				"keys": float64(s.keys), "dim": float64(s.dim), "block": float64(block), "asked": 100 * sparsity,
				"read": 100 * float64(budget) / float64(blocks),
			}}
			for _, l := range j.Layouts {
				if err := l.Validate(false); err != nil {
					return nil, fmt.Errorf("%s: %w", m.name, err)
				}
				kernel, sequence := runs(l, s.keys)
				r.put("run", r.Values["run"]+kernel/float64(s.heads))
				r.put("original", r.Values["original"]+sequence/float64(s.heads))
			}
			records, entries = append(records, r), append(entries, run(j))
		}
	}
	ms := inTurns(s.rounds, s.repeats, entries...)
	for k := range records {
		records[k].putRatio("time", quotients(ms[k+1], ms[0]))
		records[k].put("least", slices.Min(ms[k+1])/slices.Min(ms[0]))
	}
	return records, nil
}

// latencyMaskColumns are two of each mask, and one more of clusters.
func latencyMaskColumns() (columns rig.Table[*record]) {
	for _, m := range latencyMaskList {
		columns = append(columns, text(m.title+", % of dense", m.name), value("run", m.name+" run", "%.0f"))
		if m.name == clustersMask {
			columns = append(columns, value("in the sequence", m.name+" original", "%.1f"))
		}
	}
	return columns
}

// latencyRows has a line for every shape and sparsity.
func latencyRows(records []record) (rows []record) {
	for _, r := range partOf(records, "masks") {
		v := r.Values
		at := slices.IndexFunc(rows, func(row record) bool {
			w := row.Values
			return w["keys"] == v["keys"] && w["dim"] == v["dim"] && w["block"] == v["block"] &&
				w["asked"] == v["asked"]
		})
		if at < 0 {
			at = len(rows)
			rows = append(rows, record{Text: map[string]string{}, Values: map[string]float64{
				"keys": v["keys"], "dim": v["dim"], "block": v["block"], "asked": v["asked"], "read": v["read"]}})
		}
		mask := r.Text["mask"]
		rows[at].Text[mask] = fmt.Sprintf("%.1f (%.1f to %.1f)", 100*v["time"], 100*v["time_lo"], 100*v["time_hi"])
		rows[at].put(mask, v["time"])
		rows[at].put(mask+" run", v["run"])
		rows[at].put(mask+" original", v["original"])
	}
	return rows
}

// latencyLong is the length from which a verdict on masks counts: below, a few
// hundred microseconds are beginnings and ends.
const latencyLong = 1024

func latencyMasksVerdict(records []record) string {
	lines := latencyRows(records)
	if slices.ContainsFunc(lines, func(r record) bool { return r.Values["keys"] >= latencyLong }) {
		lines = slices.DeleteFunc(lines, func(r record) bool { return r.Values["keys"] < latencyLong })
	}
	if len(lines) == 0 {
		return "No masks are timed yet."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "From %.0f keys on, geometric means: a block that is read, of keys in their own order, costs in "+
		"units of what a block costs dense attention", slices.Min(valuesOf(lines, "keys")))
	var bySize []float64
	for _, block := range []float64{16, 32, 64, 128} {
		var over []float64
		for _, r := range lines {
			for _, m := range latencyMaskList {
				if r.Values["block"] == block && m.name != clustersMask {
					over = append(over, 100*r.Values[m.name]/r.Values["read"])
				}
			}
		}
		if len(over) > 0 {
			bySize = append(bySize, geometric(over))
			fmt.Fprintf(&b, " %.2f in blocks of %.0f,", geometric(over), block)
		}
	}
	fmt.Fprintf(&b, " so counting blocks is right within %.0f %%.\n\nAt equal budget in blocks of one size, beside "+
		"the window:\n", 100*max(slices.Max(bySize)-1, 1-slices.Min(bySize)))
	slowest, sorted := 1.0, 1.0
	for _, m := range latencyMaskList[1:] {
		var times, shorter []float64
		for _, r := range lines {
			times = append(times, r.Values[m.name]/r.Values[windowMask])
			shorter = append(shorter, r.Values[windowMask+" run"]/r.Values[m.name+" run"])
		}
		if m.name == clustersMask {
			sorted = geometric(times)
		} else {
			slowest = max(slowest, geometric(times))
		}
		fmt.Fprintf(&b, "* %s takes %.3f times as long (%.3f to %.3f), with runs %.1f times shorter.\n", m.title,
			geometric(times), slices.Min(times), slices.Max(times), geometric(shorter))
	}
	fmt.Fprintf(&b, "\nThe paper's masks have runs half as long again (12.7 for 8.1) and %.1f %% less time at equal "+
		"b. Here the slowest mask in the keys' own order takes %.1f %% longer than the window on average. ",
		100*(1-41.0/43), 100*(slowest-1))
	if slowest < 1.05 {
		b.WriteString("Runs longer than a block buy next to nothing in this kernel: it reads keys and values that " +
			"it has packed in panels of 16, from a list, and the next panel costs as much as one elsewhere. So a " +
			"mask may lie as its scores want.")
	} else {
		b.WriteString("So runs longer than a block are worth something in this kernel, too, though it reads keys " +
			"and values that it has packed in panels of 16, from a list.")
	}
	fmt.Fprintf(&b, " Sorting keys by cluster makes runs out of keys that lie apart in the sequence, and costs %.1f "+
		"%%: what packing and the ends of the sequence take when the kernel has to look up which key stands where.",
		100*(sorted-1))
	return b.String()
}
