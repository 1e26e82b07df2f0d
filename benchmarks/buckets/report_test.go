package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page compares the two turns of each round, and takes medians.
func TestPageComparesTurnsOfARound(t *testing.T) {
	dir := t.TempDir()
	r, err := newReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	for round, slow := range []float64{1, 2, 4} {
		for _, f := range []figures{
			{Way: inBucket, WallS: slow * 1.25, CPUS: slow * 1.1, MaxRSS: 130 << 20, Requests: 26,
				ServerCPUS: slow * .1},
			{Way: inFolder, WallS: slow, CPUS: slow, MaxRSS: 100 << 20},
		} {
			f.Round, f.Frames, f.Commits, f.Files = round, 9, 2, 8
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
	for _, want := range []string{"on the same cores | 0.80 (0.80 to 0.80)", "of the run | 1.10 (1.10 to 1.10)",
		"MB more | 30 (30 to 30)", "| files a commit | 4.0 | 4.0 |", "of the begin | 0.0 | 13.0 |"} {
		if page := again.markdown(); !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// The committed page, if there is one, is the one that the committed records make.
func TestPageComesFromRecords(t *testing.T) {
	const results = "../results"
	text, err := os.ReadFile(filepath.Join(results, "buckets.md"))
	if os.IsNotExist(err) {
		t.Skip("nothing was measured yet")
	}
	r, failed := newReport(results)
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if string(text) != r.markdown() {
		t.Error("buckets.md is not what `go run ./benchmarks/buckets --render` makes")
	}
}
