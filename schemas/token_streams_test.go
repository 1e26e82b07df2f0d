package schemas

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

const (
	fiveLists = `[[101, 7592, 102], [5], [1, 2, 3, 4], [9, 8], [100]]`
	fiveSmall = `[[101, 75, 102], [5], [1, 2, 3, 4], [9, 8], [100]]`
	fiveMasks = `[[1, 1, 0], [1], [1, 1, 1, 1], [1, 0], [1]]`
	fiveBools = `[[true, true, false], [true], [true, true, true, true], [true, false], [true]]`
	fiveIDs   = `["a", "bb", "a longer id than twelve bytes", "", "é"]`
	fiveTexts = `["one", "", "a text that is longer than twelve bytes", "drei", "one"]`
)

// tokenStreams returns one stream of each form of tokens/1 and text/1, each of
// five rows, and where frames says so some more.
func tokenStreams(t testing.TB) []stream {
	var out []stream
	add := func(name string, recs []arrow.Record, opts ...ipc.Option) {
		rows := 0
		for _, r := range recs {
			rows += int(r.NumRows())
		}
		out = append(out, stream{name: name, value: write(t, recs, opts...), frames: rows})
	}
	ids := field{"id", text, fiveIDs}
	whole := record(t, ids, field{"input_ids", arrow.ListOf(i32), fiveLists},
		field{"attention_mask", arrow.ListOf(arrow.PrimitiveTypes.Int8), fiveMasks})
	add("list", []arrow.Record{whole})
	add("list, lz4", []arrow.Record{whole}, ipc.WithLZ4())
	add("list, zstd", []arrow.Record{whole}, ipc.WithZstd())
	add("batches", []arrow.Record{whole.NewSlice(0, 2), whole.NewSlice(2, 2), whole.NewSlice(2, 5)})
	add("sliced", []arrow.Record{whole.NewSlice(1, 4)})
	add("no id", []arrow.Record{record(t, field{"input_ids", arrow.ListOf(i32), fiveLists})})
	for _, dt := range []arrow.DataType{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, i64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32,
		arrow.PrimitiveTypes.Uint64} {
		rec := record(t, ids, field{"input_ids", arrow.ListOf(dt), fiveSmall},
			field{"attention_mask", arrow.ListOf(dt), fiveMasks})
		add("list of "+dt.Name(), []arrow.Record{rec, rec.NewSlice(1, 3)})
	}
	add("mask of booleans", []arrow.Record{record(t, ids, field{"input_ids", arrow.LargeListOf(i32), fiveLists},
		field{"attention_mask", arrow.LargeListOf(arrow.FixedWidthTypes.Boolean), fiveBools})})
	for _, dt := range []arrow.DataType{arrow.ListViewOf(i32), arrow.LargeListViewOf(i64),
		arrow.LargeListOf(arrow.PrimitiveTypes.Int16)} {
		rec := record(t, ids, field{"input_ids", dt, fiveLists})
		add(strings.ReplaceAll(fmt.Sprint(dt), " ", "_"), []arrow.Record{rec})
		// Arrow's writer fails on views sliced elsewhere
		add(strings.ReplaceAll(fmt.Sprint(dt), " ", "_")+", batches, zstd",
			[]arrow.Record{rec, rec.NewSlice(0, 0), rec.NewSlice(0, 2)}, ipc.WithZstd())
	}
	fixed := record(t, field{"input_ids", arrow.FixedSizeListOf(2, i32), `[[1, 2], [3, 4], null, [7, 8], [9, 0]]`},
		field{"ID", i64, "[5, null, 7, 8, -9]"})
	add("fixed_size_list", []arrow.Record{fixed})
	add("fixed_size_list, sliced", []arrow.Record{fixed.NewSlice(1, 4)}, ipc.WithLZ4())
	add("faulty rows", []arrow.Record{record(t,
		field{"id", arrow.BinaryTypes.LargeString,
			`["null", "empty", "negative", "hole", "good", null, "ones", "late", "short"]`},
		field{"input_ids", arrow.ListOf(i32), `[null, [], [3, -1], [1, null], [1, 2], [4], [5, 6], [7, 8], [9, 9, 9]]`},
		field{"attention_mask", arrow.ListOf(i64), `[[1], [], [1, 1], [1, 1], null, [0], [2, 1], [0, 1], [1, 1]]`})})
	wide := record(t, field{"input_ids", arrow.ListOf(i64), `[[1, 4000000000], [2147483647], [-7]]`})
	add("beyond int32", []arrow.Record{wide})
	for _, stamp := range []arrow.DataType{arrow.FixedWidthTypes.Timestamp_s, arrow.FixedWidthTypes.Timestamp_ms,
		arrow.FixedWidthTypes.Timestamp_us, arrow.FixedWidthTypes.Timestamp_ns} {
		rec := record(t, field{"input_ids", arrow.ListOf(i32), fiveLists},
			field{"ts", stamp,
				`["1970-01-01 00:00:01", null, "2026-11-22 05:06:07", "1960-01-01 00:00:00", "2000-01-01 00:00:00"]`})
		add("ts "+fmt.Sprint(stamp.(*arrow.TimestampType).Unit), []arrow.Record{rec})
	}
	add("ts_ns before ts", []arrow.Record{record(t, field{"ts_ns", i64, "[1, 2, null, 4, 5]"},
		field{"ts", arrow.FixedWidthTypes.Timestamp_us, `["1970-01-01 00:00:01", null, null, null, null]`}, ids,
		field{"input_ids", arrow.ListOf(i32), fiveLists})})
	add("extra columns", []arrow.Record{record(t,
		append(extraFields(), field{"input_ids", arrow.ListOf(i32), fiveLists}, field{"text", text, fiveTexts})...)})
	for _, dt := range []arrow.DataType{text, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
		dictOf(arrow.PrimitiveTypes.Int8, text), dictOf(i64, text)} {
		rec := record(t, field{"id", dt, fiveIDs}, field{"text", dt, fiveTexts})
		name := strings.ReplaceAll(fmt.Sprint("text as ", dt), " ", "_")
		add(name, []arrow.Record{rec})
		add(name+", batches, lz4", []arrow.Record{rec.NewSlice(0, 3), rec.NewSlice(3, 5)}, ipc.WithLZ4())
	}
	hashes := record(t, field{"id", arrow.PrimitiveTypes.Uint64,
		`[13835058055282163712, null, 0, 9223372036854775808, 7]`}, field{"text", text, fiveTexts})
	add("ids of uint64", []arrow.Record{hashes})
	add("ids of uint64, batches, zstd", []arrow.Record{hashes.NewSlice(0, 2), hashes.NewSlice(2, 2),
		hashes.NewSlice(2, 5)}, ipc.WithZstd())
	add("null texts", []arrow.Record{record(t, field{"text", text, `[null, "a", null]`},
		field{"id", text, `["x", null, "z"]`})})
	return out
}

