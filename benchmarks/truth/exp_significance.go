package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"entropipe/benchmarks/rig"
	"entropipe/benchmarks/truth/estimate"
)

var significance = &experiment{
	name:  "significance",
	title: "What five seeds can tell",
	claim: "The paper tests with paired t-tests over five seeds (42, 123, 456, 789, 999) and speaks of p-values, " +
		"but prints none, nor whether ± is a deviation, an error, or an interval. Here the protocol does what it " +
		"says: the entropy left after descent on F and on H_diff (λ = 0.01 and 0.1, at their settings otherwise), " +
		"on the same clouds, paired by seed: t with 4 degrees of freedom, the interval of the mean difference, the " +
		"same by bootstrap, the exact test by signs, and p after Holm's correction for as many comparisons as there " +
		"are. The last lines ask of the protocol itself how often an interval of as many values as there are seeds " +
		"that claims 95 % holds the mean; each seed draws 4,000 such intervals a distribution.",
	cells: significanceCells,
	rows:  significanceRows,
	columns: rig.Table[*record]{
		text("what", "what"), value("mean difference, nats", "mean", "%+.3f"),
		{Head: "interval after Student", Text: span("t_lo", "t_hi")},
		{Head: "by bootstrap", Text: span("b_lo", "b_hi")},
		value("t", "t", "%+.1f"), value("p", "p", "%.2g"), value("p after Holm", "holm", "%.2g"),
		value("p by signs", "signs", "%.3f"),
		overSeeds("Student holds the mean, %", "covers_t", "%.2f", 1), overSeeds("bootstrap, %", "covers_b", "%.2f", 1),
	},
	verdict: significanceVerdict,
}

// span writes an interval.
func span(lo, hi string) func(r *record) string {
	return func(r *record) string {
		if _, ok := r.Values[lo]; !ok {
			return ""
		}
		return rig.Interval{Low: r.Values[lo], High: r.Values[hi]}.Span("%+.3f")
	}
}

func significanceCells(how effort) (cells []cell) {
	n, steps, rounds := 1000, 150, 4000
	families := []string{"uniform", "parabola", "ring", "circle"}
	if how == quick {
		n, steps, rounds, families = 30, 3, 10, families[2:3]
	}
	for _, f := range families {
		for _, lambda := range []float64{1e-2, 1e-1} {
			key := fmt.Sprintf("%s λ=%g F against H_diff n=%d steps=%d seeds=%v", f, lambda, n, steps, seeds)
			cells = append(cells, cell{key, func(context.Context) ([]record, error) {
				ours := descend(papers(measureF, lambda, steps), f, n, seeds)
				theirs := descend(papers(measureBall, lambda, steps), f, n, seeds)
				r := record{Text: map[string]string{"what": fmt.Sprintf("%s, λ %g: H left by F less H left by H_diff",
					f, lambda)}}
				d := make([]float64, len(seeds))
				for k, s := range seeds {
					at := fmt.Sprintf("after_%d", s)
					d[k] = ours.Values[at] - theirs.Values[at]
				}
				r.add("difference", seeds, d)
				r.Values["error_f"], r.Values["error_hdiff"] = ours.Values["err"], theirs.Values["err"]
				return []record{r}, nil
			}})
		}
	}
	for _, kind := range []string{"normal", "exponential", "rare"} {
		for _, seed := range seeds {
			key := fmt.Sprintf("coverage %s values=%d rounds=%d seed=%d", kind, len(seeds), rounds, seed)
			cells = append(cells, cell{key, func(context.Context) ([]record, error) {
				return []record{coverage(kind, rounds, seed)}, nil
			}})
		}
	}
	return cells
}

// coverageOf names a distribution's intervals.
func coverageOf(kind string) string { return "intervals of five values, " + kind }

// coverage counts how often intervals of as many values as there are seeds hold the mean.
func coverage(kind string, rounds int, seed uint64) record {
	r := rand.New(rand.NewPCG(seed, 9))
	draw, mean := r.NormFloat64, 0.0
	switch kind {
	case "exponential":
		draw, mean = r.ExpFloat64, 1
	case "rare": // one in ten is large
		draw, mean = func() float64 {
			if r.IntN(10) == 0 {
				return 10 + r.NormFloat64()
			}
			return r.NormFloat64()
		}, 1
	}
	byT, byBootstrap := 0.0, 0.0
	v, some := make([]float64, len(seeds)), make([]float64, len(seeds))
	for round := range rounds {
		for k := range v {
			v[k] = draw()
		}
		if m, half := interval(v); math.Abs(m-mean) <= half {
			byT += 100 / float64(rounds)
		}
		lo, hi := bootstrap(len(v), seed<<20+uint64(round), func(take []int) float64 {
			for i, j := range take {
				some[i] = v[j]
			}
			return meanOf(some)
		})
		if lo <= mean && mean <= hi {
			byBootstrap += 100 / float64(rounds)
		}
	}
	return record{Text: map[string]string{"what": coverageOf(kind)},
		Values: map[string]float64{"covers_t": byT, "covers_b": byBootstrap, "seed": float64(seed)}}
}

