package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"entropipe/benchmarks/truth/estimate"
)

// sheet is the records of all experiments, by the experiment's name.
type sheet map[string][]record

// units are the values of one figure, by what was drawn: a seed, a family, a size of a
// problem, or several of these.
type units map[string]float64

// designs are the values of a record that tell repetitions apart, beside its texts.
var designs = []string{"seed", "keys", "dim", "block", "parameter"}

// unitsOf returns a figure of the records of an experiment that have all of the texts or
// values in where, "name=value" each. A record that holds a value for each seed gives one
// unit a seed. Two figures of units with the same name were measured on the same draw.
func (s sheet) unitsOf(experiment, figure string, where ...string) units {
	found, named := units{}, map[string]bool{end: true, "setting": true, "printed": true, "curve": true}
	for _, w := range where {
		name, _, _ := strings.Cut(w, "=")
		named[name] = true
	}
	for k := range s[experiment] {
		r := &s[experiment][k]
		if !r.matches(where) {
			continue
		}
		var key []string
		for _, name := range slices.Sorted(maps.Keys(r.Text)) {
			if !named[name] {
				key = append(key, r.Text[name])
			}
		}
		for _, name := range designs {
			if v, ok := r.Values[name]; ok && !named[name] {
				key = append(key, fmt.Sprintf("%s %g", name, v))
			}
		}
		seeds := r.seedsOf(figure)
		if m := seedOfKey.FindStringSubmatch(r.Cell); m != nil && r.Values["seed"] == 0 && len(seeds) == 0 {
			key = append(key, "seed "+m[1])
		}
		for seed, v := range seeds {
			found[strings.Join(append(slices.Clone(key), "seed "+seed), ", ")] = v
		}
		if v, ok := r.Values[figure]; ok && len(seeds) == 0 {
			found[strings.Join(key, ", ")] = v
		}
	}
	return found
}

// matches reports whether the record has these texts and values.
func (r *record) matches(where []string) bool {
	for _, w := range where {
		name, want, _ := strings.Cut(w, "=")
		if text, ok := r.Text[name]; ok && text == want {
			continue
		}
		v, ok := r.Values[name]
		if !ok || strconv.FormatFloat(v, 'g', -1, 64) != want {
			return false
		}
	}
	return true
}

// seedsOf returns the values that a record holds of a figure for each seed.
func (r *record) seedsOf(figure string) map[string]float64 {
	of := map[string]float64{}
	for name, v := range r.Values {
		if seed, ok := strings.CutPrefix(name, figure+"_"); ok {
			if _, err := strconv.ParseUint(seed, 10, 64); err == nil {
				of[seed] = v
			}
		}
	}
	return of
}

// scaled returns the values times a factor.
func (u units) scaled(factor float64) units {
	out := units{}
	for k, v := range u {
		out[k] = factor * v
	}
	return out
}

// with joins two figures of the same draws.
func (u units) with(other units, join func(a, b float64) float64) units {
	out := units{}
	for k, v := range u {
		if w, ok := other[k]; ok {
			out[k] = join(v, w)
		}
	}
	return out
}

func (u units) less(other units) units {
	return u.with(other, func(a, b float64) float64 { return a - b })
}

func (u units) over(other units) units {
	return u.with(other, func(a, b float64) float64 { return a / b })
}

// values returns the values in the order of their units' names.
func (u units) values() []float64 {
	var v []float64
	for _, k := range slices.Sorted(maps.Keys(u)) {
		v = append(v, u[k])
	}
	return v
}

// bySeed averages over what shares a seed, so that the seeds are the units: families that
// were chosen by hand are no sample of anything.
func (u units) bySeed() units {
	sum, count, out := units{}, units{}, units{}
	for k, v := range u {
		last := k[strings.LastIndex(k, " ")+1:]
		sum[last] += v
		count[last]++
	}
	for last := range sum {
		out[last] = sum[last] / count[last]
	}
	return out
}

func (u units) mean() estimate.Estimate  { return estimate.Of(u.values()) }
func (u units) ratio() estimate.Estimate { return estimate.OfRatios(u.values()) }

// ofFamilies returns a statistic of two values of an experiment's records, with a
// bootstrap of families. group names the family of a record.
func (s sheet) ofFamilies(experiment string, where []string, group func(*record) string,
	x, y func(*record) float64, statistic func(x, y []float64) float64) estimate.Estimate {
	var families []string
	var xs, ys []float64
	for k := range s[experiment] {
		if r := &s[experiment][k]; r.matches(where) {
			families, xs, ys = append(families, group(r)), append(xs, x(r)), append(ys, y(r))
		}
	}
	a, b := make([]float64, 0, 2*len(xs)), make([]float64, 0, 2*len(xs))
	return estimate.OfFamilies(families, 1, func(take []int) float64 {
		a, b = a[:0], b[:0]
		for _, i := range take {
			a, b = append(a, xs[i]), append(b, ys[i])
		}
		return statistic(a, b)
	})
}

// figure returns a value of a record, for statistics of records.
func figure(name string) func(*record) float64 {
	return func(r *record) float64 { return r.Values[name] }
}

// rSquared is the squared correlation of two columns.
func rSquared(x, y []float64) float64 {
	r2, _, _ := fitLine(x, y)
	return r2
}
