package schemas

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/endian"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/google/go-cmp/cmp"

	"entropipe/algos/geom"
	"entropipe/schemas/codec"
)

// reasonOf returns the reason of a FormatError, "" for nil, and fails on any
// other error.
func reasonOf(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var fe *FormatError
	if !errors.As(err, &fe) {
		t.Fatalf("the error is a %T, not a *FormatError: %v", err, err)
	}
	if fe.Stage != StageDecode || fe.Detail == "" {
		t.Fatalf("stage %q, detail %q", fe.Stage, fe.Detail)
	}
	return fe.Reason
}

// Law: the decoder, in place and through Arrow's arrays, finds what Arrow's
// own reader finds, whatever the form of the stream and its alignment.
func TestDecodeAgreesWithArrow(t *testing.T) {
	fast, slow := &Decoder{}, &Decoder{throughArrow: true}
	for _, s := range append(pointStreams(t), sketchStreams(t)...) {
		t.Run(s.name, func(t *testing.T) {
			ref, err := readReference(s.value)
			if err != nil {
				t.Fatalf("Arrow cannot read the test's own stream: %v", err)
			}
			for shift := range 9 {
				value := append(make([]byte, shift, shift+len(s.value)), s.value...)[shift:]
				for name, d := range map[string]*Decoder{"in place": fast, "through Arrow": slow} {
					frames, err := d.Decode(Message{Topic: "t", Value: value})
					if err != nil {
						t.Fatalf("%s, shift %d: %v", name, shift, err)
					}
					if len(frames) != s.frames {
						t.Fatalf("%s, shift %d: %d frames, want %d", name, shift, len(frames), s.frames)
					}
					if diff := ref.compare(frames); diff != "" {
						t.Fatalf("%s, shift %d: %s", name, shift, diff)
					}
				}
			}
		})
	}
}

