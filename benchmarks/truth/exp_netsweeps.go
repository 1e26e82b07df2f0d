package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"entropipe/algos/geom"
	"entropipe/benchmarks/rig"
	"entropipe/benchmarks/truth/plot"
	"entropipe/preprocess/net"
	"entropipe/preprocess/train"
)

var netSweeps = &experiment{
	eachSeed: true, seedBySeed: true,
	name:  "netsweeps",
	title: "Anchors, temperature and weight of a trained network",
	claim: "The paper shows a heat map of its speed-up over the number of anchors K and alpha, with a robust window " +
		"around K = 16 and α = 10, and a curve over λ with a sweet spot at 0.1. Here networks of the square are " +
		"trained with H_diff and σ = 0.1 on a coarse grid: α stays constant in the map, and falls from 10 to 5, as " +
		"printed, on the curve of λ, which has K = 16. The trainings are those of [the other page](tradeoff.md), and " +
		"so are the tests, on whole frames of 10,000 points.",
	cells: netSweepCells,
	columns: rig.Table[*record]{
		text("what turns", "knob"), value("K", "k", "%.0f"), value("α", "alpha", "%g"), value("λ", "lambda", "%g"),
		value("H before, nats", "before", "%.3f"), overSeeds("fall, %", "fall", "%.1f", 100),
		overSeeds("hull error, %", "error", "%.3f", 100), overSeeds("times the printed 0.2 %", "times", "%.2f", 1),
		value("epochs", "epochs", "%.0f"), overSeeds("H_diff at the end", "hdiff", "%.3f", 1),
	},
	verdict: netSweepVerdict,
}

const (
	mapKnob    = "K and α"
	lambdaKnob = "λ"
)

// netSettings are the settings of the map and of the curve.
func netSettings(how effort) (all []record) {
	add := func(knob string, k, alpha, lambda float64) {
		all = append(all, record{Text: map[string]string{"knob": knob},
			Values: map[string]float64{"k": k, "alpha": alpha, "lambda": lambda}})
	}
	for _, lambda := range []float64{.001, .01, .1, 1} {
		add(lambdaKnob, 16, 0, lambda)
	}
	for _, k := range []float64{4, 16, 64} {
		for _, alpha := range []float64{1, 10, 100} {
			add(mapKnob, k, alpha, .1)
		}
	}
	if how == quick {
		all = []record{all[2], all[3], all[4], all[7]}
	}
	return all
}

func netSweepCells(how effort) (cells []cell) {
	size := tradeoffSize{10000, 2, lessonOf(how)}
	if how == quick {
		size.points = 200
	}
	f := planarFamilies[0]
	for _, r := range netSettings(how) {
		key := fmt.Sprintf("%s %s K=%g α=%g λ=%g n=%d tests=%d %s seed=%d", f.name, r.Text["knob"], r.Values["k"],
			r.Values["alpha"], r.Values["lambda"], size.points, size.tests, size.lesson.key(), seeds[0])
		cells = append(cells, cell{key, func(ctx context.Context) ([]record, error) {
			return netSweep(ctx, f, r, size)
		}})
	}
	return cells
}

func netSweep(ctx context.Context, f planar, r record, size tradeoffSize) ([]record, error) {
	l := asPrinted(f, size.points, seeds[0], size.lesson)
	l.regulariser = train.HDiff
	l.anchors, l.alpha, l.lambda = int(r.Values["k"]), r.Values["alpha"], r.Values["lambda"]
	n, t, err := l.run(ctx)
	if err != nil {
		return nil, err
	}
	frames, before := testFrames(f, size)
	mover := net.Mover[float32]{Net: n}
	setting := fmt.Sprintf("K=%g α=%g λ=%g", r.Values["k"], r.Values["alpha"], r.Values["lambda"])
	out := record{Text: map[string]string{"knob": r.Text["knob"], "family": f.name, "setting": setting},
		Values: map[string]float64{"k": r.Values["k"], "alpha": r.Values["alpha"], "lambda": r.Values["lambda"],
			"hdiff": t.Best().Regulariser}}
	out.putTest(testOf(frames, before, func(_ int, c geom.Cloud[float32]) geom.Cloud[float32] { return mover.Move(c) }))
	l.put(&out, t)
	return []record{out}, nil
}

