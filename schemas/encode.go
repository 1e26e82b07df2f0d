package schemas

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"entropipe/schemas/codec"
)

// PointCloud is the content of a points/1 message.
type PointCloud struct {
	codec.Points
	Index []int32 // the points' numbers in the whole frame, in a pruned message; else nil
}

// Sketch is one drawing of a sketches/1 message.
type Sketch struct {
	Drawing
	TimeNs  int64 // event time, nanoseconds since 1970 UTC
	Strokes []Stroke
}

// Stroke is one line of a drawing, in pixels, y growing down. T is nil, or
// holds milliseconds since the drawing's first point; all have equal lengths.
// Within a message all strokes have times, or none.
type Stroke struct {
	X, Y []float64
	T    []int32
}

// Encoder writes the values of messages: complete Arrow IPC streams of one
// batch. The zero value writes uncompressed bodies. An Encoder keeps scratch memory
// and is not for concurrent use.
type Encoder struct {
	Compression string // "" or "none", "lz4", "zstd"

	ids, times []int64
	labels     []int32 // index in words of each row's label
	strokes    []int16
	x, y       []float64
	x32, y32   []float32
	t          []int32
	words      []string
	known      map[string]int32 // index in words of each label
	ids32      []int32          // the tokens of all sequences
	ends       []int32          // the end of each sequence in ids32, after a 0
	row        resultsRow       // the columns of results
}

// AppendPoints appends a points/1 stream of c to dst: columns x, y and, if c has
// them, z, intensity, the columns of c.Extra and index. It copies the coordinates once and unchanged, NaN and
// infinities too. A cloud without points is legal. Columns of different lengths and
// an unknown Compression are errors, and dst is returned unchanged.
func (e *Encoder) AppendPoints(dst []byte, c PointCloud) ([]byte, error) {
	cols := columns{rows: c.Cloud32.Len()}
	if c.Double {
		cols.rows = c.Cloud64.Len()
		cols.add("x", arrow.PrimitiveTypes.Float64, arrow.Float64Traits.CastToBytes(c.Cloud64.X), len(c.Cloud64.X))
		cols.add("y", arrow.PrimitiveTypes.Float64, arrow.Float64Traits.CastToBytes(c.Cloud64.Y), len(c.Cloud64.Y))
		if c.Cloud64.Z != nil {
			cols.add(
				"z",
				arrow.PrimitiveTypes.Float64,
				arrow.Float64Traits.CastToBytes(c.Cloud64.Z),
				len(c.Cloud64.Z),
			)
		}
	} else {
		cols.addFloats("x", c.Cloud32.X)
		cols.addFloats("y", c.Cloud32.Y)
		if c.Cloud32.Z != nil {
			cols.addFloats("z", c.Cloud32.Z)
		}
	}
	if c.Intensity != nil {
		cols.addFloats("intensity", c.Intensity)
	}
	cols.addExtra(&c.Extra)
	if c.Index != nil {
		cols.add("index", arrow.PrimitiveTypes.Int32, arrow.Int32Traits.CastToBytes(c.Index), len(c.Index))
	}
	return e.append(dst, &cols, arrow.NewMetadata([]string{"schema", "unit"}, []string{SchemaPoints, "m"}))
}