// The common frame costs no allocation and is not copied.
func TestPlainFrameIsReadInPlace(t *testing.T) {
	for _, dt := range []arrow.DataType{f32, f64} {
		value := write(t, []arrow.Record{record(t, xyz(dt)...)})
		var d Decoder
		m := Message{Topic: "t", Value: value, Headers: Headers(FrameKey{Dataset: "kitti", Sequence: "0001",
			Sensor: "velodyne", FrameID: 3}, SchemaPoints, "/test")}
		frames, err := d.Decode(m)
		if err != nil {
			t.Fatal(err)
		}
		first := uintptr(unsafe.Pointer(unsafe.SliceData(value)))
		at := uintptr(unsafe.Pointer(unsafe.SliceData(frames[0].Cloud32.X)))
		if frames[0].Double {
			at = uintptr(unsafe.Pointer(unsafe.SliceData(frames[0].Cloud64.X)))
		}
		if at < first || at >= first+uintptr(len(value)) {
			t.Errorf("%s: x was copied", dt)
		}
		if n := testing.AllocsPerRun(20, func() {
			if _, err := d.Decode(m); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a message", dt, n)
		}
	}
}

// bad is a value that must be refused, and for which reason.
type bad struct {
	name   string
	value  []byte
	reason string
	schema string
}

func badStreams(t testing.TB) []bad {
	value := write(t, []arrow.Record{record(t, xyz(f32)...)})
	one := func(fields ...field) []byte { return write(t, []arrow.Record{record(t, fields...)}) }
	x, y := field{"x", f32, "[1]"}, field{"y", f32, "[2]"}
	id := field{"drawing_id", i64, "[1]"}
	list := field{"x", arrow.ListOf(f32), "[[1]]"}
	return []bad{
		{name: "tombstone", value: nil, reason: ReasonEmpty},
		{name: "no bytes", value: []byte{}, reason: ReasonEmpty},
		{name: "end mark only", value: []byte{255, 255, 255, 255, 0, 0, 0, 0}, reason: ReasonTruncated},
		{name: "zeros", value: make([]byte, 4096), reason: ReasonNotArrow},
		{name: "text", value: []byte(`{"x": [1, 2, 3]}`), reason: ReasonNotArrow},
		{name: "two bytes", value: []byte{1, 2}, reason: ReasonNotArrow},
		{name: "Arrow file", value: append([]byte("ARROW1\x00\x00"), value...), reason: ReasonFileFormat},
		{name: "Feather V1", value: append([]byte("FEA1"), value...), reason: ReasonFileFormat},
		{name: "half a stream", value: value[:len(value)/2], reason: ReasonTruncated},
		{name: "bytes after the end", value: append(bytes.Clone(value), 0), reason: ReasonTrailingBytes},
		{name: "two streams", value: append(bytes.Clone(value), value...), reason: ReasonTrailingBytes},
		{name: "batch without schema", value: value[schemaBytes(value):], reason: ReasonCorrupt},
		{name: "metadata V3", value: version(value, 2), reason: ReasonUnsupported},
		{name: "big-endian", value: write(t, []arrow.Record{bigEndian(record(t, x, y))}), reason: ReasonUnsupported},
		{name: "no x", value: one(y), reason: ReasonMissingColumn},
		{name: "no y", value: one(x), reason: ReasonMissingColumn},
		{name: "no column", value: write(t, []arrow.Record{record(t)}), reason: ReasonMissingColumn},
		{name: "x twice", value: one(x, y, x), reason: ReasonDuplicateColumn},
		{
			name:   "X twice",
			value:  one(field{"X", f32, "[1]"}, y, field{"X", f32, "[1]"}),
			reason: ReasonDuplicateColumn,
		},
		{name: "x a list", value: one(list, y), reason: ReasonBadType},
		{name: "x a string", value: one(field{"x", text, `["1"]`}, y), reason: ReasonBadType},
		{name: "x a dictionary", value: one(field{"x", dictOf(i32, f32), "[1]"}, y), reason: ReasonBadType},
		{name: "z a struct", value: one(x, y, field{"z", arrow.StructOf(arrow.Field{Name: "a", Type: f32}),
			`[{"a": 1}]`}), reason: ReasonBadType},
		{name: "x beyond float64", value: integers(t, i64, 1<<53+1), reason: ReasonBadValue},
		{name: "x beyond float64, unsigned", value: integers(t, arrow.PrimitiveTypes.Uint64, -1),
			reason: ReasonBadValue},
		{name: "tokens", value: one(field{"input_ids", arrow.ListOf(i32), "[[1]]"}), reason: ReasonUnknownSchema},
		{name: "unknown schema", value: value, schema: "meshes/1", reason: ReasonUnknownSchema},
		{name: "points as sketches", value: value, schema: SchemaSketches, reason: ReasonMissingColumn},
		{name: "sketches without a drawing", value: write(t, []arrow.Record{record(t, id, x, y).NewSlice(0, 0)}),
			reason: ReasonEmpty},
		{name: "null drawing_id", value: one(field{"drawing_id", i64, "[null]"}, x, y), reason: ReasonBadValue},
		{name: "drawing_id a float", value: one(field{"drawing_id", f64, "[1]"}, x, y), reason: ReasonBadType},
		{name: "drawing_id beyond int64", value: one(field{"drawing_id", arrow.PrimitiveTypes.Uint64,
			"[9223372036854775808]"}, x, y), reason: ReasonBadValue},
		{name: "label a number", value: one(id, x, y, field{"label", i32, "[1]"}), reason: ReasonBadType},
		{name: "label with indices of 24 bits", value: patchSchema(one(id, x, y,
			field{"label", dictOf(i64, text), `["a"]`}), func(f *flat, schema table) {
			fields, _ := f.vector(schema, 1, 4)
			index := f.sub(f.sub(f.table(f.deref(fields+12)), 4), 1)
			f.b[f.field(index, 0)] = 24
		}), reason: ReasonBadType},
		{name: "label too long", value: one(id, x, y,
			field{"label", text, `["` + strings.Repeat("a", maxName+1) + `"]`}), reason: ReasonBadLength},
		{name: "rows beyond the buffer", value: patchBatch(value, func(f *flat, b table) {
			nodes, n := f.vector(b, 1, 16)
			for i := range n {
				put64(f.b, nodes+16*i, 1000)
			}
			put64(f.b, f.field(b, 0), 1000)
		}), reason: ReasonBadLength},
		{name: "unequal columns", value: patchBatch(value, func(f *flat, b table) {
			nodes, _ := f.vector(b, 1, 16)
			put64(f.b, nodes+16, 4)
		}), reason: ReasonBadLength},
		{name: "buffer beyond the body", value: patchBatch(value, func(f *flat, b table) {
			bufs, _ := f.vector(b, 2, 16)
			put64(f.b, bufs+16, 1<<40)
		}), reason: ReasonCorrupt},
		{name: "buffer of negative length", value: patchBatch(value, func(f *flat, b table) {
			bufs, _ := f.vector(b, 2, 16)
			put64(f.b, bufs+24, -5)
		}), reason: ReasonCorrupt},
		{name: "more nulls than rows", value: patchBatch(value, func(f *flat, b table) {
			nodes, _ := f.vector(b, 1, 16)
			put64(f.b, nodes+8, 1<<40)
		}), reason: ReasonCorrupt},
		{name: "nulls without a bitmap", value: patchBatch(value, func(f *flat, b table) {
			nodes, _ := f.vector(b, 1, 16)
			put64(f.b, nodes+8, 1)
		}), reason: ReasonBadLength},
	}
}

// integers is a cloud whose x are these integers; JSON would round them.
func integers(t testing.TB, dt arrow.DataType, v ...int64) []byte {
	cols := columns{rows: len(v)}
	cols.add("x", dt, bytesOf(v), len(v))
	cols.add("y", dt, make([]byte, 8*len(v)), len(v))
	value, err := new(Encoder).append(nil, &cols, arrow.Metadata{})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func bigEndian(r arrow.Record) arrow.Record {
	return array.NewRecord(r.Schema().WithEndianness(endian.BigEndian), r.Columns(), r.NumRows())
}

// Every kind of bad value has its reason, and a message that says what is wrong.
func TestBadValuesAreRefused(t *testing.T) {
	var d Decoder
	for _, c := range badStreams(t) {
		m := Message{Topic: "t", Value: c.value}
		if c.schema != "" {
			m.Headers = []Header{{"Schema", []byte(c.schema)}}
		}
		frames, err := d.Decode(m)
		if got := reasonOf(t, err); got != c.reason {
			t.Errorf("%s: reason %q (%v), want %q", c.name, got, err, c.reason)
		}
		if frames != nil {
			t.Errorf("%s: frames beside an error", c.name)
		}
	}
}

// Integers beyond 2^53 pass when float64 holds them.
func TestLargeExactIntegers(t *testing.T) {
	in := []int64{1 << 53, -1 << 60, math.MinInt64, 3 << 55}
	var d Decoder
	frames, err := d.Decode(Message{Topic: "t", Value: integers(t, i64, in...)})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range frames[0].Cloud64.X {
		if int64(v) != in[i] {
			t.Errorf("%d became %v", in[i], v)
		}
	}
}

// A decoder that has just failed works on.
func TestDecoderRecovers(t *testing.T) {
	var d Decoder
	good := write(t, []arrow.Record{record(t, xyz(f32)...)})
	for _, c := range badStreams(t) {
		_, _ = d.Decode(Message{Topic: "t", Value: c.value})
		frames, err := d.Decode(Message{Topic: "t", Value: good})
		if err != nil || len(frames) != 1 || !cmp.Equal(frames[0].Cloud32.Y, []float32{5, 7, 11, 13, 17}) {
			t.Fatalf("after %s: %v %v", c.name, frames, err)
		}
	}
}

// The header decides between the schemas; without it the columns do.
func TestSchemaHeaderDecides(t *testing.T) {
	num := "[1, 1, 2]"
	value := write(t, []arrow.Record{record(t, field{"drawing_id", i64, num}, field{"input_ids", i64, num},
		field{"x", f32, num}, field{"y", f32, num})})
	drawn := write(t, []arrow.Record{record(t, field{"drawing_id", i64, num}, field{"x", f32, num},
		field{"y", f32, num})})
	var d Decoder
	for _, c := range []struct {
		value  []byte
		schema string
		frames int
		reason string
	}{
		{value, SchemaPoints, 1, ""}, {value, SchemaSketches, 2, ""}, {value, "tokens/1", 0, ReasonUnknownSchema},
		{value, "", 0, ReasonUnknownSchema},
		{drawn, "", 2, ""}, {drawn, SchemaPoints, 1, ""},
	} {
		frames, err := d.Decode(Message{Topic: "t", Value: c.value,
			Headers: []Header{{HeaderSchema, []byte(c.schema)}}})
		if reasonOf(t, err) != c.reason || len(frames) != c.frames {
			t.Errorf("schema %q: %d frames, %v; want %d, reason %q", c.schema, len(frames), err, c.frames, c.reason)
		}
	}
}

// One huge message must not stay with a worker: its memory goes when the next
// ones are small.
func TestMemoryOfHugeMessagesIsGivenBack(t *testing.T) {
	n := 3 << 20
	huge, err := (&Encoder{Compression: "lz4"}).AppendPoints(nil,
		PointCloud{Points: codec.Points{Cloud32: geom.Cloud[float32]{X: make([]float32, n), Y: make([]float32, n)}}})
	if err != nil {
		t.Fatal(err)
	}
	small := write(t, []arrow.Record{record(t, xyz(f32)...)}, ipc.WithLZ4())
	var d Decoder
	held := func() (sum int) {
		for _, s := range d.inflater.slots {
			sum += cap(s)
		}
		return sum
	}
	for _, value := range [][]byte{huge, small} {
		if _, err := d.Decode(Message{Topic: "t", Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	if h := held(); h > 1<<20 {
		t.Errorf("%d bytes held after a message of %d", h, len(small))
	}
}

// Limits hold for what is declared, before anything is allocated.
func TestDeclaredSizesAreLimited(t *testing.T) {
	const limit = 1 << 16
	huge := "[" + strings.Repeat("0,", 1<<15) + "0]" // 128 KiB a column of float32
	zeros := record(t, field{"x", f32, huge}, field{"y", f32, huge})
	small := write(t, []arrow.Record{record(t, xyz(f32)...)}, ipc.WithZstd())
	wide := "[" + strings.Repeat("0,", 1<<14) + "0]"
	many := "[" + strings.TrimSuffix(strings.Repeat("1,2,", 200), ",") + "]"
	for name, value := range map[string][]byte{
		"plain":     write(t, []arrow.Record{zeros}),
		"zstd bomb": write(t, []arrow.Record{zeros}, ipc.WithZstd()),
		"lz4 bomb":  write(t, []arrow.Record{zeros}, ipc.WithLZ4()),
		"zeros":     make([]byte, limit+1),
		"int8 that widen": write(t, []arrow.Record{record(t, field{"x", arrow.PrimitiveTypes.Int8, wide},
			field{"y", arrow.PrimitiveTypes.Int8, wide})}),
		"one-point drawings": write(t, []arrow.Record{record(t, field{"drawing_id", i64, many},
			field{"x", f32, many}, field{"y", f32, many})}),
		"declared decompression": patchPrefix(small, 1<<40),
	} {
		d := Decoder{MaxBytes: limit}
		if _, err := d.Decode(Message{Topic: "t", Value: value}); reasonOf(t, err) != ReasonTooLarge {
			t.Errorf("%s: %v, want %s", name, err, ReasonTooLarge)
		}
	}
	// Prefixes that lie within the limit: too little, too much.
	for _, n := range []int64{0, 8, 19, 21, 1 << 14} {
		d := Decoder{MaxBytes: limit}
		_, err := d.Decode(Message{Topic: "t", Value: patchPrefix(small, n)})
		if got := reasonOf(t, err); got != ReasonCorrupt && got != ReasonBadLength {
			t.Errorf("prefix of %d bytes instead of 20: %v", n, err)
		}
	}
}

// patchPrefix changes the declared length of every compressed buffer that is
// not stored raw.
func patchPrefix(value []byte, n int64) []byte {
	value = bytes.Clone(value)
	eachMessage(value, func(at int, _ []byte) {
		m, _, _ := readMessage(value, at)
		if m.kind != kindRecordBatch {
			return
		}
		bufs, count := m.vector(m.header, 2, 16)
		for i := range count {
			if size := m.i64(bufs + 16*i + 8); size > 8 {
				put64(m.body, int(m.i64(bufs+16*i)), n)
			}
		}
	})
	return value
}

// Fields that share their children spell more fields than there are bytes: the
// walk is counted.
func TestSchemaOfSharedFieldsIsRefused(t *testing.T) {
	dt := arrow.DataType(f32)
	for range 60 { // 2^60 fields once every second child is the first: whoever walks them never ends
		dt = arrow.StructOf(arrow.Field{Name: "a", Type: dt}, arrow.Field{Name: "b", Type: f32})
	}
	var buf bytes.Buffer
	s := arrow.NewSchema([]arrow.Field{{Name: "s", Type: dt}, {Name: "x", Type: f32}, {Name: "y", Type: f32}}, nil)
	if err := ipc.NewWriter(&buf, ipc.WithSchema(s)).Close(); err != nil {
		t.Fatal(err)
	}
	value := patchSchema(buf.Bytes(), func(f *flat, schema table) {
		start, _ := f.vector(schema, 1, 4)
		field := f.table(f.deref(start))
		for {
			kids, n := f.vector(field, 5, 4)
			if n != 2 {
				break
			}
			field = f.table(f.deref(kids))
			rel := int32(f.deref(kids) - (kids + 4))
			for i := range 4 {
				f.b[kids+4+i] = byte(uint32(rel) >> (8 * i))
			}
		}
	})
	var d Decoder
	_, err := d.Decode(Message{Topic: "t", Value: value})
	if reasonOf(t, err) != ReasonUnsupported {
		t.Errorf("%v, want %s", err, ReasonUnsupported)
	}
}

// The golden .bin of three points, and sizes that are none.
func TestKITTI(t *testing.T) {
	var d Decoder
	headers := map[string][]Header{
		"content type":     {{"content-type", []byte(ContentTypeKITTI)}},
		"with parameters":  {{"Content_Type", []byte("Application/VND.kitti.velodyne; v=1")}},
		"octets of format": {{"content-type", []byte("application/octet-stream")}, {"format", []byte("kitti")}},
	}
	for name, hs := range headers {
		frames, err := d.Decode(Message{Topic: "t", Value: kittiValue(), Headers: hs})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f := frames[0]
		if f.Double || !cmp.Equal(f.Cloud32.X, []float32{1, -1.5, 49.52}) ||
			!cmp.Equal(f.Cloud32.Y, []float32{2, 0, 22.668}) ||
			!cmp.Equal(f.Cloud32.Z, []float32{3, -1.73, 2.051}) || !cmp.Equal(f.Intensity, []float32{.5, 0, .99}) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	hs := headers["content type"]
	frames, err := d.Decode(Message{Topic: "t", Value: []byte{}, Headers: hs})
	if err != nil || frames[0].Len() != 0 || !frames[0].HasZ() {
		t.Errorf("no bytes: %v %v, want an empty frame with z", frames, err)
	}
	_, err = d.Decode(Message{Topic: "t", Value: kittiValue()[:40], Headers: hs})
	if reasonOf(t, err) != ReasonBadLength || !strings.Contains(err.Error(), "40") ||
		!strings.Contains(err.Error(), "8 are left over") {
		t.Errorf("40 bytes: %v", err)
	}
	_, err = d.Decode(Message{Topic: "t", Headers: hs})
	if reasonOf(t, err) != ReasonEmpty {
		t.Errorf("tombstone: %v", err)
	}
	_, err = (&Decoder{MaxBytes: 32}).Decode(Message{Topic: "t", Value: kittiValue(), Headers: hs})
	if reasonOf(t, err) != ReasonTooLarge {
		t.Errorf("48 bytes of 32: %v", err)
	}
}

// A cloud without points keeps its z whatever the decoder has read before, and
// by whichever way: what is done with a frame must not depend on the one
// before it.
func TestEmptyCloudsKeepTheirZ(t *testing.T) {
	full := record(t, xyz(f32)...)
	withBatch := write(t, []arrow.Record{full.NewSlice(0, 0)})
	_, end, err := readMessage(withBatch, 0)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string][]byte{"a batch of no rows": withBatch, "no batch": withBatch[:end]}
	for name, value := range values {
		for _, slow := range []bool{false, true} {
			d := &Decoder{throughArrow: slow}
			for _, before := range []string{"nothing", "itself", "five points"} {
				if before == "five points" {
					if _, err := d.Decode(Message{Topic: "t", Value: write(t, []arrow.Record{full})}); err != nil {
						t.Fatal(err)
					}
				}
				frames, err := d.Decode(Message{Topic: "t", Value: value})
				if err != nil || len(frames) != 1 || frames[0].Len() != 0 || !frames[0].HasZ() {
					t.Errorf("%s, through Arrow %v, after %s: %+v, %v, want an empty frame with z", name, slow,
						before, frames, err)
				}
			}
		}
	}
}
