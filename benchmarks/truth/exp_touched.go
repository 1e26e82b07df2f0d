package main

import (
	"fmt"
	"math"
	"strings"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/optimal"
	"entropipe/benchmarks/rig"
)

var touched = &experiment{
	name:  "touched",
	title: "Does the entropy tell the work?",
	claim: "The paper builds on the theorem that an instance-optimal algorithm takes time proportional to n plus " +
		"entropy, and cites an algorithm that has no such bound. Here the algorithms that do have it (Kirkpatrick " +
		"and Seidel's, pruned after Afshani, Barbay and Chan) count the points they touch; the count a point meets " +
		"the entropy and what else might tell it. The goal for R² is 0.9.",
	cells: touchedCells,
	rows:  touchedRows,
	columns: rig.Table[*record]{
		text("problem", "problem"), text("what tells it", "measure"), value("sets", "sets", "%.0f"),
		value("R² with points touched", "r2", "%.3f"),
		{Head: "interval", Text: func(r *record) string {
			return fmt.Sprintf("%.3f to %.3f", r.Values["lo"], r.Values["hi"])
		}},
		value("within families", "within", "%.3f"), value("touched a point at 0", "offset", "%.2f"),
		value("and a nat", "slope", "%+.2f"),
	},
	verdict: touchedVerdict,
}

var workTellers = []struct{ name, title string }{
	{"truth", "the entropy H"}, {"g64", "G, 64 witnesses"}, {"f512", "F of 512 points"},
	{"tree", "kd-tree's partition"},
	{"trace", "the algorithm's own groups"}, {"vertical", "vertical entropy"}, {"logh", "log h"},
	{"hdiff", "H_diff, 16 anchors, α 10"},
}

func touchedCells(how effort) []cell {
	return familyCells(how, func(c geom.Cloud[float64], p entropy.Problem, seed uint64) map[string]float64 {
		out, n := answerOf(c, p), float64(c.Len())
		s := entropy.Surrogate[float64]{Problem: p, Tau: 2e-4}
		all := guess(c, p, sizeOf(c, out, p), seed)
		v := map[string]float64{
			"truth": entropy.GroundTruth(c, out, p).Estimate, "g64": s.Hard(c, s.Witnesses(nil, c, 64)).Upper,
			"f512": all["f512"], "logh": all["logh"], "hdiff": all["hdiff10"],
			"tree": entropy.FromTree(c, out, p).Upper,
		}
		if p == entropy.UpperHull {
			var o optimal.Hull2D[float64]
			o.AppendUpper(nil, c)
			v["touched"], v["trace"] = float64(o.Upper.Touched)/n, o.Upper.Entropy()
			v["vertical"] = entropy.FromSlabs(c, out, p).Upper
		} else {
			var o optimal.Maxima[float64]
			o.Append(nil, c)
			v["touched"], v["trace"] = float64(o.Trace.Touched)/n, o.Trace.Entropy()
		}
		return v
	})
}

func touchedRows(records []record) (rows []record) {
	problems, of := grouped(records, "problem")
	for _, p := range problems {
		for _, w := range workTellers {
			if _, ok := of[p][0].Values[w.name]; ok {
				r := correlationRow(of[p], p, w.name, w.title, "touched")
				// Work is what is told, so the line goes the other way.
				_, r.Values["slope"], r.Values["offset"] = fitLine(valuesOf(of[p], w.name), valuesOf(of[p], "touched"))
				rows = append(rows, r)
			}
		}
	}
	return rows
}

func touchedVerdict(records []record) string {
	var b strings.Builder
	problems, of := grouped(records, "problem")
	for _, p := range problems {
		rows := map[string]map[string]float64{}
		for _, r := range touchedRows(of[p]) {
			rows[r.Text["name"]] = r.Values
		}
		h := rows["truth"]
		reached := "reaches"
		if h["r2"] < .9 {
			reached = "misses"
		}
		worst := 0.0
		for _, r := range of[p] {
			worst = max(worst, r.Values["touched"]/(r.Values["truth"]+1))
		}
		fmt.Fprintf(&b, "%s: H tells %.1f %% of the variance of the points touched and %s the goal of 90 %%; log h "+
			"tells %.1f %%, H_diff %.1f %%. A point is touched %.2f times and %.2f times more for each nat, never "+
			"more than %.2f·(H+1) times.\n\n",
			p, 100*h["r2"], reached, 100*rows["logh"]["r2"], 100*rows["hdiff"]["r2"], h["offset"], h["slope"], worst)
	}
	least, most := math.Inf(1), 0.0
	for _, r := range records {
		if r.Text["family"] == "uniform" {
			least, most = min(least, r.Values["touched"]), max(most, r.Values["touched"])
		}
	}
	fmt.Fprintf(&b, "The theorem holds, for algorithms it is a theorem of. What it promises for uniform clouds is "+
		"little, however: they are touched %.2f to %.2f times a point, and no preparation can bring that below 1; "+
		"so the paper's largest speed-up, on uniform clouds, is not one of entropy.", least, most)
	return b.String()
}
