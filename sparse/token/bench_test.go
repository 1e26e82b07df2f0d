package token

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// benchFiles are the tokenizers that speed is measured with.
func benchFiles(tb testing.TB) map[string][]byte {
	files := map[string][]byte{"gpt2": gpt2File(tb, false), "llama3": gpt2File(tb, true)}
	if dir := os.Getenv("ENTROPIPE_MINILM"); dir != "" {
		data, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
		if err != nil {
			tb.Fatal(err)
		}
		files["minilm"] = data
	} else {
		tb.Log("without MiniLM's tokenizer: ENTROPIPE_MINILM is not set")
	}
	return files
}

func benchText(tb testing.TB) string {
	data, err := os.ReadFile(testData(tb, "text", "wikitext-2", "valid.txt"))
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// Encode paragraph by paragraph, as sequences come.
func BenchmarkEncode(b *testing.B) {
	text := benchText(b)
	paragraphs := strings.Split(text, "\n")
	for name, data := range benchFiles(b) {
		b.Run(name, func(b *testing.B) {
			tok, err := Parse(data)
			if err != nil {
				b.Fatal(err)
			}
			var ids []int32
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			start := cpuTime(b)
			defer func() { b.ReportMetric((cpuTime(b)-start).Seconds()*1e9/float64(b.N), "cpu-ns/op") }()
			for b.Loop() {
				for _, p := range paragraphs {
					ids = tok.Encode(ids[:0], p)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for name, data := range benchFiles(b) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := Parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
