package token

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
)

// An id beyond the model's embeddings is an error wherever it stands in the file. The
// parser reports files that are not JSON.
func TestOpenWithin(t *testing.T) {
	dir := t.TempDir()
	open := func(text string, most int) error {
		if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenWithin(dir, most)
		return err
	}
	good := string(fileWith("", ""))
	tokenizer, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	n := tokenizer.Vocab()
	if err := open(good, n); err != nil {
		t.Errorf("as many ids as embeddings: %v", err)
	}
	var many *TooManyError
	if err := open(good, n-1); !errors.As(err, &many) || many.ID != n-1 || many.Most != n-1 ||
		!strings.HasPrefix(err.Error(), dir) {
		t.Errorf("one embedding fewer: %v", err)
	}
	added := `{"added_tokens": [{"content": "\"}]", "id": 70}], "model": {"vocab": {"{\"id\":": 5, "b\\": 60}, "merges": [["a", "b"], 99]}, "other": {"vocab": {"a": 900}}, "id": 300}`
	if err := open(added, 70); !errors.As(err, &many) || many.ID != 70 {
		t.Errorf("an added token: %v", err)
	}
	if err := open(added, 71); err == nil || errors.As(err, &many) {
		t.Errorf("numbers that are no ids: %v", err)
	}
	for _, text := range []string{"", "{", `{"model`, `{"model": {"vocab": {"a" 5}}}`, strings.Repeat("[", 5000),
		`{"model": {"vocab": {"a": 5`} {
		if err := open(text, 10); err == nil || errors.As(err, &many) {
			t.Errorf("%.30q: %v", text, err)
		}
	}
}

// The ids are compared before the tables are made: a file of another model costs
// a buffer, not twenty times its size.
func TestOpenWithinTakesLittleMemory(t *testing.T) {
	var text bytes.Buffer
	text.WriteString(`{"version": "1.0", "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0`)
	for i := 1; i < 100_000; i++ {
		fmt.Fprintf(&text, `, "token number %d": %d`, i, i)
	}
	text.WriteString(`}}}`)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	_, err := OpenWithin(dir, 30522)
	metrics.Read(sample)
	var many *TooManyError
	if taken := sample[0].Value.Uint64() - before; !errors.As(err, &many) || taken > 1<<20 {
		t.Errorf("%d bytes of %d are taken, %v", taken, text.Len(), err)
	}
}