func significanceRows(records []record) (rows []record) {
	for _, r := range records {
		if _, ok := r.Values["covers_t"]; ok {
			continue
		}
		row := record{Text: r.Text, Values: map[string]float64{}}
		rows = append(rows, row)
		var d, some []float64
		for _, s := range seeds {
			d = append(d, r.Values[fmt.Sprintf("difference_%d", s)])
		}
		some = make([]float64, len(d))
		mean, half := interval(d)
		row.Values["mean"], row.Values["t_lo"], row.Values["t_hi"] = mean, mean-half, mean+half
		row.Values["b_lo"], row.Values["b_hi"] = bootstrap(len(d), 1, func(take []int) float64 {
			for i, j := range take {
				some[i] = d[j]
			}
			return meanOf(some)
		})
		row.Values["t"], row.Values["p"] = pairedT(d)
		row.Values["signs"] = bySigns(d)
	}
	holm(rows)
	return append(rows, coverageRows(records)...)
}

// coverageRows has a line for each distribution, a mean over seeds.
func coverageRows(records []record) (rows []record) {
	whats, of := grouped(records, "what")
	for _, what := range whats {
		if _, ok := of[what][0].Values["covers_t"]; ok {
			row := record{Text: map[string]string{"what": what}}
			row.add("covers_t", nil, valuesOf(of[what], "covers_t"))
			row.add("covers_b", nil, valuesOf(of[what], "covers_b"))
			rows = append(rows, row)
		}
	}
	return rows
}

// bySigns is the exact two-sided p of the mean difference when each could as well
// have the other sign.
func bySigns(d []float64) float64 {
	sum, as := 0.0, 0
	for _, v := range d {
		sum += v
	}
	for signs := range 1 << len(d) {
		other := 0.0
		for k, v := range d {
			if signs>>k&1 == 1 {
				v = -v
			}
			other += v
		}
		if math.Abs(other) >= math.Abs(sum)-1e-12 {
			as++
		}
	}
	return float64(as) / float64(int(1)<<len(d))
}

// holm corrects p of all comparisons.
func holm(rows []record) {
	var tested []int
	var p []float64
	for k, r := range rows {
		if v, ok := r.Values["p"]; ok {
			tested, p = append(tested, k), append(p, v)
		}
	}
	for k, corrected := range estimate.Holm(p) {
		rows[tested[k]].Values["holm"] = corrected
	}
}

func significanceVerdict(records []record) string {
	tests, plain, corrected, signs, better := 0, 0, 0, 0, 0
	leastSigns := 1.0
	var covers []string
	for _, r := range significanceRows(records) {
		if _, ok := r.Values["covers_t"]; ok {
			covers = append(covers, fmt.Sprintf("%s: %.1f %% after Student, %.1f %% by bootstrap",
				strings.TrimPrefix(r.Text["what"], "intervals of five values, "), r.Values["covers_t"],
				r.Values["covers_b"]))
			continue
		}
		tests++
		leastSigns = min(leastSigns, r.Values["signs"])
		if r.Values["p"] < .05 {
			plain++
		}
		if r.Values["holm"] < .05 {
			corrected++
			if r.Values["mean"] < 0 {
				better++
			}
		}
		if r.Values["signs"] < .05 {
			signs++
		}
	}
	return fmt.Sprintf("Of %d comparisons %d are below p = 0.05 by the t-test, %d after Holm's correction (in %d of "+
		"these F leaves less entropy), and %d by signs, which with five pairs cannot go below %.4f, whatever the "+
		"effect (the least here is %.4f): five seeds never suffice for a test without assumptions. Intervals that "+
		"claim 95 %% hold the mean so often: %s. So the tables here give Student's intervals for means over five "+
		"seeds, and bootstrap only over dozens of sets or more; seeds of a training and repeated runs of one binary "+
		"are not the same kind of repetition, and a thousand of the latter say nothing about the former.",
		tests, plain, corrected, better, signs, 2/math.Pow(2, float64(len(seeds))), leastSigns,
		strings.Join(covers, "; "))
}
