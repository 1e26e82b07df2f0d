package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// worthIt is the largest mean error of a hull, in diagonals, at which descents are
// compared: the paper's bound for its own results.
const worthIt = .002

// descentColumns are what a descent did, over seeds.
var descentColumns = []column{
	text("clouds", "family"), text("measure", "measure"), value("K", "k", "%.0f"), value("λ", "lambda", "%g"),
	value("H before, nats", "before", "%.3f"), overSeeds("H after", "after", "%.3f", 1),
	value("touched a point before", "touched", "%.2f"), overSeeds("work after, of before", "work", "%.3f", 1),
	overSeeds("hull error, % of the diagonal", "err", "%.3f", 100), overSeeds("displacement, %", "shift", "%.3f", 100),
	value("measure in the first step", "regulariser", "%.2f"), value("in the last", "regulariser1", "%.2f"),
}

// descentNote says how a descent's table is to be read.
const descentNote = "Every point of the cloud moves on its own, by at most 0.1 of the box, by Adam (150 steps, 1000 points) on task loss plus λ times the measure: no network could do better on it, and no inference time is left out, as there is none to have. H is the entropy of the hull (upper plus lower); work counts the points touched by the instance-optimal hull, twice a point at least, for it has two sides; the error is the exact Hausdorff distance between the hull and that of the original points found on moved ones. Temperatures of F and H_soft fall meanwhile, so the measure in the first step and in the last are not of one scale; H_diff's are. Intervals are 95 %, over 5 seeds."

var rangeFamilies = &experiment{
	name:    "ranges",
	title:   "Which family of ranges should the loss know?",
	claim:   "The paper prints, for hulls in the plane of 10,000 points, 4.14× at an error of 0.11 % with balls (H_diff), 4.82× at 0.09 % with half-spaces, 3.87× at 0.13 % with axis-parallel rectangles, at λ = 0.1. Here the same losses, and F, lower themselves on single clouds, at several λ; as a control points move at random, with a deviation of λ. " + descentNote,
	cells:   rangeCells,
	columns: descentColumns,
	verdict: rangeVerdict,
}

// descentCell is a cell of one descent over seeds.
func descentCell(d descent, family string, n int, seeds []uint64) cell {
	key := fmt.Sprintf("%s %s λ=%g K=%d α=%g τ=%g fixed=%v unpinned=%v steps=%d n=%d seeds=%v", family, d.measure, d.lambda, d.k, d.alpha, d.tau, d.fixed, d.unpin, d.steps, n, seeds)
	return cell{key, func(context.Context) ([]record, error) { return []record{descend(d, family, n, seeds)}, nil }}
}

// papers returns a descent with the paper's settings, or ours for F.
func papers(measure string, lambda float64, steps int) descent {
	d := descent{measure: measure, lambda: lambda, steps: steps}
	switch measure {
	case measureBall:
		d.k, d.alpha = 16, 10
	case measureHalf, measureBoxes:
		d.k, d.tau = 8, .02
	case measureF:
		d.k, d.tau = 32, 5e-4
	}
	return d
}

var descentMeasures = []string{measureBall, measureHalf, measureBoxes, measureF}

func rangeCells(quick bool) (cells []cell) {
	n, steps, of := 1000, 150, seeds
	if quick {
		n, steps, of = 60, 5, seeds[:2]
	}
	for _, f := range descentFamilies {
		for _, measure := range append(descentMeasures, measureJitter) {
			lambdas := []float64{1e-3, 1e-2, 1e-1}
			if measure == measureJitter {
				lambdas = []float64{3e-5, 1e-4, 3e-4, 1e-3}
			}
			for _, lambda := range lambdas {
				if !quick || f.name == "circle" && lambda >= 3e-4 {
					cells = append(cells, descentCell(papers(measure, lambda, steps), f.name, n, of))
				}
			}
		}
	}
	return cells
}

// bestOf is the record of least work among those whose error is worth it, nil if
// there is none.
func bestOf(records []record, family, measure string) (best *record) {
	for k := range records {
		r := &records[k]
		if r.Text["family"] == family && r.Text["measure"] == measure && r.Values["err"] <= worthIt && (best == nil || r.Values["after"] < best.Values["after"]) {
			best = r
		}
	}
	return best
}

