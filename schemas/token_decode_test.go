package schemas

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Law: the decoder, in place and by conversion, finds what Arrow's own reader
// finds, whatever the form of the stream and its alignment.
func TestSequencesAgreeWithArrow(t *testing.T) {
	fast, slow := &Decoder{}, &Decoder{throughArrow: true}
	for _, s := range tokenStreams(t) {
		t.Run(s.name, func(t *testing.T) {
			for shift := range 9 {
				value := append(make([]byte, shift, shift+len(s.value)), s.value...)[shift:]
				m := Message{Topic: "t", Partition: 3, Offset: 40, Value: value}
				if !IsTokens(&m) {
					t.Fatal("IsTokens says no")
				}
				for name, d := range map[string]*Decoder{"in place": fast, "converted": slow} {
					got, err := d.Sequences(m)
					if err != nil || len(got) != s.frames {
						t.Fatalf("%s, shift %d: %d sequences, want %d, %v", name, shift, len(got), s.frames, err)
					}
					rows, err := readRows(&m)
					if err != nil {
						t.Fatalf("Arrow cannot read the test's own stream: %v", err)
					}
					if diff := compareRows(rows, got, &m); diff != "" {
						t.Fatalf("%s, shift %d: %s", name, shift, diff)
					}
				}
			}
		})
	}
}

// Law: a range of the rows is what stands there among all of them, and a message
// that is refused is refused for the same reason whatever the range.
func TestRangesOfSequences(t *testing.T) {
	streams := tokenStreams(t)
	for _, s := range badTokenStreams(t) {
		streams = append(streams, stream{name: s.name, value: s.value})
	}
	var whole, part Decoder
	for _, s := range streams {
		m := Message{Topic: "t", Partition: 3, Offset: 40, Value: s.value}
		all, failed := whole.Sequences(m)
		for from := -1; from <= len(all)+1; from++ {
			for to := from - 1; to <= len(all)+2; to++ {
				got, rows, err := part.SequencesOf(m, from, to)
				if fmt.Sprint(err) != fmt.Sprint(failed) || rows != len(all) {
					t.Fatalf("%s, [%d, %d): %d rows, %v; all: %d, %v", s.name, from, to, rows, err, len(all), failed)
				}
				first := min(max(from, 0), len(all))
				want := all[first:min(max(to, first), len(all))]
				if diff := cmp.Diff(append([]Sequence{}, want...), append([]Sequence{}, got...)); diff != "" {
					t.Fatalf("%s, [%d, %d): %s", s.name, from, to, diff)
				}
			}
		}
	}
}

// A row's fault is its own, with a reason, and the rows around it stay.
func TestFaultyRowsAreRefusedAlone(t *testing.T) {
	var d Decoder
	for _, s := range tokenStreams(t) {
		if s.name != "faulty rows" {
			continue
		}
		got, err := d.Sequences(Message{Topic: "t", Value: s.value})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{ReasonBadValue, ReasonEmptySequence, ReasonIDOutOfRange, ReasonIDOutOfRange, "",
			ReasonEmptySequence, ReasonBadMask, ReasonBadMask, ReasonBadMask}
		for i, q := range got {
			reason := ""
			if q.Err != nil {
				reason = q.Err.Reason
				if (q.Err.Stage == StageModel) != (reason != ReasonBadValue) || q.Err.Detail == "" {
					t.Errorf("row %d: %+v", i, q.Err)
				}
			}
			if reason != want[i] {
				t.Errorf("row %d: fault %q, want %q (%v)", i, reason, want[i], q.Err)
			}
		}
		return
	}
	t.Fatal("there is no such stream")
}

// Ids of int32 are not copied, and a message costs one string of names.
func TestPlainTokensAreReadInPlace(t *testing.T) {
	value := write(t, []arrow.Record{record(t, field{"id", text, fiveIDs},
		field{"input_ids", arrow.ListOf(i32), fiveLists})})
	var d Decoder
	m := Message{Topic: "t", Value: value}
	got, err := d.Sequences(m)
	if err != nil {
		t.Fatal(err)
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(value)))
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(got[1].IDs))); at < first || at >= first+uintptr(len(value)) {
		t.Error("the ids were copied")
	}
	if n := testing.AllocsPerRun(20, func() { IsTokens(&m) }); n != 0 {
		t.Errorf("IsTokens: %v allocations", n)
	}
	if n := testing.AllocsPerRun(20, func() { _, _ = d.Sequences(m) }); n > 24 { // Arrow's arrays of the names
		t.Errorf("%v allocations a message", n)
	}
}

