package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"entropipe/ingest"
	"entropipe/ingest/broker"
	"entropipe/schemas"
)

// writeFile returns the path of a new file in a folder of the test.
func writeFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// readAll returns every sequence of a source, owned, and the error that ended
// it, nil at its end.
func readAll(src Source) (all []schemas.Sequence, items []Item, err error) {
	for {
		var it Item
		if err := src.Next(&it); err != nil {
			if err == io.EOF {
				err = nil
			}
			return all, items, err
		}
		for _, s := range it.Sequences {
			s.IDs = slices.Clone(s.IDs)
			all = append(all, s)
		}
		it.Sequences = it.Sequences[:len(it.Sequences):len(it.Sequences)]
		items = append(items, it)
	}
}

func openTokens(t testing.TB, cfg Tokens) Source {
	t.Helper()
	src, err := cfg.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// byteIDs is a tokenizer for the tests: an id a byte.
func byteIDs(dst []int32, text string) []int32 {
	for i := range len(text) {
		dst = append(dst, int32(text[i]))
	}
	return dst
}

// names returns what a source calls its sequences, with their content.
func names(all []schemas.Sequence) (out []string) {
	for _, s := range all {
		if s.IsText {
			out = append(out, s.ID+"="+s.Text)
		} else {
			out = append(out, fmt.Sprintf("%s%v", s.ID, s.IDs))
		}
	}
	return out
}

// A line is a text, or a paragraph is; blank lines are none.
func TestTexts(t *testing.T) {
	plain := "\xef\xbb\xbfone\r\n\n  \ntwo two\nthree\r\n\n\nfour"
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte(plain))
	z.Close()
	for _, c := range []struct {
		name       string
		data       string
		paragraphs bool
		want       []string
	}{
		{"a.txt", plain, false, []string{"a.txt:1=one", "a.txt:4=two two", "a.txt:5=three", "a.txt:8=four"}},
		{"a.txt", plain, true, []string{"a.txt:1=one", "a.txt:4=two two\nthree", "a.txt:8=four"}},
		{"b.txt.gz", zipped.String(), false, []string{"b.txt.gz:1=one", "b.txt.gz:4=two two", "b.txt.gz:5=three",
			"b.txt.gz:8=four"}},
		{"c.txt", "", false, nil}, {"c.txt", "\n\n \n", true, nil},
	} {
		all, items, err := readAll(openTokens(t,
			Tokens{Files: []string{writeFile(t, c.name, []byte(c.data))}, Paragraphs: c.paragraphs}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, names(all)); diff != "" {
			t.Errorf("%q, paragraphs %v: %s", c.data, c.paragraphs, diff)
		}
		if len(items) > 0 && items[0].Sequence != strings.SplitN(c.name, ".", 2)[0] {
			t.Errorf("%s is sequence %q", c.name, items[0].Sequence)
		}
	}
}

// A line of JSON has ids, of which the mask cuts padding, or text. What is wrong
// is named with its line, and skipped if allowed.
func TestJSONLines(t *testing.T) {
	good := `{"id": "a", "input_ids": [101, 7, 102], "token_type_ids": [0, 0, 0]}
{"id": 7, "text": "t\u00e9xt"}

{"input_ids": [ 1 , 2, 0 ], "attention_mask": [1,1,0]}
{"ID": "b", "text": "not this", "input_ids": [5]}
{"id": null, "text": ""}
{"id": "", "input_ids": [2147483647]}
`
	all, _, err := readAll(openTokens(t, Tokens{Files: []string{writeFile(t, "a.jsonl", []byte(good))}}))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a[101 7 102]", "7=téxt", "a.jsonl:4[1 2]", "b[5]", "a.jsonl:6=", "a.jsonl:7[2147483647]"}
	if diff := cmp.Diff(want, names(all)); diff != "" {
		t.Error(diff)
	}
	for line, want := range map[string]string{
		`{"input_ids": [1, null]}`: "element 1", `{"input_ids": [1.5]}`: "1.5", `{"input_ids": [[1]]}`: "element 0",
		`{"input_ids": 5}`: "arrays of integers", `{"input_ids": []}`: "no token",
		`{"input_ids": [-1]}`: "token 0 is -1", `{"input_ids": [2147483648]}`: "2147483648",
		`{"input_ids": [1], "attention_mask": [1, 1]}`:    "2 values",
		`{"input_ids": [1, 2], "attention_mask": [0, 1]}`: "padding at the end",
		`{"input_ids": [1], "attention_mask": [0]}`:       "no token", `{"input_ids": [300]}`: "below 256",
		`{"id": "x"}`: "neither", `{"text": 5}`: "text is a JSON number, want a string",
		`{"id": {}, "text": "a"}`: "id is neither", `{"text": "a"`: ":1:", "{\"text\": \"\xff\"}": "UTF-8",
		`[]`: "is a JSON array, want an object", `{"input_ids": [9223372036854775808]}`: "9223372036854775808",
	} {
		path := writeFile(t, "bad.jsonl", []byte(line+"\n{\"text\": \"after\"}\n"))
		_, _, err := readAll(openTokens(t, Tokens{Files: []string{path}, Vocabulary: schemas.Vocabulary{Size: 256}}))
		var bad *BadInputError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "--skip-bad") {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
		src := openTokens(t, Tokens{Files: []string{path}, SkipBad: true, Vocabulary: schemas.Vocabulary{Size: 256}})
		all, _, err := readAll(src)
		if err != nil || len(all) != 1 || all[0].Text != "after" || src.(*tokens).Skipped() != 1 {
			t.Errorf("%s: skipped: %v, %v", line, names(all), err)
		}
	}
}

// Packs hold one schema and one name, and no more than was asked for; reading
// again yields the same.
func TestTokenPacks(t *testing.T) {
	a := writeFile(t, "a.jsonl", []byte(`{"text": "1"}
{"text": "2"}
{"text": "3"}
{"input_ids": [4]}
{"text": "5"}
`))
	b := writeFile(t, "b.txt", []byte("6\n7\n"))
	src := openTokens(t, Tokens{Files: []string{a, b}, Pack: 2})
	for pass := range 2 {
		all, items, err := readAll(src)
		if err != nil || len(all) != 7 {
			t.Fatalf("pass %d: %d sequences, %v", pass, len(all), err)
		}
		var got []string
		for _, it := range items {
			got = append(got, fmt.Sprintf("%s/%d: %d", it.Sequence, it.Number, len(it.Sequences)))
		}
		want := []string{"a/0: 2", "a/2: 1", "a/3: 1", "a/4: 1", "b/0: 2"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("pass %d: %s", pass, diff)
		}
		if err := src.Rewind(); err != nil {
			t.Fatal(err)
		}
	}
	big := strings.Repeat("x", 200<<10)
	_, items, err := readAll(openTokens(t, Tokens{Files: []string{writeFile(t, "c.txt",
		[]byte(strings.Repeat(big+"\n", 7)))}}))
	if err != nil || len(items) != 3 || len(items[0].Sequences) != 3 {
		t.Errorf("%d packs of 200 KiB lines, %v", len(items), err)
	}
}

// With a tokenizer texts become ids; what has none is refused.
func TestEncodedTexts(t *testing.T) {
	path := writeFile(t, "a.jsonl", []byte("{\"text\": \"ab\"}\n{\"text\": \"\"}\n{\"input_ids\": [5]}\n"))
	src := openTokens(t, Tokens{Files: []string{path}, Encode: byteIDs, SkipBad: true})
	all, items, err := readAll(src)
	if diff := cmp.Diff([]string{"a.jsonl:1[97 98]", "a.jsonl:3[5]"}, names(all)); diff != "" || err != nil ||
		len(items) != 1 || items[0].Points() != 3 || items[0].Frames() != 2 {
		t.Errorf("%v %+v %s", err, items, diff)
	}
}

// Law: the sequences that are cut, joined, are the ids of the files, joined
// again and again, and as long as the trace says.
func TestCutSequences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching("[a-z]{1,20}"), 1, 5).Draw(t, "lines")
		lengths := rapid.SliceOfN(rapid.Int32Range(1, 30), 1, 6).Draw(t, "lengths")
		total := rapid.Int64Range(0, 20).Draw(t, "sequences")
		dir, err := os.MkdirTemp("", "cut")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		var files []string
		for i, line := range lines { // a file a line
			files = append(files, filepath.Join(dir, fmt.Sprint(i, ".txt")))
			if err := os.WriteFile(files[i], []byte(line), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		src, err := Tokens{Files: files, Encode: byteIDs, Lengths: lengths, Sequences: total, Pack: 3}.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		all, items, err := readAll(src)
		if err != nil {
			t.Fatal(err)
		}
		if total == 0 {
			total = int64(len(lengths))
		}
		if int64(len(all)) != total || src.(*tokens).Len() != total {
			t.Fatalf("%d sequences, want %d", len(all), total)
		}
		ring, at := byteIDs(nil, strings.Join(lines, "")), 0
		for i, s := range all {
			if len(s.IDs) != int(lengths[i%len(lengths)]) || s.ID != fmt.Sprintf("0-%d", i) {
				t.Fatalf("sequence %d, %q: %d ids, want %d", i, s.ID, len(s.IDs), lengths[i%len(lengths)])
			}
			for _, id := range s.IDs {
				if id != ring[at%len(ring)] {
					t.Fatalf("sequence %d: id %d, want %d", i, id, ring[at%len(ring)])
				}
				at++
			}
		}
		for _, it := range items {
			if it.Sequence != "0" {
				t.Fatalf("an item of %q", it.Sequence)
			}
		}
		if err := src.Rewind(); err != nil {
			t.Fatal(err)
		}
		if again, _, err := readAll(src); err != nil || !cmp.Equal(all, again) {
			t.Fatalf("again: %v, %s", err, cmp.Diff(all, again))
		}
	})
}

