package main

import (
	"fmt"
	"slices"
	"strings"
)

// The rule by which a model is served sparse: the upper end of the interval of
// what it loses is at most half a point, or 2 % of perplexity, and it is better
// than a window of the same budget beyond the interval.
const (
	servedPoints     = .005
	servedPerplexity = .02
	leastSeeds       = 3 // a single one has no interval
)

// serve says what the rule makes of differences over seeds, both in the unit of
// the bound.
func serve(lost, gained []float64, bound float64) string {
	if len(lost) < leastSeeds || len(gained) < leastSeeds {
		return "too few seeds"
	}
	loss, lossHalf := interval(lost)
	gain, gainHalf := interval(gained)
	switch {
	case loss+lossHalf > bound:
		return "dense: loses too much"
	case gain-gainHalf <= 0:
		return "dense: no better than the window"
	}
	return "sparse"
}

// minilmRows has a line for every length, sparsity and method.
func minilmRows(records []record) (rows []record) {
	lengths, byLength := grouped(records, "length")
	for _, length := range lengths {
		sparsities, bySparsity := grouped(byLength[length], "sparsity")
		slices.SortFunc(sparsities, strings.Compare)
		for _, sparsity := range sparsities {
			all := bySparsity[sparsity]
			methods, byMethod := grouped(all, "method")
			for _, method := range methods {
				rows = append(rows, minilmRow(length, sparsity, method, byMethod))
			}
		}
	}
	return rows
}

func minilmRow(length, sparsity, method string, byMethod map[string][]record) record {
	of := byMethod[method]
	lost := against(byMethod[methodDense], of, "accuracy")
	gained := against(of, byMethod["window"], "accuracy")
	r := record{Text: map[string]string{"length": length, "sparsity": sparsity, "method": method},
		Values: map[string]float64{"low": meanOf(valuesOf(of, "low")), "budget": meanOf(valuesOf(of, "budget"))}}
	r.add("accuracy", nil, valuesOf(of, "accuracy"))
	r.add("cosine", nil, valuesOf(of, "cosine"))
	if method != methodDense {
		r.add("lost", nil, lost)
		r.Text["serve"] = "dense: it is the window"
	}
	if method != methodDense && method != "window" {
		r.add("gained", nil, gained)
		r.Text["serve"] = serve(lost, gained, servedPoints)
	}
	if method == methodOracle || method == methodLinformer {
		r.Text["serve"] = "" // not masks that can be frozen
	}
	return r
}

// against is a - b, seed by seed.
func against(a, b []record, value string) (differences []float64) {
	for _, x := range a {
		for _, y := range b {
			if x.Values["seed"] == y.Values["seed"] {
				differences = append(differences, x.Values[value]-y.Values[value])
			}
		}
	}
	return differences
}

func minilmVerdict(records []record) string {
	rows := minilmRows(records)
	var says []string
	served := 0
	for _, r := range rows {
		if r.Text["serve"] == "sparse" {
			served++
			says = append(says, fmt.Sprintf("%s at %s tokens and %s", r.Text["method"], r.Text["length"],
				r.Text["sparsity"]))
		}
	}
	verdict := "No mask passes the rule (at most half a point lost at the upper end of the interval, and better " +
		"than the window beyond the interval): dense is better, and is what is served."
	if served > 0 {
		verdict = "The rule (at most half a point lost at the upper end of the interval, and better than the window " +
			"beyond the interval) is passed by " + strings.Join(says, "; ") + "."
	}
	best := map[string]string{}
	for _, name := range []string{"window", "bigbird", "mass", "entropy", methodRouting, "affinity",
		methodLinformer, methodOracle} {
		var cosines []float64
		for _, r := range records {
			if r.Text["method"] == name {
				cosines = append(cosines, r.Values["cosine"])
			}
		}
		best[name] = fmt.Sprintf("%s %.4f", name, meanOf(cosines))
	}
	return fmt.Sprintf("%s Mean cosine to dense over all cells: %s, %s, %s, %s, %s, %s, %s, %s. %s The oracle shows "+
		"what any fixed mask cannot reach: it sees the input. That the paper's method is 0.6 or 0.9 points above "+
		"BigBird on GLUE at 75 %%, as its table or its text has it, is not contradicted by numbers of another task, "+
		"but nothing here points that way.",
		verdict, best["window"], best["bigbird"], best["mass"], best["entropy"], best[methodRouting], best["affinity"],
		best[methodLinformer], best[methodOracle], beyondMass(rows))
}

// beyondMass counts the lengths and sparsities where masks that look at no
// weights are nearer to dense than the one that keeps the most attention.
func beyondMass(rows []record) string {
	of := map[string]float64{}
	for _, r := range rows {
		of[r.Text["method"]+r.Text["length"]+r.Text["sparsity"]] = r.Values["cosine"]
	}
	all, bigbird, window := 0, 0, 0
	for _, r := range rows {
		if r.Text["method"] != "mass" {
			continue
		}
		at := r.Text["length"] + r.Text["sparsity"]
		all++
		if of["bigbird"+at] > r.Values["cosine"] {
			bigbird++
		}
		if of["window"+at] > r.Values["cosine"] {
			window++
		}
	}
	says := fmt.Sprintf("Of all fixed masks mass keeps the most attention of the calibration, and yet BigBird is "+
		"nearer to dense in %d and the window in %d of %d pairs of length and sparsity", bigbird, window, all)
	if 2*min(bigbird, window) > all {
		says += ": the mass that is kept is not what matters most"
	}
	return says + "."
}