// AppendSketches appends a sketches/1 stream of the drawings to dst: columns
// drawing_id, label (dictionary of strings), stroke_idx, x, y, ts_ns, and t_ms
// if any stroke has times. Columns x and y are float32 if that changes no
// coordinate of the message, else both are float64: a column has one type, and
// a frame is computed in the type of its columns.
//
// A drawing exists in the format only through its rows. So no drawings, a drawing
// without points, and two neighbours of the same id are errors, and dst is returned
// unchanged.
func (e *Encoder) AppendSketches(dst []byte, drawings []Sketch) ([]byte, error) {
	e.reset()
	for i := range drawings {
		s := &drawings[i]
		if i > 0 && drawings[i-1].ID == s.ID {
			return dst, fmt.Errorf("drawings %d and %d of the message have the same id, %d: readers could not "+
				"separate their rows", i-1, i, s.ID)
		}
		if err := e.addSketch(s); err != nil {
			return dst, fmt.Errorf("drawing %d (id %d): %w", i, s.ID, err)
		}
	}
	if len(drawings) == 0 {
		return dst, fmt.Errorf("the message has no drawing; schema %s needs at least one", SchemaSketches)
	}
	cols := columns{rows: len(e.x)}
	cols.add("drawing_id", arrow.PrimitiveTypes.Int64, arrow.Int64Traits.CastToBytes(e.ids), len(e.ids))
	cols.addLabels("label", e.labels, e.words)
	cols.add("stroke_idx", arrow.PrimitiveTypes.Int16, arrow.Int16Traits.CastToBytes(e.strokes), len(e.strokes))
	e.addCoordinates(&cols)
	cols.add("ts_ns", arrow.PrimitiveTypes.Int64, arrow.Int64Traits.CastToBytes(e.times), len(e.times))
	if len(e.t) > 0 {
		cols.add("t_ms", arrow.PrimitiveTypes.Int32, arrow.Int32Traits.CastToBytes(e.t), len(e.t))
	}
	return e.append(dst, &cols, arrow.NewMetadata([]string{"schema", "y_axis"}, []string{SchemaSketches, "down"}))
}

func (e *Encoder) reset() {
	e.ids, e.times, e.labels, e.strokes = e.ids[:0], e.times[:0], e.labels[:0], e.strokes[:0]
	e.x, e.y, e.t, e.words = e.x[:0], e.y[:0], e.t[:0], e.words[:0]
	if e.known == nil {
		e.known = map[string]int32{}
	}
	clear(e.known)
}

// addSketch appends the rows of s.
func (e *Encoder) addSketch(s *Sketch) error {
	if len(s.Strokes) > math.MaxInt16+1 {
		return fmt.Errorf("it has %d strokes; it may have at most %d", len(s.Strokes), math.MaxInt16+1)
	}
	before := len(e.x)
	for k, st := range s.Strokes {
		if len(st.Y) != len(st.X) || st.T != nil && len(st.T) != len(st.X) {
			return fmt.Errorf("stroke %d has %d x, %d y and %d t, which must be equally many", k, len(st.X),
				len(st.Y), len(st.T))
		}
		if timed := len(e.t) > 0; len(e.x) > 0 && len(st.X) > 0 && timed != (st.T != nil) {
			return fmt.Errorf("stroke %d differs from earlier strokes: either all strokes of a message have times, "+
				"or none", k)
		}
		e.x, e.y, e.t = append(e.x, st.X...), append(e.y, st.Y...), append(e.t, st.T...)
		for len(e.strokes) < len(e.x) {
			e.strokes = append(e.strokes, int16(k))
		}
	}
	if len(e.x) == before {
		return fmt.Errorf("it has no point")
	}
	word := e.word(s.Label)
	for len(e.ids) < len(e.x) {
		e.ids, e.labels, e.times = append(e.ids, s.ID), append(e.labels, word), append(e.times, s.TimeNs)
	}
	return nil
}

// addCoordinates adds the columns x and y of the rows.
func (e *Encoder) addCoordinates(cols *columns) {
	var narrow bool
	if e.x32, narrow = appendNarrow(e.x32[:0], e.x); narrow {
		e.y32, narrow = appendNarrow(e.y32[:0], e.y)
	}
	if narrow {
		cols.addFloats("x", e.x32)
		cols.addFloats("y", e.y32)
		return
	}
	cols.add("x", arrow.PrimitiveTypes.Float64, arrow.Float64Traits.CastToBytes(e.x), len(e.x))
	cols.add("y", arrow.PrimitiveTypes.Float64, arrow.Float64Traits.CastToBytes(e.y), len(e.y))
}

// appendNarrow appends v as float32 and reports whether each value is the same
// number, or NaN, in float32.
func appendNarrow(dst []float32, v []float64) ([]float32, bool) {
	for _, x := range v {
		n := float32(x)
		if float64(n) != x && x == x {
			return dst, false
		}
		dst = append(dst, n)
	}
	return dst, true
}