// There must be something to cut, and by tokens.
func TestWhatCannotBeCut(t *testing.T) {
	text, blank := writeFile(t, "a.txt", []byte("abc")), writeFile(t, "b.txt", []byte("\n"))
	for want, cfg := range map[string]Tokens{
		"need a tokenizer": {Files: []string{text}, Lengths: []int32{5}},
		"no token to cut":  {Files: []string{blank, blank}, Encode: byteIDs, Lengths: []int32{5}},
	} {
		if _, _, err := readAll(openTokens(t, cfg)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for want, cfg := range map[string]Tokens{
		"1 or more": {Files: []string{text}, Lengths: []int32{0}}, "no file": {},
		"no such file": {Files: []string{"absent.txt"}}, "is not a file": {Files: []string{"."}},
		"want .txt":         {Files: []string{writeFile(t, "a.csv", nil)}},
		".parquet.gz: want": {Files: []string{writeFile(t, "a.parquet.gz", nil)}},
	} {
		if _, err := cfg.Open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The two forms of traces, and what is wrong with others.
func TestReadLengths(t *testing.T) {
	azure := "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 " +
		"18:17:04.0319600,0,8\n2023-11-16 18:17:05,12,8\n"
	mooncake := "{\"timestamp\": 0, \"input_length\": 40160, \"output_length\": 6}\n\n{\"input_length\": 7}\n"
	for _, c := range []struct {
		name, data string
		clip       int
		want       []int32
		fault      string
	}{
		{"a.csv", azure, 512, []int32{512, 12}, ""}, {"a.csv", azure, 0, []int32{4808, 12}, ""},
		{"a.jsonl", mooncake, 512, []int32{512, 7}, ""}, {"a.CSV", "\ufefflength\n 3 \n", 0, []int32{3}, ""},
		{"a.csv", "a,b\n1,2\n", 0, nil, "none of its columns"}, {"a.csv", "length\nx\n", 0, nil, ":2:"},
		{"a.csv", "length\n0\n", 0, nil, "no request"}, {"a.csv", "", 0, nil, "a.csv"},
		{"a.csv", "length\n99999999999\n", 0, nil, "clip"}, {"a.csv", "length,b\n1\n", 0, nil, "fields"},
		{"a.jsonl", "{\"x\": 1}\n", 0, nil, ":1:"}, {"a.jsonl", "{\"length\": 1.5}\n", 0, nil, ":1:"},
		{"a.jsonl", "nonsense\n", 0, nil, ":1:"},
	} {
		got, err := ReadLengths(writeFile(t, c.name, []byte(c.data)), c.clip)
		if c.fault == "" && (err != nil || !slices.Equal(got, c.want)) ||
			c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s %q: %v, %v, want %v, %q", c.name, c.data, got, err, c.want, c.fault)
		}
	}
}

// What is sent is what a consumer decodes: packs without a key in all
// partitions, with names, numbers and times of their own, over several passes
// and up to the limit.
func TestTokensReachTheirTopic(t *testing.T) {
	b := startBroker(t, broker.Config{})
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	path := writeFile(t, "book.txt", []byte(text.String()))
	for _, c := range []struct {
		topic  string
		encode func([]int32, string) []int32
		schema string
	}{{"texts", nil, schemas.SchemaText}, {"ids", byteIDs, schemas.SchemaTokens}} {
		p := &Producer{Brokers: []string{b.Addr()}, Topic: c.topic, Create: ingest.TopicSpec{Partitions: 3},
			Compression: "lz4", Play: Play{Rate: Rate{}.Untimed(), Loop: 3, Limit: 50}}
		st, err := p.Run(soon(t), openTokens(t, Tokens{Files: []string{path}, Pack: 4, Encode: c.encode,
			Vocabulary: schemas.Vocabulary{Tokenizer: "bytes", Size: 256}}))
		if err != nil || st.Frames != 50 || st.Messages != 13 || (st.Points > 0) != (c.encode != nil) {
			t.Fatalf("%+v, %v", st, err)
		}
		got, partitions := map[int64]string{}, map[int32]bool{}
		var d schemas.Decoder
		for _, m := range consume(t, b.Addr(), c.topic, 3, 13) {
			if m.Key != nil || !schemas.IsTokens(&m) {
				t.Fatalf("key %q, headers %q", m.Key, m.Headers)
			}
			partitions[m.Partition] = true
			rows, err := d.Sequences(m)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range rows {
				line := s.Text
				for _, id := range s.IDs {
					line += string(rune(id))
				}
				if s.Err != nil || s.Dataset != "tokens" || s.Sequence != "book" || s.IsText != (c.encode == nil) ||
					s.TimeNs < DefaultEpoch.UnixNano() {
					t.Fatalf("%+v", s)
				}
				got[s.FrameID] = s.ID + "=" + line
			}
		}
		for i := range int64(50) {
			if want := fmt.Sprintf("book.txt:%d=line %d", i%20+1, i%20); got[i] != want {
				t.Errorf("%s: sequence %d is %q, want %q", c.schema, i, got[i], want)
			}
		}
		if len(partitions) != 3 || len(got) != 50 {
			t.Errorf("%s: %d sequences in %d partitions", c.schema, len(got), len(partitions))
		}
	}
}
