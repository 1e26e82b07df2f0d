//go:build readers

package tables

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
)

// Both tables of sequences are what pyarrow, DuckDB and Polars take them for.
// ENTROPIPE_PYTHON names an interpreter that has what
// .ci/readers/requirements.txt lists.
func TestTokensInPython(t *testing.T) {
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	ctx, dir := context.Background(), t.TempDir()
	store, err := sinks.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	encoder, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := sinks.Open(ctx, store, encoder, sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Base(ctx, "tokens", schemas.TopicID{}, nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		pos, err := o.Resume(ctx, "tokens", 0)
		if err != nil {
			t.Fatal(err)
		}
		b := batches.Tokens("tokens", pos.Next, 100, 384)
		for i := range b.Results {
			switch s := b.Results[i].Tokens; i % 4 {
			case 1:
				s.Task, s.Pooling, s.Normalized, s.Embedding, s.NextIDs = "generate", "none", false, nil,
					[]int32{5, 6}[:i%2]
			case 2:
				s.Task, s.Pooling, s.Normalized, s.Embedding, s.TopIDs, s.TopLogprobs = "logits", "none", false, nil,
					[]int32{5, 6}, []float32{-0.5, -1.5}
			}
		}
		if _, err := o.Commit(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	said, err := exec.Command(interpreter, "../../.ci/readers/check.py", dir, "tokens", "attention_stats",
		"rejects").CombinedOutput()
	t.Logf("%s", bytes.TrimSpace(said))
	if err != nil {
		t.Error(err)
	}
}
