package token

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Parts of a small file, which a case replaces one of.
var smallFile = map[string]string{
	"version":        `"1.0"`,
	"truncation":     `{"max_length":2,"strategy":"LongestFirst","stride":0}`,
	"padding":        `{"strategy":{"Fixed":128},"direction":"Right","pad_id":0,"pad_type_id":0,"pad_token":"[PAD]"}`,
	"added_tokens":   `[{"id":5,"content":"<x>","special":true}]`,
	"normalizer":     `null`,
	"pre_tokenizer":  `{"type":"BertPreTokenizer"}`,
	"post_processor": `null`,
	"decoder":        `{"type":"WordPiece","prefix":"##","cleanup":true}`,
	"model":          smallWordPiece,
}

const (
	smallWordPiece = `{"type":"WordPiece","unk_token":"?","continuing_subword_prefix":"##","max_input_chars_per_word":9,"vocab":{"?":0,"a":1,"##b":2,"ab":3,"##a":4}}`
	smallVocab     = `"vocab":{"a":0,"b":1,"ab":2,"<0x41>":3,"?":4}`
)

func fileWith(part, data string) []byte {
	var parts []string
	for name, text := range smallFile {
		if name == part {
			text = data
		}
		if text != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", name, text))
		}
	}
	slices.Sort(parts)
	return []byte("{" + strings.Join(parts, ",") + "}")
}

func TestFileIsRead(t *testing.T) {
	for _, c := range []struct {
		part, data, text string
		want             []int32
	}{
		{"", "", "abba a?<x>b ab", []int32{3, 2, 4, 1, 0, 5, 0, 3}},
		{"model", strings.Replace(smallWordPiece, `"type":"WordPiece",`, "", 1), "ab", []int32{3}},
		{"model", `{"merges":["a b"],` + smallVocab + `}`, "abab ba", []int32{2, 2, 1, 0}},
		{"model", `{"type":"BPE","merges":[["a","b"]],"dropout":0.0,"unk_token":null,"continuing_subword_prefix":"","end_of_word_suffix":"",` + smallVocab + `}`, "abcab", []int32{2, 2}},
		{"model", `{"type":"BPE","merges":["#version: 0.2","a b"],"unk_token":"?","fuse_unk":true,` + smallVocab + `}`,
			"xyab x", []int32{4, 2, 4}},
		{"model", `{"type":"BPE","merges":[],"unk_token":"?","byte_fallback":true,` + smallVocab + `}`, "AaxA",
			[]int32{3, 0, 3, 4}},
		{"post_processor",
			`{"type":"Sequence","processors":[{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"q","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{"q":{"id":"q","ids":[1,3],"tokens":["a","ab"]}}},{"type":"BertProcessing","sep":["?",0],"cls":["<x>",5]}]}`,
			"ab", []int32{5, 1, 3, 3, 0}},
		{"normalizer",
			`{"type":"Sequence","normalizers":[{"type":"Replace","pattern":{"String":"z"},"content":"b"},{"type":"Prepend","prepend":"a"}]}`, "z<x>zb", []int32{3, 5, 3, 2}},
		{"added_tokens", `[{"id":3,"content":"ab"},{"id":5,"content":"abb"},{"id":6,"content":"b","single_word":true}]`,
			"xab abb b ba", []int32{0, 3, 5, 6, 0}},
	} {
		tok, err := Parse(fileWith(c.part, c.data))
		if err != nil {
			t.Errorf("%s: %s: %v", c.part, c.data, err)
			continue
		}
		if got := tok.Encode(nil, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: %s: %q: got %d, want %d", c.part, c.data, c.text, got, c.want)
		}
		if got := tok.EncodePart([]int32{-5}, c.text); !slices.Equal(slices.Concat(tok.before, got[1:], tok.after),
			c.want) || got[0] != -5 {
			t.Errorf("%s: %s: %q: got %d of a part, want %d without the special tokens around it", c.part, c.data,
				c.text, got, c.want)
		}
	}
}

