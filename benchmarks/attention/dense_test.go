package main

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
)

// The plan that is forced is sound, the same in all heads, and keeps a quarter.
func TestWindowKeepsAQuarter(t *testing.T) {
	for _, n := range []int{512, 1024, 2048, 4096} {
		l := windowLayout(n)
		if err := l.Validate(false); err != nil {
			t.Errorf("%d tokens: %v", n, err)
		}
		if got := l.Sparsity(false); got != 0.75 {
			t.Errorf("%d tokens: sparsity %v", n, got)
		}
		for r := range l.Rows {
			if cols, _ := l.Row(r); cols[0] != 0 || !slices.Contains(cols, int32(r)) {
				t.Errorf("%d tokens: row %d reads %v", n, r, cols)
			}
		}
	}
}

func TestWindowOfOddLengths(t *testing.T) {
	for n := 1; n < 400; n++ {
		if err := windowLayout(n).Validate(false); err != nil {
			t.Fatalf("%d tokens: %v", n, err)
		}
	}
}

// Cells that were kept are not measured again, and say the same.
func TestResume(t *testing.T) {
	c := denseCmd{Results: t.TempDir()}
	r, err := c.report()
	if err != nil {
		t.Fatal(err)
	}
	cells := []*denseCell{
		{Model: "minilm", Tokens: 32, Threads: 1, Ns: rig.Times{ours: {3e6, 2e6, 4e6}, onnx: {4e6}, torch: {8e6}}},
		{Model: "bert", Tokens: 512, Threads: 2, Ns: rig.Times{ours: {4e6}, onnx: {4e6}, torch: {4e6}, sparse: {2e6}}},
	}
	for _, cell := range cells {
		if err := r.add(cell); err != nil {
			t.Fatal(err)
		}
	}
	c.Resume = true
	again, err := c.report()
	if err != nil {
		t.Fatal(err)
	}
	if !again.has("minilm", 32, 1) || !again.has("bert", 512, 2) || again.has("bert", 512, 1) {
		t.Errorf("records are %v", again.Records)
	}
	if err := again.write(io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(c.Results, "attention-dense.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| minilm | 32 | 1 | 2.00 (3.00) | 4.00 (4.00) | 8.00 (8.00) | 2.00 (1.33) | 4.00 (2.67) |  |  |",
		"| ONNX Runtime | 1.414 (1.155) | 1.000 (1.000) |",
		"| dense, of the sparse entry | 2.000 (2.000) | 2.000 (2.000) |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	c.Resume = false
	if fresh, err := c.report(); err != nil || len(fresh.Records) > 0 {
		t.Errorf("a new run begins with %v, %v", fresh.Records, err)
	}
}

func TestResumeOfDamage(t *testing.T) {
	c := denseCmd{Results: t.TempDir(), Resume: true}
	if err := os.WriteFile(filepath.Join(c.Results, "attention-dense.jsonl"), []byte("{\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := c.report(); err == nil || !strings.Contains(err.Error(), "attention-dense.jsonl") {
		t.Errorf("error is %v", err)
	}
}

func TestFarthest(t *testing.T) {
	m := mat.Of(2, 2, []float32{1, 2, 3, 4})
	if got := farthest(m, []float32{1, 2.5, 3, 3.75}); got != 0.5 {
		t.Errorf("farthest is %v", got)
	}
	if got := farthest(m, []float32{1}); !math.IsNaN(got) {
		t.Errorf("of another size: %v", got)
	}
}

func TestDefaults(t *testing.T) {
	quick, full := denseCmd{Quick: true}, denseCmd{}
	quick.defaults()
	full.defaults()
	if len(full.Lengths) != 8 || slices.Max(full.Lengths) != maxRows || full.Rounds != 15 ||
		full.Turn != 150*time.Millisecond {
		t.Errorf("full: %+v", full)
	}
	if len(quick.Lengths) != 4 || quick.Rounds != 3 {
		t.Errorf("quick: %+v", quick)
	}
}

// The committed pages are those that the committed records make.
func TestPagesComeFromRecords(t *testing.T) {
	const results = "../results"
	var dense denseReport
	var block sparseReport
	var rows ladderReport
	var short bf16Report
	for _, p := range []struct {
		name string
		open func(name, results string, kind rig.RunKind, earlier earlierCells) error
		page func() string
	}{
		{"dense", dense.open, dense.markdown}, {"sparse", block.open, block.markdown},
		{"ladder", rows.open, rows.markdown}, {"bf16", short.open, short.markdown},
	} {
		if err := p.open(p.name, results, rig.FullRun, kept); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(results, "attention-"+p.name+".md")
		if text, err := os.ReadFile(path); err != nil || string(text) != p.page() {
			t.Errorf("%s is not what `go run ./benchmarks/attention render` makes (%v)", path, err)
		}
	}
}
