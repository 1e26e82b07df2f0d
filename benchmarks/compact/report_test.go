package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page has medians of the newest run, and ratios of the rates of a core.
func TestPageComparesRatesOfACore(t *testing.T) {
	dir := t.TempDir()
	r, err := newReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	for run, cpu := range []float64{100, 2} { // the first run is an old one
		for round, slow := range []float64{1, 1.25, .5} {
			for _, way := range []string{oneCore, "DuckDB"} {
				f := figures{Way: way, Round: round, Bytes: 1_200_000_000, CPUS: cpu * slow, Files: 10_000, Into: 16,
					Points: 5000, Target: 128 << 20, Seed: uint64(run), Memory: int64(60e6 + slow*8e6)}
				if way == "DuckDB" {
					f.CPUS *= 10
				}
				if err := r.keepTurn(f, nil); err != nil {
					t.Fatal(err)
				}
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
	for _, want := range []string{"seed 1.", "600 (480 to 1200), undecided", "10000 files, 1200 MB",
		"| 10.0 x | 70 |"} {
		if page := again.markdown(); !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// The committed page, if there is one, is the one that the committed records make.
func TestPageComesFromRecords(t *testing.T) {
	const results = "../results"
	text, err := os.ReadFile(filepath.Join(results, "compact.md"))
	if os.IsNotExist(err) {
		t.Skip("nothing was measured yet")
	}
	r, failed := newReport(results)
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if string(text) != r.markdown() {
		t.Error("compact.md is not what `go run ./benchmarks/compact --render` makes")
	}
}
