package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"entropipe/models/mat"
	"entropipe/sparse/hf"
	"entropipe/sparse/token"
)

// testData returns a path below the folder of real data, ENTROPIPE_TESTDATA or
// shared/data beside the repository, and skips the test where it is absent.
func testData(t testing.TB, parts ...string) string {
	t.Helper()
	root := os.Getenv("ENTROPIPE_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	path := filepath.Join(append([]string{root}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real data: %v (set ENTROPIPE_TESTDATA)", err)
	}
	return path
}

// minilm loads the real weights.
func minilm(t testing.TB) (*Model, string) {
	t.Helper()
	dir := os.Getenv("ENTROPIPE_MINILM")
	if dir == "" {
		t.Skip("the weights of MiniLM: ENTROPIPE_MINILM is not set (.ci/minilm installs them and prints it)")
	}
	m, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m, dir
}

// sentence is one of the reference: what PyTorch computes for it alone.
type sentence struct {
	Text      string    `json:"text"`
	IDs       []int32   `json:"input_ids"`
	Rows      [2]int    `json:"hidden_rows"`
	Embedding []float32 `json:"embedding"`
}

func readSentences(t testing.TB) ([]sentence, mat.Matrix) {
	t.Helper()
	var reference struct{ Items []sentence }
	data, err := os.ReadFile(testData(t, "minilm", "minilm-reference.json"))
	if err == nil {
		err = json.Unmarshal(data, &reference)
	}
	if err != nil {
		t.Fatal(err)
	}
	data, err = os.ReadFile(testData(t, "minilm", "minilm-reference-hidden-f32.npy"))
	if err != nil || len(data) < 10 || !bytes.HasPrefix(data, []byte("\x93NUMPY\x01\x00")) {
		t.Fatalf("no npy file of version 1.0: %v", err)
	}
	data = data[10+int(binary.LittleEndian.Uint16(data[8:])):]
	hidden := make([]float32, len(data)/4)
	for i := range hidden {
		hidden[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return reference.Items, mat.Of(len(hidden)/384, 384, hidden)
}

func TestMiniLMIsThatOfPyTorch(t *testing.T) {
	m, dir := minilm(t)
	sentences, hidden := readSentences(t)
	tokens, err := token.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if p := m.Pooling(); p != (hf.Pooling{Mode: hf.Mean, Normalize: true, MaxTokens: 256, Stated: true}) {
		t.Errorf("pooling: %+v", p)
	}
	var all [][]int32
	for i, q := range sentences {
		if ids := tokens.Encode(nil, q.Text); !slices.Equal(ids, q.IDs) {
			t.Errorf("sentence %d: ids %v, want %v", i, ids, q.IDs)
		}
		all = append(all, q.IDs)
	}
	b := join(all)
	levels(t, func(t *testing.T) {
		if mat.Best() == mat.Portable {
			b = join(all[:4]) // it takes its time
		}
		s := m.NewSession(2)
		got, err := s.Hidden(b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		embedding, worst := make([]float32, 384), 0.0
		for i := range b.Len() {
			q, rows := sentences[i], got.Slice(int(b.Starts[i]), int(b.Starts[i+1]))
			worst = max(worst, near(t, "hidden of "+q.Text[:min(20, len(q.Text))], rows.Data[:rows.Rows*384],
				hidden.Slice(q.Rows[0], q.Rows[1]).Data[:rows.Rows*384], 5e-5))
			s.Pool(embedding, rows, m.Pooling())
			near(t, "embedding", embedding, q.Embedding, 1e-6)
		}
		b = join(all)
		t.Logf("hidden states are at most %.2g from PyTorch's", worst)
	})
}
