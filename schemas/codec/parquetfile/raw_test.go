package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// rawFile returns a file with several row groups, dictionaries, filters, nulls, and page indexes.
func rawFile(t testing.TB, rows int) []byte {
	t.Helper()
	type row struct {
		Offset int64    `parquet:"offset,delta"`
		Name   string   `parquet:"name,dict"`
		Score  *float64 `parquet:"score,optional"`
		List   []int32  `parquet:"list,list"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(40), parquet.PageBufferSize(200),
		parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending("offset"))),
		parquet.BloomFilters(parquet.SplitBlockFilter(10, "name")), parquet.KeyValueMetadata("entropipe.table", "rows"))
	score := 1.5
	for i := range rows {
		r := row{Offset: int64(i), Name: string(rune('a' + i%7)), List: []int32{1, int32(i)}[:i%3%2+1]}
		if i%2 == 0 {
			r.Score = &score
		}
		if _, err := w.Write([]row{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Law: a footer whose numbers stay is the footer that the library decodes from the file, and each
// number is seen once, with the chunk or row group that has it.
func TestRawFooterIsTheFooter(t *testing.T) {
	for _, rows := range []int{0, 1, 300, 900} {
		data := rawFile(t, rows)
		raw, err := ReadRawFooter(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		want, begin, err := ReadFooter(bytes.NewReader(data), int64(len(data)))
		if err != nil || begin != raw.Begin || raw.Rows != int64(rows) || raw.Groups != len(want.RowGroups) {
			t.Fatalf("%d rows: %v, begins at %d, want %d; %d row groups", rows, err, raw.Begin, begin, raw.Groups)
		}
		seen := map[NumberKind]int{}
		groups := raw.AppendGroups(nil, func(kind NumberKind, owner int, n int64) int64 {
			seen[kind]++
			if kind == GroupOrdinal && n != int64(owner) {
				t.Errorf("row group %d has ordinal %d", owner, n)
			}
			if kind == ColumnIndexOffset && n != raw.Chunks[owner].ColumnIndex.From {
				t.Errorf("chunk %d has its index at %d, want %+v", owner, n, raw.Chunks[owner])
			}
			return n
		})
		if seen[ChunkOffset] != len(raw.Chunks) || seen[GroupOrdinal] != raw.Groups {
			t.Errorf("%d rows: numbers %v", rows, seen)
		}
		text := raw.AppendFooter(nil, raw.Rows, raw.Groups, groups, raw.KeyValues)
		got := new(format.FileMetaData)
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), text, got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d rows:\n%+v\nwant\n%+v", rows, got, want)
		}
		place := 0
		for _, g := range want.RowGroups {
			for _, c := range g.Columns {
				from, to := ChunkRange(&c.MetaData)
				if raw.Chunks[place].Pages != (Range{from, to}) {
					t.Errorf("chunk %d: %+v, want %d to %d", place, raw.Chunks[place], from, to)
				}
				place++
			}
		}
	}
}

// Law: numbers may take more bytes than before, and every other byte stays.
func TestRawFooterWithLongNumbers(t *testing.T) {
	data := rawFile(t, 300)
	raw, err := ReadRawFooter(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	const shift = 1 << 40
	groups := raw.AppendGroups(nil, func(kind NumberKind, _ int, n int64) int64 {
		if kind == PageOffset && n > 0 {
			n += shift
		}
		return n
	})
	got := new(format.FileMetaData)
	text := raw.AppendFooter(nil, raw.Rows, raw.Groups, groups, nil)
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), text, got); err != nil {
		t.Fatal(err)
	}
	want, _, err := ReadFooter(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	want.KeyValueMetadata = nil
	for i := range want.RowGroups {
		for k := range want.RowGroups[i].Columns {
			m := &want.RowGroups[i].Columns[k].MetaData
			m.DataPageOffset += shift
			if m.DictionaryPageOffset > 0 {
				m.DictionaryPageOffset += shift
			}
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
}

// Law: an offset index whose pages are moved is the same index with other offsets.
func TestOffsetIndexMoves(t *testing.T) {
	data := rawFile(t, 300)
	raw, err := ReadRawFooter(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range raw.Chunks {
		var before, after format.OffsetIndex
		old := data[c.OffsetIndex.From:c.OffsetIndex.To]
		moved, err := AppendOffsetIndex(nil, old, 1<<33)
		if err == nil {
			err = errors.Join(thrift.Unmarshal(new(thrift.CompactProtocol), old, &before),
				thrift.Unmarshal(new(thrift.CompactProtocol), moved, &after))
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range before.PageLocations {
			before.PageLocations[i].Offset += 1 << 33
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%+v, want %+v", after, before)
		}
	}
}

// Damaged footers and indexes are errors, whatever their bytes claim.
func TestDamagedRawFooters(t *testing.T) {
	data := rawFile(t, 300)
	raw, err := ReadRawFooter(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	refused := 0
	for range 2000 {
		harmed := bytes.Clone(data)
		for range 1 + rng.IntN(3) {
			harmed[raw.Begin+rng.Int64N(raw.Size)] = byte(rng.Uint32())
		}
		found, err := ReadRawFooter(bytes.NewReader(harmed), int64(len(harmed)))
		if bad := (*FormatError)(nil); err != nil && !errors.As(err, &bad) {
			t.Fatalf("%v is no FormatError", err)
		}
		if err != nil {
			refused++
			continue
		}
		found.AppendGroups(nil, func(_ NumberKind, _ int, n int64) int64 { return n })
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
	index := data[raw.Chunks[0].OffsetIndex.From:raw.Chunks[0].OffsetIndex.To]
	for n := range index {
		if _, err := AppendOffsetIndex(nil, index[:n], 1); err == nil {
			t.Errorf("an index of %d of %d bytes is accepted", n, len(index))
		}
	}
	for _, tail := range []string{"PARE", "XXXX"} {
		harmed := append(bytes.Clone(data[:len(data)-4]), tail...)
		if _, err := ReadRawFooter(bytes.NewReader(harmed), int64(len(harmed))); err == nil {
			t.Errorf("a file that ends with %q is accepted", tail)
		}
	}
	short := binary.LittleEndian.AppendUint32([]byte("PAR1"), 1<<30)
	if _, err := ReadRawFooter(bytes.NewReader(append(short, magic...)), 12); err == nil {
		t.Error("a footer longer than its file is accepted")
	}
}
