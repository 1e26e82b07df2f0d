package compact

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"entropipe/schemas"
	"entropipe/schemas/codec/parquetfile"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/pairhash"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// writer commits batches to an output.
type writer struct {
	t    testing.TB
	out  *sinks.Output
	next map[int32]int64
}

// encoder writes several row groups a file.
var encoder = sync.OnceValue(func() *tables.Encoder {
	e, err := tables.New(tables.Config{RowGroupRows: 24, Version: "test",
		Tables: []string{tables.Hulls, tables.Triangles, tables.Points, tables.Messages}})
	if err != nil {
		panic(err)
	}
	return e
})

// newWriter makes an output, or goes on with it.
func newWriter(t testing.TB, store sinks.Store, content sinks.Content) *writer {
	t.Helper()
	out, err := sinks.Open(t.Context(), store, encoder(), sinks.Config{Content: content, Version: "test"})
	if err == nil {
		err = out.Base(t.Context(), sinktest.LogTopic, schemas.TopicID{}, map[int32]int64{0: 0, 1: 5})
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{t: t, out: out, next: map[int32]int64{}}
	for _, id := range []int32{0, 1} {
		pos, err := out.Resume(t.Context(), sinktest.LogTopic, id)
		if err != nil {
			t.Fatal(err)
		}
		w.next[id] = pos.Next
	}
	return w
}

// commit commits the next records of a partition.
func (w *writer) commit(s batches.Spec) {
	w.t.Helper()
	s.Topic, s.Start, s.Originals = sinktest.LogTopic, w.next[s.Partition], true
	b := batches.Synthetic(s)
	w.carry(b)
	if _, err := w.out.Commit(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
	w.next[s.Partition] = b.End
}

// tokens commits the next messages of token sequences of partition 0.
func (w *writer) tokens(records int) {
	w.t.Helper()
	b := batches.Tokens(sinktest.LogTopic, w.next[0], records, 8)
	read := map[int64]bool{}
	for i := range b.Results {
		read[b.Results[i].Offset] = true
	}
	for i := range b.Rejects {
		read[b.Rejects[i].Offset] = true
	}
	for _, offset := range slices.Sorted(maps.Keys(read)) {
		b.Originals = append(b.Originals, batches.SyntheticOriginal(b, offset))
	}
	w.carry(b)
	if _, err := w.out.Commit(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
	w.next[0] = b.End
}

// gap commits records that were deleted before they could be read.
func (w *writer) gap(partition int32, records int64) {
	w.t.Helper()
	start := w.next[partition]
	b := &schemas.Batch{Topic: sinktest.LogTopic, Partition: partition, Start: start, End: start + records, Gap: true,
		Holes: records}
	w.carry(b)
	if _, err := w.out.Commit(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
	w.next[partition] = b.End
}

// carry gives a batch without records the last record before it, as the pipeline does.
func (w *writer) carry(b *schemas.Batch) {
	w.t.Helper()
	if b.Last != nil {
		return
	}
	m, err := w.out.Newest(w.t.Context(), b.Topic, b.Partition)
	if err != nil {
		w.t.Fatal(err)
	}
	if m != nil {
		b.Last = m.Last
	}
}

// compacted compacts an output into another one.
func compacted(t testing.TB, from sinks.Reader, into sinks.Store, cfg Config) *Compactor {
	t.Helper()
	c, err := Open(t.Context(), from, into, cfg)
	if err == nil {
		err = c.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rowsOf returns how often each row is in the tables of an output, as a text with all values.
func rowsOf(t testing.TB, store sinks.Reader) map[string]int {
	t.Helper()
	rows := map[string]int{}
	eachFile(t, store, func(name string, o sinks.Object) {
		f, err := parquet.OpenFile(o, o.Size())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		reader := parquet.NewGenericReader[any](f)
		defer reader.Close()
		buffer := make([]parquet.Row, 64)
		for {
			n, err := reader.ReadRows(buffer)
			for _, row := range buffer[:n] {
				var text strings.Builder
				text.WriteString(path.Dir(name))
				for _, v := range row {
					fmt.Fprintf(&text, " %d:%d:%q", v.Column(), v.DefinitionLevel(), v.String())
				}
				rows[text.String()]++
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
	return rows
}

// eachFile calls f with every file of every table.
func eachFile(t testing.TB, store sinks.Reader, f func(name string, o sinks.Object)) {
	t.Helper()
	err := store.List(context.Background(), ".", func(e sinks.Entry) error {
		if !strings.HasSuffix(e.Name, record.DataSuffix) || strings.HasPrefix(e.Name, "_") {
			return nil
		}
		o, err := store.Open(context.Background(), e.Name)
		if err != nil {
			return err
		}
		defer o.Close()
		f(e.Name, o)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// chunksOf returns the bytes of all column chunks of an output by folder and column, in the order
// of the offsets that are in the names of files.
func chunksOf(t testing.TB, store sinks.Reader) map[string]string {
	t.Helper()
	type piece struct{ file, data string }
	pieces := map[string][]piece{}
	eachFile(t, store, func(name string, o sinks.Object) {
		meta, _, err := parquetfile.ReadFooter(o, o.Size())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, g := range meta.RowGroups {
			for _, c := range g.Columns {
				from, to := parquetfile.ChunkRange(&c.MetaData)
				data := make([]byte, to-from)
				if _, err := o.ReadAt(data, from); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				partition := strings.Split(path.Base(name), "-")[1]
				key := fmt.Sprint(path.Dir(name), partition, c.MetaData.PathInSchema, c.MetaData.Type)
				pieces[key] = append(pieces[key], piece{name, string(data)})
			}
		}
	})
	all := map[string]string{}
	for key, list := range pieces {
		slices.SortStableFunc(list, func(a, b piece) int { return cmp.Compare(orderOf(a.file), orderOf(b.file)) })
		for _, p := range list {
			all[key] += p.data
		}
	}
	return all
}

// orderOf returns a text that sorts files of a partition by offset, then by part.
func orderOf(name string) string { return strings.TrimSuffix(name, record.DataSuffix) }

// mustHaveIndexes fails the test unless the page indexes of a file lead to its pages: rows that
// are sought by them are those that a reader without them finds.
func mustHaveIndexes(t testing.TB, name string, o sinks.Object) {
	t.Helper()
	f, err := parquet.OpenFile(o, o.Size())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for g, group := range f.RowGroups() {
		for i, chunk := range group.ColumnChunks() {
			offsets, err := chunk.OffsetIndex()
			if err != nil {
				t.Fatalf("%s: row group %d, column %d: %v", name, g, i, err)
			}
			bounds, err := chunk.ColumnIndex()
			if err != nil || bounds.NumPages() != offsets.NumPages() {
				t.Fatalf("%s: row group %d, column %d: %v", name, g, i, err)
			}
			pages := chunk.Pages()
			for k := range offsets.NumPages() {
				if err := pages.SeekToRow(offsets.FirstRowIndex(k)); err != nil {
					t.Fatal(err)
				}
				page, err := pages.ReadPage()
				if err != nil {
					t.Fatalf("%s: row group %d, column %d, page %d: %v", name, g, i, k, err)
				}
				low, high, ok := page.Bounds()
				if ok && !bounds.NullPage(k) && page.Type().Kind() == parquet.Int64 &&
					(bounds.MinValue(k).Int64() != low.Int64() || bounds.MaxValue(k).Int64() != high.Int64()) {
					t.Errorf("%s: row group %d, column %d, page %d has %v to %v, its index says %v to %v", name, g, i,
						k, low, high, bounds.MinValue(k), bounds.MaxValue(k))
				}
				parquet.Release(page)
			}
			pages.Close()
		}
	}
}

// mustVerify fails the test unless verify finds no fault.
func mustVerify(t testing.TB, store sinks.Reader) *read.Report {
	t.Helper()
	report, err := read.Verify(context.Background(), store, read.VerifyOptions{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK {
		t.Fatalf("verify:\n%s", report)
	}
	return report
}

// Law: a compaction has the rows of its source, each once, its column chunks byte for byte,
// page indexes that lead to the pages, and the counts and bases that verify finds.
func TestCompactionsHoldWhatTheirSourcesHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		from, into := sinktest.MemStore(sinktest.NewMemDisk()), sinktest.MemStore(sinktest.NewMemDisk())
		w := newWriter(t, from, sinks.Content{"ops": "hull2d"})
		for i := range rapid.IntRange(0, 5).Draw(rt, "commits") {
			s := batches.Spec{Partition: rapid.Int32Range(0, 1).Draw(rt, "partition"),
				Records: rapid.IntRange(1, 12).Draw(rt, "records"), Frames: rapid.IntRange(1, 3).Draw(rt, "frames"),
				Points: rapid.IntRange(3, 9).Draw(rt, "points"), Points64: rapid.Bool().Draw(rt, "wide"),
				Datasets: []string{"a", "b"}[:rapid.IntRange(1, 2).Draw(rt, "datasets")], Seed: uint64(i)}
			switch rapid.IntRange(0, 5).Draw(rt, "kind") {
			case 0:
				w.gap(s.Partition, 3)
			case 1:
				w.out.SetContent(sinks.Content{"ops": fmt.Sprint(i)})
			case 2:
				w.tokens(int(s.Records))
			default:
				w.commit(s)
			}
		}
		c := compacted(t, from, into, Config{TargetBytes: rapid.Int64Range(1, 100_000).Draw(rt, "target"),
			Readers: rapid.IntRange(1, 4).Draw(rt, "readers")})
		want, got := rowsOf(t, from), rowsOf(t, into)
		if !maps.Equal(want, got) {
			rt.Fatalf("%d different rows, and the compaction has %d", len(want), len(got))
		}
		if want, got := chunksOf(t, from), chunksOf(t, into); !maps.Equal(want, got) {
			rt.Fatalf("column chunks differ")
		}
		eachFile(t, into, func(name string, o sinks.Object) { mustHaveIndexes(t, name, o) })
		mustCountAlike(rt, mustVerify(t, from), mustVerify(t, into))
		if before := c.Copied(); c.Run(t.Context()) != nil || c.Copied() != before {
			rt.Errorf("a second run copies: %+v, then %+v", before, c.Copied())
		}
	})
}

// mustCountAlike compares two reports: bases, ends, counts and gaps of partitions, and rows of
// tables.
func mustCountAlike(t rapid.TB, a, b *read.Report) {
	t.Helper()
	if len(a.Partitions) != len(b.Partitions) || len(a.Tables) != len(b.Tables) {
		t.Fatalf("%d partitions and %d tables, and %d and %d", len(a.Partitions), len(a.Tables), len(b.Partitions),
			len(b.Tables))
	}
	for i := range a.Partitions {
		p, q := a.Partitions[i], b.Partitions[i]
		q.Manifests = p.Manifests
		if fmt.Sprint(p) != fmt.Sprint(q) {
			t.Errorf("%+v, and %+v", p, q)
		}
	}
	for i := range a.Tables {
		if a.Tables[i].Table != b.Tables[i].Table || a.Tables[i].Rows != b.Tables[i].Rows ||
			a.Tables[i].Files < b.Tables[i].Files {
			t.Errorf("%+v, and %+v", a.Tables[i], b.Tables[i])
		}
	}
}

// Many small files become one of each table, schema and folder.
func TestFilesBecomeFew(t *testing.T) {
	from, into := sinktest.MemStore(sinktest.NewMemDisk()), sinktest.MemStore(sinktest.NewMemDisk())
	w := newWriter(t, from, nil)
	for i := range 30 {
		w.commit(batches.Spec{Records: 4, Frames: 1, Points: 5, Points64: i == 12, Seed: uint64(i)})
	}
	c := compacted(t, from, into, Config{})
	report := mustVerify(t, into)
	for _, table := range report.Tables {
		want := int64(1)
		if table.Table == tables.Points { // float32, float64, float32
			want = 3
		}
		if table.Files != want {
			t.Errorf("%d files of table %s, want %d", table.Files, table.Table, want)
		}
	}
	if got := c.Copied(); got.Commits != 30 || got.Ranges != 1 || got.Files <= got.Into {
		t.Errorf("%+v", got)
	}
	eachFile(t, into, func(name string, o sinks.Object) {
		f, err := parquetfile.Open(o, o.Size())
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := f.Lookup("entropipe.offsets"); got != "0-120" {
			t.Errorf("%s: offsets %q", name, got)
		}
		if geo, ok := f.Lookup("geo"); ok != strings.HasPrefix(name, "hulls/") || ok &&
			(!strings.Contains(geo, "Polygon") || !strings.Contains(geo, "Point")) {
			t.Errorf("%s: geo %q", name, geo)
		}
	})
}

// A file with bloom filters and sorting columns keeps both: lookups find what is there.
func TestBloomFiltersAreCopied(t *testing.T) {
	type row struct {
		Offset int64  `parquet:"offset"`
		Name   string `parquet:"name,dict"`
	}
	var files [][]byte
	for k := range 3 {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b, parquet.MaxRowsPerRowGroup(40),
			parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending("offset"))),
			parquet.BloomFilters(parquet.SplitBlockFilter(10, "offset"), parquet.SplitBlockFilter(10, "name")))
		for i := range 100 {
			if _, err := w.Write([]row{{int64(k*1000 + i), fmt.Sprintf("name %d", k*1000+i)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		files = append(files, b.Bytes())
	}
	out := &pairSum{sum: pairhash.New()}
	p := newSplicer(out, 0, 3000)
	for _, data := range files {
		sum := sha256.Sum256(data)
		s := &source{data: data, size: int64(len(data)), file: &record.File{SHA256: hex.EncodeToString(sum[:])},
			ctx: t.Context()}
		var err error
		if s.footer, err = parquetfile.ReadRawFooter(bytes.NewReader(data), s.size); err != nil {
			t.Fatal(err)
		}
		if !p.fits(s) {
			t.Fatal("a file of the same schema does not fit")
		}
		if err := p.add(s); err != nil {
			t.Fatal(err)
		}
	}
	if rows, err := p.finish(); err != nil || rows != 300 {
		t.Fatal(rows, err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for g, group := range f.RowGroups() {
		if got := f.Metadata().RowGroups[g]; int(got.Ordinal) != g {
			t.Errorf("row group %d has ordinal %d", g, got.Ordinal)
		}
		rows := make([]parquet.Row, 100)
		reader := group.Rows()
		n, _ := reader.ReadRows(rows)
		for _, r := range rows[:n] {
			for i, chunk := range group.ColumnChunks() {
				if found, err := chunk.BloomFilter().Check(r[i]); err != nil || !found {
					t.Errorf("row group %d: the filter of column %d does not know %v: %v", g, i, r[i], err)
				}
			}
		}
		reader.Close()
	}
	read, err := parquet.Read[row](bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil || len(read) != 300 || read[299].Name != "name 2099" {
		t.Error(len(read), err)
	}
}