// row is a sequence as Arrow's reader has it, and what this page of the format
// says of it: written without a look at the decoder.
type row struct {
	id     string // "": none
	ids    []int64
	text   string
	isText bool
	reason string
	time   int64 // 0: none
}

// readRows reads a stream with ipc.Reader; for values that the decoder accepts.
func readRows(m *Message) (rows []row, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	r, err := ipc.NewReader(bytes.NewReader(m.Value), ipc.WithAllocator(&limitedAllocator{}))
	if err != nil {
		return nil, err
	}
	defer r.Release()
	for r.Next() {
		rec := r.Record()
		cols := map[string]arrow.Array{}
		for i := range int(rec.NumCols()) {
			cols[strings.ToLower(rec.ColumnName(i))] = rec.Column(i)
		}
		if string(headerValue(m.Headers, HeaderSchema)) == SchemaText {
			delete(cols, "input_ids")
		}
		for i := range int(rec.NumRows()) {
			rows = append(rows, readRow(cols, i))
		}
	}
	return rows, r.Err()
}

func readRow(cols map[string]arrow.Array, i int) row {
	var r row
	if c := cols["id"]; c != nil && c.IsValid(i) {
		if u, ok := c.(*array.Uint64); ok {
			r.id = fmt.Sprint(u.Value(i))
		} else if arrow.IsInteger(c.DataType().ID()) {
			r.id = fmt.Sprint(int64OfArray(c, i))
		} else if r.id = stringOfArray(c, i); !utf8.ValidString(r.id) || len(r.id) > maxName {
			r.id, r.reason = "", "any"
		}
	}
	if c := cols["ts_ns"]; c != nil && c.IsValid(i) {
		r.time = int64OfArray(c, i)
	} else if c := cols["ts"]; cols["ts_ns"] == nil && c != nil && c.IsValid(i) {
		t := c.(*array.Timestamp).Value(i)
		unit := int64(c.DataType().(*arrow.TimestampType).Unit.Multiplier())
		if r.time = int64(t) * unit; r.time/unit != int64(t) {
			r.time, r.reason = 0, "any"
		}
	}
	c := cols["input_ids"]
	if c == nil {
		c, r.isText = cols["text"], true
		if c.IsNull(i) {
			r.reason = ReasonBadValue
		} else if r.text = stringOfArray(c, i); !utf8.ValidString(r.text) {
			r.reason = ReasonBadValue
		}
		return r
	}
	fault := func(reason string) {
		if r.reason == "" {
			r.reason = reason
		}
	}
	if c.IsNull(i) {
		fault(ReasonBadValue)
		return r
	}
	start, end := c.(array.ListLike).ValueOffsets(i)
	elems := c.(array.ListLike).ListValues()
	n := end - start
	if m := cols["attention_mask"]; m != nil && m.IsValid(i) {
		if n = maskOf(m.(array.ListLike), i, n); n < 0 {
			fault(ReasonBadMask)
			return r
		}
	}
	if n == 0 {
		fault(ReasonEmptySequence)
	}
	for k := start; k < start+n; k++ {
		v := int64(-1)
		if elems.IsValid(int(k)) {
			v = int64OfArray(elems, int(k))
		}
		if v < 0 || v > math.MaxInt32 {
			fault(ReasonIDOutOfRange)
		}
		r.ids = append(r.ids, v)
	}
	return r
}

