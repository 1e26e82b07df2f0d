package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"entropipe/algos/delaunay"
	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
	"entropipe/benchmarks/rig"
	"entropipe/benchmarks/truth/estimate"
)

// costAim is the error that a prediction should not exceed for 95 % of the frames, in %.
const costAim = 10

var costs = &experiment{
	eachSeed: true,
	name:     "cost",
	title:    "Does the entropy predict what a frame costs?",
	claim: "The paper holds the entropy for the measure of an operator's work. Here a stream mixes made clouds of " +
		"several families, 500 to 120,000 points, with scans and drawings. Half of the frames fit a model of the " +
		"operator's time, the other half judges it: the error of the prediction that 95 % of the frames do not " +
		"exceed. Models are polynomials for the logarithm of the time: in the logarithm of n; in that and f, the F " +
		"of 512 points as table `entropy` has it; in that and the logarithm of h, the size of the answer, which is " +
		"known too late. *Again* is the floor: the same frames timed twice. The time of a frame is the least of some " +
		"runs, each with its data out of the caches.",
	timed: true,
	cells: costCells,
	columns: rig.Table[*record]{
		text("operator", "operator"), text("predicted from", "model"), value("frames", "frames", "%.0f"),
		value("ms, median", "ms", "%.3f"), overSeeds("error, p50, %", "p50", "%.1f", 1),
		overSeeds("error, p95, %", "p95", "%.1f", 1), value("f itself, ms", "f_ms", "%.3f"),
	},
	verdict: costVerdict,
}

// costOperator is an operator whose time is predicted, and the problem whose F predicts it.
type costOperator struct {
	name    string
	problem entropy.Problem
	space   bool
	repeats int
	// make returns a function that runs the operator, with memory of its own, and returns the size
	// of its answer.
	make func() func(geom.Cloud[float32]) int
}

var costOperators = []costOperator{
	{"hull2d", entropy.Hull2D, false, 9, func() func(geom.Cloud[float32]) int {
		var h hull.Hull2D[float32]
		var v []int32
		return func(c geom.Cloud[float32]) int { v = h.Append(v[:0], c); return len(v) }
	}},
	{"maxima2d", entropy.Maxima2D, false, 9, func() func(geom.Cloud[float32]) int {
		var m maxima.Maxima[float32]
		var v []int32
		return func(c geom.Cloud[float32]) int { v = m.Append2D(v[:0], c); return len(v) }
	}},
	{"maxima3d", entropy.Maxima3D, true, 9, func() func(geom.Cloud[float32]) int {
		var m maxima.Maxima[float32]
		var v []int32
		return func(c geom.Cloud[float32]) int { v = m.Append3D(v[:0], c); return len(v) }
	}},
	{"hull3d", entropy.Hull3D, true, 5, func() func(geom.Cloud[float32]) int {
		var h hull.Hull3D[float32]
		var v, f []int32
		return func(c geom.Cloud[float32]) int { v, f, _ = h.Append(v[:0], f[:0], c); return len(v) }
	}},
	{"delaunay2d", entropy.Hull2D, false, 3, func() func(geom.Cloud[float32]) int {
		d := delaunay.Triangulator[float32]{NoHalfedges: true}
		return func(c geom.Cloud[float32]) int { return len(d.Triangulate(c).Triangles) }
	}},
}

func costCells(how effort) (cells []cell) {
	sizes, operators := []int{500, 2000, 8000, 30_000, 120_000}, costOperators
	if how == quick {
		sizes, operators = []int{200, 500}, operators[:1]
	}
	for _, o := range operators {
		if how == quick {
			o.repeats = 1
		}
		key := fmt.Sprintf("operator=%s sizes=%v repeats=%d seed=%d", o.name, sizes, o.repeats, seeds[0])
		cells = append(cells, cell{key, func(ctx context.Context) ([]record, error) {
			frames, err := costStream(o.space, sizes, how)
			if err != nil {
				return nil, err
			}
			return costRun(ctx, o, frames)
		}})
	}
	return cells
}

