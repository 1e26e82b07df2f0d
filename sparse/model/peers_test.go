package model

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"entropipe/models/mat"
	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
)

// python runs a script of testdata with the peers' Python, or skips the test.
func python(t *testing.T, script string, args ...string) {
	t.Helper()
	program := os.Getenv("ENTROPIPE_TORCH_PYTHON")
	if program == "" {
		t.Skip("peers: ENTROPIPE_TORCH_PYTHON is not set (a Python with torch, transformers, safetensors, onnx and onnxruntime)")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{filepath.Join("testdata", script)}, args...)...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, text)
	}
	t.Logf("%s", strings.TrimSpace(string(text)))
}

// reference reads the tensors of a peer.
type reference struct {
	t *testing.T
	f *safetensors.File
}

func openReference(t *testing.T, path string) reference {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return reference{t, f}
}

func (r reference) numbers(name string) []float32 {
	r.t.Helper()
	tensor, _ := r.f.Lookup(name)
	v, err := tensor.Float32s(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

func (r reference) ids(name string) []int32 {
	r.t.Helper()
	tensor, _ := r.f.Lookup(name)
	v, err := tensor.Int64s(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	ids := make([]int32, len(v))
	for i, x := range v {
		ids[i] = int32(x)
	}
	return ids
}

// Random checkpoints of all classes, in F32, F16, BF16 and shards: logits within
// 1e-4, and 64 tokens generated alike.
func TestCheckpointsOfTransformers(t *testing.T) {
	out := t.TempDir()
	python(t, "reference.py", out)
	folders, err := os.ReadDir(out)
	if err != nil || len(folders) != 32 {
		t.Fatalf("%d checkpoints, %v", len(folders), err)
	}
	for _, folder := range folders {
		dir := filepath.Join(out, folder.Name())
		m, err := Load(dir)
		if err != nil {
			t.Error(err)
			continue
		}
		r := openReference(t, filepath.Join(dir, "reference.safetensors"))
		if m.config.Arch == hf.ViT {
			checkImages(t, folder.Name(), m, r)
		} else {
			checkTexts(t, folder.Name(), m, r)
		}
	}
}

func checkImages(t *testing.T, name string, m *Model, r reference) {
	t.Helper()
	s := m.NewSession(2)
	got, err := s.Images(r.numbers("pixels"), 3, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.config.Head {
		logits := mat.Of(3, m.config.Labels, make([]float32, 3*m.config.Labels))
		s.Classify(logits, got)
		got = logits
	}
	t.Logf("%s: at most %.2g apart", name, near(t, name, got.Data, r.numbers("out"), 1e-4))
}

func checkTexts(t *testing.T, name string, m *Model, r reference) {
	t.Helper()
	var all [][]int32
	for i := range 3 {
		all = append(all, r.ids(fmt.Sprint("ids ", i)))
	}
	s, b := m.NewSession(2), join(all)
	got, err := s.Hidden(b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := r.numbers("out 0")
	logits := m.config.Head && len(want) == m.config.Vocab
	if logits {
		l := mat.Of(got.Rows, m.config.Vocab, make([]float32, got.Rows*m.config.Vocab))
		s.Logits(l, got)
		got = l
	}
	worst := 0.0
	for i := range all {
		off := near(t, fmt.Sprint(name, " sequence ", i), got.Data[int(b.Starts[i])*got.Cols:int(b.Starts[i+1])*got.Cols], r.numbers(fmt.Sprint("out ", i)), 1e-4)
		worst = max(worst, off)
	}
	t.Logf("%s: at most %.2g apart", name, worst)
	if !logits {
		return
	}
	tokens, err := s.Generate(b, 64, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if want := r.ids(fmt.Sprint("new ", i)); !slices.Equal(tokens[i], want) {
			t.Errorf("%s: sequence %d generates %v, want %v", name, i, tokens[i], want)
		}
	}
}

func TestMiniLMIsThatOfONNXRuntime(t *testing.T) {
	m, dir := minilm(t)
	sentences, _ := readSentences(t)
	var all [][]int32
	for _, q := range sentences {
		all = append(all, q.IDs)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	ids, out := filepath.Join(folder, "ids.json"), filepath.Join(folder, "out.safetensors")
	if err := os.WriteFile(ids, text, 0o666); err != nil {
		t.Fatal(err)
	}
	python(t, "minilm_onnx.py", dir, ids, out)
	r, b := openReference(t, out), join(all)
	got, err := m.NewSession(2).Hidden(b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for i := range all {
		off := near(t, fmt.Sprint("sentence ", i), got.Data[int(b.Starts[i])*got.Cols:int(b.Starts[i+1])*got.Cols], r.numbers(fmt.Sprint("out ", i)), 1e-4)
		worst = max(worst, off)
	}
	t.Logf("hidden states are at most %.2g from ONNX Runtime's", worst)
}
