package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"entropipe/benchmarks/rig"
)

// A short run writes a row of every kind of step, and a second run measures
// nothing again.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	dir := t.TempDir()
	c := cli{Data: dir, Minutes: 0.001, Rounds: 1, Threads: []int{2}, Results: dir}
	if err := c.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	records := filepath.Join(dir, "training.jsonl")
	first, err := os.ReadFile(records)
	if err != nil || strings.Count(string(first), "\n") != 8 {
		t.Errorf("%d rows of 8: %v", strings.Count(string(first), "\n"), err)
	}
	if err := c.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(records); err != nil || string(second) != string(first) {
		t.Errorf("rows changed: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "training.md"))
	if err != nil || strings.Count(string(text), "| entropy |") != 2 {
		t.Errorf("%v in\n%s", err, text)
	}
}

// The committed page is the one that the committed records make.
func TestPageComesFromRecords(t *testing.T) {
	const results = "../results"
	j, err := rig.ReadJournal[row]("training", filepath.Join(results, "training.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(results, "training.md")); err != nil || string(text) != report(j) {
		t.Errorf("training.md is not what `go run ./benchmarks/training --render` makes (%v)", err)
	}
}