// costStream mixes frames, in a random order. Sizes are drawn around the given ones, so that no
// two frames have the same.
func costStream(space bool, sizes []int, how effort) ([]geom.Cloud[float32], error) {
	r := rand.New(rand.NewPCG(seeds[0], 29))
	makers := []func(int, uint64) geom.Cloud[float32]{geomtest.Square[float32], geomtest.Disk[float32],
		geomtest.Gauss[float32], geomtest.Parabola[float32], geomtest.Strokes[float32], ring}
	if space {
		makers = []func(int, uint64) geom.Cloud[float32]{geomtest.Cube[float32], geomtest.Gauss3[float32],
			geomtest.Lidar[float32], geomtest.Octant[float32], geomtest.Ridge[float32]}
	}
	var frames []geom.Cloud[float32]
	for _, size := range sizes {
		for _, f := range makers {
			for range 6 {
				frames = append(frames, f(int(float64(size)*(.7+.6*r.Float64())), r.Uint64()>>24))
			}
		}
	}
	if how == whole {
		real, err := costReal(space)
		if err != nil {
			return nil, err
		}
		frames = append(frames, real...)
	}
	r.Shuffle(len(frames), func(i, j int) { frames[i], frames[j] = frames[j], frames[i] })
	return frames, nil
}

// costReal reads scans, and drawings for operators of the plane.
func costReal(space bool) ([]geom.Cloud[float32], error) {
	scans, err := kittiDrive()
	if err != nil {
		return nil, err
	}
	sweeps, err := nuscenesSweeps()
	if err != nil {
		return nil, err
	}
	frames := append(scans, sweeps...)
	if space {
		return frames, nil
	}
	strokes, err := drawings(40)
	return append(frames, strokes...), err
}

// costModel is what times are predicted from.
type costModel struct {
	name  string
	terms func(n, f, h float64) []float64 // n and f in nats, h vertices; at least 1, 0, 0
}

// The models are polynomials: of third degree in the logarithm of n, of second degree in the two
// features of the others.
var costModels = []costModel{
	{"n", func(n, f, h float64) []float64 {
		l := math.Log(n)
		return []float64{1, l, l * l, l * l * l}
	}},
	{"n and f", func(n, f, h float64) []float64 { return secondDegree(math.Log(n), f) }},
	{"n and h", func(n, f, h float64) []float64 { return secondDegree(math.Log(n), math.Log(1+h)) }},
}

func secondDegree(x, y float64) []float64 { return []float64{1, x, x * x, y, y * y, x * y} }

// costAgain is the second measurement in place of a model.
const costAgain = "again"

// measured is a frame with the features of its models and two times, in ms.
type measured struct{ n, f, h, first, second, cost float64 }

func costRun(ctx context.Context, o costOperator, frames []geom.Cloud[float32]) ([]record, error) {
	operate := o.make()
	s := entropy.Surrogate[float32]{Problem: o.problem, Tau: 5e-4}
	all := make([]measured, len(frames))
	for k, c := range frames {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		m := &all[k]
		m.n, m.h = float64(c.Len()), float64(operate(c))
		m.cost = leastTimes(1, func() { m.f = s.Estimate(c, 512, 64).F })[0]
	}
	// Two passes over the stream: both times of a frame are far apart, as in a stream.
	for k, c := range frames {
		all[k].first = leastTimes(o.repeats, func() { operate(c) })[0]
	}
	for k, c := range frames {
		all[k].second = leastTimes(o.repeats, func() { operate(c) })[0]
	}
	half := len(all) / 2
	learn, test := all[:half], all[half:]
	var records []record
	for _, model := range costModels {
		weights := fit(learn, model)
		errors := make([]float64, len(test))
		for k, m := range test {
			errors[k] = 100 * math.Abs(predict(weights, model, m)/m.first-1)
		}
		records = append(records, costRecord(o.name, model.name, test, errors))
	}
	errors := make([]float64, len(test))
	for k, m := range test {
		errors[k] = 100 * math.Abs(m.second/m.first-1)
	}
	return append(records, costRecord(o.name, costAgain, test, errors)), nil
}

