package token

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// A bare alphabet of bytes: ids are bytes.
func TestByteAlphabetNeedsNoMerges(t *testing.T) {
	tok, err := Parse(byteAlphabet())
	if err != nil {
		t.Fatal(err)
	}
	ids := tok.Encode(nil, "né\n\x00")
	if want := []int32{'n', 0xC3, 0xA9, '\n', 0}; !slices.Equal(ids, want) {
		t.Errorf("got %d, want %d", ids, want)
	}
	if got := tok.Decode(ids); got != "né\n\x00" {
		t.Errorf("decoded %q", got)
	}
}

// byteAlphabet is a tokenizer.json of 256 tokens, id b for byte b.
func byteAlphabet() []byte {
	vocab := ""
	for b, r := range byteLetters {
		if b > 0 {
			vocab += ","
		}
		vocab += fmt.Sprintf("%q:%d", string(r), b)
	}
	return fmt.Appendf(nil, `{"version":"1.0","added_tokens":[],"normalizer":null,
		"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false},
		"post_processor":null,"decoder":{"type":"ByteLevel"},
		"model":{"type":"BPE","vocab":{%s},"merges":[]}}`, vocab)
}

func load(t testing.TB, file string) *Tokenizer {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Parse(data)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return tok
}
