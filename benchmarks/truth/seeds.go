package main

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"entropipe/benchmarks/truth/estimate"
)

// paperSeeds are those of the paper's protocol.
var paperSeeds = []uint64{42, 123, 456, 789, 999}

// seeds are those of this run, from --seeds. Experiments draw from nothing else.
var seeds = paperSeeds

// fewSeeds are the two that quick runs take.
func fewSeeds() []uint64 { return seeds[:min(2, len(seeds))] }

// freshSeeds are those of the committed run beside that of the paper's seeds.
var freshSeeds = []uint64{7, 77, 777, 7777, 77777}

// firstDraw is the seed of the first of many sets of points that are drawn beside one
// another: 0 for the paper's seeds and for the first of them, far from that and from each
// other for any others.
func firstDraw() uint64 { return firstDrawOf(seeds) }

func firstDrawOf(seeds []uint64) uint64 {
	if slices.Equal(seeds, paperSeeds) || slices.Equal(seeds, paperSeeds[:1]) {
		return 0
	}
	h := fnv.New64a()
	for _, s := range seeds {
		fmt.Fprintln(h, s)
	}
	return h.Sum64() >> 24 << 10
}

// interval returns the mean of values and half the width of its 95 % interval
// after Student, 0 for a single value.
func interval(values []float64) (mean, half float64) {
	if e := estimate.Of(values); e.Kind == estimate.Student {
		return e.Mid, e.High - e.Mid
	}
	return meanOf(values), 0
}

// add puts the mean of a measure over seeds into the record as name, half of its
// interval as name_ci, and what each seed gave as name_SEED.
func (r *record) add(name string, seeds []uint64, values []float64) {
	if r.Values == nil {
		r.Values = map[string]float64{}
	}
	r.Values[name], r.Values[name+"_ci"] = interval(values)
	for k, s := range seeds {
		r.Values[fmt.Sprintf("%s_%d", name, s)] = values[k]
	}
}

// overSeeds returns a column of a mean with its interval, both times scale.
func overSeeds(head, name, format string, scale float64) column {
	return column{Head: head, Text: func(r *record) string {
		if _, ok := r.Values[name]; !ok {
			return ""
		}
		return r.meanText(name, format, scale)
	}}
}

// meanText writes a mean with half of its interval, and the value of one seed alone without.
func (r *record) meanText(name, format string, scale float64) string {
	v, half := scale*r.Values[name], scale*r.Values[name+"_ci"]
	if half == 0 {
		return fmt.Sprintf(format, v)
	}
	return fmt.Sprintf(format+" ± "+strings.Replace(format, "+", "", 1), v, half)
}

// squaredCorrelation is Pearson's, NaN where one of the two does not vary.
func squaredCorrelation(a, b []float64) float64 {
	ma, _ := interval(a)
	mb, _ := interval(b)
	var ab, aa, bb float64
	for k := range a {
		ab, aa, bb = ab+(a[k]-ma)*(b[k]-mb), aa+(a[k]-ma)*(a[k]-ma), bb+(b[k]-mb)*(b[k]-mb)
	}
	return ab * ab / (aa * bb)
}

// rankCorrelation is Spearman's, for values without ties.
func rankCorrelation(a, b []float64) float64 {
	rank := func(v []float64) []float64 {
		order := make([]int, len(v))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(v[i], v[j]) })
		r := make([]float64, len(v))
		for k, i := range order {
			r[i] = float64(k)
		}
		return r
	}
	sum, n := 0.0, float64(len(a))
	rb := rank(b)
	for i, v := range rank(a) {
		sum += (v - rb[i]) * (v - rb[i])
	}
	return 1 - 6*sum/(n*(n*n-1))
}
