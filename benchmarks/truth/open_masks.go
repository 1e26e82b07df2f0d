package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

const openMasksText = "A mask that leaves out nothing must give what dense attention gives, or a loss of accuracy " +
	"might be the kernel's. Outputs of both are compared bit for bit: normal inputs of each seed, 4 heads of 32 and " +
	"of 64, lengths of 1 to 600 tokens that fill their blocks and that do not. An ulp is the distance between " +
	"neighbouring float32."

var openMaskColumns = rig.Table[*record]{
	text("mask", "mask"), text("attention", "attention"), value("outputs compared", "outputs", "%.0f"),
	value("of these differ", "differ", "%.0f"), value("largest difference, ulp", "ulps", "%.0f"),
}

// openMasks compares masks that leave out nothing with no mask.
func openMasks(how effort, seed uint64) (records []record) {
	lengths := []int{1, 16, 25, 128, 197, 512, 600}
	if how == quick {
		lengths = []int{25, 40}
	}
	for _, block := range []int{1, 16, 32, 64, 128} {
		for _, causal := range []bool{false, true} {
			r := record{Text: map[string]string{"part": "open", "mask": "keys, one by one", "attention": "full"},
				Values: map[string]float64{"seed": float64(seed), "outputs": 0, "differ": 0, "ulps": 0}}
			if block > 1 {
				r.Text["mask"] = fmt.Sprintf("blocks of %d", block)
			}
			if causal {
				r.Text["attention"] = "causal"
			}
			for _, n := range lengths {
				for _, dim := range []int{32, 64} {
					if l := openLayout(n, block, causal); l != nil {
						r.compareOpen(n, dim, causal, l, seed)
					}
				}
			}
			if r.Values["outputs"] > 0 {
				records = append(records, r)
			}
		}
	}
	return records
}

// openLayout reads every key that may be seen; nil where single keys cannot be listed.
func openLayout(n, block int, causal bool) *support.Layout {
	if block > 1 {
		return support.New(n, block, causal, func(r int) (all []int32) {
			for c := range support.Blocks(n, block) {
				if !causal || c <= r {
					all = append(all, int32(c))
				}
			}
			return all
		})
	}
	if n > longestPhrase || causal {
		return nil
	}
	return keyLayout(n, n, func([]float64, int) {})
}

// compareOpen adds what a job of n tokens gives with a layout and without.
func (r *record) compareOpen(n, dim int, causal bool, l *support.Layout, seed uint64) {
	j := newLatencyJob(latencyShape{keys: n, dim: dim, heads: 4})
	draw := rand.New(rand.NewPCG(seed, uint64(n*dim)))
	for i := range n {
		for _, row := range [][]float32{j.Q.Row(i), j.K.Row(i), j.V.Row(i)} {
			for c := range row {
				row[c] = float32(draw.NormFloat64())
			}
		}
	}
	j.Causal = causal
	var scratch kern.Scratch
	scratch.Attend([]kern.Job{j}, 1)
	dense := append([]float32(nil), j.Out.Data...)
	clear(j.Out.Data)
	for range j.KVHeads {
		j.Layouts = append(j.Layouts, l)
	}
	scratch.Attend([]kern.Job{j}, 1)
	for i, x := range j.Out.Data {
		apart := ulps(x, dense[i])
		r.Values["outputs"]++
		r.Values["ulps"] = max(r.Values["ulps"], apart)
		if apart > 0 {
			r.Values["differ"]++
		}
	}
}

// ulps is how many float32 lie between two numbers, infinite if one is no number.
func ulps(a, b float32) float64 {
	if a != a || b != b {
		return math.Inf(1)
	}
	place := func(x float32) int64 {
		bits := int64(math.Float32bits(x))
		if bits >= 1<<31 {
			return 1<<31 - bits
		}
		return bits
	}
	return math.Abs(float64(place(a) - place(b)))
}

// openMaskRows adds up the seeds.
func openMaskRows(records []record) (rows []record) {
	for _, r := range records {
		at := -1
		for k := range rows {
			if rows[k].Text["mask"] == r.Text["mask"] && rows[k].Text["attention"] == r.Text["attention"] {
				at = k
			}
		}
		if at < 0 {
			rows = append(rows, record{Text: r.Text, Values: map[string]float64{}})
			at = len(rows) - 1
		}
		v := rows[at].Values
		v["outputs"], v["differ"] = v["outputs"]+r.Values["outputs"], v["differ"]+r.Values["differ"]
		v["ulps"] = max(v["ulps"], r.Values["ulps"])
	}
	return rows
}

func phraseVerdict(records []record) string {
	var b strings.Builder
	for _, r := range phraseRows(records) {
		if r.Text["method"] == methodDense || r.Text["sparsity"] != "75 %" {
			continue
		}
		fmt.Fprintf(&b, "* %s loses %.2f points (%.2f to %.2f) at 75 %%", r.Text["method"], r.Values["lost"],
			r.Values["lost_lo"], r.Values["lost_hi"])
		if _, ok := r.Values["beyond"]; ok {
			fmt.Fprintf(&b, ", and scores %+.2f (%+.2f to %+.2f) beside BigBird", r.Values["beyond"],
				r.Values["beyond_lo"], r.Values["beyond_hi"])
		}
		b.WriteString(".\n")
	}
	if some := partOf(records, "phrases"); len(some) > 0 {
		fmt.Fprintf(&b, "\nA seed judges %.0f phrases at most, of %.0f tokens on average. GLUE's inputs are often "+
			"padded to 128 tokens, of which a mask of 75 %% leaves 32: where padding counts as sparsity, such a mask "+
			"may read a whole phrase. Here no padding is counted. The intervals are of single comparisons; the "+
			"verdicts of the grid come after Holm's correction.\n", slices.Max(valuesOf(some, "phrases")),
			meanOf(valuesOf(some, "tokens")))
	}
	open := openMaskRows(partOf(records, "open"))
	b.WriteString("\n## Is an open mask dense attention?\n\n" + openMasksText + "\n\n" +
		openMaskColumns.Markdown(pointers(open)))
	differ, outputs, most := 0.0, 0.0, 0.0
	for _, r := range open {
		differ, outputs, most = differ+r.Values["differ"], outputs+r.Values["outputs"], max(most, r.Values["ulps"])
	}
	fmt.Fprintf(&b, "\n%.0f of %.0f outputs differ, by at most %.0f ulp.", differ, outputs, most)
	return b.String()
}
