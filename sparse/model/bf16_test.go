package model

import (
	"math"
	"os"
	"testing"

	"entropipe/models/mat"
	"entropipe/sparse/hf"
	"entropipe/sparse/hf/hftest"
	"entropipe/sparse/token"
)

// The laws of batches hold for rounded weights too.
func TestRoundedRowsDoNotDependOnTheirBatch(t *testing.T) {
	all := load4As(t, BF16)
	levels(t, func(t *testing.T) {
		for _, arch := range []string{hf.BERT, hf.LLaMA} {
			rowsAreAlone(t, all[arch])
		}
	})
}

func TestRoundedGenerateEqualsRecomputation(t *testing.T) {
	for _, m := range load4As(t, BF16) {
		if m.config.Causal {
			recompute(t, m, nil)
		}
	}
}

// Rounded models are near to those they were, and do not repeat them: every
// class has its matrices rounded, and only those.
func TestRoundedModelsAreNear(t *testing.T) {
	plain, rounded := load4(t), load4As(t, BF16)
	for arch, m := range rounded {
		if m.Weights() != BF16 || plain[arch].Weights() != F32 {
			t.Errorf("%s: weights are %s and %s", arch, m.Weights(), plain[arch].Weights())
		}
		got, want := states(t, m), states(t, plain[arch])
		off, _ := apart(got, want)
		if !(off > 0 && off < 0.08) {
			t.Errorf("%s: states are %g apart", arch, off)
		}
		t.Logf("%s: %.2g apart", arch, off)
	}
}

// states are the last hidden states of some input, normalised by the model.
func states(t *testing.T, m *Model) mat.Matrix {
	t.Helper()
	c := m.Config()
	if c.Arch == hf.ViT {
		h, err := m.NewSession(1).Images(hftest.Values("pixels", c.Colors*c.Image[0]*c.Image[1]), 1, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h, err := m.NewSession(1).Hidden(one(ramp(30, 5)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// apart returns the largest difference of two numbers in the same place, and
// the least cosine of two rows.
func apart(a, b mat.Matrix) (off, cosine float64) {
	cosine = 1
	for i := range a.Rows {
		dot, aa, bb := 0.0, 0.0, 0.0
		for j, v := range a.Row(i) {
			x, y := float64(v), float64(b.Row(i)[j])
			off = max(off, math.Abs(x-y))
			dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
		}
		cosine = min(cosine, dot/math.Sqrt(aa*bb))
	}
	return off, cosine
}

// The limits in the comment of BF16 hold for MiniLM at every level, against PyTorch.
func TestMiniLMRounded(t *testing.T) {
	_, dir := minilm(t)
	sentences, hidden := readSentences(t)
	m, err := OpenAs(dir, BF16)
	if err != nil {
		t.Fatal(err)
	}
	levels(t, func(t *testing.T) {
		some := sentences
		if mat.Best() == mat.Portable {
			some = some[:4] // it takes its time
		}
		var all [][]int32
		for _, q := range some {
			all = append(all, q.IDs)
		}
		b, s := join(all), m.NewSession(2)
		got, err := s.Hidden(b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		embedding, off, cosine, embeddings := make([]float32, 384), 0.0, 1.0, 1.0
		for i, q := range some {
			rows := got.Slice(int(b.Starts[i]), int(b.Starts[i+1]))
			o, c := apart(rows, hidden.Slice(q.Rows[0], q.Rows[1]))
			off, cosine = max(off, o), min(cosine, c)
			s.Pool(embedding, rows, m.Pooling())
			_, c = apart(mat.Of(1, 384, embedding), mat.Of(1, 384, q.Embedding))
			embeddings = min(embeddings, c)
		}
		t.Logf("hidden states are at most %.2g from PyTorch's, with a cosine of at least %.6f; embeddings of %.6f", off,
			cosine, embeddings)
		if off > 0.04 || cosine < 0.9998 || embeddings < 0.9999 {
			t.Errorf("that is more than the comment of BF16 says")
		}
	})
}

// The same on texts, against our own float32.
func TestMiniLMRoundedOnTexts(t *testing.T) {
	plain, dir := minilm(t)
	text, err := os.ReadFile(testData(t, "text", "wikitext-2", "valid.txt"))
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := token.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	rounded, err := OpenAs(dir, BF16)
	if err != nil {
		t.Fatal(err)
	}
	const pieces, length = 6, 256
	ids := tokens.Encode(nil, string(text[:pieces*length*8]))
	if len(ids) < pieces*length {
		t.Fatalf("%d tokens", len(ids))
	}
	b := Batch{Starts: []int32{0}}
	for i := range pieces {
		b.IDs = append(b.IDs, ids[0])
		b.IDs = append(b.IDs, ids[1+i*(length-2):1+(i+1)*(length-2)]...)
		b.IDs = append(b.IDs, ids[len(ids)-1])
		b.Starts = append(b.Starts, int32(len(b.IDs)))
	}
	s, u := plain.NewSession(2), rounded.NewSession(2)
	want, err := s.Hidden(b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := u.Hidden(b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	off, cosine := apart(got, want)
	x, y := mat.Of(pieces, 384, make([]float32, pieces*384)), mat.Of(pieces, 384, make([]float32, pieces*384))
	for i := range pieces {
		s.Pool(x.Row(i), want.Slice(i*length, (i+1)*length), plain.Pooling())
		u.Pool(y.Row(i), got.Slice(i*length, (i+1)*length), plain.Pooling())
	}
	_, embeddings := apart(x, y)
	t.Logf("hidden states are at most %.2g apart, with a cosine of at least %.6f; embeddings of %.6f", off,
		cosine, embeddings)
	if off > 0.06 || cosine < 0.9997 || embeddings < 0.9999 {
		t.Errorf("that is more than the comment of BF16 says")
	}
}
