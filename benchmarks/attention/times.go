package main

import (
	"fmt"
	"slices"
)

// times are the nanoseconds of all runs, by entry.
type times map[string][]int64

// least is the shortest run in milliseconds, middle the median; 0 without any.
func (t times) least(entry string) float64 {
	if len(t[entry]) == 0 {
		return 0
	}
	return float64(slices.Min(t[entry])) / 1e6
}

func (t times) middle(entry string) float64 {
	if len(t[entry]) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(t[entry]))
	return float64(s[len(s)/2]) / 1e6
}

// ratio is a cell of a table: that of the shortest runs, and of the medians in
// brackets; empty without runs of both.
func (t times) ratio(above, below string) string {
	if len(t[above]) == 0 || len(t[below]) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f)", t.least(above)/t.least(below), t.middle(above)/t.middle(below))
}
