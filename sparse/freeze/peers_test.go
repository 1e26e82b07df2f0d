package freeze

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
	"entropipe/sparse/hf/hftest"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
	"entropipe/sparse/support"
	"entropipe/sparse/token"
)

// python runs a program with the peers' Python, or skips the test.
func python(t *testing.T, args ...string) {
	t.Helper()
	program := os.Getenv("ENTROPIPE_TORCH_PYTHON")
	if program == "" {
		t.Skip("peers: ENTROPIPE_TORCH_PYTHON is not set (a Python with torch, transformers, tokenizers and safetensors)")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	text, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, text)
	}
	t.Logf("%s", strings.TrimSpace(string(text)))
}

// peerModels are the checkpoints that both sides freeze: random ones of each
// class, and MiniLM where it lies.
func peerModels(t *testing.T) map[string]string {
	t.Helper()
	dirs := map[string]string{}
	for name, config := range map[string]string{"bert": hftest.BERT, "gpt2": hftest.GPT2, "llama": hftest.LLaMA} {
		c := hftest.Config(t, config)
		dirs[name] = t.TempDir()
		if err := hf.Save(dirs[name], c, hftest.Tensors(c), safetensors.F32); err != nil {
			t.Fatal(err)
		}
	}
	if dir := os.Getenv("ENTROPIPE_MINILM"); dir != "" {
		dirs["minilm"] = dir
	} else {
		t.Log("without MiniLM: ENTROPIPE_MINILM is not set (.ci/minilm installs it and prints the folder)")
	}
	return dirs
}

// writeIDs writes a calibration of ids.
func writeIDs(t *testing.T, in Inputs) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ids.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, ids := range in.Sequences {
		if err := json.NewEncoder(f).Encode(map[string]any{"input_ids": ids}); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// A mask that models/freeze.py makes with PyTorch is the one that is made here:
// the same blocks and identity, so the same rows are served; and masses agree
// within 1e-4.
func TestPyTorchFreezesTheSameMasks(t *testing.T) {
	for name, dir := range peerModels(t) {
		selectors := []string{Mass}
		if name == "gpt2" { // the others look at no weights: one model says it all
			selectors = append(selectors, Window, BigBird)
		}
		for _, selector := range selectors {
			t.Run(name+" "+selector, func(t *testing.T) {
				m, err := model.Load(dir)
				if err != nil {
					t.Fatal(err)
				}
				in, length := sequences(6, 96), 96
				if name == "minilm" {
					in, length = minilmText(t, dir), 256
				}
				o := Options{Select: selector, Sparsity: 0.6, Block: 16, Buckets: []int{length}, Seed: 7, Workers: 2}
				here, err := Freeze(t.Context(), m, in, o)
				if err != nil {
					t.Fatal(err)
				}
				out := t.TempDir()
				masses := filepath.Join(out, "masses.npz")
				python(t, filepath.Join("..", "..", "models", "freeze.py"), "--lm", dir, "--calibrate", writeIDs(t, in), "--out", out,
					"--select", selector, "--sparsity", "0.6", "--block", "16", "--bucket", fmt.Sprint(length), "--seed", "7", "--device", "cpu", "--masses", masses)
				there, err := support.Read(out)
				if err != nil {
					t.Fatal(err)
				}
				compareSets(t, here, there)
				compareMasses(t, m, in, o, masses)
				compareRows(t, m, here, there, in.Sequences[0])
			})
		}
	}
}

// minilmText is real text, in pieces of 256 tokens.
func minilmText(t *testing.T, dir string) Inputs {
	t.Helper()
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	text, err := os.ReadFile(filepath.Join(root, "text", "wikitext-2", "valid.txt"))
	if err != nil {
		t.Skipf("real data: %v (set ENTROPIPE_TESTDATA)", err)
	}
	tokenizer, err := token.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text[:100_000]), "\n")
	return Inputs{Sequences: Pieces(tokenizer, func(yield func(string) bool) {
		for _, l := range lines {
			if !yield(l) {
				return
			}
		}
	}, 256, 8)}
}

func compareSets(t *testing.T, here, there *support.Set) {
	t.Helper()
	if here.Facts != there.Facts || here.Source != there.Source || here.Select != there.Select {
		t.Errorf("%+v %+v %+v\n%+v %+v %+v", here.Facts, here.Source, here.Select, there.Facts, there.Source, there.Select)
	}
	for head := range here.Buckets[0].Of {
		a, b := here.Buckets[0].Layouts[here.Buckets[0].Of[head]], there.Buckets[0].Layouts[there.Buckets[0].Of[head]]
		if !a.Equal(b) {
			t.Errorf("head %d: %v %v, PyTorch's %v %v", head, a.RowPtr, a.Col, b.RowPtr, b.Col)
		}
	}
	a, _ := here.SHA256()
	if b, _ := there.SHA256(); a != b {
		t.Errorf("identities %s and %s", a, b)
	}
}

func compareMasses(t *testing.T, m *model.Model, in Inputs, o Options, path string) {
	t.Helper()
	f, err := newRun(t.Context(), m, in, o)
	if err != nil {
		t.Fatal(err)
	}
	here, err := f.captureMass()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	file, err := archive.Open("arr_0.npy")
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	_, there, err := parseNPY(data)
	if err != nil {
		t.Fatal(err)
	}
	worst, at := 0.0, 0
	for _, sum := range here[0].sums {
		for i, x := range sum {
			worst = max(worst, math.Abs(x-there[at+i]))
		}
		at += len(sum)
	}
	t.Logf("masses differ by at most %.2g", worst)
	if at != len(there) || !(worst <= 1e-4) {
		t.Errorf("%d of %d masses differ by up to %g", at, len(there), worst)
	}
}

// compareRows serves one sequence with both sets.
func compareRows(t *testing.T, m *model.Model, here, there *support.Set, ids []int32) {
	t.Helper()
	var rows [2][]float32
	for i, s := range []*support.Set{here, there} {
		p, err := plan.New(s, plan.Facts{Facts: Facts(m), Always: true})
		if err != nil {
			t.Fatal(err)
		}
		hidden, err := m.NewSession(2).Hidden(model.Batch{IDs: ids, Starts: []int32{0, int32(len(ids))}}, model.Options{Plan: p.For})
		if err != nil {
			t.Fatal(err)
		}
		rows[i] = hidden.Data
	}
	for i := range rows[0] {
		if math.Float32bits(rows[0][i]) != math.Float32bits(rows[1][i]) {
			t.Fatalf("number %d of the rows is %v, with PyTorch's mask %v", i, rows[0][i], rows[1][i])
		}
	}
}
