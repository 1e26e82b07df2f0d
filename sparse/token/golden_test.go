package token

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// goldenKinds are the small tokenizers of testdata/reference.py.
var goldenKinds = []string{"wordpiece", "wordpiece-cased", "gpt2", "roberta", "llama3", "qwen2", "o200k", "classes",
	"digits", "digits-runs", "llama2", "metaspace", "metaspace-first"}

// The reference's answers to hostile texts, kept as they were given.
func TestGolden(t *testing.T) {
	texts := hostileTexts()
	for _, kind := range goldenKinds {
		file, answers := filepath.Join("testdata", kind+".json"), filepath.Join("testdata", kind+".golden")
		if *update {
			writeGolden(t, answers, reference(t, file, texts))
		}
		data, err := os.ReadFile(answers)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
		if len(lines) != len(texts) {
			t.Fatalf("%s: %d answers to %d texts", answers, len(lines), len(texts))
		}
		want := make([]encoded, len(lines))
		for i, line := range lines {
			if err := json.Unmarshal(line, &want[i]); err != nil {
				t.Fatal(err)
			}
		}
		compare(t, kind, load(t, file), texts, want)
	}
}

// compare checks ids and decoded text, and shows the first differences.
func compare(t *testing.T, name string, tok *Tokenizer, texts []string, want []encoded) {
	t.Helper()
	wrong := 0
	for i, text := range texts {
		got := tok.Encode(nil, text)
		decoded := tok.Decode(got)
		if slices.Equal(got, want[i].IDs) && decoded == want[i].Decoded {
			continue
		}
		if wrong++; wrong <= 5 {
			t.Errorf("%s: text %d %+.300q:\n got %d %+.300q\nwant %d %+.300q", name, i, text, got, decoded,
				want[i].IDs, want[i].Decoded)
		}
	}
	if wrong > 0 {
		t.Errorf("%s: %d of %d texts differ", name, wrong, len(texts))
	}
}

func writeGolden(t *testing.T, file string, answers []encoded) {
	t.Helper()
	var b bytes.Buffer
	for _, a := range answers {
		line, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
