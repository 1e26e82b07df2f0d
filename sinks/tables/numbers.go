package tables

import (
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
)

// Columns of numbers have column buffers of this package. parquet-go's own buffers need
// every number as a parquet.Value of 24 bytes, which costs more than its encoding. Here the
// numbers of a page are one slice (floats.go), or less (integers.go), and so are the
// definition levels of an optional column (levels.go).
//
// The buffers enter the library through its interfaces Field, Type, ColumnBuffer and
// Page: the Type of a column makes its buffer, and the Type of a page encodes the page.
//
// Required integers have such buffers in all tables. In a table of numbers alone
// (optional.go) all columns have them.

// numberBuffer is the column buffer of one page of numbers.
type numberBuffer interface {
	parquet.ColumnBuffer
	// absent appends n nulls. It appends none and returns false if the caller must flush the
	// page and call again.
	absent(n int) bool
	// full tells whether the page must be flushed.
	full() bool
}

// buffer is the part that all buffers of numbers share.
type buffer struct {
	// ColumnBuffer has the methods that a writer of whole pages never calls. It is nil,
	// so a call would panic.
	parquet.ColumnBuffer

	typ    parquet.Type // parquet-go's type of the column
	index  int
	levels levels
}

func (b *buffer) Type() parquet.Type { return b.typ }

func (b *buffer) absent(n int) bool {
	if !b.levels.accepts(false, n) {
		return false
	}
	b.levels.add(false, n)
	return true
}

// width returns the bytes of a number.
func (b *buffer) width() int {
	if k := b.typ.Kind(); k == parquet.Int64 || k == parquet.Double {
		return 8
	}
	return 4
}

// WriteValues accepts no values: the methods of each buffer append numbers.
func (b *buffer) WriteValues(v []parquet.Value) (int, error) {
	if len(v) > 0 {
		panic("tables: a column of numbers got values")
	}
	return 0, nil
}

// page returns the page of n numbers, or of a run, whose first and last number data has
// then: parquet-go takes the bounds from these.
func (b *buffer) page(n int, data encoding.Values, r run) parquet.Page {
	values := b.typ.NewPage(b.index, n, data)
	if !b.levels.optional && r.n == 0 {
		return values
	}
	p := &numberPage{Page: values, rows: int64(n), typ: pageType{b.typ, r, nil, n}}
	if r.n > 0 {
		p.rows = int64(r.n)
	}
	if b.levels.optional {
		p.rows, p.nulls, p.typ.levels = int64(b.levels.rows), int64(b.levels.nulls), &b.levels
	}
	return p
}

// numberPage is a page whose bytes pageType makes. The embedded page holds the numbers
// without nulls, or the first and the last of a run.
type numberPage struct {
	parquet.Page
	rows, nulls int64
	typ         pageType
}

func (p *numberPage) NumRows() int64     { return p.rows }
func (p *numberPage) NumValues() int64   { return p.rows }
func (p *numberPage) NumNulls() int64    { return p.nulls }
func (p *numberPage) Type() parquet.Type { return &p.typ }

// pageType encodes one page: its definition levels, if it has some, then its numbers.
type pageType struct {
	parquet.Type
	run    run
	levels *levels // nil: the column is required
	n      int     // numbers of the page without a run
}

func (t *pageType) Encode(dst []byte, v encoding.Values, enc encoding.Encoding) (_ []byte, err error) {
	if t.levels != nil {
		if dst, err = t.levels.append(dst); err != nil {
			return nil, err
		}
	}
	if t.run.n > 0 {
		return t.run.append(dst), nil
	}
	// Encodings begin at the begin of what they get: it is the room behind the levels.
	dst = slices.Grow(dst, t.EstimateSize(t.n)+64)
	numbers, err := t.Type.Encode(dst[len(dst):], v, enc)
	if n := len(dst) + len(numbers); n <= cap(dst) && (len(numbers) == 0 || &dst[:n][len(dst)] == &numbers[0]) {
		return dst[:n], err
	}
	return append(dst, numbers...), err
}

// numberType is the type of a column of numbers. It returns the one buffer of the column.
type numberType struct {
	parquet.Type
	buffer numberBuffer
}

func (t *numberType) NewColumnBuffer(int, int) parquet.ColumnBuffer {
	t.buffer.Reset()
	return t.buffer
}

// numberField is a field of type numberType. It is required: optional.go says why.
type numberField struct {
	parquet.Field
	typ *numberType
}

func (f *numberField) Type() parquet.Type { return f.typ }

// Compression returns the codec of a column of floats; nil: that of the file.
func (f *numberField) Compression() compress.Codec {
	if b, ok := f.typ.buffer.(interface{ codec() compress.Codec }); ok {
		return b.codec()
	}
	return nil
}

func (f *numberField) Optional() bool { return false }
func (f *numberField) Required() bool { return true }

// numberRoot is the root of a schema with such fields.
type numberRoot struct {
	parquet.Node
	fields []parquet.Field
}

func (r *numberRoot) Fields() []parquet.Field { return r.fields }

// newNumberBuffer returns the buffer of leaf column index, whose field is f; nil: it has
// other values than numbers, or an encoding that is not written here.
func newNumberBuffer(f parquet.Field, index int) numberBuffer {
	if !f.Leaf() || f.Repeated() || f.Encoding() == nil {
		return nil
	}
	b := buffer{typ: f.Type(), index: index, levels: levels{optional: f.Optional()}}
	delta := f.Encoding().Encoding() == parquet.DeltaBinaryPacked.Encoding()
	split := f.Encoding().Encoding() == parquet.ByteStreamSplit.Encoding()
	switch kind := f.Type().Kind(); {
	case delta && kind == parquet.Int32:
		return &integers[int32]{buffer: b}
	case delta && kind == parquet.Int64:
		return &integers[int64]{buffer: b}
	case split && kind == parquet.Float:
		return &floats[float32]{buffer: b}
	case split && kind == parquet.Double:
		return &floats[float64]{buffer: b}
	}
	return nil
}

// numberColumns are the columns of a schema that have buffers of this package.
type numberColumns struct {
	schema   *parquet.Schema      // for parquet-go's writer
	buffers  map[int]numberBuffer // by leaf column
	optional []int                // leaf columns that are optional, though schema says that they are required
}

// numbersOf returns the columns of numbers at the top level of a schema: all of them if the
// schema has no other columns, else the required integers.
func numbersOf(schema *parquet.Schema) numberColumns {
	alone := !slices.ContainsFunc(schema.Fields(), func(f parquet.Field) bool { return newNumberBuffer(f, 0) == nil })
	root := &numberRoot{Node: schema}
	columns := numberColumns{buffers: map[int]numberBuffer{}}
	for _, f := range schema.Fields() {
		leaf, _ := schema.Lookup(f.Name()) // none of a field that is no leaf, and has no buffer
		b := newNumberBuffer(f, leaf.ColumnIndex)
		if alone || b != nil && f.Required() && isInteger(f.Type()) {
			columns.buffers[leaf.ColumnIndex] = b
			if f.Optional() {
				columns.optional = append(columns.optional, leaf.ColumnIndex)
			}
			f = &numberField{f, &numberType{f.Type(), b}}
		}
		root.fields = append(root.fields, f)
	}
	columns.schema = parquet.NewSchema(schema.Name(), root)
	return columns
}

func isInteger(t parquet.Type) bool { return t.Kind() == parquet.Int32 || t.Kind() == parquet.Int64 }