func badTokenStreams(t testing.TB) []bad {
	one := func(fields ...field) []byte { return write(t, []arrow.Record{record(t, fields...)}) }
	list := field{"input_ids", arrow.ListOf(i32), `[[1, 2]]`}
	value := one(list)
	batch := func(patch func(m *ipcMessage)) []byte {
		value := bytes.Clone(value)
		eachMessage(value, func(at int, _ []byte) {
			if m, _, _ := readMessage(value, at); m.kind == kindRecordBatch {
				patch(&m)
			}
		})
		return value
	}
	node := func(i int, v int64) []byte {
		return batch(func(m *ipcMessage) {
			nodes, _ := m.vector(m.header, 1, 16)
			put64(m.b, nodes+8*i, v)
		})
	}
	return []bad{
		{name: "tombstone", value: nil, reason: ReasonEmpty},
		{name: "no bytes", value: []byte{}, reason: ReasonEmpty},
		{name: "no rows", value: write(t, []arrow.Record{record(t, list).NewSlice(0, 0)}), reason: ReasonEmpty},
		{name: "no batch", value: value[:schemaBytes(value)], reason: ReasonEmpty},
		{name: "half a stream", value: value[:len(value)/2], reason: ReasonTruncated},
		{name: "points", value: one(xyz(f32)...), schema: SchemaPoints, reason: ReasonUnknownSchema},
		{name: "points without a header", value: one(xyz(f32)...), reason: ReasonMissingColumn},
		{name: "tokens as text", value: value, schema: SchemaText, reason: ReasonMissingColumn},
		{name: "text as tokens", value: one(field{"text", text, `["a"]`}), schema: SchemaTokens,
			reason: ReasonMissingColumn},
		{name: "ids twice", value: one(list, list), reason: ReasonDuplicateColumn},
		{name: "ids no list", value: one(field{"input_ids", i32, "[1]"}), reason: ReasonBadType},
		{name: "ids of floats", value: one(field{"input_ids", arrow.ListOf(f32), "[[1]]"}), reason: ReasonBadType},
		{name: "ids of booleans", value: one(field{"input_ids", arrow.ListOf(arrow.FixedWidthTypes.Boolean),
			"[[true]]"}), reason: ReasonBadType},
		{name: "ids of lists", value: one(field{"input_ids", arrow.ListOf(arrow.ListOf(i32)), "[[[1]]]"}),
			reason: ReasonBadType},
		{name: "ids a map", value: one(field{"input_ids", arrow.MapOf(i32, i32), `[[{"key": 1, "value": 1}]]`}),
			reason: ReasonBadType},
		{name: "mask of floats", value: one(list, field{"attention_mask", arrow.ListOf(f32), "[[1, 1]]"}),
			reason: ReasonBadType},
		{name: "mask a number", value: one(list, field{"attention_mask", i32, "[1]"}), reason: ReasonBadType},
		{name: "id a float", value: one(list, field{"id", f64, "[1]"}), reason: ReasonBadType},
		{name: "text a number", value: one(field{"text", i32, "[1]"}), reason: ReasonBadType},
		{name: "ts a number", value: one(list, field{"ts", i64, "[1]"}), reason: ReasonBadType},
		{name: "ts_ns in microseconds", value: one(list,
			field{"ts_ns", arrow.FixedWidthTypes.Timestamp_us, `["1970-01-01 00:00:01"]`}), reason: ReasonBadType},
		{name: "more elements than bytes", value: node(2, 1000), reason: ReasonBadLength},
		{name: "elements beyond int32", value: node(2, 1<<40), reason: ReasonBadLength},
		{name: "elements beyond bits", value: node(2, math.MaxInt64), reason: ReasonBadLength},
		{name: "list beyond the elements", value: node(2, 1), reason: ReasonCorrupt},
		{name: "null elements without a bitmap", value: node(3, 1), reason: ReasonBadLength},
		{name: "null lists without a bitmap", value: node(1, 1), reason: ReasonBadLength},
		{name: "list that ends before it starts", value: batch(func(m *ipcMessage) {
			bufs, _ := m.vector(m.header, 2, 16)
			m.body[m.i64(bufs+16)] = 7
		}), reason: ReasonCorrupt},
		{name: "offsets cut", value: batch(func(m *ipcMessage) {
			bufs, _ := m.vector(m.header, 2, 16)
			put64(m.b, bufs+16+8, 4)
		}), reason: ReasonBadLength},
		{
			name: "fixed lists of negative size",
			value: patchSchema(one(field{"input_ids", arrow.FixedSizeListOf(2, i32),
				"[[1, 2]]"}), func(f *flat, schema table) {
				fields, _ := f.vector(schema, 1, 4)
				copy(f.b[f.field(f.sub(f.table(f.deref(fields)), 3), 0):], []byte{255, 255, 255, 255})
			}),
			reason: ReasonCorrupt,
		},
	}
}

