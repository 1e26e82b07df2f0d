package tables

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"pgregory.net/rapid"

	"entropipe/schemas/codec/parquetfile"
)

// aloneRow is a row of numbers alone, of each kind that has a buffer of its own.
type aloneRow struct {
	Key    int64   `parquet:"key,delta"`
	Count  int32   `parquet:"count,delta"`
	X      float32 `parquet:"x,split"`
	Y      float64 `parquet:"y,split"`
	Z      float32 `parquet:"z,optional,split"`
	W      float64 `parquet:"w,optional,split"`
	Label  int32   `parquet:"label,optional,delta"`
	Offset int64   `parquet:"offset,optional,delta"`
}

// aloneFrame has the columns of a frame: each of them as values or, if it is optional, as
// nulls or a mixture.
type aloneFrame struct {
	drawn   string
	n       int
	key     int64
	x, z    []float32
	y, w    []float64
	narrow  bool // y and w come as float32
	label   []int32
	offset  []int64
	newPart bool // a row group begins
}

const (
	noLabel  = math.MinInt32
	noOffset = math.MinInt64
)

// GoString says how the frame was drawn.
func (f aloneFrame) GoString() string { return f.drawn }

func drawFrame(t *rapid.T) (f aloneFrame) {
	f = aloneFrame{n: rapid.SampledFrom([]int{1, 1, 1, 2, 3, 7, 8, 9, 63, 64, 65, 127, 1000, longRun - 1, longRun,
		lendFrom - 1, lendFrom, pageBytes/8 + 1, pageBytes/4 + 1, 2*pageBytes/4 + 3}).Draw(t, "n"),
		key: rapid.Int64().Draw(t, "key"), narrow: rapid.Bool().Draw(t, "narrow"),
		newPart: rapid.IntRange(0, 5).Draw(t, "new part") == 0}
	base := rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1.5, math.NaN(), math.Inf(1), math.Inf(-1),
		math.SmallestNonzeroFloat64, math.MaxFloat64, rapid.Float64().Draw(t, "any")})
	note := func(what ...any) { f.drawn += fmt.Sprintln(what...) }
	note("n", f.n, "narrow", f.narrow, "newPart", f.newPart)
	column := func(name string, optional bool) []float64 {
		kind := rapid.IntRange(0, 3).Draw(t, name)
		defer func() { note(name, "kind", kind) }()
		if optional && kind == 0 {
			return nil
		}
		first := base.Draw(t, name)
		note(name, "of", first)
		v := slices.Repeat([]float64{first}, f.n)
		if kind > 1 {
			for i := range v {
				v[i] = float64(float32(v[i])) + float64(i%701)
			}
		}
		if kind > 2 {
			v[rapid.IntRange(0, f.n-1).Draw(t, "at")] = base.Draw(t, name)
		}
		return v
	}
	f.x, f.z = narrowed(column("x", false)), narrowed(column("z", true))
	f.y, f.w = column("y", false), column("w", true)
	if f.narrow {
		f.y, f.w = widened(narrowed(f.y)), widened(narrowed(f.w))
	}
	some := func(name string) []int64 {
		kind := rapid.IntRange(0, 4).Draw(t, name)
		if kind == 0 {
			return nil
		}
		v := slices.Repeat([]int64{rapid.Int64Range(-5, 5).Draw(t, name)}, f.n)
		every := rapid.SampledFrom([]int{1, 2, 3, 100, f.n}).Draw(t, "every")
		note(name, "kind", kind, "every", every)
		for i := range v {
			if kind > 1 {
				v[i] = int64(i) * 7919 % 1009
			}
			if kind > 2 && i/every%2 == kind%2 {
				v[i] = noOffset
			}
		}
		return v
	}
	f.offset = some("offset")
	for _, v := range some("label") {
		if v == noOffset {
			v = noLabel
		}
		f.label = append(f.label, int32(v))
	}
	return f
}

func narrowed(v []float64) (narrow []float32) {
	for _, x := range v {
		narrow = append(narrow, float32(x))
	}
	return narrow
}

func widened(v []float32) (wide []float64) {
	for _, x := range v {
		wide = append(wide, float64(x))
	}
	return wide
}

// add appends the frame column by column.
func (f *aloneFrame) add(w *tableWriter) {
	w.repeat64(f.key, f.n)
	w.count32(0, f.n)
	w.floats32(f.x)
	wide := func(v []float64) {
		switch {
		case v == nil:
			w.absent(1, f.n)
		case f.narrow:
			w.widened(narrowed(v))
		default:
			w.floats64(v)
		}
	}
	wide(f.y)
	w.floatsOrNone(f.z, f.n)
	wide(f.w)
	if f.label == nil {
		w.absent(1, f.n)
	} else {
		w.some32(f.label, noLabel)
	}
	if f.offset == nil {
		w.nulls(1)
		if f.n > 1 {
			w.next--
			w.absent(1, f.n-1)
		}
	} else {
		w.some64(f.offset, noOffset)
	}
}

