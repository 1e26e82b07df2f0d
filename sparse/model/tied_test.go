package model

import (
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/models/mat"
	"entropipe/models/safetensors"
	"entropipe/sparse/hf"
	"entropipe/sparse/kern"
)

// Embeddings that are the output matrix are kept once, and give the bits of a
// model that has both.
func TestTiedEmbeddingsAreOneCopy(t *testing.T) {
	c := &hf.Config{Arch: hf.GPT2, Model: "gpt2", Layers: 1, Hidden: 48, Inner: 64, Heads: 3, KVHeads: 3, Dim: 16,
		Vocab: 133, MaxPositions: 16,
		Causal: true, Act: hf.GELUTanh, Eps: 1e-5, Scale: .25, QKVBias: true, OutBias: true, MLPBias: true,
		Head: true, BOS: -1}
	r, tensors := rand.New(rand.NewPCG(4, 4)), map[string][]float32{}
	for _, tensor := range c.Tensors() { // not tied: both are there
		n := 1
		for _, d := range tensor.Shape {
			n *= d
		}
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64()) / 4
		}
		tensors[tensor.Name] = v
	}
	tensors["lm_head.weight"] = tensors["wte.weight"]
	ids := []int32{0, 63, 64, 127, 128, 132, 5}
	run := func(w Weights) (m *Model, bits []float32) {
		dir := t.TempDir()
		if err := hf.Save(dir, c, tensors, safetensors.F32); err != nil {
			t.Fatal(err)
		}
		m, err := OpenAs(dir, w)
		if err != nil {
			t.Fatal(err)
		}
		s := m.NewSession(1)
		hidden, err := s.Hidden(Batch{IDs: ids, Starts: []int32{0, 3, int32(len(ids))}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		logits := mat.Of(len(ids), c.Vocab, make([]float32, len(ids)*c.Vocab))
		s.Logits(logits, hidden)
		return m, append(slices.Clone(hidden.Data[:len(ids)*c.Hidden]), logits.Data...)
	}
	two, want := run(F32)
	_, wantRounded := run(BF16)
	c.Tied = true
	delete(tensors, "lm_head.weight")
	one, got := run(F32)
	_, gotRounded := run(BF16)
	if two.words.Rows != c.Vocab || one.words.Rows != 0 {
		t.Errorf("%d and %d rows of embeddings beside the output matrix, want %d and 0", two.words.Rows,
			one.words.Rows, c.Vocab)
	}
	if !slices.Equal(got, want) || !slices.Equal(gotRounded, wantRounded) {
		t.Error("other bits than with two copies")
	}
}

// A ladder is for encoders, and not beside another attention.
func TestLadderOfACausalModel(t *testing.T) {
	defer func() {
		if recover() != badLadder {
			t.Error("no panic, or another")
		}
	}()
	m := load4As(t, F32)[hf.GPT2]
	m.NewSession(1).Hidden(Batch{IDs: []int32{1}, Starts: []int32{0, 1}}, Options{Ladder: new(kern.Ladder)})
}
