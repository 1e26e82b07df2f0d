package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page compares each way with the stretch alone of the same round, and takes medians.
func TestPageComparesStretchesOfARound(t *testing.T) {
	dir := t.TempDir()
	r, err := newReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	for round, slow := range []float64{1, 2, 4} {
		for way, share := range map[string]float64{alone: 1, watched: 1.01, stalled: 1} {
			f := figures{Round: round, Way: way, Frames: 9, Points: 7, WallS: slow * share, CPUS: slow * share}
			if way != alone {
				f.Readers = 20
			}
			if way == watched {
				f.Scenes = int64(slow * 101) // in a second 5 for each
			}
			if err := r.Add(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.write(t.Output()); err != nil {
		t.Fatal(err)
	}
	again, err := newReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"frames of 7 points",
		"| watched | 20 | 3 | 5.0 | +1.0 % (+1.0 % to +1.0 %) | met | +1.0 % (+1.0 % to +1.0 %) | met |",
		"| stalled | 20 | 3 | 0.0 | +0.0 % (+0.0 % to +0.0 %) | met |"} {
		if page := again.markdown(); !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// The committed page is the one that the committed records make.
func TestPageComesFromRecords(t *testing.T) {
	const results = "../results"
	text, err := os.ReadFile(filepath.Join(results, "live.md"))
	r, failed := newReport(results)
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if string(text) != r.markdown() {
		t.Error("live.md is not what `go run ./benchmarks/live --render` makes")
	}
}
