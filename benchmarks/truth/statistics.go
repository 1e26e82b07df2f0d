package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"entropipe/benchmarks/truth/estimate"
)

// fitLine fits y to x by least squares: R², which is the squared correlation, and
// the line. A constant column gives 0.
func fitLine(x, y []float64) (r2, slope, offset float64) {
	mx, my := meanOf(x), meanOf(y)
	var sxx, sxy, syy float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
		syy += (y[i] - my) * (y[i] - my)
	}
	if sxx <= 0 || syy <= 0 {
		return 0, 0, my
	}
	return sxy * sxy / (sxx * syy), sxy / sxx, my - sxy/sxx*mx
}

func meanOf(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / max(float64(len(v)), 1)
}

// rootMeanSquare is that of the differences.
func rootMeanSquare(a, b []float64) float64 {
	square := 0.0
	for i := range a {
		square += (a[i] - b[i]) * (a[i] - b[i]) / float64(len(a))
	}
	return math.Sqrt(square)
}

// quantile is that of v, between its elements the nearest below.
func quantile(v []float64, p float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[min(int(p*float64(len(v))), len(v)-1)]
}

// bootstrap is the middle 95 of a hundred parts of a statistic of samples with
// replacement: measure is told which of n to take.
func bootstrap(n int, seed uint64, measure func(take []int) float64) (lo, hi float64) {
	const rounds = 1000
	r := rand.New(rand.NewPCG(seed, 0xb007))
	all, take := make([]float64, rounds), make([]int, n)
	for k := range all {
		for i := range take {
			take[i] = r.IntN(n)
		}
		all[k] = measure(take)
	}
	slices.Sort(all)
	return all[rounds/40], all[rounds-rounds/40-1]
}

// bootstrapR2 is the interval of R² over samples of the pairs.
func bootstrapR2(x, y []float64) (lo, hi float64) {
	a, b := make([]float64, len(x)), make([]float64, len(x))
	return bootstrap(len(x), uint64(len(x)), func(take []int) float64 {
		for i, j := range take {
			a[i], b[i] = x[j], y[j]
		}
		r2, _, _ := fitLine(a, b)
		return r2
	})
}

// ranksOf returns the place of every value in sorted order; ties share theirs.
func ranksOf(v []float64) []float64 {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(v[i], v[j]) })
	ranks := make([]float64, len(v))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && v[order[to]] == v[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return ranks
}

// spearman is the correlation of ranks, from -1 to 1.
func spearman(x, y []float64) float64 {
	r2, slope, _ := fitLine(ranksOf(x), ranksOf(y))
	return math.Copysign(math.Sqrt(r2), slope)
}

// within takes from every value the mean of its group, so that only what varies
// inside groups is left.
func within(v []float64, group []string) []float64 {
	sum, count := map[string]float64{}, map[string]float64{}
	for i, g := range group {
		sum[g] += v[i]
		count[g]++
	}
	out := make([]float64, len(v))
	for i, g := range group {
		out[i] = v[i] - sum[g]/count[g]
	}
	return out
}

// pairedT tests differences: t and its two-sided p after Student. Equal differences other
// than 0 give p = 0.
func pairedT(d []float64) (t, p float64) {
	mean, half := interval(d)
	if half == 0 {
		if mean == 0 {
			return 0, 1
		}
		return math.Copysign(math.Inf(1), mean), 0
	}
	freedom := float64(len(d) - 1)
	t = mean / (half / estimate.Quantile(1-estimate.Level/2, freedom))
	return t, estimate.TwoSided(t, freedom)
}

// column of a group of records: the values of one name.
func valuesOf(records []record, name string) []float64 {
	v := make([]float64, len(records))
	for k := range records {
		v[k] = records[k].Values[name]
	}
	return v
}

// grouped splits records by a text, in the order in which it first appears.
func grouped(records []record, name string) (names []string, groups map[string][]record) {
	groups = map[string][]record{}
	for _, r := range records {
		g := r.Text[name]
		if groups[g] == nil {
			names = append(names, g)
		}
		groups[g] = append(groups[g], r)
	}
	return names, groups
}
