package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// seedOfKey finds the seed in the key of a cell.
var seedOfKey = regexp.MustCompile(`\bseed=(\d+)`)

// list returns the cells of the experiment; where cells draw from the first seed, those of
// every seed, of quick runs those of the first one. The seeds take turns, so that an
// interrupted sweep has all seeds of what it has, unless seedBySeed is set.
func (e *experiment) list(how effort) (cells []cell) {
	if !e.eachSeed {
		return e.cells(how)
	}
	all, there := seeds, map[string]bool{}
	if how == quick {
		all = seeds[:1]
	}
	lists, most := make([][]cell, len(all)), 0
	for k, seed := range all {
		withSeed(seed, func() {
			for _, c := range e.cells(how) {
				if there[c.key] {
					continue // a cell without a seed
				}
				there[c.key] = true
				run := c.run
				c.run = func(ctx context.Context) (records []record, err error) {
					withSeed(seed, func() { records, err = run(ctx) })
					return records, err
				}
				lists[k] = append(lists[k], c)
			}
		})
		most = max(most, len(lists[k]))
	}
	if e.seedBySeed {
		return slices.Concat(lists...)
	}
	for i := range most {
		for _, list := range lists {
			if i < len(list) {
				cells = append(cells, list[i])
			}
		}
	}
	return cells
}

// withSeed calls f while seed is the only one. It is not for goroutines beside each other.
func withSeed(seed uint64, f func()) {
	before := seeds
	defer func() { seeds = before }()
	seeds = []uint64{seed}
	f()
}

// overSeeds joins records that differ in the seed of their cell alone: values become means
// over the seeds, with half of their interval as name_ci and the seeds' own as name_SEED.
// Records of one seed stay as they are.
func (e *experiment) overSeeds(records []record) []record {
	if !e.eachSeed {
		return records
	}
	var order []string
	same, of := map[string][]record{}, map[string][]string{}
	for _, r := range records {
		key := identity(&r)
		if same[key] == nil {
			order = append(order, key)
		}
		same[key] = append(same[key], r)
		seed := ""
		if m := seedOfKey.FindStringSubmatch(r.Cell); m != nil {
			seed = m[1]
		}
		of[key] = append(of[key], seed)
	}
	joined := make([]record, 0, len(order))
	for _, key := range order {
		joined = append(joined, mean(same[key], of[key]))
	}
	return joined
}

// identity tells records apart that differ in more than the seed: in a text, or in sigma.
func identity(r *record) string {
	parts := []string{seedOfKey.ReplaceAllString(r.Cell, "")}
	for _, name := range slices.Sorted(maps.Keys(r.Text)) {
		if name != "svg" && name != "curve" && name != end && name != "setting" {
			parts = append(parts, name+"="+r.Text[name])
		}
	}
	if v, ok := r.Values["sigma"]; ok {
		parts = append(parts, fmt.Sprintf("sigma=%g", v))
	}
	return strings.Join(parts, "\n")
}

// mean joins the records of the seeds.
func mean(records []record, seeds []string) record {
	if len(records) == 1 {
		return records[0]
	}
	joined := record{Cell: records[0].Cell, Text: records[0].Text, Values: map[string]float64{}}
	for name := range records[0].Values {
		values := valuesOf(records, name)
		for k, r := range records {
			if _, ok := r.Values[name]; ok {
				joined.Values[name+"_"+seeds[k]] = values[k]
			}
		}
		joined.Values[name], joined.Values[name+"_ci"] = interval(values)
	}
	return joined
}
