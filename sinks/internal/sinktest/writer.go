package sinktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/disk"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// Writer is one process that copies a log, offsets [0, end), to an output: what
// the pipeline does, without Kafka.
type Writer struct {
	Store  sinks.Store
	End    int64
	base   int64             // offset that it asks Base for
	Roll   func() int        // number of records of its next batch
	Fail   func(error) error // called with an error; nil makes the writer continue from Resume
	Tables []string          // tables besides those that are always written
	Parts  int               // number of parts of a batch that are staged before its commit

	Content sinks.Content   // settings of the rows
	Former  sinks.Reader    // output whose commits it adopts before it copies; nil: it copies all
	Adopted []sinks.Adopted // adopted by each session
}

// Run copies until the end, and returns what fail returns.
func (w *Writer) Run(ctx context.Context) error {
	for {
		err := w.session(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !errors.Is(err, schemas.ErrLost) {
			if err := w.Fail(err); err != nil {
				return err
			}
		}
	}
}

func (w *Writer) session(ctx context.Context) error {
	o, err := sinks.Open(ctx, w.Store, EncoderOf(w.Tables...), sinks.Config{Content: w.Content})
	if err != nil {
		return err
	}
	if err := o.Base(ctx, LogTopic, schemas.TopicID{}, map[int32]int64{0: w.base}); err != nil {
		return err
	}
	if err := w.adopt(ctx, o); err != nil {
		return err
	}
	pos, err := o.Resume(ctx, LogTopic, 0)
	for err == nil && pos.Next < w.End {
		n := min(int64(w.Roll()), w.End-pos.Next)
		b := LogBatch(pos.Next, int(n))
		if b.Last == nil {
			b.Last = pos.Last
		}
		if err = w.stage(ctx, o, b); err != nil {
			return err
		}
		_, err = o.Commit(ctx, b)
		pos = schemas.Position{Next: b.End, Last: b.Last}
	}
	return err
}

// adopt adopts what it can of the log.
func (w *Writer) adopt(ctx context.Context, o *sinks.Output) error {
	if w.Former == nil {
		return nil
	}
	f, err := sinks.OpenFormer(ctx, w.Former)
	if err != nil {
		return err
	}
	a, err := o.Adopt(ctx, f, LogTopic, 0, w.End)
	w.Adopted = append(w.Adopted, a)
	return err
}

// stage takes parts off the front of b.
func (w *Writer) stage(ctx context.Context, o *sinks.Output, b *schemas.Batch) error {
	for i := range w.Parts {
		part, n := *b, len(b.Results)/(w.Parts-i+1)
		part.Results, b.Results = b.Results[:n], b.Results[n:]
		k := len(b.Rejects)
		if len(b.Results) > 0 {
			k = slices.IndexFunc(append(b.Rejects, schemas.Reject{Offset: b.End}),
				func(r schemas.Reject) bool { return r.Offset >= b.Results[0].Offset })
		}
		part.Rejects, b.Rejects = b.Rejects[:k], b.Rejects[k:]
		if err := o.Stage(ctx, &part); err != nil {
			return err
		}
	}
	return nil
}

// LogBatch is what the log's records [start, start+n) become, whoever reads
// them and however they are cut.
func LogBatch(start int64, n int) *schemas.Batch {
	return batches.Synthetic(batches.Spec{Topic: LogTopic, Start: start, Records: n, Frames: 2, Points: 4,
		Datasets: []string{"a", "b"}, Seed: LogSeed})
}

// logRow is the key of a row of table frames or rejects.
type logRow struct {
	Partition int32 `parquet:"partition"`
	Offset    int64 `parquet:"offset"`
	Index     int32 `parquet:"index"`
}

func compareRows(a, b logRow) int {
	return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Index, b.Index))
}

// Tally counts the rows of every frames and rejects file, as a user would: by looking
// for files, not by the manifests.
func Tally(t *testing.T, store sinks.Reader) map[logRow]int {
	t.Helper()
	ctx, rows := context.Background(), map[logRow]int{}
	err := store.List(ctx, ".", func(e sinks.Entry) error {
		if !strings.HasSuffix(e.Name, record.DataSuffix) ||
			!strings.HasPrefix(e.Name, tables.Frames+"/") && !strings.HasPrefix(e.Name, tables.Rejects+"/") {
			return nil
		}
		o, err := store.Open(ctx, e.Name)
		if err != nil {
			return err
		}
		defer o.Close()
		f, err := parquet.OpenFile(o, o.Size())
		if err != nil {
			return err
		}
		keys := make([]logRow, f.NumRows())
		err = errors.Join(eachNumber(f, "partition", func(i int, v int64) { keys[i].Partition = int32(v) }),
			eachNumber(f, "offset", func(i int, v int64) { keys[i].Offset = v }),
			eachNumber(f, "index", func(i int, v int64) { keys[i].Index = int32(v) }))
		for _, k := range keys {
			rows[k]++
		}
		return err
	})
	if err != nil {
		t.Fatalf("tally: %v", err)
	}
	return rows
}

