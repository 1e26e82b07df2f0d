package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// seeds are those of the paper's protocol.
var seeds = []uint64{42, 123, 456, 789, 999}

// studentT holds the 97.5 % quantiles of Student's t for 1, 2, ... degrees of
// freedom.
var studentT = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262}

// interval returns the mean of values and half the width of its 95 % interval
// after Student, 0 for a single value. For up to ten values.
func interval(values []float64) (mean, half float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	if len(values) < 2 {
		return mean, 0
	}
	square := 0.0
	for _, v := range values {
		square += (v - mean) * (v - mean)
	}
	return mean, studentT[len(values)-2] * math.Sqrt(square/(n-1)/n)
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
		v, ok := r.Values[name]
		if !ok {
			return ""
		}
		return fmt.Sprintf(format+" ± "+strings.Replace(format, "+", "", 1), scale*v, scale*r.Values[name+"_ci"])
	}}
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
