package train

import (
	"encoding/json"
	"strings"
)

// ByteTokenizer returns the tokenizer.json of a byte-level BPE without merges:
// the token of a byte is its value, and 256 is the end of a text.
func ByteTokenizer() []byte {
	names := byteNames()
	var b strings.Builder
	b.WriteString(`{"version":"1.0","truncation":null,"padding":null,`)
	b.WriteString(`"added_tokens":[{"id":256,"content":"<|endoftext|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],`)
	b.WriteString(`"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},`)
	b.WriteString(`"post_processor":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":true},`)
	b.WriteString(`"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},`)
	b.WriteString(`"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":"","end_of_word_suffix":"","fuse_unk":false,"byte_fallback":false,"ignore_merges":false,"vocab":`)
	vocab := make([]string, 0, Bytes)
	for i, name := range append(names, "<|endoftext|>") {
		quoted, err := json.Marshal(name)
		if err != nil {
			panic("train: a string has no JSON: " + err.Error())
		}
		number, err := json.Marshal(i)
		if err != nil {
			panic("train: a number has no JSON: " + err.Error())
		}
		vocab = append(vocab, string(quoted)+":"+string(number))
	}
	b.WriteString("{" + strings.Join(vocab, ",") + `},"merges":[]}}` + "\n")
	return []byte(b.String())
}

// byteNames are the characters that byte-level BPE writes bytes as: those of
// Latin-1 that can be seen stand for themselves, the others follow 255 in the
// order of their bytes.
func byteNames() []string {
	names := make([]string, 256)
	next := rune(256)
	for b := range names {
		r := rune(b)
		if seen := r >= '!' && r <= '~' || r >= 0xa1 && r <= 0xac || r >= 0xae; !seen {
			r = next
			next++
		}
		names[b] = string(r)
	}
	return names
}