func TestErrorsNameTheComponent(t *testing.T) {
	for _, c := range []struct{ part, data, want string }{
		{"version", `"2.0"`, `version: "2.0" is not 1.0`},
		{"version", ``, `version: "" is not 1.0`},
		{"added_tokens", `{}`, `added_tokens`},
		{"added_tokens", `[{"id":7,"content":"<x>"}]`,
			`added_tokens: "<x>": the id is 7, but the next id after the vocabulary is 5`},
		{"added_tokens", `[{"id":2,"content":"ab"}]`, `added_tokens: "ab": the id is 2, but 3 in the vocabulary`},
		{"added_tokens", `[{"id":5,"content":"<x>"},{"id":6,"content":"<x>"}]`,
			`added_tokens: "<x>": the token is listed twice`},
		{"added_tokens", `[{"id":5,"content":""}]`, `added_tokens: a token has no content`},
		{"added_tokens", `[{"id":-1,"content":"y"}]`, `added_tokens: "y": the id is -1`},
		{"normalizer", `{"type":"NFKC"}`, `normalizer: type "NFKC": it is not supported`},
		{"normalizer", `{"type":"Sequence","normalizers":[{"type":"Precompiled","precompiled_charsmap":"AA=="}]}`,
			`normalizer: type "Sequence": type "Precompiled": it is not supported`},
		{"normalizer", `{"type":"Sequence"}`, `normalizer: type "Sequence": normalizers`},
		{"normalizer", `{"lowercase":true}`, `normalizer: the component has no type`},
		{"normalizer", `7`, `normalizer: `},
		{"normalizer", `{"type":"Replace","pattern":{"Regex":" +"},"content":" "}`,
			`normalizer: type "Replace": a pattern other than a String`},
		{"normalizer", strings.Repeat(`{"type":"Sequence","normalizers":[`, 20) + strings.Repeat(`]}`, 20),
			`sequences are nested more than 8 deep`},
		{"pre_tokenizer", `{"type":"Whitespace"}`, `pre_tokenizer: type "Whitespace": it is not supported`},
		{"pre_tokenizer", `{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Digits"}]}`,
			`pre_tokenizer: type "Sequence": type "Digits": after ByteLevel it is not supported`},
		{"pre_tokenizer", `{"type":"ByteLevel"}`,
			`model: WordPiece: it is not supported after the pre-tokenizer ByteLevel`},
		{"pre_tokenizer", `{"type":"Split","pattern":{"Regex":"a"},"behavior":"Dropped","invert":false}`,
			`pre_tokenizer: type "Split": behavior "Dropped"`},
		{"pre_tokenizer", `{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated","invert":false}`,
			`pre_tokenizer: type "Split": pattern "(a"`},
		{"pre_tokenizer", `{"type":"Split","pattern":{},"behavior":"Isolated","invert":false}`,
			`pre_tokenizer: type "Split": the pattern is missing`},
		{"pre_tokenizer", `{"type":"Metaspace","replacement":"__"}`,
			`pre_tokenizer: type "Metaspace": replacement "__" is not one character`},
		{"pre_tokenizer", `{"type":"Metaspace","replacement":"_","prepend_scheme":"last"}`,
			`pre_tokenizer: type "Metaspace": prepend_scheme "last"`},
		{"model", ``, `model: it is missing`},
		{"model", `null`, `model: it is missing`},
		{"model", `{"type":"Unigram","unk_id":0,"vocab":[["a",0.5]]}`, `model: type "Unigram": it is not supported`},
		{"model", `{"vocab":{"a":0}}`, `model: it has no type`},
		{"model", `{"type":"WordPiece","unk_token":"?","vocab":{"?":0}}`,
			`model: WordPiece: unk_token, continuing_subword_prefix or max_input_chars_per_word is missing`},
		{"model", strings.Replace(smallWordPiece, `"unk_token":"?"`, `"unk_token":"!"`, 1),
			`model: WordPiece: unk_token "!" is not in the vocabulary`},
		{"model", strings.Replace(smallWordPiece, `"ab":3`, `"ab":1`, 1),
			`model: WordPiece: vocab: id 1 belongs to "a" and to "ab"`},
		{"model", strings.Replace(smallWordPiece, `"ab":3`, `"ab":-3`, 1),
			`model: WordPiece: vocab: "ab": id -3 is not between 0 and `},
		{"model", strings.Replace(smallWordPiece, `"ab":3`, `"ab":2000000000`, 1),
			`model: WordPiece: vocab: "ab": id 2000000000 is not between 0 and `},
		{"model", strings.Replace(smallWordPiece, `"ab":3`, `"ab":3.5`, 1), `model: WordPiece: json`},
		{"model", `{"type":"BPE","merges":[],"vocab":{}}`, `model: BPE: vocab: it is missing or empty`},
		{"model", `{"type":"BPE","merges":["a c"],` + smallVocab + `}`, `model: BPE: merge 0, ["a" "c"]`},
		{"model", `{"type":"BPE","merges":["a b c"],` + smallVocab + `}`,
			`model: BPE: merge "a b c" is not two tokens`},
		{"model", `{"type":"BPE","merges":[["a"]],` + smallVocab + `}`, `model: BPE: merge ["a"] is not a pair`},
		{"model", `{"type":"BPE","merges":[["a","b","c"]],` + smallVocab + `}`, `is not a pair`},
		{"model", `{"type":"BPE","merges":[["a",null]],` + smallVocab + `}`, `is not a pair`},
		{"model", `{"type":"BPE","merges":[],"dropout":0.1,` + smallVocab + `}`,
			`model: BPE: dropout 0.1 is not supported`},
		{"model", `{"type":"BPE","merges":[],"end_of_word_suffix":"</w>",` + smallVocab + `}`,
			`model: BPE: end_of_word_suffix "</w>" is not supported`},
		{"model", `{"type":"BPE","merges":[],"continuing_subword_prefix":"##",` + smallVocab + `}`,
			`model: BPE: continuing_subword_prefix "##" is not supported`},
		{"model", `{"type":"BPE","merges":[],"unk_token":"!",` + smallVocab + `}`,
			`model: BPE: unk_token "!" is not in the vocabulary`},
		{"post_processor", `{"type":"Other"}`, `post_processor: type "Other": it is not supported`},
		{"post_processor", `{"type":"BertProcessing","sep":["?",0],"cls":["x",99]}`,
			`post_processor: type "BertProcessing": no token has id 99`},
		{"post_processor", `{"type":"BertProcessing","sep":["?"],"cls":["?",0]}`, `post_processor: `},
		{"post_processor",
			`{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"q","type_id":0}}],"special_tokens":{}}`,
			`post_processor: type "TemplateProcessing": special token "q" is not in its list`},
		{"post_processor", `{"type":"TemplateProcessing","single":[],"special_tokens":{}}`,
			`sequence A occurs 0 times but must occur once`},
		{"post_processor",
			`{"type":"TemplateProcessing","single":[{"Sequence":{"id":"B","type_id":0}}],"special_tokens":{}}`,
			`an item is neither a special token nor sequence A`},
		{"decoder", `{"type":"CTC"}`, `decoder: type "CTC": it is not supported`},
		{"decoder", `{"type":"Strip","content":"  ","start":1,"stop":0}`, `decoder: type "Strip": content`},
	} {
		_, err := Parse(fileWith(c.part, c.data))
		if err == nil || !strings.HasPrefix(err.Error(), "tokenizer.json: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.200s:\n got %v\nwant %s", c.part, c.data, err, c.want)
		}
	}
	for _, data := range []string{"", "x", "[]", `{"version":"1.0"`, "null"} {
		if _, err := Parse([]byte(data)); err == nil {
			t.Errorf("%q: no error", data)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "tokenizer.json")) {
		t.Errorf("no file: %v", err)
	}
	path := filepath.Join(dir, "tokenizer.json")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Create(path); err != nil || f.Truncate(MaxFile+1) != nil || f.Close() != nil { // a file of holes
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a file that is too long: %v", err)
	}
	if err := os.WriteFile(path, fileWith("model", `{"type":"X"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.HasPrefix(err.Error(), path+": model: ") {
		t.Errorf("bad file: %v", err)
	}
	if err := os.WriteFile(path, fileWith("", ""), 0o644); err != nil {
		t.Fatal(err)
	}
	tok, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if tok.Vocab() != 6 || len(tok.SHA256()) != 64 {
		t.Errorf("vocab %d, sha256 %q", tok.Vocab(), tok.SHA256())
	}
	if id, ok := tok.ID("##b"); id != 2 || !ok {
		t.Errorf("##b: %d, %v", id, ok)
	}
	if _, ok := tok.ID("zz"); ok {
		t.Error("zz has an id")
	}
	if text, ok := tok.Token(5); text != "<x>" || !ok {
		t.Errorf("5: %q, %v", text, ok)
	}
	for _, id := range []int32{-1, 6} {
		if _, ok := tok.Token(id); ok {
			t.Errorf("%d is a token", id)
		}
	}
	if got := tok.Decode([]int32{3, 2, 5, -1, 99, 1}); got != "abb a" {
		t.Errorf("decoded %q", got)
	}
}

// Whatever a file holds, it is read or refused; and what was read encodes.
func FuzzParse(f *testing.F) {
	f.Add(fileWith("", ""))
	f.Add(byteAlphabet())
	for _, kind := range goldenKinds {
		data, err := os.ReadFile(filepath.Join("testdata", kind+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), "Regex") {
			return // trials of patterns take too long here
		}
		tok, err := Parse(data)
		if err != nil {
			return
		}
		for _, text := range []string{"", "a b", "the [CLS]<x> é\u0301\xff 灯", " ab\n"} {
			ids := tok.Encode(nil, text)
			for _, id := range ids {
				if _, known := tok.Token(id); !known {
					t.Fatalf("%q: id %d, which no token has", text, id)
				}
			}
			tok.Decode(ids)
		}
	})
}
