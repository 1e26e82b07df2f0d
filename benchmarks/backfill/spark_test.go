package main

import (
	"strings"
	"testing"
)

// Ratios of processor time are taken round by round, those of further scans without what a
// way costs before it works.
func TestPageComparesWithSpark(t *testing.T) {
	r, err := newReport("")
	if err != nil {
		t.Fatal(err)
	}
	for round, slow := range []float64{1, 2, 4, 3, 1, 2} {
		for way, cost := range map[string][2]float64{wayAlone: {.1, .01}, wayTasks: {20, .01}, waySciPy: {20, .11},
			wayShapely: {20, .09}} {
			for _, turn := range []figures{{Case: startOnly, Frames: 1}, {Frames: 101, Bytes: 202e6, MaxRSS: 7e6}} {
				turn.What, turn.Run, turn.Round, turn.Way, turn.Jobs = "spark", "new", round, way, 2
				turn.CPUS = slow * (cost[0] + cost[1]*float64(turn.Frames-1))
				if err := r.add(turn); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	page := r.spark()
	for _, want := range []string{"101 KITTI frames of 2.0 MB", "2 tasks or workers at a time, 6 rounds",
		"| backfill | 2.2 (1.1 to 4.4) | 0.2 (0.1 to 0.4) | 20.00 (10.00 to 40.00) |  |  | 7 |",
		"| backfill as tasks of Spark |", "| 19.1 (19.1 to 19.1) | 1.0 (1.0 to 1.0) | 7 |",
		"| 28.2 (28.2 to 28.2); at least 10: met | 11.0 (11.0 to 11.0); at least 10: met | 7 |",
		"| 26.4 (26.4 to 26.4); at least 10: met | 9.0 (9.0 to 9.0); at least 10: not met | 7 |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the section lacks %q:\n%s", want, page)
		}
	}
}