// values returns the frame's values of each column, with their levels.
func (f *aloneFrame) values() [8][]parquet.Value {
	var all [8][]parquet.Value
	for column := range all {
		all[column] = make([]parquet.Value, 0, f.n)
	}
	for i := range f.n {
		put := func(column, level int, v parquet.Value) {
			all[column] = append(all[column], v.Level(0, level, column))
		}
		some := func(column int, present bool, v func() parquet.Value) {
			if present {
				put(column, 1, v())
			} else {
				put(column, 0, parquet.NullValue())
			}
		}
		put(0, 0, parquet.Int64Value(f.key))
		put(1, 0, parquet.Int32Value(int32(i)))
		put(2, 0, parquet.FloatValue(f.x[i]))
		put(3, 0, parquet.DoubleValue(f.y[i]))
		some(4, f.z != nil, func() parquet.Value { return parquet.FloatValue(f.z[i]) })
		some(5, f.w != nil, func() parquet.Value { return parquet.DoubleValue(f.w[i]) })
		some(6, f.label != nil && f.label[i] != noLabel, func() parquet.Value { return parquet.Int32Value(f.label[i]) })
		some(7, f.offset != nil && f.offset[i] != noOffset,
			func() parquet.Value { return parquet.Int64Value(f.offset[i]) })
	}
	return all
}

// ours and theirs write frames by tableWriter and by parquet-go alone, with the same row
// groups.

