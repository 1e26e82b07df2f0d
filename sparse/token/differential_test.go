package token

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const defaultCampaign = 2000

var campaign = flag.Int("campaign", defaultCampaign, "random texts for each tokenizer of the differential test")

// The tokenizers of real models beside the reference, on real and on random
// texts.
func TestReference(t *testing.T) {
	python(t)
	texts := realTexts(t)
	r := rand.New(rand.NewPCG(6, 24))
	for range *campaign {
		texts = append(texts, randomText(r, 1+r.IntN(40)))
	}
	texts = append(texts, hostileTexts()...)
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	files := map[string]string{}
	for _, kind := range goldenKinds {
		files[kind] = filepath.Join("testdata", kind+".json")
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"gpt2-50257": gpt2File(t, false), "llama3-50257": gpt2File(t, true),
		"seams-gpt2": seamsFile(t, ""), "seams-llama3": seamsFile(t, patternOf(scanLLaMA3)),
		"seams-qwen2": seamsFile(t, patternOf(scanQwen2))} {
		files[name] = filepath.Join(dir, name+".json")
		if err := os.WriteFile(files[name], data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if dir := os.Getenv("ENTROPIPE_MINILM"); dir != "" {
		files["minilm"] = filepath.Join(dir, "tokenizer.json")
	} else {
		t.Log("without MiniLM's tokenizer: ENTROPIPE_MINILM is not set")
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			compare(t, name, load(t, file), texts, reference(t, file, texts))
			t.Logf("%s: %d texts, %d bytes", name, len(texts), size)
		})
	}
}

// Every code point within words, behind an apostrophe and behind a space, and
// the patterns that no scanner knows.
func TestReferenceEveryCodePoint(t *testing.T) {
	python(t)
	var texts []string
	for page := range 0x1100 {
		var b strings.Builder
		for c := range 256 {
			if r := rune(page<<8 | c); utf8.ValidRune(r) {
				fmt.Fprintf(&b, "ab%ccd'%c 1%cQ%cR%ct", r, r, r, r, r)
			}
		}
		texts = append(texts, b.String())
	}
	dir := t.TempDir()
	for i, pattern := range append([]string{"", patternOf(scanLLaMA3)}, patternsInUse...) {
		if i == 2 { // the other planes hold what is not assigned, or private
			texts = append(texts[:0x330:0x330], texts[0xE00:0xE02]...)
			r := rand.New(rand.NewPCG(8, 15))
			texts = append(texts, hostileTexts()...)
			for range *campaign {
				texts = append(texts, randomText(r, 1+r.IntN(40)))
			}
		}
		file := filepath.Join(dir, fmt.Sprintf("%d.json", i))
		if err := os.WriteFile(file, seamsFile(t, pattern), 0o644); err != nil {
			t.Fatal(err)
		}
		compare(t, pattern, load(t, file), texts, reference(t, file, texts))
	}
}

// realTexts returns the lines of three corpora, and one of them whole.
func realTexts(t *testing.T) []string {
	var texts []string
	for _, parts := range [][]string{{"text", "wikitext-2", "valid.txt"}, {"text", "tinyshakespeare", "input.txt"},
		{"text", "sst2", "dev.tsv"}} {
		data, err := os.ReadFile(testData(t, parts...))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, strings.SplitAfter(string(data), "\n")...)
		texts = append(texts, string(data))
	}
	return texts
}

// gpt2File makes a tokenizer.json of GPT-2's own vocabulary and merges, with
// GPT-2's pre-tokenizer or LLaMA-3's and its ignore_merges.
func gpt2File(t testing.TB, llama3 bool) []byte {
	vocab, err := os.ReadFile(testData(t, "text", "gpt2_bpe", "encoder.json"))
	if err != nil {
		t.Fatal(err)
	}
	merges, err := os.ReadFile(testData(t, "text", "gpt2_bpe", "vocab.bpe"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(merges)), "\n")[1:] // behind the version
	list, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	pattern := ""
	if llama3 {
		pattern = patternOf(scanLLaMA3)
	}
	return byteLevelFile(string(bytes.TrimSpace(vocab)), string(list), pattern, llama3,
		`{"id":50256,"content":"<|endoftext|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}`)
}

func byteLevelFile(vocab, merges, pattern string, ignoreMerges bool, added string) []byte {
	pre := `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}`
	if pattern != "" {
		quoted, _ := json.Marshal(pattern)
		pre = fmt.Sprintf(
			`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":%s},"behavior":"Isolated","invert":false},
			{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]}`, quoted)
	}
	return fmt.Appendf(nil,
		`{"version":"1.0","truncation":null,"padding":null,"added_tokens":[%s],"normalizer":null,"pre_tokenizer":%s,
		"post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},
		"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,
		"fuse_unk":false,"byte_fallback":false,"ignore_merges":%v,"vocab":%s,"merges":%s}}`, added, pre, ignoreMerges, vocab, merges)
}

// patternOf returns the pattern that a scanner stands for.
func patternOf(k scanner) string {
	for pattern, known := range scanPatterns {
		if known == k {
			return pattern
		}
	}
	return ""
}

// seamsFile makes a byte-level tokenizer that shows where words end: every two
// bytes within a word merge, so that each cut moves the tokens behind it.
func seamsFile(t testing.TB, pattern string) []byte {
	vocab, merges := map[string]int{}, []string{}
	for b, r := range byteLetters {
		vocab[string(r)] = b
	}
	for _, a := range byteLetters {
		for _, b := range byteLetters {
			vocab[string([]rune{a, b})] = len(vocab)
			merges = append(merges, string([]rune{a, ' ', b}))
		}
	}
	v, err := json.Marshal(vocab)
	if err != nil {
		t.Fatal(err)
	}
	m, err := json.Marshal(merges)
	if err != nil {
		t.Fatal(err)
	}
	return byteLevelFile(string(v), string(m), pattern, false, "")
}

// The ids of MiniLM's reference texts, which PyTorch's outputs were made from.
func TestMiniLMReferenceIDs(t *testing.T) {
	dir := os.Getenv("ENTROPIPE_MINILM")
	if dir == "" {
		t.Skip("MiniLM: ENTROPIPE_MINILM does not name its directory")
	}
	data, err := os.ReadFile(testData(t, "minilm", "minilm-reference.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Items []struct {
			Text string  `json:"text"`
			IDs  []int32 `json:"input_ids"`
		} `json:"items"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	tok, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range file.Items {
		if got := tok.Encode(nil, s.Text); !slices.Equal(got, s.IDs) {
			t.Errorf("text %d: got %d, want %d", i, got, s.IDs)
		}
	}
	if len(file.Items) == 0 {
		t.Error("no texts")
	}
}
