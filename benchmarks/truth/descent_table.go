package main

import (
	"context"
	"fmt"

	"entropipe/benchmarks/rig"
)

// What the experiments with descents share: cells and columns.

// worthIt is the largest mean error of a hull, in diagonals, at which descents are
// compared: the paper's bound for its own results.
const worthIt = .002

// descentColumns are what a descent did, over seeds.
var descentColumns = rig.Table[*record]{
	text("clouds", "family"), text("measure", "measure"), value("K", "k", "%.0f"), value("λ", "lambda", "%g"),
	value("H before, nats", "before", "%.3f"), overSeeds("H after", "after", "%.3f", 1),
	value("touched a point before", "touched", "%.2f"), overSeeds("work after, of before", "work", "%.3f", 1),
	overSeeds("hull error, % of the diagonal", "err", "%.3f", 100), overSeeds("displacement, %", "shift", "%.3f", 100),
	value("measure in the first step", "regulariser", "%.2f"), value("in the last", "regulariser1", "%.2f"),
}

// descentNote says how a descent's table is to be read.
const descentNote = "Every point of the cloud moves on its own, by at most 0.1 of the box, by Adam (150 steps, 1000 " +
	"points) on task loss plus λ times the measure. A network has less freedom than that, and takes time that these " +
	"descents, which cannot serve at run time, do not count. H is the entropy of the hull (upper plus lower); work " +
	"counts the points touched by the instance-optimal hull, twice a point at least, for it has two sides; the " +
	"error is the exact Hausdorff distance between the hull and that of the original points found on moved ones. " +
	"Temperatures of F and H_soft fall meanwhile, so the measure in the first step and in the last are not of one " +
	"scale; H_diff's are. Intervals are 95 %, over 5 seeds."

// descentCell is a cell of one descent over seeds.
func descentCell(d descent, family string, n int, seeds []uint64) cell {
	key := fmt.Sprintf("%s %s λ=%g K=%d α=%g τ=%g fixed=%v unpinned=%v steps=%d n=%d seeds=%v", family, d.measure,
		d.lambda, d.k, d.alpha, d.tau, d.fixed, d.unpin, d.steps, n, seeds)
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
