package replay

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A key that comes twice and half a character are bad rows; each would send
// another text than the line has. Pairs, escaped backslashes and what is in other
// values are nobody's business.
func TestMembersOfRows(t *testing.T) {
	file := writeFile(t, "rows.jsonl", []byte(strings.Join([]string{
		`{"text": "a", "text": "b"}`,
		`{"text": "a", "Text": "b"}`,
		`{"id": 1, "text": "a", "id": 2}`,
		`{"input_ids": [1], "x": {"y": 1, "y": 2}, "input_ids": [2]}`,
		`{"text": "c", "other": 1, "other": 2}`,
		`{"text": "half \ud83d"}`,
		`{"text": "half \ude00 \ud83d\ude00"}`,
		`{"text": "d", "id": "\ud83d\u0041"}`,
		`{"te\u0078t": "e", "text": "f"}`,
		`{"text": "\ud83d\ude00 \\ud83d \"text\": }{"}`,
		`{"other": ["\ud83d", {"text": 1, "a": "]"}], "text": "g", "id": 7}`,
		` { "input_ids" : [ 1 , 2 ] , "attention_mask" : [ 1 , 1 ] , "more" : null } `,
	}, "\n")))
	src := openTokens(t, Tokens{Files: []string{file}, SkipBad: true})
	all, _, err := readAll(src)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"rows.jsonl:10=\U0001f600 \\ud83d \"text\": }{", "7=g", "rows.jsonl:12[1 2]"},
		names(all)); diff != "" || src.(*tokens).Skipped() != 9 {
		t.Errorf("%d skipped, want 9: %s", src.(*tokens).Skipped(), diff)
	}
	for line, want := range map[string]string{
		`{"text": "a", "text": "b"}`: `rows.jsonl:1:15: the key "text" comes twice`,
		`{"text": "half \udE00"}`:    `rows.jsonl:1:16: text has half a character: \udE00`,
	} {
		_, _, err := readAll(openTokens(t, Tokens{Files: []string{writeFile(t, "rows.jsonl", []byte(line))}}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// The same holds for drawings.
func TestMembersOfDrawings(t *testing.T) {
	for line, want := range map[string]string{
		`{"key_id":"1","drawing":[[[1],[2]]],"word":"cat"}`:                  "",
		`{"key_id":"1","drawing":[[[1],[2]]],"key_id":"2"}`:                  `the key "key_id" comes twice`,
		`{"key_id":"1","drawing":[[[1],[2]]], "drawing":[[[3],[4]]]}`:        `the key "drawing" comes twice`,
		`{"key_id":"1","drawing":[[[1],[2]]],"word":"\ud83d\ude00 \\ud83d"}`: "",
		`{"key_id":"1","drawing":[[[1],[2]]],"word":"cat \ud83d"}`:           `half a character: \ud83d`,
		`{"key_id":"1","drawing":[[[1],[2]]],"other":1,"other":2}`:           "",
	} {
		err := new(drawingParser).parse([]byte(line), new(Drawing))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