func rangeVerdict(records []record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "At equal error (the λ that lowers H most with a mean error of at most %.1f %%):\n\n", 100*worthIt)
	families, _ := grouped(records, "family")
	wins, judged := 0, 0
	least, most := math.Inf(1), 0.0 // of the work ratios of the paper's three
	noise := 0                      // how often jitter lowers H as much as the best of these
	for _, f := range families {
		var parts []string
		win, lowest := "", 0.0
		papersBest := 0.0
		for _, m := range append(descentMeasures, measureJitter) {
			r := bestOf(records, f, m)
			if r == nil {
				parts = append(parts, m+" never that exact")
				continue
			}
			parts = append(parts, fmt.Sprintf("%s %+.1f %% (work %+.1f %%, λ %g)", m, 100*r.Values["change"], 100*(r.Values["work"]-1), r.Values["lambda"]))
			if win == "" || r.Values["change"] < lowest {
				win, lowest = m, r.Values["change"]
			}
			switch m {
			case measureJitter:
				if r.Values["change"] <= papersBest {
					noise++
				}
			case measureF:
			default:
				papersBest = min(papersBest, r.Values["change"])
				least, most = min(least, r.Values["work"]), max(most, r.Values["work"])
			}
		}
		judged++
		if win == measureF {
			wins++
		}
		fmt.Fprintf(&b, "* %s: %s.\n", f, strings.Join(parts, "; "))
	}
	zero := 0
	balls, shift := 0, 0.0
	for _, r := range records {
		if r.Text["measure"] == measureBall {
			balls++
			shift = max(shift, r.Values["shift"])
			if r.Values["regulariser1"] < .1*r.Values["regulariser"] {
				zero++
			}
		}
	}
	fmt.Fprintf(&b, "\nF lowers H most on %d of %d kinds of clouds. With the paper's three the work left is %.2f to %.2f of what it was, the same class of result whichever the ranges: at most %.1f times less work, before any network's time; the paper prints 3.87 to 4.82 times with it. H_diff itself falls below a tenth of what it was in %d of %d cases, while points move by at most %.3f %% of the diagonal in the mean: what moves is the anchors, until one takes all points. All three are softmaxes of linear forms, so balls, half-spaces and rectangles differ in parameters, not in kind. Random jitter of the same error lowers H as much as the best of the three on %d of %d kinds: where many points are near the hull, any motion moves some of them inwards. The uniform cloud, the paper's largest gain, has hardly any entropy to lose.", wins, judged, least, most, 1/least, zero, balls, 100*shift, noise, judged)
	return b.String()
}

var sweeps = &experiment{
	name:  "sweeps",
	title: "Anchors, temperatures, and the weight of the loss",
	claim: "The paper prints, for hulls in the plane of 10,000 points, speed-ups of 3.8, 4.1, 4.2, 4.0× at errors of 0.09, 0.11, 0.12, 0.15 % for 8, 16, 32, 64 anchors; 4.14× at 0.0011 in full, 2.87× with fixed anchors, 3.21× with α = 1, 5.21× with an error of 0.0234 for λ = 1; and a sweet spot at λ = 0.1. Here each knob turns alone, for H_diff around K = 16, α = 10, λ = 0.1, and for F around K = 32, τ = 5e-4, λ = 0.01. " + descentNote,
	cells: sweepCells,
	columns: append([]column{text("what turns", "knob"), value("α", "alpha", "%g"), value("τ", "tau", "%g")},
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

func sweepCells(quick bool) (cells []cell) {
	n, steps, of, families := 1000, 150, seeds, []string{"uniform", "ring", "circle"}
	all := turns(steps)
	if quick {
		n, of, families = 60, seeds[:2], families[2:]
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
				k = append(k, fmt.Sprintf("%.0f: %.3f at %.2f %%", r.Values["k"], r.Values["work"], 100*r.Values["err"]))
			}
			for _, r := range sortedBy(knobs["λ"], "lambda") {
				lambda = append(lambda, fmt.Sprintf("%g: %.3f at %.2f %%", r.Values["lambda"], r.Values["work"], 100*r.Values["err"]))
			}
			fmt.Fprintf(&b, "* %s, %s: work left at error by K: %s; by λ: %s.\n", f, m, strings.Join(k, ", "), strings.Join(lambda, ", "))
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
		most = fmt.Sprintf("no setting of H_diff leaves less than %.2f of the work at an error of at most %.1f %%", best, 100*worthIt)
	}
	fmt.Fprintf(&b, "\nThe number of anchors %s: it changes the work left by at most %.3f of it on one kind of cloud, as they tell nothing about the hull. λ trades work for error with F (by up to %.3f); %s. α is an inverse temperature, so the paper's \"low temperature\" of α = 1 is its highest, and its annealing from 10 to 5 softens. Speed-ups of a network's time cannot be read off here; they are of the work that is left to save.", reading, flat, steep, most)
	return b.String()
}
