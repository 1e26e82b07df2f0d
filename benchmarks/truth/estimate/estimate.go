// Package estimate holds the statistics of the truth page: estimates with 95 % intervals
// from independent values or from whole families of them, their tests against a limit,
// Holm's correction for all tests of the page, and the words of its verdicts. No other
// place writes such a word.
//
// Vocabulary: a unit is what was drawn independently: a seed, a pair of runs, a family of
// point sets. A limit is the figure that a claim prints. An estimate is decided by a limit
// if its corrected p is at most 0.05.
package estimate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Level is the probability of an error that tests and intervals allow.
const Level = 0.05

// rounds is the number of samples of a bootstrap. Its least p, 2/4001, stays below Level
// after Holm's correction for 36 rows.
const rounds = 4000

// Kind tells where an interval comes from.
type Kind int

// The kinds. None is the zero value: nothing was measured.
const (
	None      Kind = iota
	Exact          // arithmetic, without a random part
	Single         // one unit: there is no interval
	Recorded       // interval that a record holds, of a median over turns
	Student        // mean of independent values
	Bootstrap      // statistic of families, drawn with replacement
)

// String names the kind as pages print it.
func (k Kind) String() string {
	return [...]string{"no records", "exact", "one unit", "median over turns", "Student's t",
		"bootstrap of families"}[k]
}

// Estimate is a figure with its 95 % interval. The zero value has nothing measured.
type Estimate struct {
	Mid, Low, High float64
	Units          int // independent values or families
	Kind           Kind
	Values         []float64 // a value a unit, where units have values of their own

	deviation float64   // standard error of Mid
	freedom   float64   // degrees of freedom, infinite for a bootstrap
	samples   []float64 // the statistic of each bootstrap sample, ascending
	log       bool      // Mid is a geometric mean; deviation belongs to its logarithm
}

// Of returns the mean of independent values with Student's interval. A single value has
// no interval, none give the zero value. Values that are not finite are an estimate of
// nothing, too.
func Of(values []float64) Estimate {
	infinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	if len(values) == 0 || slices.ContainsFunc(values, infinite) {
		return Estimate{}
	}
	mean := mean(values)
	e := Estimate{Mid: mean, Low: mean, High: mean, Units: len(values), Kind: Single, Values: slices.Clone(values)}
	if len(values) == 1 {
		return e
	}
	square := 0.0
	for _, v := range values {
		square += (v - mean) * (v - mean)
	}
	n := float64(len(values))
	e.Kind, e.freedom, e.deviation = Student, n-1, math.Sqrt(square/(n-1)/n)
	half := Quantile(1-Level/2, e.freedom) * e.deviation
	e.Low, e.High = mean-half, mean+half
	return e
}

// OfRatios returns the geometric mean of positive ratios, its interval that of their
// logarithms. A ratio that is not positive gives the zero value.
func OfRatios(ratios []float64) Estimate {
	logs := make([]float64, len(ratios))
	for i, r := range ratios {
		if !(r > 0) {
			return Estimate{}
		}
		logs[i] = math.Log(r)
	}
	e := Of(logs)
	if e.Kind == None {
		return e
	}
	e.Mid, e.Low, e.High = math.Exp(e.Mid), math.Exp(e.Low), math.Exp(e.High)
	e.Values, e.log = slices.Clone(ratios), true
	return e
}

// OfExact returns a figure that arithmetic gives.
func OfExact(v float64) Estimate { return Estimate{Mid: v, Low: v, High: v, Units: 1, Kind: Exact} }

// OfFamilies returns a statistic of records with the interval of a bootstrap that draws
// whole families with replacement: records of one family are not independent. family has
// the family of each record, measure computes the statistic of the chosen records. One
// family gives the statistic without an interval.
func OfFamilies(family []string, seed uint64, measure func(take []int) float64) Estimate {
	var members [][]int // of each family, in order of appearance
	place := map[string]int{}
	for i, f := range family {
		k, known := place[f]
		if !known {
			k, members = len(members), append(members, nil)
			place[f] = k
		}
		members[k] = append(members[k], i)
	}
	if len(members) == 0 {
		return Estimate{}
	}
	all := make([]int, len(family))
	for i := range all {
		all[i] = i
	}
	mid := measure(all)
	e := Estimate{Mid: mid, Low: mid, High: mid, Units: len(members), Kind: Single}
	if len(members) == 1 || math.IsNaN(mid) {
		return e
	}
	r, take := rand.New(rand.NewPCG(seed, 0xb007)), make([]int, 0, 2*len(family))
	for len(e.samples) < rounds {
		take = take[:0]
		for range members {
			take = append(take, members[r.IntN(len(members))]...)
		}
		if v := measure(take); !math.IsNaN(v) {
			e.samples = append(e.samples, v)
		} else if len(e.samples) == 0 {
			return e // the statistic needs more variety than a sample has
		}
	}
	slices.Sort(e.samples)
	cut := int(Level / 2 * rounds)
	e.Kind, e.Low, e.High, e.freedom = Bootstrap, e.samples[cut], e.samples[rounds-1-cut], math.Inf(1)
	middle := mean(e.samples)
	for _, v := range e.samples {
		e.deviation += (v - middle) * (v - middle) / (rounds - 1)
	}
	e.deviation = math.Sqrt(e.deviation)
	return e
}

// P returns the two-sided probability of an estimate at least so far from the limit if the
// limit were the truth; false without an interval. An exact figure has p 0, or 1 where it
// equals the limit.
func (e Estimate) P(limit float64) (p float64, ok bool) {
	switch e.Kind {
	case Exact:
		if e.Mid == limit {
			return 1, true
		}
		return 0, true
	case Student, Recorded:
		mid := e.Mid
		if e.log {
			if limit <= 0 {
				return 0, true
			}
			mid, limit = math.Log(mid), math.Log(limit)
		}
		return farther(mid-limit, e.deviation, e.freedom), true
	case Bootstrap:
		below, above := 0, 0 // samples at the limit speak for both sides
		for _, v := range e.samples {
			if v <= limit {
				below++
			}
			if v >= limit {
				above++
			}
		}
		return min(1, 2*float64(min(below, above)+1)/float64(len(e.samples)+1)), true
	}
	return 1, false
}

// DifferenceP returns the two-sided probability of so large a difference of two
// independent estimates (Welch), false where one of them has no interval.
func DifferenceP(a, b Estimate) (p float64, ok bool) {
	if a.Kind == Exact && b.Kind == Exact {
		return a.P(b.Mid)
	}
	if a.Kind < Recorded || b.Kind < Recorded || a.log != b.log {
		return 1, false
	}
	x, y := a.Mid, b.Mid
	if a.log {
		x, y = math.Log(x), math.Log(y)
	}
	va, vb := a.deviation*a.deviation, b.deviation*b.deviation
	freedom := math.Inf(1)
	if rest := va*va/a.freedom + vb*vb/b.freedom; rest > 0 {
		freedom = (va + vb) * (va + vb) / rest
	}
	return farther(x-y, math.Sqrt(va+vb), freedom), true
}

// Holm returns the p of each test after Holm's correction for all of them.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	corrected, most := make([]float64, len(p)), 0.0
	for k, i := range order {
		most = max(most, min(1, float64(len(p)-k)*p[i]))
		corrected[i] = most
	}
	return corrected
}

func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}
