package pipeline

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"entropipe/schemas"
	"entropipe/sparse/model"
	"entropipe/sparse/token"
)

// The embeddings of MiniLM are those of sentence-transformers, also of texts that
// are longer than the 256 tokens that its folder names, as ids too. The reference
// was computed with sentence-transformers 6.2.0; ENTROPIPE_MINILM names the folder.
func TestMiniLMAsSentenceTransformers(t *testing.T) {
	dir := os.Getenv("ENTROPIPE_MINILM")
	if dir == "" {
		t.Skip("weights: ENTROPIPE_MINILM does not name the folder of MiniLM (.ci/minilm prints it)")
	}
	data, err := os.ReadFile(filepath.Join("testdata", "sentence-transformers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var texts []struct {
		Text      string
		Tokens    int
		Embedding []float64
	}
	if err := json.Unmarshal(data, &texts); err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := token.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	cfg := tokenConfig(m, Embed)
	cfg.Tokenizer, cfg.Longest = tok, m.Pooling().MaxTokens
	within := 0
	for _, c := range texts {
		ids := tok.Encode(nil, c.Text)
		if len(ids) != c.Tokens {
			t.Fatalf("%.40q…: %d tokens, want %d", c.Text, len(ids), c.Tokens)
		}
		cfg.Truncate = c.Tokens > m.Config().MaxPositions
		if c.Tokens > 256 && !cfg.Truncate {
			within++
		}
		for kind, msg := range map[string]schemas.Message{"text": textMessage(t, 0, c.Text),
			"ids": idMessage(t, 0, ids)} {
			out := process(t, cfg, msg)
			if len(out.Results) != 1 {
				t.Fatalf("%s of %d tokens: %+v", kind, c.Tokens, out.Rejects)
			}
			r := out.Results[0].Tokens
			if got := cosine(r.Embedding, c.Embedding); got < 1-1e-6 || r.Truncated != (c.Tokens > 256) {
				t.Errorf("%s of %d tokens: cosine %v, truncated %v", kind, c.Tokens, got, r.Truncated)
			}
		}
	}
	if within < 3 {
		t.Errorf("%d texts of 257 to 512 tokens", within)
	}
}

func cosine(a []float32, b []float64) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * b[i]
		aa += float64(a[i]) * float64(a[i])
		bb += b[i] * b[i]
	}
	return ab / math.Sqrt(aa*bb)
}