// eachNumber calls do with the numbers of a column, row by row. A file may lack the column.
// It takes a fraction of the time of parquet.Read, which makes values for what is absent.
func eachNumber(f *parquet.File, column string, do func(row int, v int64)) error {
	leaf, has := f.Schema().Lookup(column)
	if !has {
		return nil
	}
	row, values := 0, make([]parquet.Value, 64)
	for _, group := range f.RowGroups() {
		pages := group.ColumnChunks()[leaf.ColumnIndex].Pages()
		defer pages.Close()
		for {
			page, err := pages.ReadPage()
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			for r, err := page.Values(), error(nil); err == nil; {
				var n int
				n, err = r.ReadValues(values)
				for _, v := range values[:n] {
					do(row, v.Int64())
					row++
				}
				if err != nil && err != io.EOF {
					return err
				}
			}
			parquet.Release(page)
		}
	}
	if row != int(f.NumRows()) {
		return fmt.Errorf("column %s has %d values in %d rows", column, row, f.NumRows())
	}
	return nil
}

// ExactlyOnce says how the rows of an output differ from those of the log's
// records [from, end), each once; empty: not at all.
func ExactlyOnce(t *testing.T, store sinks.Reader, from, end int64) string {
	t.Helper()
	want := LogBatch(from, int(end-from))
	got := Tally(t, store)
	var wrong []string
	expect := func(offset int64, index int32) {
		k := logRow{0, offset, index}
		if got[k] != 1 {
			wrong = append(wrong, fmt.Sprintf("offset %d index %d: %d times", offset, index, got[k]))
		}
		delete(got, k)
	}
	for i := range want.Results {
		expect(want.Results[i].Offset, want.Results[i].Index)
	}
	for i := range want.Rejects {
		expect(want.Rejects[i].Offset, want.Rejects[i].Index)
	}
	for _, k := range slices.SortedFunc(maps.Keys(got), compareRows) {
		wrong = append(wrong, fmt.Sprintf("partition %d offset %d index %d: %d times, but it is not in the log",
			k.Partition, k.Offset, k.Index, got[k]))
	}
	return strings.Join(wrong, "\n")
}

// MustBeWhole fails the test unless the output holds the log's records
// [from, end) exactly once and Verify agrees.
func MustBeWhole(t *testing.T, store sinks.Reader, from, end int64) {
	t.Helper()
	if wrong := ExactlyOnce(t, store, from, end); wrong != "" {
		t.Errorf("not exactly once:\n%s", wrong)
	}
	report, err := read.Verify(context.Background(), store,
		read.VerifyOptions{Workers: 1, Ends: map[string]map[int32]int64{LogTopic: {0: end}}})
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	if !report.OK {
		t.Errorf("verify:\n%s", report)
	}
}

func Roll(n int) func() int { return func() int { return n } }

func MemStore(d disk.Disk) *sinks.Local { return sinks.LocalOn(d, "mem") }

// MustBeClean fails the test if anything is left in staging or aside.
func MustBeClean(t *testing.T, d *MemDisk) {
	t.Helper()
	for name := range d.Live.Files {
		if strings.Contains(name, "/"+record.NewPrefix) || strings.HasPrefix(name, record.StagingFolder) {
			t.Errorf("%s is left", name)
		}
	}
}

// TakeOver is another writer that copies records up to end.
func TakeOver(t *testing.T, store sinks.Store, base, end int64, rollSize int) {
	t.Helper()
	w := Writer{Store: store, base: base, End: end, Roll: Roll(rollSize), Fail: IsCrash}
	if err := w.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// open opens an output with one partition that has been resumed.
func OpenResumed(t *testing.T, d disk.Disk) *sinks.Output {
	t.Helper()
	ctx := context.Background()
	o, err := sinks.Open(ctx, MemStore(d), EncoderOf(), sinks.Config{})
	if err == nil {
		err = o.Base(ctx, LogTopic, schemas.TopicID{}, map[int32]int64{0: 0})
	}
	if err == nil {
		_, err = o.Resume(ctx, LogTopic, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func OpenOn(t *testing.T, s sinks.Store) *sinks.Output {
	t.Helper()
	o, err := sinks.Open(t.Context(), s, EncoderOf(), sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func ManifestOf(t *testing.T, d *MemDisk, start int64) (string, *record.Manifest) {
	t.Helper()
	name := record.ManifestName(record.TopicPartition{Topic: LogTopic, ID: 0}, start)
	m, err := record.ParseManifest(name, d.Live.Files[name].Data)
	if err != nil {
		t.Fatal(err)
	}
	return name, m
}

// CountsOf says what becomes of the records of b.
func CountsOf(b *schemas.Batch) record.Counts {
	c := record.Counts{Messages: b.Messages, Holes: b.Holes, Rejects: int64(len(b.Rejects))}
	for i := range b.Results {
		if b.Results[i].Tokens != nil {
			c.Sequences++
		} else {
			c.Frames++
		}
	}
	return c
}

// EncoderOf returns an encoder of the tables that are always written and of these.
func EncoderOf(names ...string) *tables.Encoder {
	e, err := tables.New(tables.Config{Tables: append([]string{}, names...)})
	if err != nil {
		panic(err)
	}
	return e
}
