package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"entropipe/benchmarks/truth/estimate"
	"entropipe/sparse/freeze"
)

// phraseGain returns by how many points of accuracy a method exceeds another one at a sparsity,
// over all seeds, with a bootstrap of the groups of phrases.
func phraseGain(records []record, sparsity, method, other string) estimate.Estimate {
	gains, counts := map[int]float64{}, map[int]float64{}
	for _, r := range records {
		if r.Text["method"] != method || r.Text["sparsity"] != sparsity {
			continue
		}
		for _, o := range records {
			if o.Text["method"] == other && o.Text["sparsity"] == sparsity && o.Values["seed"] == r.Values["seed"] {
				addGains(gains, counts, r.Text["right"], o.Text["right"])
			}
		}
	}
	names := make([]string, 0, len(gains))
	var x, y []float64
	for g := range len(gains) {
		names, x, y = append(names, fmt.Sprint(g)), append(x, gains[g]), append(y, counts[g])
	}
	return estimate.OfFamilies(names, 1, func(take []int) float64 {
		gain, count := 0.0, 0.0
		for _, i := range take {
			gain, count = gain+x[i], count+y[i]
		}
		return 100 * gain / count
	})
}

// addGains adds, by group, the difference of right answers and the number of phrases that judge.
func addGains(gains, counts map[int]float64, right, other string) {
	others := strings.Fields(other)
	for g, group := range strings.Fields(right) {
		gains[g], counts[g] = gains[g]+0, counts[g]+0
		for k := range len(group) {
			if group[k] != '-' {
				gains[g] += float64(group[k]) - float64(others[g][k])
				counts[g]++
			}
		}
	}
}

// phraseRows has a line for each sparsity and method.
func phraseRows(records []record) (rows []record) {
	records = partOf(records, "phrases")
	sparsities, of := grouped(records, "sparsity")
	slices.SortFunc(sparsities, func(a, b string) int { return cmp.Compare(len(of[b]), len(of[a])) })
	for _, sparsity := range sparsities {
		methods, by := grouped(of[sparsity], "method")
		for _, method := range methods {
			r := record{Text: map[string]string{"method": method, "sparsity": sparsity}, Values: map[string]float64{}}
			for _, name := range []string{"accuracy", "transfer", "cosine"} {
				r.add(name, nil, valuesOf(by[method], name))
			}
			r.Values["read"] = by[method][0].Values["read"]
			beside := map[string]string{"lost": methodDense, "beyond": freeze.BigBird, "chosen": methodLot}
			for name, other := range beside {
				if method == other || method == methodDense {
					continue
				}
				e := phraseGain(records, sparsity, method, other)
				if name == "lost" {
					e.Mid, e.Low, e.High = -e.Mid, -e.High, -e.Low
				}
				r.put(name, e.Mid)
				r.put(name+"_lo", e.Low)
				r.put(name+"_hi", e.High)
			}
			rows = append(rows, r)
		}
	}
	return rows
}
