package transformer

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"entropipe/sparse/train"
)

// Documents by a tokenizer.json follow one another without the special tokens
// that its post-processor sets around a sequence, and are text.
func TestTokenizedDocumentsHaveNoSpecialTokens(t *testing.T) {
	dir := t.TempDir()
	tokenizer, a, b := filepath.Join(dir, "tokenizer.json"), filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")
	before, rest, _ := bytes.Cut(train.ByteTokenizer(), []byte(`"post_processor":{`))
	_, rest, _ = bytes.Cut(rest, []byte("}"))
	marked := slices.Concat(before,
		[]byte(`"post_processor":{"type":"BertProcessing","sep":["<|endoftext|>",256],"cls":["<|endoftext|>",256]}`),
		rest)
	for path, data := range map[string][]byte{tokenizer: marked, a: []byte("one document and "),
		b: []byte("another one")} {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := (&TrainLM{Files: []string{a, b}, Tokenizer: tokenizer}).read()
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for _, id := range slices.Concat(text.Learn, text.Held) {
		if id > 255 {
			t.Fatalf("token %d in %v, %v", id, text.Learn, text.Held)
		}
		got = append(got, byte(id))
	}
	if string(got) != "one document and another one" {
		t.Errorf("learned %q", got)
	}
	if err := os.WriteFile(b, []byte("not \xff text"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := (&TrainLM{Files: []string{a, b}, Tokenizer: tokenizer}).read(); err == nil ||
		!strings.Contains(err.Error(), "b.txt: is not text in UTF-8") {
		t.Errorf("bytes that are no text: %v", err)
	}
	if text, err := (&TrainLM{Files: []string{a, b}}).read(); err != nil || text.Vocab != train.Bytes {
		t.Errorf("bytes by themselves: %v", err)
	}
}
