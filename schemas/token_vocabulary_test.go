package schemas

import (
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// What a message says of the tokenizer of its ids is read from its schema's
// metadata and from headers, and must not contradict itself.
func TestVocabularyOfAMessage(t *testing.T) {
	sha, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	encode := func(v Vocabulary) []byte {
		value, err := new(Encoder).AppendTokens(nil, []Sequence{{ID: "a", IDs: []int32{1}}}, v)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	text, err := new(Encoder).AppendText(nil, []Sequence{{ID: "a", Text: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	header := func(pairs ...string) (hs []Header) {
		for i := 0; i < len(pairs); i += 2 {
			hs = append(hs, Header{Key: pairs[i], Value: []byte(pairs[i+1])})
		}
		return hs
	}
	for _, c := range []struct {
		name    string
		value   []byte
		headers []Header
		want    Vocabulary
		bad     string // part of the error
	}{
		{"nothing", encode(Vocabulary{}), nil, Vocabulary{}, ""},
		{"metadata", encode(Vocabulary{"minilm", 30522, sha}), nil, Vocabulary{"minilm", 30522, sha}, ""},
		{"capitals", encode(Vocabulary{SHA256: strings.ToUpper(sha)}), nil, Vocabulary{SHA256: sha}, ""},
		{"headers", encode(Vocabulary{}), header("Tokenizer_SHA256", sha, "vocab-size", "7"),
			Vocabulary{"", 7, sha}, ""},
		{"both", encode(Vocabulary{"x", 7, sha}), header("tokenizer-sha256", sha, "vocab_size", "7"),
			Vocabulary{"x", 7, sha}, ""},
		{"empty headers", encode(Vocabulary{"x", 7, sha}), header("tokenizer-sha256", "", "vocab_size", ""),
			Vocabulary{"x", 7, sha}, ""},
		{"of texts", text, header("tokenizer-sha256", sha), Vocabulary{SHA256: sha}, ""},
		{"two hashes", encode(Vocabulary{"x", 7, sha}), header("tokenizer-sha256", other), Vocabulary{}, other},
		{"two sizes", encode(Vocabulary{"x", 7, sha}), header("vocab-size", "8"), Vocabulary{}, "vocab-size is 8"},
		{"no hash", encode(Vocabulary{SHA256: "md5:1"}), nil, Vocabulary{}, `"md5:1"`},
		{"a short hash", encode(Vocabulary{}), header("tokenizer-sha256", sha[1:]), Vocabulary{}, sha[1:]},
		{"no size", encode(Vocabulary{}), header("vocab-size", "many"), Vocabulary{}, `"many"`},
		{"a size of none", encode(Vocabulary{}), header("vocab-size", "0"), Vocabulary{}, `"0"`},
		{"beyond int32", encode(Vocabulary{}), header("vocab-size", "2147483648"), Vocabulary{}, "2147483648"},
	} {
		var d Decoder
		for range 2 { // the second time from the schemas that are remembered
			_, err := d.Sequences(Message{Value: c.value, Headers: c.headers})
			switch {
			case c.bad == "" && err != nil || c.bad != "" &&
				(reasonOf(t, err) != ReasonBadHeader || !strings.Contains(err.Error(), c.bad)):
				t.Errorf("%s: %v, want %q", c.name, err, c.bad)
			case d.Vocabulary() != c.want:
				t.Errorf("%s: %+v, want %+v", c.name, d.Vocabulary(), c.want)
			}
		}
	}
}

// Other metadata may stand beside, and of a key that stands there twice the last
// one counts.
func TestVocabularyAmongOtherMetadata(t *testing.T) {
	sha := strings.Repeat("0f", 32)
	meta := arrow.NewMetadata([]string{"pandas", "vocab_size", "tokenizer_sha256", "tokenizer_sha256"},
		[]string{strings.Repeat("{}", 5000), "9", "no hash", sha})
	rec := record(t, field{"input_ids", arrow.ListOf(i32), fiveLists})
	schema := arrow.NewSchema(rec.Schema().Fields(), &meta)
	value := write(t, []arrow.Record{array.NewRecord(schema, rec.Columns(), rec.NumRows())})
	var d Decoder
	if _, err := d.Sequences(Message{Value: value}); err != nil ||
		d.Vocabulary() != (Vocabulary{Size: 9, SHA256: sha}) {
		t.Errorf("%+v, %v", d.Vocabulary(), err)
	}
	if _, err := d.Sequences(Message{}); err == nil || d.Vocabulary() != (Vocabulary{}) {
		t.Errorf("after an error: %+v, %v", d.Vocabulary(), err)
	}
}