// maskOf returns how many of n tokens the mask leaves, -1 for a mask that is
// not ones before zeros.
func maskOf(m array.ListLike, i int, n int64) int64 {
	start, end := m.ValueOffsets(i)
	if end-start != n {
		return -1
	}
	var s strings.Builder
	for k := start; k < end; k++ {
		bit := int64(2)
		if v := m.ListValues(); v.IsValid(int(k)) {
			if b, ok := v.(*array.Boolean); ok {
				bit = map[bool]int64{true: 1}[b.Value(int(k))]
			} else {
				bit = int64OfArray(v, int(k))
			}
		}
		fmt.Fprintf(&s, "%d,", bit)
	}
	ones := strings.TrimRight(s.String(), "0,")
	k := strings.Count(s.String(), "1,")
	if strings.ReplaceAll(ones, "1,", "") != "" && ones != strings.Repeat("1,", k)[:max(0, 2*k-1)] ||
		s.String() != strings.Repeat("1,", k)+strings.Repeat("0,", int(n)-k) {
		return -1
	}
	return int64(k)
}

// compareRows tells how sequences differ from what Arrow's reader found.
func compareRows(rows []row, got []Sequence, m *Message) string {
	if len(rows) != len(got) {
		return fmt.Sprintf("%d sequences, want %d", len(got), len(rows))
	}
	for i := range rows {
		r, s := &rows[i], &got[i]
		if r.id == "" {
			r.id = fmt.Sprintf("%s/%d/%d/%d", m.Topic, m.Partition, m.Offset, i)
		}
		reason := ""
		if s.Err != nil {
			reason = s.Err.Reason
		}
		if s.ID != r.id || s.IsText != r.isText || s.Index != int32(i) || s.Offset != m.Offset {
			return fmt.Sprintf("sequence %d is %+v, want %+v", i, *s, *r)
		}
		if reason != r.reason && !(r.reason == "any" && reason != "") {
			return fmt.Sprintf("sequence %d has fault %q (%v), want %q", i, reason, s.Err, r.reason)
		}
		if r.reason != "" {
			if s.IDs != nil || s.Text != "" {
				return fmt.Sprintf("sequence %d has a fault and tokens", i)
			}
			continue
		}
		if s.Text != r.text || len(s.IDs) != len(r.ids) || r.time != 0 && s.TimeNs != r.time {
			return fmt.Sprintf("sequence %d is %+v, want %+v", i, *s, *r)
		}
		for k, id := range s.IDs {
			if int64(id) != r.ids[k] {
				return fmt.Sprintf("sequence %d: ids %v, want %v", i, s.IDs, r.ids)
			}
		}
	}
	return ""
}

// overlapping is a stream of list views that all are the same n elements.
func overlapping(t testing.TB, rows, n int) []byte {
	t.Helper()
	elem := array.NewData(i32, n, []*memory.Buffer{nil, memory.NewBufferBytes(make([]byte, 4*n))}, nil, 0, 0)
	sizes := make([]int32, rows)
	for i := range sizes {
		sizes[i] = int32(n)
	}
	data := array.NewData(arrow.ListViewOf(i32), rows,
		[]*memory.Buffer{nil, memory.NewBufferBytes(make([]byte, 4*rows)),
			memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(sizes))}, []arrow.ArrayData{elem}, 0, 0)
	a := array.NewListViewData(data)
	schema := arrow.NewSchema([]arrow.Field{{Name: "input_ids", Type: a.DataType()}}, nil)
	return write(t, []arrow.Record{array.NewRecord(schema, []arrow.Array{a}, int64(rows))})
}
