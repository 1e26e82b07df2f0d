package tables

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/paulmach/orb/encoding/wkb"

	"entropipe/schemas/codec"
	"entropipe/sinks/record"
)

// tableWriter writes files of one table, one after the other. Its caller appends rows
// value by value, in the order of the columns:
//
//	t.begin(1, size); t.int64(id); t.text(name); …; t.end(1)
//
// Numbers go directly to the page of their column where it has one (numbers.go). Other
// values are collected in one small slice for each column and passed to parquet-go
// column by column. Structs as rows cost the same, but would need a pointer for every
// nullable number, and parquet-go does not delta-encode pointers.
//
// The first error of a file is kept: values appended after it are dropped, and finish
// returns it.
type tableWriter struct {
	options []parquet.WriterOption
	//lint:ignore SA1019 the generic writer wants a type of rows, and these rows have none
	w          *parquet.Writer // writes the current file
	tail       tail            // where w writes to
	columns    []column
	optional   []int // columns that are optional, though w does not know it
	noSequence bool  // sequence is a folder key, so the table has no such column

	next    int // column of the next value
	pending int // number of rows in columns
	bytes   int // approximate number of bytes that these rows point to
	rows    int64
	group   groupSize
	limit   groupSize
	err     error

	// State of table hulls.
	degenerateNull bool
	geo            geoFile
	wkb            bytes.Buffer // geometries of the pending rows
	enc            *wkb.Encoder

	embeddings embeddingFile // state of table tokens
}

// groupSize is the size of a row group.
type groupSize struct{ rows, bytes int64 }

// column is one leaf column, with the values of the pending rows.
type column struct {
	out      *parquet.ColumnWriter
	numbers  numberBuffer // page of a column of numbers, which is one of the next four
	n32      *integers[int32]
	n64      *integers[int64]
	f32      *floats[float32]
	f64      *floats[float64]
	blobs    *blobs          // page of column value of table messages
	values   []parquet.Value // pending values of any other column
	optional int             // definition level of a value; 0: required
	// The last text, because the next is nearly always the same.
	text      string
	textValue parquet.Value
}

// Rows and bytes that are passed to parquet-go at once. They are few so that the
// values stay in the second-level cache: 8192 rows take a sixth longer than 1024.
const (
	chunkRows  = 1024
	chunkBytes = 256 << 10
)

// pageBytes is the size of a data page before encoding. parquet-go reserves it
// for every required column of every table.
const pageBytes = 128 << 10

// embeddingPageBytes is the size of table tokens' pages. The byte planes into which
// floats are split then fill blocks of zstd by themselves, and the plane of signs and
// exponents shrinks by half. Planes that share a block, as with 768 dimensions and pages
// of 128 KiB, do not shrink.
const embeddingPageBytes = 512 << 10

// messagePageBytes is the size of table messages' pages. A value that is larger has a page of its
// own.
const messagePageBytes = 1 << 20

// messageGroupBytes bounds the row groups of table messages. Half of a row group's memory is that of
// the pages of its values, which compress little.
const messageGroupBytes = 16e6

func (t *table) pageSize() int {
	switch t {
	case tokensTable:
		return embeddingPageBytes
	case messagesTable:
		return messagePageBytes
	}
	return pageBytes
}

