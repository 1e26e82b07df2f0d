package parquetfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// row has a column of every encoding that the library writes.
type row struct {
	ID    int64    `parquet:"id,delta"`
	Plain int32    `parquet:"plain"`
	Short int32    `parquet:"short,delta"`
	Kind  string   `parquet:"kind,dict"`
	Text  string   `parquet:"text"`
	Long  string   `parquet:"long,delta"`
	Names []byte   `parquet:"names,delta"`
	Flag  bool     `parquet:"flag"`
	Split float64  `parquet:"split,split"`
	Hash  [16]byte `parquet:"hash"`
	Maybe *int64   `parquet:"maybe,optional"`
	IDs   []int32  `parquet:"input_ids,list"`
	Words []string `parquet:"words,list"`
}

// codecs are those that the library knows.
var codecs = map[string]compress.Codec{"uncompressed": &parquet.Uncompressed, "snappy": &parquet.Snappy,
	"gzip":   &parquet.Gzip,
	"brotli": &parquet.Brotli, "zstd": &parquet.Zstd, "lz4_raw": &parquet.Lz4Raw}

func rows(n int) []row {
	r := rand.New(rand.NewPCG(9, 24))
	all := make([]row, n)
	for i := range all {
		all[i] = row{ID: int64(i) * 1000, Plain: r.Int32N(100), Short: int32(i),
			Kind: []string{"car", "bus", "tram"}[i%3], Text: strings.Repeat("word ", r.IntN(9)),
			Long: "prefix of all texts " + fmt.Sprint(i), Names: []byte(fmt.Sprint("name", r.Uint32())), Flag: i%7 < 3,
			Split: r.Float64(),
			IDs:   make([]int32, r.IntN(6)), Words: []string{"a", "b", "c"}[:r.IntN(4)]}
		all[i].Hash[i%16] = byte(i)
		for k := range all[i].IDs {
			all[i].IDs[k] = r.Int32N(30000)
		}
		if i%4 > 0 {
			all[i].Maybe = new(int64(i))
		}
	}
	return all
}

func write(t testing.TB, codec compress.Codec, version, n, groupRows int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out, parquet.Compression(codec), parquet.DataPageVersion(version),
		parquet.PageBufferSize(256), parquet.MaxRowsPerRowGroup(int64(groupRows)))
	if _, err := w.Write(rows(n)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// withoutChecksums writes a file again as writers do that have no checksums of
// pages: nothing but the sizes protects what is in them.
func withoutChecksums(t testing.TB, data []byte) []byte {
	t.Helper()
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var protocol thrift.CompactProtocol
	out := []byte(magic)
	for _, g := range f.meta.RowGroups {
		for i := range g.Columns {
			c := &g.Columns[i].MetaData
			from, to := ChunkRange(c)
			start := len(out)
			for rest := data[from:to]; len(rest) > 0; {
				scan := scanner{b: rest}
				var h format.PageHeader
				if err := errors.Join(scan.skip(thriftStruct, inStruct),
					thrift.Unmarshal(&protocol, rest[:scan.at], &h)); err != nil {
					t.Fatal(err)
				}
				h.CRC = 0
				header, err := thrift.Marshal(&protocol, &h)
				if err != nil {
					t.Fatal(err)
				}
				end := scan.at + int(h.CompressedPageSize)
				out = append(append(out, header...), rest[scan.at:end]...)
				rest = rest[end:]
			}
			*c = format.ColumnMetaData{Type: c.Type, Encoding: c.Encoding, PathInSchema: c.PathInSchema, Codec: c.Codec,
				NumValues:             c.NumValues,
				TotalUncompressedSize: c.TotalUncompressedSize, TotalCompressedSize: int64(len(out) - start),
				DataPageOffset: int64(start)}
			g.Columns[i] = format.ColumnChunk{MetaData: *c}
		}
	}
	footer, err := thrift.Marshal(&protocol, &f.meta)
	if err != nil {
		t.Fatal(err)
	}
	return closeFile(append(out, footer...), len(footer))
}

// readAll returns the values of every column as text.
func readAll(data []byte) (columns []string, err error) {
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	for g := range f.RowGroups() {
		for c := range f.leaves {
			var b strings.Builder
			if err := Guard(func() error { return readPages(&b, f.Pages(g, c)) }); err != nil {
				return nil, err
			}
			columns = append(columns, b.String())
		}
	}
	return columns, nil
}

func readPages(b *strings.Builder, pages parquet.Pages) error {
	defer pages.Close()
	var values [64]parquet.Value
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		reader := page.Values()
		for {
			n, err := reader.ReadValues(values[:])
			for _, v := range values[:n] {
				if b.Len() < 1<<20 { // a damaged page may have many values
					fmt.Fprintf(b, "%+v ", v)
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
		}
		parquet.Release(page)
	}
}

// Files of every codec and version of pages are read as the library alone reads
// them.
func TestPagesEqualTheLibrarys(t *testing.T) {
	for name, codec := range codecs {
		for version := 1; version <= 2; version++ {
			data := withoutChecksums(t, write(t, codec, version, 300, 120))
			have, err := readAll(data)
			if err != nil {
				t.Fatalf("%s, pages of version %d: %v", name, version, err)
			}
			f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, g := range f.RowGroups() {
				for _, c := range g.ColumnChunks() {
					var b strings.Builder
					if err := readPages(&b, c.Pages()); err != nil {
						t.Fatal(err)
					}
					want = append(want, b.String())
				}
			}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("%s, pages of version %d: %s", name, version, diff)
			}
		}
	}
}

// A reader may begin at a row, and pages that come after its end are not read.
func TestSeekToRow(t *testing.T) {
	data := write(t, &parquet.Lz4Raw, 2, 300, 300)
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := f.Schema().Lookup("id")
	pages := f.Pages(0, leaf.ColumnIndex)
	defer pages.Close()
	if err := pages.SeekToRow(222); err != nil {
		t.Fatal(err)
	}
	page, err := pages.ReadPage()
	if err != nil {
		t.Fatal(err)
	}
	var v [1]parquet.Value
	if _, err := page.Values().ReadValues(v[:]); err != nil && err != io.EOF || v[0].Int64() != 222000 {
		t.Errorf("row 222 begins with %v, %v", v[0], err)
	}
}

// allocated returns the bytes that f reserves, freed again or not.
func allocated(f func()) uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	f()
	metrics.Read(sample)
	return sample[0].Value.Uint64() - before
}