// Every kind of bad value has its reason, and the decoder works on behind it.
func TestBadSequencesAreRefused(t *testing.T) {
	var d Decoder
	good := tokenStreams(t)[0]
	for _, c := range badTokenStreams(t) {
		m := Message{Topic: "t", Value: c.value}
		if c.schema != "" {
			m.Headers = []Header{{"Schema", []byte(c.schema)}}
		}
		got, err := d.Sequences(m)
		if reason := reasonOf(t, err); reason != c.reason || got != nil {
			t.Errorf("%s: reason %q (%v), want %q; %d sequences", c.name, reason, err, c.reason, len(got))
		}
		if got, err := d.Sequences(Message{Topic: "t", Value: good.value}); err != nil || len(got) != 5 ||
			!slices.Equal(got[3].IDs, []int32{9}) {
			t.Fatalf("after %s: %v, %v", c.name, got, err)
		}
	}
	if _, err := d.Sequences(Message{Topic: "t", Value: kittiValue(),
		Headers: []Header{{HeaderContentType, []byte(ContentTypeKITTI)}}}); reasonOf(t,
		err) != ReasonUnknownContentType {
		t.Errorf("a .bin file: %v", err)
	}
}

// The header says what a message is; without it the columns do. Neither Decode
// nor Sequences reads the other's.
func TestWhatIsTokens(t *testing.T) {
	one := func(names ...string) []byte {
		var fields []field
		for _, n := range names {
			fields = append(fields, field{n, text, `["1"]`})
		}
		return write(t, []arrow.Record{record(t, fields...)})
	}
	for _, c := range []struct {
		value  []byte
		schema string
		want   bool
	}{
		{one("input_ids"), "", true}, {one("x", "y", "INPUT_IDS"), "", true}, {one("id", "text"), "", true},
		{one("x", "text"), "", false}, {one("drawing_id", "text"), "", false}, {one("x", "y"), "", false},
		{one("input_ids"), SchemaPoints, false}, {one("x"), SchemaTokens, true}, {one("x"), SchemaText, true},
		{one("input_ids"), "meshes/1", false},
		{nil, "", false}, {nil, SchemaTokens, true}, {[]byte("text"), "", false}, {kittiValue(), "", false},
	} {
		m := Message{Value: c.value, Headers: []Header{{"SCHEMA", []byte(c.schema)}}}
		if got := IsTokens(&m); got != c.want {
			t.Errorf("schema %q, %d bytes: IsTokens says %v", c.schema, len(c.value), got)
		}
		wantText := c.schema == SchemaText || c.schema == "" && c.want &&
			!bytes.Contains(bytes.ToLower(c.value), []byte("input_ids"))
		if got := IsText(&m); got != wantText {
			t.Errorf("schema %q, %d bytes: IsText says %v", c.schema, len(c.value), got)
		}
	}
	var d Decoder
	if _, err := d.Decode(Message{Topic: "t", Value: tokenStreams(t)[0].value}); reasonOf(t,
		err) != ReasonUnknownSchema {
		t.Errorf("Decode of tokens: %v", err)
	}
}