// newTableWriter returns a writer of table t. Column sequence is left out if it is a
// folder key, except in rejects and messages, whose files have no folder keys.
func newTableWriter(t *table, cfg *Config) *tableWriter {
	noSequence := !t.ofRecords() && slices.Contains(cfg.PartitionBy, record.BySequence)
	var tags []parquet.SchemaOption
	if noSequence {
		tags = append(tags, parquet.StructTag(`parquet:"-"`, "Sequence"))
	}
	schema := parquet.SchemaOf(t.row, tags...)
	numbers := numbersOf(schema)
	var values map[int]*blobs
	if t == messagesTable {
		numbers.schema, values = blobsOf(numbers.schema)
	}
	tw := &tableWriter{noSequence: noSequence, limit: groupSize{cfg.RowGroupRows, cfg.RowGroupBytes},
		degenerateNull: cfg.NullDegenerate, optional: numbers.optional}
	tw.options = []parquet.WriterOption{numbers.schema,
		parquet.Compression(compression),
		parquet.PageBufferSize(t.pageSize()),
		parquet.WriteBufferSize(pageBytes),
		parquet.DataPageStatistics(false), // the page index has them, once
		parquet.SkipPageBounds("geometry"),
		parquet.SkipPageBounds("value"), // the bounds of a page could be the page again
		parquet.CreatedBy("entropipe", cfg.Version, cfg.Build),
		parquet.KeyValueMetadata("entropipe.schema", strconv.Itoa(SchemaVersion)),
		parquet.KeyValueMetadata("entropipe.table", t.name)}
	if len(tw.optional) > 0 {
		tw.options = append(tw.options, parquet.DataPageVersion(1))
	}
	if t == messagesTable {
		tw.limit.bytes = min(tw.limit.bytes, messageGroupBytes)
	}
	tw.enc = wkb.NewEncoder(&tw.wkb)
	for i, path := range schema.Columns() {
		leaf, _ := schema.Lookup(path...)
		c := column{optional: int(leaf.MaxDefinitionLevel), numbers: numbers.buffers[i], blobs: values[i]}
		c.n32, _ = c.numbers.(*integers[int32])
		c.n64, _ = c.numbers.(*integers[int64])
		c.f32, _ = c.numbers.(*floats[float32])
		c.f64, _ = c.numbers.(*floats[float64])
		tw.columns = append(tw.columns, c)
	}
	return tw
}

// reset begins a file.
//
// It does not call Reset of parquet-go's writer: in 0.32 Reset blanks the names of the
// columns in the writer and in the schema that it shares, and the second file after it
// has path_in_schema "". Close returns a writer's buffers to pools anyway.
func (t *tableWriter) reset(out io.Writer) {
	t.tail = tail{out: out}
	t.w = parquet.NewWriter(&t.tail, t.options...)
	t.next, t.pending, t.bytes, t.rows, t.group, t.err = 0, 0, 0, 0, groupSize{}, nil
	for i, c := range t.w.ColumnWriters() {
		t.columns[i].out = c
		if (t.columns[i].numbers != nil || t.columns[i].blobs != nil) && t.err == nil {
			_, t.err = c.WriteRowValues(nil) // makes the column writer take its buffer
		}
	}
	t.geo, t.embeddings = geoFile{degenerateNull: t.degenerateNull}, embeddingFile{}
	t.wkb.Reset()
}

// finish adds these keys and values to the footer, in this order, and ends the file.
func (t *tableWriter) finish(footer [][2]string) (rows int64, err error) {
	t.flush()
	for _, kv := range footer {
		t.w.SetKeyValueMetadata(kv[0], kv[1])
	}
	if t.err == nil {
		t.err = t.close()
	}
	for i := range t.columns { // they point into the batch
		c := &t.columns[i]
		clear(c.values[:cap(c.values)])
		c.text, c.textValue, c.out = "", parquet.Value{}, nil
	}
	t.w = nil
	return t.rows, t.err
}

// begin announces n rows of one frame, which take about the given number of bytes. It
// starts a row group if the current one would exceed its limit: a row group contains
// whole frames, and a frame larger than the limit has its own row group.
func (t *tableWriter) begin(n, bytes int) {
	full := t.group.rows+int64(n) > t.limit.rows || t.group.bytes+int64(bytes) > t.limit.bytes
	if full && t.group.rows > 0 {
		t.flush()
		if t.err == nil {
			t.err = t.w.Flush()
		}
		t.group = groupSize{}
	}
	t.group.rows += int64(n)
	t.group.bytes += int64(bytes)
}

