package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
	"entropipe/sparse/freeze"
	"entropipe/sparse/train"
)

// lossUnit is the quantity that a loss is a share of.
type lossUnit int

const (
	answers lossUnit = iota
	perplexities
)

// trainedRows has a line for every training, sparsity and method: how much is lost
// to the same training dense, to the plain one dense, and gained on the window of
// the same training and budget. Differences are shares of the unit.
func trainedRows(records []record, unit lossUnit) (rows []record) {
	seen := map[string]bool{}
	for _, r := range records {
		training, sparsity, method := r.Text["training"], r.Text["sparsity"], r.Text["method"]
		if key := training + sparsity + method; !seen[key] {
			seen[key] = true
			rows = append(rows, trainedRow(records, training, sparsity, method, unit))
		}
	}
	slices.SortStableFunc(rows, func(a, b record) int {
		x := slices.Index(trainingsOfAttention, train.Regulariser(a.Text["training"]))
		y := slices.Index(trainingsOfAttention, train.Regulariser(b.Text["training"]))
		return cmp.Or(x-y, strings.Compare(a.Text["sparsity"], b.Text["sparsity"]))
	})
	return rows
}

func trainedRow(records []record, training, sparsity, method string, unit lossUnit) record {
	of := func(training, sparsity, method string) (some []record) {
		for _, r := range records {
			if r.Text["training"] == training && r.Text["method"] == method && r.Text["sparsity"] == sparsity {
				some = append(some, r)
			}
		}
		return some
	}
	bound := servedPoints
	if unit == perplexities {
		bound = servedPerplexity
	}
	change := func(a, b []record) []float64 { // change from b to a, seed by seed
		d := against(a, b, "loss")
		for k := range d {
			if unit == perplexities {
				d[k] = math.Expm1(d[k])
			}
		}
		return d
	}
	here := of(training, sparsity, method)
	row := record{Text: map[string]string{"training": training, "sparsity": sparsity, "method": method}}
	row.add("loss", nil, valuesOf(here, "loss"))
	plain := change(here, of(string(train.None), "0 %", methodDense))
	if training != string(train.None) || method != methodDense {
		row.add("lost", nil, plain)
	}
	if method == methodDense || strings.Contains(method, "pruned") {
		return row
	}
	if own := of(training, "0 %", methodDense); method != methodLearnedW &&
		(method != methodGates || sparsity == percent(closedByL1)) {
		row.add("own", nil, change(here, own))
	}
	row.Text["serve"] = "dense: it is the window"
	if method != freeze.Window {
		like, as := windowFor(training, method)
		gained := change(of(like, sparsity, as), here)
		row.add("gained", nil, gained)
		if method != methodLearnedW {
			row.Text["serve"] = serve(plain, gained, bound)
		}
	}
	if method == methodOracle || method == methodLinformer {
		row.Text["serve"] = ""
	}
	return row
}

// windowFor is the training and the method that a method's gain on a window is
// from: the same training's; but of a training that ends with few blocks, one that
// ends with a window of as many, and of that, the plain training's.
func windowFor(training, method string) (string, string) {
	switch method {
	case methodGates:
		return string(train.Window), methodLearnedW
	case methodLearnedW:
		return string(train.None), freeze.Window
	}
	return training, freeze.Window
}

func percent(share float64) string { return fmt.Sprintf("%g %%", 100*share) }

// imageColumns are those of a table of trainedRows that judges classifiers by their answers.
func imageColumns() rig.Table[*record] {
	return rig.Table[*record]{
		text("training", "training"), text("sparsity asked", "sparsity"), text("method", "method"),
		overSeeds("wrong, %", "loss", "%.2f", 100),
		overSeeds("lost to plain dense, points", "lost", "%+.2f", 100),
		overSeeds("lost to own dense, points", "own", "%+.2f", 100),
		overSeeds("gained on window, points", "gained", "%+.2f", 100), text("serve", "serve"),
	}
}

// languageColumns are those of a table of trainedRows that judges by perplexity. unit names a
// token: byte, word.
func languageColumns(unit string) rig.Table[*record] {
	return rig.Table[*record]{
		text("training", "training"), text("sparsity asked", "sparsity"), text("method", "method"),
		overSeeds("nats a "+unit, "loss", "%.4f", 1),
		overSeeds("lost to plain dense, % of perplexity", "lost", "%+.2f", 100),
		overSeeds("lost to own dense, %", "own", "%+.2f", 100),
		overSeeds("gained on window, %", "gained", "%+.2f", 100), text("serve", "serve"),
	}
}

// servedOf lists the lines that the rule serves sparse.
func servedOf(rows []record) string {
	var which []string
	for _, r := range rows {
		if r.Text["serve"] == "sparse" {
			which = append(which, fmt.Sprintf("%s at %s, trained with %s", r.Text["method"], r.Text["sparsity"],
				r.Text["training"]))
		}
	}
	if which == nil {
		return "No mask passes the rule for serving sparse: dense is better, and is what is served."
	}
	return "The rule for serving sparse is passed by " + strings.Join(which, "; ") + "."
}

// lineOf is a row's loss to the plain dense model, for verdicts.
func lineOf(rows []record, training train.Regulariser, sparsity, method string) string {
	for _, r := range rows {
		if r.Text["training"] == string(training) && r.Text["sparsity"] == sparsity && r.Text["method"] == method {
			return fmt.Sprintf("%+.2f ± %.2f", 100*r.Values["lost"], 100*r.Values["lost_ci"])
		}
	}
	return "not measured"
}