// Limits hold for what is declared, for what overlaps and for what widens.
func TestSizesOfSequencesAreLimited(t *testing.T) {
	const limit = 1 << 16
	zeros := "[[" + strings.Repeat("0,", 1<<15) + "0]]"
	rows := "[" + strings.Repeat("[1],", 2000) + "[1]]"
	long := `["` + strings.Repeat("a", 2000) + `"`
	again := long + strings.Repeat(`,"`+strings.Repeat("a", 2000)+`"`, 39) + "]"
	for name, value := range map[string][]byte{
		"plain": write(t, []arrow.Record{record(t, field{"input_ids", arrow.ListOf(i32), zeros})}),
		"zstd bomb": write(t, []arrow.Record{record(t, field{"input_ids", arrow.ListOf(i32), zeros})},
			ipc.WithZstd()),
		"int8 that widen": write(t, []arrow.Record{record(t,
			field{"input_ids", arrow.ListOf(arrow.PrimitiveTypes.Int8), zeros})}),
		"overlapping views": overlapping(t, 200, 200),
		"one token a row":   write(t, []arrow.Record{record(t, field{"input_ids", arrow.ListOf(i32), rows})}),
		"texts of one word": write(t, []arrow.Record{record(t, field{"text", dictOf(i32, text), again})}),
		"ids of one word": write(t, []arrow.Record{record(t, field{"id", dictOf(i32, text), again},
			field{"text", dictOf(i32, text), again})}),
		"more than the limit": make([]byte, limit+1),
	} {
		d := Decoder{MaxBytes: limit}
		if _, err := d.Sequences(Message{Topic: "t", Value: value, Headers: []Header{{HeaderSchema, nil}}}); reasonOf(
			t,
			err,
		) != ReasonTooLarge {
			t.Errorf("%s: %v, want %s", name, err, ReasonTooLarge)
		}
	}
}

// Law: decode(encode(sequences)) are the sequences, with ids, names and times,
// and Arrow's reader finds the same.
func TestSequencesRoundTrip(t *testing.T) {
	var e Encoder
	var d Decoder
	name := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "é"}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.Bool().Draw(t, "texts")
		rows := make([]Sequence, rapid.IntRange(1, 20).Draw(t, "rows"))
		for i := range rows {
			s := &rows[i]
			s.ID = name.Draw(t, "id")
			s.TimeNs = rapid.Int64Range(-1e15, 1e15).Draw(t, "time") / 1e3 * 1e3
			if texts {
				s.Text = name.Draw(t, "text")
			} else {
				s.IDs = rapid.SliceOfN(rapid.Int32Range(0, math.MaxInt32), 1, 9).Draw(t, "ids")
			}
		}
		e.Compression = rapid.SampledFrom(codecs).Draw(t, "compression")
		var value []byte
		var err error
		if texts {
			value, err = e.AppendText([]byte("prefix"), rows)
		} else {
			value, err = e.AppendTokens([]byte("prefix"), rows, Vocabulary{Tokenizer: "bytes"})
		}
		if err != nil {
			t.Fatal(err)
		}
		m := Message{Topic: "t", Offset: 7, Value: bytes.TrimPrefix(value, []byte("prefix"))}
		got, err := d.Sequences(m)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			want := rows[i]
			want.IsText = texts
			if want.FrameKey = got[i].FrameKey; rows[i].TimeNs != 0 {
				want.TimeNs = rows[i].TimeNs
			}
			if want.ID == "" {
				want.ID = fmt.Sprintf("t/0/7/%d", i)
			}
			if got[i].FrameID != 7+int64(i) || got[i].Index != int32(i) || !cmp.Equal(got[i], want) {
				t.Fatalf("sequence %d is %+v, want %+v", i, got[i], want)
			}
		}
		ref, err := readRows(&m)
		if err != nil {
			t.Fatal(err)
		}
		if diff := compareRows(ref, got, &m); diff != "" {
			t.Fatal(diff)
		}
	})
}

// What consumers would refuse is an error of the encoder, and dst stays.
func TestEncoderRefusesSequences(t *testing.T) {
	good := Sequence{ID: "a", IDs: []int32{1}}
	for name, rows := range map[string][]Sequence{
		"no sequence": nil, "no token": {good, {ID: "b"}}, "negative": {{IDs: []int32{-1}}},
		"beyond the vocabulary": {good, {IDs: []int32{9, 10}}}, "no UTF-8": {{ID: "\xff", IDs: []int32{1}}},
	} {
		if out, err := new(Encoder).AppendTokens([]byte("dst"), rows, Vocabulary{Size: 10}); err == nil ||
			string(out) != "dst" {
			t.Errorf("%s: %v, %q", name, err, out)
		}
	}
	for name, rows := range map[string][]Sequence{"no sequence": nil, "no UTF-8": {{ID: "a", Text: "\xff"}}} {
		if out, err := new(Encoder).AppendText([]byte("dst"), rows); err == nil || string(out) != "dst" {
			t.Errorf("text, %s: %v, %q", name, err, out)
		}
	}
}