// end completes n rows.
func (t *tableWriter) end(n int) {
	if t.next != len(t.columns) {
		panic("tables: a row has not the columns of its table")
	}
	t.next = 0
	t.rows += int64(n)
	t.pending += n
	if t.pending >= chunkRows || t.bytes >= chunkBytes {
		t.flush()
	}
}

// flush passes the pending rows to parquet-go.
func (t *tableWriter) flush() {
	for i := range t.columns {
		c := &t.columns[i]
		if t.err == nil && len(c.values) > 0 {
			_, t.err = c.out.WriteRowValues(c.values)
		}
		c.values = c.values[:0]
	}
	t.pending, t.bytes = 0, 0
	t.wkb.Reset()
}

// put appends the next column's value.
func (t *tableWriter) put(v parquet.Value) {
	c := &t.columns[t.next]
	if c.optional > 0 {
		v = v.Level(0, c.optional, t.next)
	}
	c.values = append(c.values, v)
	t.next++
}

func (t *tableWriter) int32(v int32) {
	if b := t.columns[t.next].n32; b != nil {
		extend(t, b, v, 0, 1)
		return
	}
	t.put(parquet.Int32Value(v))
}

func (t *tableWriter) int64(v int64) {
	if b := t.columns[t.next].n64; b != nil {
		extend(t, b, v, 0, 1)
		return
	}
	t.put(parquet.Int64Value(v))
}

func (t *tableWriter) float32(v float32) { t.put(parquet.FloatValue(v)) }
func (t *tableWriter) float64(v float64) { t.put(parquet.DoubleValue(v)) }
func (t *tableWriter) boolean(v bool)    { t.put(parquet.BooleanValue(v)) }

// nulls appends a null to each of the next n columns.
func (t *tableWriter) nulls(n int) {
	for range n {
		if c := &t.columns[t.next]; c.numbers == nil {
			c.values = append(c.values, parquet.NullValue().Level(0, 0, t.next))
			t.next++
		} else {
			t.absent(1, 1)
		}
	}
}

func (t *tableWriter) floatOrNull(v *float64) {
	if v == nil {
		t.nulls(1)
		return
	}
	t.float64(*v)
}

// binary appends v, which must not change before flush; nil is null.
func (t *tableWriter) binary(v []byte) {
	if v == nil {
		t.nulls(1)
		return
	}
	t.bytes += len(v)
	t.put(parquet.ByteArrayValue(v))
}

func (t *tableWriter) text(s string) {
	c := &t.columns[t.next]
	if s != c.text || c.textValue.IsNull() {
		// A copy, because s may keep a whole message in memory.
		c.text = strings.Clone(s)
		c.textValue = parquet.ByteArrayValue([]byte(validText(s)))
		t.bytes += len(s)
	}
	t.put(c.textValue)
}

func (t *tableWriter) textOrNull(s string) {
	if s == "" {
		t.nulls(1)
		return
	}
	t.text(s)
}

// list appends a required list of required elements. An empty list is one value of
// definition level 0.
func (t *tableWriter) list(v []int32) {
	c := &t.columns[t.next]
	if len(v) == 0 {
		c.values = append(c.values, parquet.NullValue().Level(0, 0, t.next))
	}
	for i, x := range v {
		c.values = append(c.values, parquet.Int32Value(x).Level(min(i, 1), 1, t.next))
	}
	t.bytes += 24 * len(v)
	t.next++
}

// pose appends an optional list of twelve required numbers.
func (t *tableWriter) pose(p *codec.Pose) {
	if p == nil {
		t.nulls(1)
		return
	}
	c := &t.columns[t.next]
	for i, x := range p {
		c.values = append(c.values, parquet.DoubleValue(x).Level(min(i, 1), 2, t.next))
	}
	t.bytes += 8 * len(p)
	t.next++
}
