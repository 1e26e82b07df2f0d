package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"entropipe/benchmarks/rig"
)

var sweeps = &experiment{
	name:  "sweeps",
	title: "Anchors, temperatures, and the weight of the loss",
	claim: "The paper prints, for hulls in the plane of 10,000 points, speed-ups of 3.8, 4.1, 4.2, 4.0× at errors " +
		"of 0.09, 0.11, 0.12, 0.15 % for 8, 16, 32, 64 anchors; 4.14× at 0.0011 in full, 2.87× with fixed anchors, " +
		"3.21× with α = 1, 5.21× with an error of 0.0234 for λ = 1; and a sweet spot at λ = 0.1. Here each knob " +
		"turns alone, for H_diff around K = 16, α = 10, λ = 0.1, and for F around K = 32, τ = 5e-4, λ = 0.01. " +
		descentNote,
	cells: sweepCells,
	columns: append(rig.Table[*record]{text("what turns", "knob"), value("α", "alpha", "%g"), value("τ", "tau", "%g")},
		descentColumns...),
	verdict: sweepVerdict,
}

// turned is one setting of a knob.
type turned struct {
	knob string
	d    descent
}

func turns(steps int) (all []turned) {
	add := func(knob string, measure string, lambda float64, change func(d *descent)) {
		d := papers(measure, lambda, steps)
		change(&d)
		all = append(all, turned{knob, d})
	}
	for _, k := range []int{8, 16, 32, 64} {
		add("K", measureBall, .1, func(d *descent) { d.k = k })
		add("K", measureF, .01, func(d *descent) { d.k = k })
	}
	add("fixed anchors", measureBall, .1, func(d *descent) { d.fixed = true })
	add("moving witnesses", measureF, .01, func(d *descent) { d.unpin = true })
	for _, alpha := range []float64{1, 5, 100} {
		add("α", measureBall, .1, func(d *descent) { d.alpha = alpha })
	}
	for _, tau := range []float64{2e-4, 2e-3, 1e-2} {
		add("τ", measureF, .01, func(d *descent) { d.tau = tau })
	}
	for _, lambda := range []float64{1e-3, 1e-2, 1} {
		add("λ", measureBall, lambda, func(*descent) {})
	}
	for _, lambda := range []float64{1e-3, 1e-1, 1} {
		add("λ", measureF, lambda, func(*descent) {})
	}
	return all
}

func sweepCells(how effort) (cells []cell) {
	n, steps, of, families := 1000, 150, seeds, []string{"uniform", "ring", "circle"}
	all := turns(steps)
	if how == quick {
		n, of, families = 60, fewSeeds(), families[2:]
		all = turns(5)[:2]
	}
	for _, f := range families {
		for _, t := range all {
			c := descentCell(t.d, f, n, of)
			run := c.run
			cells = append(cells, cell{t.knob + " " + c.key, func(ctx context.Context) ([]record, error) {
				r, err := run(ctx)
				for k := range r {
					r[k].Text["knob"] = t.knob
				}
				return r, err
			}})
		}
	}
	return cells
}

func sweepVerdict(records []record) string {
	var b strings.Builder
	families, of := grouped(records, "family")
	for _, f := range families {
		for _, m := range []string{measureBall, measureF} {
			var k, lambda []string
			knobs := map[string][]record{}
			for _, r := range of[f] {
				if r.Text["measure"] == m {
					knobs[r.Text["knob"]] = append(knobs[r.Text["knob"]], r)
				}
			}
			for _, r := range sortedBy(knobs["K"], "k") {
				k = append(k, fmt.Sprintf("%.0f: %.3f at %.2f %%", r.Values["k"], r.Values["work"],
					100*r.Values["err"]))
			}
			for _, r := range sortedBy(knobs["λ"], "lambda") {
				lambda = append(lambda, fmt.Sprintf("%g: %.3f at %.2f %%", r.Values["lambda"], r.Values["work"],
					100*r.Values["err"]))
			}
			fmt.Fprintf(&b, "* %s, %s: work left at error by K: %s; by λ: %s.\n", f, m, strings.Join(k, ", "),
				strings.Join(lambda, ", "))
		}
	}
	spread := func(m string, knob string) float64 {
		widest := 0.0
		for _, f := range families {
			var w []float64
			for _, r := range of[f] {
				if r.Text["measure"] == m && r.Text["knob"] == knob {
					w = append(w, r.Values["work"])
				}
			}
			if len(w) > 0 {
				widest = max(widest, slices.Max(w)-slices.Min(w))
			}
		}
		return widest
	}
	flat, steep := spread(measureBall, "K"), spread(measureF, "λ")
	reading := "is as flat as the paper prints it"
	if flat > .1 {
		reading = "is not flat"
	}
	best := math.Inf(1)
	for _, r := range records {
		if r.Text["measure"] == measureBall && r.Values["err"] <= worthIt {
			best = min(best, r.Values["work"])
		}
	}
	most := "no setting of H_diff has an error of so little"
	if !math.IsInf(best, 1) {
		most = fmt.Sprintf("no setting of H_diff leaves less than %.2f of the work at an error of at most %.1f %%",
			best, 100*worthIt)
	}
	fmt.Fprintf(&b, "\nThe number of anchors %s: it changes the work left by at most %.3f of it on one kind of "+
		"cloud, as they tell nothing about the hull. λ trades work for error with F (by up to %.3f); %s. α is an "+
		"inverse temperature, so the paper's \"low temperature\" of α = 1 is its highest, and its annealing from 10 "+
		"to 5 softens. Speed-ups of a network's time cannot be read off here; they are of the work that is left to "+
		"save.", reading, flat, steep, most)
	return b.String()
}
