package schemas

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// stream is a value for the tests: every form in which a cloud may come.
type stream struct {
	name   string
	value  []byte
	frames int
}

// field builds one column from JSON, which spells nulls and nesting shortly.
type field struct {
	name string
	dt   arrow.DataType
	json string
}

// record makes a batch of the fields.
func record(t testing.TB, fields ...field) arrow.Record {
	t.Helper()
	var fs []arrow.Field
	var cols []arrow.Array
	rows := 0
	for _, f := range fields {
		a, _, err := array.FromJSON(memory.DefaultAllocator, f.dt, strings.NewReader(f.json))
		if err != nil {
			t.Fatalf("column %s %s: %v", f.name, f.json, err)
		}
		fs = append(fs, arrow.Field{Name: f.name, Type: f.dt, Nullable: true})
		cols = append(cols, a)
		rows = a.Len()
	}
	return array.NewRecord(arrow.NewSchema(fs, nil), cols, int64(rows))
}

// write makes a stream of the batches.
func write(t testing.TB, recs []arrow.Record, opts ...ipc.Option) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, append([]ipc.Option{ipc.WithSchema(recs[0].Schema())}, opts...)...)
	for _, r := range recs {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

var (
	f16  = arrow.FixedWidthTypes.Float16
	f32  = arrow.PrimitiveTypes.Float32
	f64  = arrow.PrimitiveTypes.Float64
	i32  = arrow.PrimitiveTypes.Int32
	i64  = arrow.PrimitiveTypes.Int64
	text = arrow.BinaryTypes.String
)

func dictOf(index, value arrow.DataType) *arrow.DictionaryType {
	return &arrow.DictionaryType{IndexType: index, ValueType: value}
}

// xyz are the three coordinates of 5 points, each of the given type.
func xyz(dt arrow.DataType) []field {
	return []field{{"x", dt, "[0, 1, 2, 3, 4]"}, {"y", dt, "[5, 7, 11, 13, 17]"}, {"z", dt, "[1, 1, 2, 3, 5]"}}
}

// pointStreams returns one stream of each form of points/1.
func pointStreams(t testing.TB) []stream {
	plain := record(t, append(xyz(f32), field{"intensity", f32, "[0.5, 0, 1, 0.25, 0.75]"})...)
	value := write(t, []arrow.Record{plain})
	nulls := record(t, field{"x", f32, "[0, null, 2, 3, null]"}, field{"y", f32, "[1, 2, 3, null, 5]"})
	slices := []arrow.Record{plain.NewSlice(0, 2), plain.NewSlice(2, 2), plain.NewSlice(2, 5)}
	out := []stream{
		{name: "float32", value: value},
		{name: "lz4", value: write(t, []arrow.Record{plain}, ipc.WithLZ4())},
		{name: "zstd", value: write(t, []arrow.Record{plain}, ipc.WithZstd())},
		{name: "three batches", value: write(t, slices)},
		{name: "three batches, zstd", value: write(t, slices, ipc.WithZstd())},
		{name: "sliced", value: write(t, []arrow.Record{plain.NewSlice(1, 4)})},
		{name: "empty batch", value: write(t, []arrow.Record{plain.NewSlice(1, 1)})},
		{name: "no batch", value: write(t, []arrow.Record{plain})[:schemaBytes(value)]},
		{name: "no end mark", value: value[:len(value)-8]},
		{name: "legacy framing", value: legacy(value)},
		{name: "metadata V4", value: version(value, metadataV4)},
		{name: "nulls", value: write(t, []arrow.Record{nulls})},
		{name: "nulls, lz4", value: write(t, []arrow.Record{nulls}, ipc.WithLZ4())},
		{name: "sliced nulls", value: write(t, []arrow.Record{nulls.NewSlice(1, 5)})},
		{name: "mixed", value: write(t, []arrow.Record{record(t, field{"x", f32, "[0.1]"}, field{"y", f64, "[0.1]"},
			field{"z", i32, "[7]"})})},
		{name: "upper case", value: write(t, []arrow.Record{record(t, field{"Y", f32, "[2]"}, field{"X", f32, "[1]"},
			field{"x", f32, "[3]"}, field{"Intensity", arrow.PrimitiveTypes.Uint8, "[255]"})})},
		{name: "extra columns", value: write(t, []arrow.Record{record(t, append(extraFields(), xyz(f64)...)...)})},
		{name: "extra columns, zstd", value: write(t, []arrow.Record{record(t, append(extraFields(), xyz(f64)...)...)},
			ipc.WithZstd())},
	}
	out = append(out, stream{name: "unions", value: write(t, []arrow.Record{withUnions(t, plain)})})
	for _, dt := range []arrow.DataType{f16, f64, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, i32, i64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32,
		arrow.PrimitiveTypes.Uint64} {
		out = append(out, stream{name: dt.Name(), value: write(t, []arrow.Record{record(t, xyz(dt)...)})})
	}
	for i := range out {
		out[i].frames = 1
	}
	return out
}

// extraFields are columns of every shape, to be skipped.
func extraFields() []field {
	return []field{
		{"ring", arrow.PrimitiveTypes.Uint16, "[1, 2, 3, 4, 5]"},
		{"s", text, `["a", null, "ccc", "", "e"]`},
		{"none", arrow.Null, "[null, null, null, null, null]"},
		{"flag", arrow.FixedWidthTypes.Boolean, "[true, false, null, true, true]"},
		{"d", dictOf(arrow.PrimitiveTypes.Int8, text), `["p", "q", "p", null, "q"]`},
		{"l", arrow.ListOf(i32), "[[1, 2], [], null, [3], [4]]"},
		{"ll", arrow.ListOf(arrow.ListOf(text)), `[[["a"]], [], null, [[]], [["b", "c"]]]`},
		{"fsl", arrow.FixedSizeListOf(2, f32), "[[1, 2], [3, 4], [5, 6], [7, 8], [9, 0]]"},
		{"st", arrow.StructOf(arrow.Field{Name: "x", Type: f64},
			arrow.Field{Name: "v", Type: arrow.BinaryTypes.StringView}),
			`[{"x": 1, "v": "short"}, {"x": 2, "v": "longer than twelve bytes"}, null, {"x": 3, "v": ""}, {"x": 4, "v": "another that is longer"}]`},
		{"b", arrow.BinaryTypes.LargeBinary, `["YQ==", "", "", "", ""]`},
		{"m", arrow.MapOf(text, i32), `[[{"key": "a", "value": 1}], [], [], [], []]`},
	}
}

// withUnions puts a sparse and a dense union before the columns of rec, which
// has 5 rows.
func withUnions(t testing.TB, rec arrow.Record) arrow.Record {
	t.Helper()
	col := func(dt arrow.DataType, json string) arrow.Array {
		return record(t, field{"v", dt, json}).Column(0)
	}
	i8 := arrow.PrimitiveTypes.Int8
	kinds := col(i8, "[0, 1, 1, 0, 0]")
	sparse, err := array.NewSparseUnionFromArrays(kinds,
		[]arrow.Array{col(i32, "[1, 2, 3, 4, 5]"), col(text, `["a", "b", "c", "d", "e"]`)})
	if err != nil {
		t.Fatal(err)
	}
	dense, err := array.NewDenseUnionFromArrays(kinds, col(i32, "[0, 0, 1, 1, 2]"),
		[]arrow.Array{col(i32, "[1, 4, 5]"), col(text, `["b", "c"]`)})
	if err != nil {
		t.Fatal(err)
	}
	fields := append([]arrow.Field{{Name: "sparse", Type: sparse.DataType()}, {Name: "dense", Type: dense.DataType()}},
		rec.Schema().Fields()...)
	return array.NewRecord(arrow.NewSchema(fields, nil), append([]arrow.Array{sparse, dense}, rec.Columns()...),
		rec.NumRows())
}

// sketchStreams returns streams of sketches/1 with drawings of ids 7, 8, 7.
func sketchStreams(t testing.TB) []stream {
	base := func(id, label arrow.DataType) []field {
		return []field{
			{"drawing_id", id, "[7, 7, 8, 8, 8, 7]"}, {"label", label, `["cat", "cat", "dog", "dog", "dog", "cat"]`},
			{"x", f32, "[1, 2, 3, 4, 5, 6]"}, {"y", f32, "[2, 3, 5, 7, 11, 13]"},
		}
	}
	ts := field{"ts_ns", i64, "[100, 100, null, null, null, 300]"}
	var out []stream
	add := func(name string, recs []arrow.Record, opts ...ipc.Option) {
		out = append(out, stream{name: name, value: write(t, recs, opts...), frames: 3})
	}
	for _, label := range []arrow.DataType{text, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
		dictOf(arrow.PrimitiveTypes.Int8, text), dictOf(arrow.PrimitiveTypes.Uint16, text), dictOf(i32, text),
		dictOf(i64, text), dictOf(arrow.PrimitiveTypes.Uint64, text)} {
		rec := record(t, append(base(i64, label), ts)...)
		name := strings.ReplaceAll(fmt.Sprint("label ", label), " ", "_")
		add(name, []arrow.Record{rec})
		add(name+", lz4", []arrow.Record{rec}, ipc.WithLZ4())
	}
	for _, id := range []arrow.DataType{i32, arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Int16} {
		rec := record(t, base(id, text)...)
		add("id "+id.Name(), []arrow.Record{rec})
		add("id "+id.Name()+", batches", []arrow.Record{rec.NewSlice(0, 1), rec.NewSlice(1, 1), rec.NewSlice(1, 4),
			rec.NewSlice(4, 6)})
	}
	first, second := record(t, base(i64, dictOf(i32, text))...), record(t,
		field{"drawing_id", i64, "[9, 9]"}, field{"label", dictOf(i32, text), `["emu", "emu"]`},
		field{"x", f32, "[1, 2]"}, field{"y", f32, "[2, 3]"})
	add("dictionary replaced", []arrow.Record{first, second})
	out[len(out)-1].frames = 4
	grown := record(t,
		field{"drawing_id", i64, "[9, 9]"}, field{"label", dictOf(i32, text), `["cat", "cat"]`},
		field{"x", f32, "[1, 2]"}, field{"y", f32, "[2, 3]"})
	add("dictionary delta", []arrow.Record{first, withWords(grown, "cat", "dog", "emu", "fox"),
		withWords(grown, "cat", "dog", "emu", "fox", "gnu")}, ipc.WithDictionaryDeltas(true))
	out[len(out)-1].frames = 4
	add("null labels", []arrow.Record{record(t, base(i64, text)[0],
		field{"label", text, `[null, "x", "dog", null, null, null]`}, base(i64, text)[2], base(i64, text)[3],
		field{"ts_ns", arrow.FixedWidthTypes.Timestamp_ns, `["1970-01-01 00:00:01", null, null, null, null, null]`})})
	bare := base(i64, text)
	add("no label, float64", []arrow.Record{record(t, bare[0], field{"x", f64, bare[2].json},
		field{"y", f64, bare[3].json}, field{"z", text, `["", "", "", "", "", ""]`})})
	return out
}

// withWords gives the label column of rec another dictionary; its rows refer
// to the last word.
func withWords(rec arrow.Record, words ...string) arrow.Record {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendValues(words, nil)
	idx := array.NewInt32Builder(memory.DefaultAllocator)
	for range rec.NumRows() {
		idx.Append(int32(len(words) - 1))
	}
	dt := rec.Column(1).DataType().(*arrow.DictionaryType)
	cols := append([]arrow.Array(nil), rec.Columns()...)
	cols[1] = array.NewDictionaryArray(dt, idx.NewArray(), b.NewArray())
	return array.NewRecord(rec.Schema(), cols, rec.NumRows())
}

// schemaBytes returns the length of the message that a stream begins with.
func schemaBytes(value []byte) int { return 8 + int(binary.LittleEndian.Uint32(value[4:])) }

// eachMessage calls f with the position and the metadata of every message.
func eachMessage(value []byte, f func(at int, meta []byte)) {
	for at := 0; at >= 0 && at < len(value); {
		m, next, err := readMessage(value, at)
		if err != nil {
			panic(err)
		}
		if next > 0 {
			f(at, m.b)
		}
		at = next
	}
}

// legacy drops the continuation marks, as streams of before Arrow 0.15.
func legacy(value []byte) []byte {
	var out []byte
	last := 0
	eachMessage(value, func(at int, _ []byte) {
		out = append(out, value[last:at]...)
		last = at + 4
	})
	out = append(out, value[last:len(value)-8]...)
	return append(out, 0, 0, 0, 0)
}

// version patches the metadata version of every message.
func version(value []byte, v byte) []byte {
	value = bytes.Clone(value)
	eachMessage(value, func(_ int, meta []byte) {
		f := flat{b: meta}
		meta[f.field(f.root(), 0)] = v
	})
	return value
}

// patchBatch returns the value with the first record batch's metadata changed.
func patchBatch(value []byte, patch func(f *flat, batch table)) []byte {
	value = bytes.Clone(value)
	done := false
	eachMessage(value, func(at int, meta []byte) {
		m, _, _ := readMessage(value, at)
		if m.kind == kindRecordBatch && !done {
			patch(&m.flat, m.header)
			done = true
		}
	})
	return value
}

// patchSchema does so with the schema.
func patchSchema(value []byte, patch func(f *flat, schema table)) []byte {
	value = bytes.Clone(value)
	m, _, _ := readMessage(value, 0)
	patch(&m.flat, m.header)
	return value
}

func put64(b []byte, at int, v int64) { binary.LittleEndian.PutUint64(b[at:], uint64(v)) }

// kittiValue is the golden frame of three points in 48 bytes.
func kittiValue() []byte {
	var b []byte
	for _, v := range []float32{1, 2, 3, .5, -1.5, 0, -1.73, 0, 49.52, 22.668, 2.051, .99} {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}
