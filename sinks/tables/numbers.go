package tables

import (
	"encoding/binary"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// Required integer columns have column buffers of this package. parquet-go's own
// buffers need every number as a parquet.Value of 24 bytes, which costs more than its
// encoding. Here the numbers of a page are one slice. While all of them increase by the
// same step, as a frame's keys (step 0) and its triangles' numbers (step 1) do, only the
// first number, the step and the count are kept, and the page is written from these: the
// delta encoding of such a run repeats the same few bytes.
//
// The buffers enter the library through its interfaces Field, Type, ColumnBuffer and
// Page: the Type of a column makes its buffer, and the Type of a page encodes the page.

// integer is the type of a number in such a column.
type integer interface{ int32 | int64 }

// numbers is the column buffer of one page.
type numbers[T integer] struct {
	// ColumnBuffer has the methods that a writer of whole pages never calls. It is nil,
	// so a call would panic.
	parquet.ColumnBuffer

	typ    parquet.Type // parquet-go's type of the column
	index  int
	values []T
	run    run // the numbers of the page while values is empty
}

// run is n numbers: first, first+step, …
type run struct {
	first, step int64
	n           int
}

// longRun is the length from which a run has a page of its own: the page ends where the
// run ends.
const longRun = 4096

func (r *run) last() int64 { return r.first + r.step*int64(r.n-1) }

// extend appends the n numbers first, first+step, … It appends none and returns false
// if they would end a long run, or are a long run and the page is not empty: then the
// caller must flush the page and call again.
func (b *numbers[T]) extend(first T, step, n int) bool {
	if len(b.values) == 0 && b.prolong(first, T(step), n) {
		return true
	}
	if b.run.n >= longRun || n >= longRun && b.Len() > 0 {
		return false
	}
	b.spellOut()
	for range n {
		b.values = append(b.values, first)
		first += T(step)
	}
	return true
}

// prolong adds n numbers to the run if they continue it, and tells whether it did.
func (b *numbers[T]) prolong(first, step T, n int) bool {
	r := &b.run
	if r.n == 0 {
		*r = run{int64(first), int64(step), n}
		return true
	}
	last := T(r.last())
	apart := first - last
	if (apart < 0) != (first < last) { // the difference does not fit into a T
		return false
	}
	if r.n == 1 && (n == 1 || apart == step) { // any two numbers are a run
		r.step = int64(apart)
	}
	if apart != T(r.step) || n > 1 && step != apart {
		return false
	}
	r.n += n
	return true
}

// take appends v[0], v[step], …, at most n numbers and no more than fit into the page.
// It returns the number of appended elements; 0: they would end a long run.
func (b *numbers[T]) take(v []T, step, n int) int {
	if b.run.n >= longRun {
		return 0
	}
	b.spellOut()
	from := len(b.values)
	n = min(n, max(1, pageBytes/b.width()-from))
	if cap(b.values) < from+n {
		b.values = append(make([]T, 0, max(from+n, pageBytes/b.width())), b.values...)
	}
	b.values = b.values[:from+n]
	to := b.values[from:]
	for i := range to {
		to[i] = v[i*step]
	}
	return n
}

// spellOut turns the run into values.
func (b *numbers[T]) spellOut() {
	for v := T(b.run.first); b.run.n > 0; b.run.n-- {
		b.values = append(b.values, v)
		v += T(b.run.step)
	}
}

// full tells whether the page has reached pageBytes.
func (b *numbers[T]) full() bool { return len(b.values)*b.width() >= pageBytes }

func (b *numbers[T]) width() int {
	if b.typ.Kind() == parquet.Int64 {
		return 8
	}
	return 4
}

// The methods of a ColumnBuffer that parquet-go's writer calls.

func (b *numbers[T]) Len() int    { return len(b.values) + b.run.n }
func (b *numbers[T]) Size() int64 { return int64(len(b.values) * b.width()) }
func (b *numbers[T]) Reset()      { b.values, b.run = b.values[:0], run{} }

// WriteValues accepts no values: extend and take append the numbers.
func (b *numbers[T]) WriteValues(v []parquet.Value) (int, error) {
	if len(v) > 0 {
		panic("tables: a column of numbers got values")
	}
	return 0, nil
}

func (b *numbers[T]) Page() parquet.Page {
	if b.run.n == 0 {
		return b.page(b.values)
	}
	return &runPage{Page: b.page([]T{T(b.run.first), T(b.run.last())}), run: b.run, typ: b.typ}
}

func (b *numbers[T]) page(v []T) parquet.Page {
	var data encoding.Values
	switch v := any(v).(type) {
	case []int32:
		data = encoding.Int32Values(v)
	case []int64:
		data = encoding.Int64Values(v)
	}
	return b.typ.NewPage(b.index, len(v), data)
}

// runPage is the page of a run. The embedded page holds the first and the last number,
// from which parquet-go takes the bounds.
type runPage struct {
	parquet.Page
	run run
	typ parquet.Type
}

func (p *runPage) NumRows() int64     { return int64(p.run.n) }
func (p *runPage) NumValues() int64   { return int64(p.run.n) }
func (p *runPage) Type() parquet.Type { return &runType{p.typ, p.run} }

// runType encodes its run and ignores the values that it is given.
type runType struct {
	parquet.Type
	run run
}

// Encode appends the run as DELTA_BINARY_PACKED: a header, then for every 128 numbers
// after the first a block with the smallest difference of neighbours and four bit
// widths. All differences are equal, so the widths are 0 and no bits follow.
func (t *runType) Encode(dst []byte, _ encoding.Values, _ encoding.Encoding) ([]byte, error) {
	const block, miniBlocks = 128, 4
	dst = binary.AppendUvarint(dst, block)
	dst = binary.AppendUvarint(dst, miniBlocks)
	dst = binary.AppendUvarint(dst, uint64(t.run.n))
	dst = binary.AppendVarint(dst, t.run.first)
	one := append(binary.AppendVarint(nil, t.run.step), make([]byte, miniBlocks)...)
	for left := t.run.n - 1; left > 0; left -= block {
		dst = append(dst, one...)
	}
	return dst, nil
}

// numbersType is the type of a column of numbers. It returns the one buffer of the
// column.
type numbersType struct {
	parquet.Type
	buffer parquet.ColumnBuffer
}

func (t *numbersType) NewColumnBuffer(int, int) parquet.ColumnBuffer {
	t.buffer.Reset()
	return t.buffer
}

// numbersField is a field of type numbersType.
type numbersField struct {
	parquet.Field
	typ *numbersType
}

func (f *numbersField) Type() parquet.Type { return f.typ }

// numbersRoot is the root of a schema with such fields.
type numbersRoot struct {
	parquet.Node
	fields []parquet.Field
}

func (r *numbersRoot) Fields() []parquet.Field { return r.fields }

// withNumbers returns the schema with buffers of type numbers for the required,
// delta-encoded integers at its top level, and these buffers by leaf column.
func withNumbers(schema *parquet.Schema) (*parquet.Schema, map[int]parquet.ColumnBuffer) {
	root := &numbersRoot{Node: schema}
	buffers := map[int]parquet.ColumnBuffer{}
	for _, f := range schema.Fields() {
		leaf, found := schema.Lookup(f.Name())
		if found && f.Leaf() && f.Required() && f.Encoding() != nil &&
			f.Encoding().Encoding() == parquet.DeltaBinaryPacked.Encoding() {
			var b parquet.ColumnBuffer
			switch f.Type().Kind() {
			case parquet.Int32:
				b = &numbers[int32]{typ: f.Type(), index: leaf.ColumnIndex}
			case parquet.Int64:
				b = &numbers[int64]{typ: f.Type(), index: leaf.ColumnIndex}
			}
			buffers[leaf.ColumnIndex] = b
			f = &numbersField{f, &numbersType{f.Type(), b}}
		}
		root.fields = append(root.fields, f)
	}
	return parquet.NewSchema(schema.Name(), root), buffers
}
