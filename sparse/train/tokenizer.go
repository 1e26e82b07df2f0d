package train

import (
	"encoding/json"
	"strings"
)

// ByteTokenizer returns the contents of a tokenizer.json of a byte-level BPE
// without merges: the token of a byte is its value, and 256 is EndOfText.
func ByteTokenizer() []byte {
	names := byteNames()
	var b strings.Builder
	b.WriteString(`{"version":"1.0","truncation":null,"padding":null,`)
	b.WriteString(
		`"added_tokens":[{"id":256,"content":"<|endoftext|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],`)
	b.WriteString(
		`"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},`)
	b.WriteString(
		`"post_processor":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":true},`)
	b.WriteString(`"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},`)
	b.WriteString(
		`"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":"","end_of_word_suffix":"","fuse_unk":false,"byte_fallback":false,"ignore_merges":false,"vocab":`)
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

// byteNames returns the character by which byte-level BPE writes each byte. A
// printable character of Latin-1 stands for itself; the other bytes get the
// characters from 256 on, in ascending order.
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