// word returns the number of the label in the message's dictionary.
func (e *Encoder) word(label string) int32 {
	n, ok := e.known[label]
	if !ok {
		n = int32(len(e.words))
		e.known[label] = n
		e.words = append(e.words, label)
	}
	return n
}

// streamOverhead is about what the schema and the batch of a stream take beside the columns.
const streamOverhead = 4 << 10

// append writes the columns as an Arrow stream.
func (e *Encoder) append(dst []byte, cols *columns, meta arrow.Metadata) ([]byte, error) {
	if cols.err != nil {
		return dst, cols.err
	}
	schema := arrow.NewSchema(cols.fields, &meta)
	size := streamOverhead
	for _, a := range cols.arrays {
		for _, b := range a.Data().Buffers() {
			if b != nil {
				size += b.Len()
			}
		}
	}
	w := appender{slices.Grow(dst, size)}
	opts := []ipc.Option{ipc.WithSchema(schema)}
	switch e.Compression {
	case "", "none":
	case "lz4":
		opts = append(opts, ipc.WithLZ4())
	case "zstd":
		opts = append(opts, ipc.WithZstd())
	default:
		return dst, fmt.Errorf("compression %q is unknown; use none, lz4 or zstd", e.Compression)
	}
	wr := ipc.NewWriter(&w, opts...)
	rec := array.NewRecord(schema, cols.arrays, int64(cols.rows))
	defer rec.Release()
	if err := wr.Write(rec); err != nil {
		return dst, fmt.Errorf("write Arrow batch: %w", err)
	}
	if err := wr.Close(); err != nil {
		return dst, fmt.Errorf("end Arrow stream: %w", err)
	}
	return w.b, nil
}

// appender is an io.Writer that appends to a byte slice.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}

// columns collects Arrow arrays that are views of Go slices.
type columns struct {
	rows   int
	fields []arrow.Field
	arrays []arrow.Array
	err    error
}

// add appends a column without nulls of the n values in bytes.
func (c *columns) add(name string, dt arrow.DataType, values []byte, n int) {
	if n != c.rows {
		c.err = fmt.Errorf("column %s has %d values, but column x has %d", name, n, c.rows)
		return
	}
	data := array.NewData(dt, n, []*memory.Buffer{nil, memory.NewBufferBytes(values)}, nil, 0, 0)
	c.fields = append(c.fields, arrow.Field{Name: name, Type: dt})
	c.arrays = append(c.arrays, array.MakeFromData(data))
}

func (c *columns) addFloats(name string, v []float32) {
	c.add(name, arrow.PrimitiveTypes.Float32, arrow.Float32Traits.CastToBytes(v), len(v))
}

// addExtra appends the columns that e has.
func (c *columns) addExtra(e *codec.Extra) {
	for i, v := range e.Int32s() {
		if *v != nil {
			c.add(codec.Int32Names[i], arrow.PrimitiveTypes.Int32, arrow.Int32Traits.CastToBytes(*v), len(*v))
		}
	}
	if e.Elongation != nil {
		c.addFloats("elongation", e.Elongation)
	}
	if e.TOffsetNs != nil {
		c.add("t_offset_ns", arrow.PrimitiveTypes.Int64, arrow.Int64Traits.CastToBytes(e.TOffsetNs), len(e.TOffsetNs))
	}
}

// addLabels appends a dictionary-encoded column: a label a row would be most
// of a message, and pyarrow, DuckDB and Polars all read dictionaries.
func (c *columns) addLabels(name string, rows []int32, words []string) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendValues(words, nil)
	dict := b.NewStringArray()
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	idx := array.NewData(dt.IndexType, len(rows),
		[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(rows))}, nil, 0, 0)
	c.fields = append(c.fields, arrow.Field{Name: name, Type: dt})
	c.arrays = append(c.arrays, array.NewDictionaryArray(dt, array.MakeFromData(idx), dict))
}
