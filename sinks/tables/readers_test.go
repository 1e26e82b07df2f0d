//go:build readers

package tables

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
)

// committed commits one batch after the other to a new output in a folder.
func committed(t *testing.T, cfg Config, topic string, batch func(start int64) *schemas.Batch) (dir string) {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	store, err := sinks.OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	encoder, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	o, err := sinks.Open(ctx, store, encoder, sinks.Config{})
	if err == nil {
		err = o.Base(ctx, topic, schemas.TopicID{}, nil)
	}
	for i := 0; i < 3 && err == nil; i++ {
		var pos schemas.Position
		if pos, err = o.Resume(ctx, topic, 0); err == nil {
			_, err = o.Commit(ctx, batch(pos.Next))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// checkInPython has check.py read tables of an output. ENTROPIPE_PYTHON names an interpreter that
// has what .ci/readers/requirements.txt lists.
func checkInPython(t *testing.T, dir string, tables ...string) {
	t.Helper()
	interpreter := os.Getenv("ENTROPIPE_PYTHON")
	if interpreter == "" {
		t.Fatal("ENTROPIPE_PYTHON does not name an interpreter")
	}
	said, err := exec.Command(interpreter, append([]string{"../../.ci/readers/check.py", dir},
		tables...)...).CombinedOutput()
	t.Logf("%s", bytes.TrimSpace(said))
	if err != nil {
		t.Error(err)
	}
}

// Messages of any size are what pyarrow, DuckDB and Polars take them for, byte for byte.
func TestMessagesInPython(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	dir := committed(t, Config{Tables: []string{Messages}}, "points", func(start int64) *schemas.Batch {
		b := batches.Synthetic(batches.Spec{Topic: "points", Start: start, Records: 40, Frames: 1, Points: 4,
			Originals: true})
		for i := range b.Originals {
			o := &b.Originals[i]
			if o.Value == nil {
				continue
			}
			o.Value = make([]byte, []int{0, 3, 70_000, packedFrom, 3_000_000}[i%5])
			for j := range o.Value {
				o.Value[j] = byte(rng.IntN(1 + 255*(i%2)))
			}
			sum := sha256.Sum256(o.Value)
			o.Headers = append(o.Headers, schemas.Header{Key: "sha256", Value: sum[:]})
			if o.Size = int64(len(o.Value)); o.Size >= packedFrom {
				o.Value, o.Packed = nil, Pack(nil, o.Value)
			}
		}
		return b
	})
	checkInPython(t, dir, "frames", "rejects", "messages")
}

// Both tables of sequences are what pyarrow, DuckDB and Polars take them for.
func TestTokensInPython(t *testing.T) {
	dir := committed(t, Config{}, "tokens", func(start int64) *schemas.Batch {
		b := batches.Tokens("tokens", start, 100, 384)
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
		return b
	})
	checkInPython(t, dir, "tokens", "attention_stats", "rejects")
}
