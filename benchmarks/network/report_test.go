package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The committed page is the one that the committed records make.
func TestPageComesFromRecords(t *testing.T) {
	const results = "../results"
	r := newReport(results)
	if err := r.read(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(results, "network.md")
	if text, err := os.ReadFile(path); err != nil || string(text) != r.markdown() {
		t.Errorf("%s is not what `go run ./benchmarks/network --render` makes (%v)", path, err)
	}
}

// Rows are read back as they were written, and compare with the fastest form.
func TestRowsAreKept(t *testing.T) {
	dir := t.TempDir()
	r := newReport(dir)
	r.torch = "1.0"
	r.add(row{Case: "product", Size: "1×1×1", Threads: 1, Work: 4e6},
		map[string][]int64{ours: {2e6, 3e6, 1e6}, "product": {4e6}})
	r.add(row{Case: "pass", Size: "9 points", Threads: 1, Work: 1e6},
		map[string][]int64{ours: {1e6}, "a": {4e6}, "b": {2e6}})
	if err := r.write(t.Output()); err != nil {
		t.Fatal(err)
	}
	again := newReport(dir)
	if err := again.read(); err != nil {
		t.Fatal(err)
	}
	page := again.markdown()
	for _, want := range []string{
		"# EntropyNet beside PyTorch 1.0\n", "commit ",
		"| product, 1×1×1 | 1 | 2.0 (1.0) |  |  | 4.0 (4.0) | 0.50 (0.25) | 4 | 100 % |\n",
		"| pass, 9 points | 1 | 1.0 (1.0) | 4.0 (4.0) | 2.0 (2.0) |  | 0.50 (0.50) | 1 | 25 % |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if page != r.markdown() {
		t.Error("the page of the records differs from the page of the run")
	}
}