func ours(t *rapid.T, w *tableWriter, frames []aloneFrame) []byte {
	var out bytes.Buffer
	w.reset(&out)
	for i := range frames {
		f := &frames[i]
		if w.limit.rows = math.MaxInt64; f.newPart {
			w.limit.rows = 0
		}
		w.begin(f.n, f.n)
		f.add(w)
		w.end(f.n)
	}
	if _, err := w.finish([][2]string{{"file", "footer"}}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func theirs(t *rapid.T, frames []aloneFrame) []byte {
	var out bytes.Buffer
	w := parquet.NewWriter(&out, parquet.SchemaOf(aloneRow{}), parquet.Compression(compression))
	for i := range frames {
		f := &frames[i]
		if f.newPart && i > 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		for k, v := range f.values() {
			if _, err := w.ColumnWriters()[k].WriteRowValues(v); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Files of numbers alone say what parquet-go writes of the same values: schema, row groups,
// values and nulls to the bit, statistics, and an index that is true of each page; the same
// for each file of a writer.
func TestNumbersAloneAreWrittenAsByTheLibrary(t *testing.T) {
	w := newTableWriter(&table{name: "alone", row: aloneRow{}}, &Config{})
	if len(w.optional) != 4 {
		t.Fatalf("%d columns are optional", len(w.optional))
	}
	w.limit.bytes = math.MaxInt64
	rapid.Check(t, func(t *rapid.T) {
		frames := rapid.SliceOfN(rapid.Custom(drawFrame), 1, 4).Draw(t, "frames")
		a, b := ours(t, w, frames), theirs(t, frames)
		if err := compareFiles(a, b); err != nil {
			t.Fatal(err)
		}
		if _, err := parquetfile.Open(bytes.NewReader(a), int64(len(a))); err != nil {
			t.Fatalf("the reader that checks: %v", err)
		}
	})
}

func compareFiles(a, b []byte) error {
	mine, err := parquet.OpenFile(bytes.NewReader(a), int64(len(a)))
	if err != nil {
		return err
	}
	other, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	if x, y := mine.Schema().String(), other.Schema().String(); x != y {
		return fmt.Errorf("the schema is\n%s\nwant\n%s", x, y)
	}
	if x, y := len(mine.RowGroups()), len(other.RowGroups()); x != y {
		return fmt.Errorf("%d row groups, want %d", x, y)
	}
	for g := range mine.RowGroups() {
		for c := range mine.RowGroups()[g].ColumnChunks() {
			if err := compareChunks(mine, other, g, c); err != nil {
				return fmt.Errorf("row group %d, column %d: %w", g, c, err)
			}
		}
	}
	return nil
}

func compareChunks(mine, other *parquet.File, g, c int) error {
	x, y := mine.Metadata().RowGroups[g].Columns[c].MetaData, other.Metadata().RowGroups[g].Columns[c].MetaData
	if x.NumValues != y.NumValues || x.Statistics.NullCount != y.Statistics.NullCount {
		return fmt.Errorf("%d values, %d nulls, want %d, %d", x.NumValues, x.Statistics.NullCount, y.NumValues,
			y.Statistics.NullCount)
	}
	if !slices.Equal(x.Encoding, y.Encoding) || x.Codec != y.Codec || !slices.Equal(
		x.SizeStatistics.DefinitionLevelHistogram, y.SizeStatistics.DefinitionLevelHistogram) {
		return fmt.Errorf("the column chunk is %+v, want %+v", x, y)
	}
	want, _, err := pagesOf(other.RowGroups()[g].ColumnChunks()[c])
	if err != nil {
		return err
	}
	have, sizes, err := pagesOf(mine.RowGroups()[g].ColumnChunks()[c])
	if err != nil {
		return err
	}
	if len(have) != len(want) {
		return fmt.Errorf("%d values, want %d", len(have), len(want))
	}
	for i := range want {
		if have[i] == want[i] {
			continue // to the bit; Bytes takes memory
		}
		if have[i].DefinitionLevel() != want[i].DefinitionLevel() || !bytes.Equal(have[i].Bytes(), want[i].Bytes()) {
			return fmt.Errorf("row %d is %+v, want %+v", i, have[i], want[i])
		}
	}
	nan, err := checkIndex(mine.RowGroups()[g].ColumnChunks()[c], have, sizes)
	if err != nil {
		return err
	}
	return compareBounds(&x, &y, nan)
}

// compareBounds compares the bounds in the statistics of a column chunk. If the first page has
// nothing but NaN, parquet-go writes NaN, and we write none.
func compareBounds(x, y *format.ColumnMetaData, nanFirst bool) error {
	s, w := x.Statistics, y.Statistics
	switch {
	case nanFirst:
		if s.MinValue != nil || s.MaxValue != nil {
			return fmt.Errorf("bounds %v and %v beside a page of NaN", s.MinValue, s.MaxValue)
		}
	case len(w.MinValue) > 0 && isNaN(parquet.Kind(y.Type).Value(w.MinValue)):
	case !bytes.Equal(s.MinValue, w.MinValue) || !bytes.Equal(s.MaxValue, w.MaxValue):
		return fmt.Errorf("bounds %v and %v, want %v and %v", s.MinValue, s.MaxValue, w.MinValue, w.MaxValue)
	}
	return nil
}

// pagesOf returns the values of a column chunk, and how many each page has.
func pagesOf(chunk parquet.ColumnChunk) (all []parquet.Value, sizes []int, err error) {
	pages := chunk.Pages()
	defer pages.Close()
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return all, sizes, nil
		}
		if err != nil {
			return nil, nil, err
		}
		values := make([]parquet.Value, page.NumValues())
		if n, err := page.Values().ReadValues(values); n < len(values) {
			return nil, nil, fmt.Errorf("a page ends after %d of %d values: %w", n, len(values), err)
		}
		all, sizes = append(all, values...), append(sizes, len(values))
	}
}

// checkIndex compares the page index of a chunk with its values. nan tells whether the first
// page that has values has nothing but NaN.
func checkIndex(chunk parquet.ColumnChunk, values []parquet.Value, sizes []int) (nan bool, err error) {
	columns, err := chunk.ColumnIndex()
	if err != nil {
		return false, err
	}
	offsets, err := chunk.OffsetIndex()
	if err != nil {
		return false, err
	}
	if columns.NumPages() != len(sizes) || offsets.NumPages() != len(sizes) {
		return false, fmt.Errorf("indexes of %d and %d pages, want %d", columns.NumPages(), offsets.NumPages(),
			len(sizes))
	}
	from, seen := 0, false
	for k, n := range sizes {
		if offsets.FirstRowIndex(k) != int64(from) {
			return false, fmt.Errorf("page %d begins at row %d, want %d", k, offsets.FirstRowIndex(k), from)
		}
		page := values[from : from+n]
		from += n
		present := slices.DeleteFunc(slices.Clone(page), parquet.Value.IsNull)
		if columns.NullCount(k) != int64(n-len(present)) || columns.NullPage(k) != (len(present) == 0) {
			return false, fmt.Errorf("page %d: the index counts %d nulls of %d, want %d", k, columns.NullCount(k), n,
				n-len(present))
		}
		numbers := slices.DeleteFunc(slices.Clone(present), isNaN)
		if len(numbers) == 0 {
			nan = nan || len(present) > 0 && !seen
			seen = seen || len(present) > 0
			continue
		}
		seen = true
		compare := chunk.Type().Compare
		least, greatest := slices.MinFunc(numbers, compare), slices.MaxFunc(numbers, compare)
		if compare(columns.MinValue(k), least) != 0 || compare(columns.MaxValue(k), greatest) != 0 {
			return false, fmt.Errorf("page %d: the index says %v to %v, want %v to %v", k, columns.MinValue(k),
				columns.MaxValue(k), least, greatest)
		}
	}
	return nan, nil
}

// A column that a frame lacks, and one that it has whole, keep no level for each row.
func TestLevelsOfRowsThatAreAlikeAreOneNumber(t *testing.T) {
	l := levels{optional: true}
	for _, add := range []struct {
		present bool
		n       int
		taken   bool
	}{{false, 100_000, true}, {false, 1, true}, {true, 1, false}, {true, 100_000, false}} {
		if l.accepts(add.present, add.n) != add.taken {
			t.Errorf("%+v: not so after %d rows, %d nulls", add, l.rows, l.nulls)
		} else if add.taken {
			l.add(add.present, add.n)
		}
	}
	if len(l.each) > 0 || l.rows != 100_001 || l.nulls != l.rows {
		t.Errorf("%d rows, %d nulls, %d levels", l.rows, l.nulls, len(l.each))
	}
	if bytes, err := l.append(nil); err != nil || len(bytes) > 8 {
		t.Errorf("%d bytes, %v", len(bytes), err)
	}
}