func costRecord(operator, model string, test []measured, errors []float64) record {
	var ms, cost []float64
	for _, m := range test {
		ms, cost = append(ms, m.first), append(cost, m.cost)
	}
	r := record{Text: map[string]string{"operator": operator, "model": model},
		Values: map[string]float64{"frames": float64(len(test)), "ms": quantile(ms, .5), "p50": quantile(errors, .5),
			"p95": quantile(errors, .95)}}
	if model == "n and f" {
		r.Values["f_ms"] = quantile(cost, .5)
	}
	return r
}

// predict returns the time of m that a model tells, in ms.
func predict(weights []float64, model costModel, m measured) float64 {
	t := 0.0
	for k, term := range model.terms(m.n, m.f, m.h) {
		t += weights[k] * term
	}
	return math.Exp(t)
}

// fit returns the weights of the terms whose sum is next to the logarithms of times: the normal
// equations, with terms scaled to unit length and a ridge of 1e-9.
func fit(frames []measured, model costModel) []float64 {
	size := len(model.terms(2, 0, 1))
	scale, rows := make([]float64, size), make([][]float64, len(frames))
	for i, m := range frames {
		rows[i] = model.terms(m.n, m.f, m.h)
		for k, term := range rows[i] {
			scale[k] += term * term
		}
	}
	a := make([][]float64, size)
	for j := range a {
		a[j] = make([]float64, size+1)
		for i, row := range rows {
			x := row[j] / math.Sqrt(scale[j])
			for k := range size {
				a[j][k] += x * row[k] / math.Sqrt(scale[k])
			}
			a[j][size] += x * math.Log(frames[i].first)
		}
		a[j][j] += 1e-9
	}
	weights := solve(a)
	for k := range weights {
		weights[k] /= math.Sqrt(scale[k])
	}
	return weights
}

// solve solves a linear system whose right side is the last column, by elimination with pivots. It
// overwrites a.
func solve(a [][]float64) []float64 {
	n := len(a)
	for j := range n {
		best := j
		for i := j + 1; i < n; i++ {
			if math.Abs(a[i][j]) > math.Abs(a[best][j]) {
				best = i
			}
		}
		a[j], a[best] = a[best], a[j]
		for i := j + 1; i < n; i++ {
			by := a[i][j] / a[j][j]
			for k := j; k <= n; k++ {
				a[i][k] -= by * a[j][k]
			}
		}
	}
	x := make([]float64, n)
	for j := n - 1; j >= 0; j-- {
		x[j] = a[j][n]
		for k := j + 1; k < n; k++ {
			x[j] -= a[j][k] * x[k]
		}
		x[j] /= a[j][j]
	}
	return x
}

func costVerdict(records []record) string {
	var b strings.Builder
	for _, group := range byText(records, "operator") {
		fmt.Fprintf(&b, "* %s, error of 95 %% of the frames:", group[0].Text["operator"])
		for k, r := range group {
			if k > 0 {
				b.WriteString(";")
			}
			if r.Text["model"] == costAgain {
				fmt.Fprintf(&b, " the same frames again %.0f %%", r.Values["p95"])
				continue
			}
			fmt.Fprintf(&b, " from %s %.0f %%", r.Text["model"], r.Values["p95"])
			if r.Text["model"] == "n and f" {
				words, _, _ := estimate.Verdicts([]estimate.Estimate{estimate.Of(ofSeeds(&r, "p95"))},
					[]estimate.Claim{{Sense: estimate.AtMost, Limit: costAim}})
				fmt.Fprintf(&b, " (an error of at most %d %%: %s)", costAim, words[0])
			}
		}
		b.WriteString(".\n")
	}
	return b.String()
}

// ofSeeds returns what each seed gave.
func ofSeeds(r *record, name string) (values []float64) {
	for _, s := range seeds {
		if v, ok := r.Values[fmt.Sprintf("%s_%d", name, s)]; ok {
			values = append(values, v)
		}
	}
	if values == nil {
		values = []float64{r.Values[name]}
	}
	return values
}