func netSweepVerdict(records []record) string {
	var b strings.Builder
	least, most := math.Inf(1), math.Inf(-1)
	tolerable, settings, best := 0, 0, math.Inf(-1)
	for _, r := range records {
		v := r.Values
		settings++
		if r.Text["knob"] == mapKnob {
			least, most = min(least, v["fall"]), max(most, v["fall"])
		} else {
			fmt.Fprintf(&b, "* λ = %g: the entropy falls by %s %% at an error of %s %%, %.1f times the printed "+
				"0.2 %%.\n", v["lambda"], r.meanText("fall", "%.1f", 100), r.meanText("error", "%.3f", 100), v["times"])
		}
		if v["error"] <= printedError {
			tolerable, best = tolerable+1, max(best, v["fall"])
		}
	}
	if most >= least {
		fmt.Fprintf(&b, "\nOver the map the fall is between %.1f and %.1f %%. ", 100*least, 100*most)
	}
	fmt.Fprintf(&b, "Of %d settings %d have a mean error of at most 0.2 %%", settings, tolerable)
	if tolerable > 0 {
		fmt.Fprintf(&b, "; the largest fall among them is %.1f %%, where 68 %% are printed", 100*best)
	}
	b.WriteString(".\n\nWhy they differ: the number of anchors and their sharpness say how the loss sees a cloud, " +
		"not " +
		"where its hull is. λ sets how far points may go for the loss. The paper's map has no figures to compare " +
		"with, " +
		"only its window.")
	return b.String()
}

// heatPicture is the map of K and alpha.
func heatPicture(records []record) string {
	var ks, alphas []float64
	at := map[[2]float64]*record{}
	for i := range records {
		r := &records[i]
		if r.Text["knob"] != mapKnob {
			continue
		}
		at[[2]float64{r.Values["k"], r.Values["alpha"]}] = r
		ks, alphas = insert(ks, r.Values["k"]), insert(alphas, r.Values["alpha"])
	}
	if len(at) == 0 {
		return ""
	}
	var tables []plot.Heat
	for _, m := range []struct{ name, title string }{{"fall", "Fall of the entropy, %"},
		{"error", "Error of the hull, %"}} {
		t := plot.Heat{Title: m.title, XLabel: "α", YLabel: "anchors K"}
		for _, a := range alphas {
			t.X = append(t.X, fmt.Sprintf("%g", a))
		}
		for _, k := range ks {
			t.Y = append(t.Y, fmt.Sprintf("%g", k))
			var line []float64
			for _, a := range alphas {
				v := math.NaN()
				if r := at[[2]float64{k, a}]; r != nil {
					v = 100 * r.Values[m.name]
				}
				line = append(line, v)
			}
			t.Values = append(t.Values, line)
		}
		tables = append(tables, t)
	}
	return plot.Heats("Fall of the entropy and error over anchors and alpha", tables, "%.2f")
}

// insert adds a value to an ascending list unless it is there.
func insert(list []float64, v float64) []float64 {
	for i, w := range list {
		if w == v {
			return list
		}
		if w > v {
			return append(list[:i], append([]float64{v}, list[i:]...)...)
		}
	}
	return append(list, v)
}

// lambdaPicture is the curve of lambda.
func lambdaPicture(records []record) string {
	fall, bad := plot.Series{Name: "network", Line: true}, plot.Series{Name: "network", Line: true}
	for _, r := range sortedBy(records, "lambda") {
		if r.Text["knob"] != lambdaKnob {
			continue
		}
		for _, s := range []struct {
			to   *plot.Series
			name string
		}{{&fall, "fall"}, {&bad, "error"}} {
			s.to.X, s.to.Y = append(s.to.X, r.Values["lambda"]), append(s.to.Y, 100*r.Values[s.name])
		}
	}
	if len(fall.X) == 0 {
		return ""
	}
	x := plot.Axis{Label: "λ", Scale: plot.Log}
	printed := plot.Series{Name: "printed bound, 0.2 %", X: []float64{fall.X[0], fall.X[len(fall.X)-1]},
		Y: []float64{100 * printedError, 100 * printedError}, Line: true, Dashed: true}
	return plot.Panels("Fall of the entropy and error over lambda", []plot.Panel{
		{Title: "Fall of the entropy", X: x, Y: plot.Axis{Label: "%"}, Series: []plot.Series{fall}},
		{Title: "Error of the hull", X: x, Y: plot.Axis{Label: "%", Scale: plot.Log},
			Series: []plot.Series{bad, printed}}})
}
