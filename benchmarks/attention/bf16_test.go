package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/sparse/model"
)

// Both forms are timed, cells that were kept are not measured again, and the
// table has them all.
func TestBF16Products(t *testing.T) {
	c := bf16Cmd{Results: t.TempDir(), Rows: []int{1, 3}, Threads: []int{1, 2}, Rounds: 1, Turn: time.Nanosecond}
	c.defaults()
	var tables []string
	for _, resume := range []bool{false, true} {
		if resume { // a kill has cut a line
			path := filepath.Join(c.Results, "attention-bf16.jsonl")
			data, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, append(data, `{"of":"20`...), 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		r := &bf16Report{}
		if err := r.open("bf16", c.Results, rig.FullRun, resumed(resume)); err != nil {
			t.Fatal(err)
		}
		if err := c.products(context.Background(), r, 20, 30); err != nil {
			t.Fatal(err)
		}
		if len(r.Records) != 4 {
			t.Fatalf("%d cells, want 4", len(r.Records))
		}
		for _, cell := range r.cells(nil) {
			for _, form := range bf16Forms {
				if ns := cell.Ns[form]; len(ns) != 3 || ns[0] < 0 || ns[0] > ns[1] || ns[1] > ns[2] {
					t.Errorf("%s, %d rows, %d threads: %s took %v", cell.Of, cell.Rows, cell.Threads, form, ns)
				}
			}
		}
		tables = append(tables, r.markdown())
	}
	if tables[0] != tables[1] || strings.Count(tables[0], "| 20→30 |") != 4 {
		t.Errorf("resumed:\n%s\nmeasured:\n%s", tables[1], tables[0])
	}
	if !strings.Contains(tables[0], "GFLOP/s of each |\n|---|---|---|---|---|---|---|\n| 20→30 |") {
		t.Errorf("no table in %s", tables[0])
	}
}

func TestBF16Compare(t *testing.T) {
	c := bf16Cell{Rows: 1, Cosine: 1}
	c.compare([]float32{3, 4}, []float32{3, 4})
	c.compare([]float32{1, 0}, []float32{1, 1})
	if c.Off != 1 || c.Square != 1 || c.Size != 27 || math.Abs(c.Cosine-math.Sqrt(.5)) > 1e-12 {
		t.Errorf("%+v", c)
	}
}

// The random models are what their names say, in both forms.
func TestRandomEncoders(t *testing.T) {
	dir := t.TempDir()
	if err := saveRandom(dir, "minilm"); err != nil {
		t.Fatal(err)
	}
	m, err := model.OpenAs(dir, model.BF16)
	if err != nil {
		t.Fatal(err)
	}
	if c := m.Config(); c.Layers != 6 || c.Hidden != 384 || c.Dim != 32 || m.Weights() != model.BF16 {
		t.Errorf("%+v", c)
	}
}
