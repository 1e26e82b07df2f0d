package schemas

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
)

// writeFile makes an Arrow file of the batches.
func writeFile(t testing.TB, recs []arrow.Record, opts ...ipc.Option) []byte {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := ipc.NewFileWriter(f, append([]ipc.Option{ipc.WithSchema(recs[0].Schema())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	value, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// sweeps are two batches of columns as data sets have them, with a column that is skipped.
func sweeps(t testing.TB) []arrow.Record {
	batch := func(x arrow.Array, rest ...field) arrow.Record {
		r := record(t, rest...)
		fields := append([]arrow.Field{{Name: "easting", Type: f16}}, r.Schema().Fields()...)
		return array.NewRecord(arrow.NewSchema(fields, nil), append([]arrow.Array{x}, r.Columns()...), r.NumRows())
	}
	return []arrow.Record{
		batch(halves(0x3c00, 0x0001, 0x8001), field{"name", text, `["a", "b", null]`},
			field{"z", f64, "[1.25, null, 3]"}, field{"laser_number", i32, "[1, 2, 3]"},
			field{"flags", arrow.ListOf(i64), "[[1], [], [2, 3]]"}),
		batch(halves(0x03ff, 0x7c00), field{"name", text, `["c", "d"]`}, field{"z", f64, "[4, 5]"},
			field{"laser_number", i32, "[4, -5]"}, field{"flags", arrow.ListOf(i64), "[null, []]"}),
	}
}

// A file and a stream of the same batches, compressed or not, are the same table.
func TestTableOfFileAndStream(t *testing.T) {
	var table Table
	for name, opts := range map[string][]ipc.Option{"plain": nil, "lz4": {ipc.WithLZ4()}, "zstd": {ipc.WithZstd()}} {
		for form, value := range map[string][]byte{"file": writeFile(t, sweeps(t), opts...),
			"stream": write(t, sweeps(t), opts...)} {
			if err := table.Read(value); err != nil {
				t.Fatalf("%s, %s: %v", form, name, err)
			}
			checkSweeps(t, form+", "+name, &table)
		}
	}
}

func checkSweeps(t *testing.T, name string, table *Table) {
	t.Helper()
	want := []TableColumn{{"easting", "float16", true, false, false}, {"name", "utf8", false, false, false},
		{"z", "float64", true, false, true}, {"laser_number", "int32", true, true, true},
		{"flags", "list", false, false, false}}
	if got := table.Columns(); !slices.Equal(got, want) || table.Rows() != 5 {
		t.Fatalf("%s: %d rows of %+v", name, table.Rows(), got)
	}
	x, err := table.Float32s(0, nil)
	if err != nil || !slices.Equal(x, []float32{1, 0x1p-24, -0x1p-24, 1023 * 0x1p-24, float32(math.Inf(1))}) {
		t.Errorf("%s: easting is %v, %v", name, x, err)
	}
	z, err := table.Float64s(2, make([]float64, 0, 8))
	if err != nil || len(z) != 5 || z[0] != 1.25 || !math.IsNaN(z[1]) || z[4] != 5 {
		t.Errorf("%s: z is %v, %v", name, z, err)
	}
	if laser, err := table.Int64s(3, nil); err != nil || !slices.Equal(laser, []int64{1, 2, 3, 4, -5}) {
		t.Errorf("%s: laser_number is %v, %v", name, laser, err)
	}
	if _, err := table.Int64s(2, nil); reasonOf(t, err) != ReasonBadValue && reasonOf(t, err) != ReasonBadType {
		t.Errorf("%s: floats as integers: %v", name, err)
	}
	if _, err := table.Float32s(1, nil); reasonOf(t, err) != ReasonBadType {
		t.Errorf("%s: texts as numbers: %v", name, err)
	}
}

// Files that lie are refused for the lie.
func TestTableRefuses(t *testing.T) {
	good := writeFile(t, sweeps(t))
	foot := len(good) - fileTail - int(binary.LittleEndian.Uint32(good[len(good)-fileTail:]))
	change := func(at int, with ...byte) []byte {
		value := bytes.Clone(good)
		copy(value[at:], with)
		return value
	}
	footer := &flat{b: good[foot : len(good)-fileTail]}
	start, blocks := footer.vector(footer.root(), 3, fileBlock)
	if blocks != 2 {
		t.Fatalf("%d blocks", blocks)
	}
	first, second := foot+start, foot+start+fileBlock
	for name, c := range map[string]struct {
		value          []byte
		reason, detail string
	}{
		"empty":          {nil, ReasonEmpty, "no bytes"},
		"another format": {[]byte("x,y,z\n1,2,3\n"), ReasonNotArrow, "is no Arrow"},
		"only the magic": {[]byte("ARROW1\x00\x00"), ReasonTruncated, "never closed"},
		"no footer":      {good[:foot], ReasonTruncated, "never closed"},
		"a huge footer": {change(len(good)-fileTail, 0xff, 0xff, 0xff, 0x7f), ReasonCorrupt,
			"a footer of 2147483647"},
		"a negative footer": {change(len(good)-fileTail, 0, 0, 0, 0x80), ReasonCorrupt, "a footer of -2147483648"},
		"a block behind":    {change(first, 0, 0, 0, 0x7f), ReasonCorrupt, "block 0 begins at byte"},
		"a block before":    {change(first, make([]byte, 8)...), ReasonCorrupt, "block 0 begins at byte"},
		"the same block": {change(second, good[first:first+fileBlock]...), ReasonCorrupt,
			"block 1 begins at byte"},
		"a block of the schema": {change(first, 8, 0, 0, 0, 0, 0, 0, 0), ReasonCorrupt, "message of kind 1"},
		"other lengths":         {change(first+16, 1), ReasonCorrupt, "the footer says"},
	} {
		var table Table
		err := table.Read(c.value)
		if got := reasonOf(t, err); got != c.reason || !strings.Contains(err.Error(), c.detail) {
			t.Errorf("%s: %v, want %s with %q", name, err, c.reason, c.detail)
		}
		if table.Rows() != 0 || table.Columns() != nil {
			t.Errorf("%s: the table has %d rows after the error", name, table.Rows())
		}
	}
	table := Table{MaxBytes: int64(len(good)) - 1}
	if err := table.Read(good); reasonOf(t, err) != ReasonTooLarge {
		t.Errorf("a file above the limit: %v", err)
	}
}

// readAllOf reads every column of a table in every way that it may be read.
func readAllOf(table *Table, value []byte) error {
	if err := table.Read(value); err != nil {
		return err
	}
	var all error
	for i := range table.Columns() {
		_, narrow := table.Float32s(i, nil)
		_, wide := table.Float64s(i, nil)
		_, whole := table.Int64s(i, nil)
		for _, err := range []error{narrow, wide, whole} {
			if all == nil {
				all = err
			}
		}
	}
	return all
}

// Files cut at every byte, and with every byte changed, are read or refused, never more.
func TestTableOfBrokenFiles(t *testing.T) {
	table := Table{MaxBytes: 1 << 20}
	for _, opts := range [][]ipc.Option{nil, {ipc.WithLZ4()}} {
		good := writeFile(t, sweeps(t), opts...)
		for n := range good {
			if err := table.Read(good[:n:n]); reasonOf(t, err) == "" {
				t.Errorf("%d bytes of %d are read", n, len(good))
			}
		}
		value := bytes.Clone(good)
		for at := range value {
			for _, p := range []byte{1, 0x80, 0xff} {
				value[at] ^= p
				if reasonOf(t, readAllOf(&table, value)) == ReasonArrowPanic {
					t.Errorf("byte %d ^ %d: Arrow panicked", at, p)
				}
				value[at] ^= p
			}
		}
	}
}

// FuzzTable asserts that any bytes are a table or a *FormatError, within bounded memory.
func FuzzTable(f *testing.F) {
	for _, opts := range [][]ipc.Option{nil, {ipc.WithLZ4()}, {ipc.WithZstd()}} {
		f.Add(writeFile(f, sweeps(f), opts...))
		f.Add(write(f, sweeps(f), opts...))
	}
	const limit = 1 << 20
	table := Table{MaxBytes: limit}
	f.Fuzz(func(t *testing.T, value []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := table.Read(value)
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > uint64(64*len(value)+1<<19) {
			t.Fatalf("%d bytes allocated for a value of %d (%v)", spent, len(value), err)
		}
		if err == nil {
			err = readAllOf(&table, value)
		}
		if reasonOf(t, err) == ReasonArrowPanic {
			t.Fatalf("%v\nvalue %x", err, value)
		}
	})
}