// The schema's metadata tell consumers which tokenizer made the ids.
func TestTokenMetadata(t *testing.T) {
	sha := strings.Repeat("ab", 32)
	value, err := new(Encoder).AppendTokens(nil, []Sequence{{ID: "a", IDs: []int32{1}}},
		Vocabulary{"minilm", 30522, sha})
	if err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(bytes.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	meta := r.Schema().Metadata()
	want := map[string]string{"schema": SchemaTokens, "tokenizer": "minilm", "vocab_size": "30522",
		"tokenizer_sha256": sha}
	if diff := cmp.Diff(want, meta.ToMap()); diff != "" {
		t.Error(diff)
	}
}

// checkTokenBytes asserts of any bytes what checkBytes does of frames.
func checkTokenBytes(t testing.TB, fast, slow *Decoder, m Message, known [][]byte) {
	t.Helper()
	got, err := fast.Sequences(m)
	reason := reasonOf(t, err)
	if reason == ReasonArrowPanic {
		t.Fatalf("%v\nvalue %x", err, m.Value)
	}
	again, err := slow.Sequences(m)
	if other := reasonOf(t, err); other != reason {
		t.Fatalf("in place: reason %q, converted: %q (%v)\nvalue %x", reason, other, err, m.Value)
	}
	if err != nil {
		return
	}
	if !cmp.Equal(got, again) {
		t.Fatalf("%s\nvalue %x", cmp.Diff(got, again), m.Value)
	}
	if !slices.ContainsFunc(known, func(raw []byte) bool { return bytes.HasPrefix(m.Value, raw) }) {
		return
	}
	rows, err := readRows(&m)
	if err != nil {
		return // a column that the decoder skips
	}
	if diff := compareRows(rows, got, &m); diff != "" {
		t.Fatalf("Arrow's reader: %s\nvalue %x", diff, m.Value)
	}
}

// Every byte of the framing and metadata of every good stream is changed in
// turn, and every stream cut at every length.
func TestCorruptTokenStreams(t *testing.T) {
	fast, slow := &Decoder{MaxBytes: 1 << 20}, &Decoder{MaxBytes: 1 << 20, throughArrow: true}
	streams := tokenStreams(t)
	for _, s := range streams {
		patterns := []byte{0x01, 0x80, 0xff}
		if len(s.value) > 1500 || testing.Short() {
			patterns = patterns[1:2]
		}
		value := bytes.Clone(s.value)
		for _, at := range metadataBytes(s.value) {
			for _, p := range patterns {
				value[at] ^= p
				checkTokenBytes(t, fast, slow, Message{Topic: "t", Value: value}, nil)
				value[at] ^= p
			}
		}
		for n := range s.value {
			checkTokenBytes(t, fast, slow, Message{Topic: "t", Value: s.value[:n:n]}, nil)
		}
	}
}

// FuzzSequences asserts for any bytes what checkTokenBytes does, and that
// decoding allocates in proportion to the bytes.
func FuzzSequences(f *testing.F) {
	streams := tokenStreams(f)
	known := schemasOf(streams)
	for _, s := range streams {
		f.Add(s.value, byte(0))
	}
	for _, c := range badTokenStreams(f) {
		f.Add(c.value, byte(0))
	}
	f.Add(largeBlocks(f, field{"input_ids", arrow.ListOf(i32), fiveLists}), byte(0))
	const limit = 1 << 20
	fast, slow := &Decoder{MaxBytes: limit}, &Decoder{MaxBytes: limit, throughArrow: true}
	warm(f, fast)
	f.Fuzz(func(t *testing.T, value []byte, kind byte) {
		m := Message{Topic: "t", Value: value}
		if kind%3 > 0 {
			m.Headers = []Header{{HeaderSchema, []byte([]string{SchemaTokens, SchemaText}[kind%3-1])}}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := fast.Sequences(m)
		runtime.ReadMemStats(&after)
		spent, most := int64(after.TotalAlloc-before.TotalAlloc), int64(256*len(value)+1<<19)
		if compressed(value) {
			most += 5*limit + lz4Blocks
		}
		if spent > most {
			t.Fatalf("%d bytes allocated for a value of %d (%v)\nvalue %x", spent, len(value), err, value)
		}
		IsTokens(&m)
		checkTokenBytes(t, fast, slow, m, known)
	})
}

// docs/messages.md says how many sequences fit into a message.
func TestBookkeepingOfSequencesIsDocumented(t *testing.T) {
	if size := unsafe.Sizeof(Sequence{}); size != 192 || DefaultMaxBytes/size != 349_525 {
		t.Errorf("a Sequence has %d bytes, %d of them fit into %d", size, DefaultMaxBytes/size, DefaultMaxBytes)
	}
}