// mutationLimit is how much a damaged file of a few kilobytes may reserve. The
// whole one takes less than a megabyte.
const mutationLimit = 8 << 20

// One wrong byte anywhere in a file of any codec gives an error or other values,
// never a panic or much memory.
func TestOneWrongByte(t *testing.T) {
	step := 5
	if testing.Short() {
		step = 29
	}
	for name, codec := range codecs {
		for version := 1; version <= 2; version++ {
			good := withoutChecksums(t, write(t, codec, version, 24, 24))
			broken, most, where := 0, uint64(0), 0
			for at := 0; at < len(good); at += step {
				data, mask := bytes.Clone(good), []byte{0xff, 0x80, 0x01}[at%3]
				data[at] ^= mask
				var err error
				if n := allocated(func() { _, err = readAll(data) }); n > most {
					most, where = n, at
				}
				var known *FormatError
				if err != nil {
					broken++
				}
				if err != nil && !errors.As(err, &known) {
					t.Fatalf("%s, pages of version %d, byte %d ^ %#x: %T %v", name, version, at, mask, err, err)
				}
			}
			if most > mutationLimit {
				t.Errorf("%s, pages of version %d: byte %d makes a file of %d bytes take %d", name, version,
					where, len(good), most)
			}
			if broken == 0 {
				t.Errorf("%s, pages of version %d: no byte matters", name, version)
			}
			t.Logf("%s, pages of version %d: %d bytes, %d errors, at most %d bytes reserved (byte %d)", name, version,
				len(good), broken, most, where)
		}
	}
}

// A file that ends early is an error wherever it ends.
func TestCutFiles(t *testing.T) {
	good := write(t, &parquet.Zstd, 2, 24, 24)
	for n := range good {
		var known *FormatError
		if _, err := readAll(good[:n]); !errors.As(err, &known) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(good), err)
		}
	}
}

// Several wrong bytes at once are no worse.
func FuzzOpen(f *testing.F) {
	for _, codec := range codecs {
		f.Add(write(f, codec, 1, 5, 3))
		f.Add(withoutChecksums(f, write(f, codec, 2, 5, 3)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var err error
		reserved := allocated(func() { _, err = readAll(data) })
		var known *FormatError
		if err != nil && !errors.As(err, &known) {
			t.Errorf("%T %v", err, err)
		}
		if reserved > 2<<30 { // pages may hold as many values as the limit says
			t.Errorf("%d bytes take %d", len(data), reserved)
		}
	})
}
