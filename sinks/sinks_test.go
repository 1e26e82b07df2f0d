package sinks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"entropipe/schemas"
	"entropipe/schemas/codec/parquetfile"
)

// An output keeps its identity, and refuses to be partitioned in another way.
func TestOpenAgain(t *testing.T) {
	ctx, d := context.Background(), newMemDisk()
	first, err := Open(ctx, memStore(d), Config{PartitionBy: []string{"dataset", "date"}})
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(first.UUID()) {
		t.Errorf("uuid %q", first.UUID())
	}
	if want := "entropipe-" + first.UUID()[:8]; first.DefaultGroup() != want {
		t.Errorf("group %q, want %q", first.DefaultGroup(), want)
	}
	second, err := Open(ctx, memStore(d), Config{PartitionBy: []string{"dataset", "date"}})
	if err != nil || second.UUID() != first.UUID() {
		t.Errorf("opened again as %v, %v", second, err)
	}
	var wrong *ConfigError
	if _, err := Open(ctx, memStore(d), Config{}); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "dataset,date") {
		t.Errorf("opened with another partition-by: %v", err)
	}
	for _, cfg := range []Config{{PartitionBy: []string{"label"}}, {Tables: []string{"hulls4d"}}, {Tables: []string{"nonsense"}}} {
		if _, err := Open(ctx, memStore(d), cfg); !errors.As(err, &wrong) {
			t.Errorf("opened with %+v: %v", cfg, err)
		}
	}
}

// Two processes that open a new output at once agree on what it is.
func TestOpenAtOnce(t *testing.T) {
	d := newMemDisk()
	var wg sync.WaitGroup
	uuids := make([]string, 8)
	for i := range uuids {
		wg.Go(func() {
			o, err := Open(context.Background(), memStore(d), Config{})
			if err != nil {
				t.Error(err)
				return
			}
			uuids[i] = o.UUID()
		})
	}
	wg.Wait()
	for _, uuid := range uuids {
		if uuid != uuids[0] {
			t.Fatalf("different outputs: %q", uuids)
		}
	}
}

// The first base holds; partitions that it does not name begin at 0.
func TestBase(t *testing.T) {
	ctx, d := context.Background(), newMemDisk()
	o, err := Open(ctx, memStore(d), testTables)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Resume(ctx, logTopic, 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("resumed without a base: %v", err)
	}
	if found, err := o.HasBase(ctx, logTopic); found || err != nil {
		t.Errorf("a base before there is one: %t, %v", found, err)
	}
	if err := o.Base(ctx, logTopic, schemas.TopicID{}, map[int32]int64{0: -1}); err == nil {
		t.Error("a base of -1 is accepted")
	}
	for _, starts := range []map[int32]int64{{0: 5, 1: 7}, {0: 9, 2: 9}} {
		if err := o.Base(ctx, logTopic, schemas.TopicID{}, starts); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[int32]int64{0: 5, 1: 7, 2: 0} {
		if pos, err := o.Resume(ctx, logTopic, id); err != nil || pos.Next != want || pos.Last != nil {
			t.Errorf("partition %d resumes at %+v (%v), want %d", id, pos, err, want)
		}
	}
	if found, err := o.HasBase(ctx, logTopic); !found || err != nil {
		t.Errorf("no base where there is one: %t, %v", found, err)
	}
}

// Topics are any names, and different topics never meet.
func TestHostileTopicNames(t *testing.T) {
	ctx, d := context.Background(), newMemDisk()
	o, err := Open(ctx, memStore(d), testTables)
	if err != nil {
		t.Fatal(err)
	}
	topics := []string{".", "..", "00", "points", "Points", "x-", "x-00", "a-0", "a", "base.json", strings.Repeat("t", 249), strings.Repeat("t", 248) + "u"}
	for i, topic := range topics {
		if err := o.Base(ctx, topic, schemas.TopicID{}, map[int32]int64{0: int64(i)}); err != nil {
			t.Fatalf("%q: %v", topic, err)
		}
	}
	for i, topic := range topics {
		pos, err := o.Resume(ctx, topic, 0)
		if err != nil || pos.Next != int64(i) {
			t.Fatalf("%q resumes at %+v (%v), want %d", topic, pos, err, i)
		}
		b := synthetic(batchSpec{topic: topic, start: pos.Next, records: 5, frames: 1, points: 4, datasets: []string{"../..", ""}})
		if _, err := o.Commit(ctx, b); err != nil {
			t.Fatalf("%q: %v", topic, err)
		}
	}
	r, err := Verify(ctx, memStore(d), VerifyOptions{})
	if err != nil || !r.OK || len(r.Partitions) != len(topics) {
		t.Errorf("%v:\n%s", err, r)
	}
}

// A batch that would break the promise of the manifests is refused, and
// nothing of it is written.
func TestWrongBatches(t *testing.T) {
	for name, harm := range map[string]func(b *schemas.Batch){
		"empty":                 func(b *schemas.Batch) { b.End = b.Start },
		"another start":         func(b *schemas.Batch) { *b = *logBatch(11, 10) },
		"message without trace": func(b *schemas.Batch) { b.Messages++; b.Holes-- },
		"hole with a row":       func(b *schemas.Batch) { b.Messages--; b.Holes++ },
		"counts":                func(b *schemas.Batch) { b.Holes++ },
		"no last":               func(b *schemas.Batch) { b.Last = nil },
		"last outside":          func(b *schemas.Batch) { b.Last.Offset = b.End },
		"gap with rows":         func(b *schemas.Batch) { b.Gap = true },
		"row outside":           func(b *schemas.Batch) { b.Results[len(b.Results)-1].Offset = b.End },
		"reject outside":        func(b *schemas.Batch) { b.Rejects[0].Offset = b.Start - 1 },
		"order":                 func(b *schemas.Batch) { b.Results[0], b.Results[2] = b.Results[2], b.Results[0] },
		"row twice":             func(b *schemas.Batch) { b.Results[1].Index = b.Results[0].Index },
		"another partition":     func(b *schemas.Batch) { b.Results[1].Partition++ },
		"another topic":         func(b *schemas.Batch) { b.Results[1].Topic = "other" },
	} {
		ctx, d := context.Background(), newMemDisk()
		takeOver(t, memStore(d), 0, 10, 10)
		o, err := Open(ctx, memStore(d), testTables)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Resume(ctx, logTopic, 0); err != nil {
			t.Fatal(err)
		}
		b := logBatch(10, 10)
		harm(b)
		if c, err := o.Commit(ctx, b); err == nil {
			t.Errorf("%s: committed as %+v", name, c)
		}
		mustBeWhole(t, memStore(d), 0, 10)
		mustBeClean(t, d)
	}
}

// A commit that was not resumed to, or comes after one that failed, is refused:
// the files of the manifest before it may not be published.
func TestCommitNeedsResume(t *testing.T) {
	ctx, d := context.Background(), newMemDisk()
	takeOver(t, memStore(d), 0, 10, 10)
	s := &faultStore{Store: memStore(d)}
	o, err := Open(ctx, s, testTables)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Commit(ctx, logBatch(10, 5)); err == nil {
		t.Error("committed without Resume")
	}
	if _, err := o.Resume(ctx, logTopic, 0); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("publishing fails")
	s.before = func(op, _ string) error {
		if op == "publish" {
			return broken
		}
		return nil
	}
	if _, err := o.Commit(ctx, logBatch(10, 5)); !errors.Is(err, broken) {
		t.Errorf("commit: %v", err)
	}
	if _, err := o.Commit(ctx, logBatch(15, 5)); err == nil || errors.Is(err, broken) {
		t.Errorf("the next manifest is attempted before this one is published: %v", err)
	}
	if _, err := o.Resume(ctx, logTopic, 0); !errors.Is(err, broken) {
		t.Errorf("resume: %v", err)
	}
	s.before = nil
	if pos, err := o.Resume(ctx, logTopic, 0); err != nil || pos.Next != 15 {
		t.Errorf("resumed at %+v, %v: want the commit rolled forward", pos, err)
	}
	mustBeWhole(t, memStore(d), 0, 15)
}

// Partitions commit at the same time, each exactly once.
func TestPartitionsAtOnce(t *testing.T) {
	ctx := context.Background()
	s, err := OpenLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o, err := Open(ctx, s, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Base(ctx, logTopic, schemas.TopicID{}, nil); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for id := range int32(6) {
		wg.Go(func() {
			pos, err := o.Resume(ctx, logTopic, id)
			for range 3 {
				if err != nil {
					t.Error(err)
					return
				}
				b := synthetic(batchSpec{topic: logTopic, partition: id, start: pos.Next, records: 20, frames: 2, points: 9, seed: uint64(id)})
				_, err = o.Commit(ctx, b)
				pos.Next = b.End
			}
		})
	}
	wg.Wait()
	r, err := Verify(ctx, s, VerifyOptions{})
	if err != nil || !r.OK || len(r.Partitions) != 6 {
		t.Errorf("%v:\n%s", err, r)
	}
	for _, p := range r.Partitions {
		if p.End != 60 || p.Manifests != 3 {
			t.Errorf("%+v", p)
		}
	}
}

// Committed counts what was written, table by table.
func TestCommitted(t *testing.T) {
	ctx := context.Background()
	o, err := Open(ctx, memStore(newMemDisk()), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Base(ctx, logTopic, schemas.TopicID{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Resume(ctx, logTopic, 0); err != nil {
		t.Fatal(err)
	}
	b := logBatch(0, 20)
	c, err := o.Commit(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int64{}
	for _, table := range c.Tables {
		rows[table.Table] = table.Rows
		if table.Bytes == 0 || table.Files == 0 {
			t.Errorf("%+v", table)
		}
	}
	if n := int64(len(b.Results)); rows[tableFrames] != n || rows[tableHulls] != n || rows[tableMaxima] != 2*n || rows[tableRejects] != int64(len(b.Rejects)) {
		t.Errorf("rows %v of %d frames", rows, n)
	}
}

// A Parquet file, of ours or not, is described or refused, without a panic.
func FuzzOpenParquet(f *testing.F) {
	var out bytes.Buffer
	b := logBatch(0, 8)
	o := &Output{cfg: *testConfig(), tables: []*table{framesTable}}
	plan := o.plan(b, 0)
	if _, err := newEncoder(testConfig()).encode(&out, &plan[0], b); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Add([]byte("PAR1PAR1"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := parquetfile.Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		columnRange(file, "offset")
		if file.NumRows() < 1e6 {
			rowKeys(nil, file, 0)
		}
	})
}

// countingStore counts what is asked of a store.
type countingStore struct {
	Store
	listed, opened int
}

func (s *countingStore) Names(ctx context.Context, folder string) ([]string, error) {
	names, err := s.Store.Names(ctx, folder)
	s.listed += len(names)
	return names, err
}

func (s *countingStore) Open(ctx context.Context, name string) (Object, error) {
	s.opened++
	return s.Store.Open(ctx, name)
}

// Who resumes a partition again looks only at the manifests that are new, its own
// and others'; what it finds is what a new process finds.
func TestResumeAgainCostsWhatIsNew(t *testing.T) {
	ctx, d := t.Context(), newMemDisk()
	takeOver(t, memStore(d), 0, 60, 1)
	s := &countingStore{Store: memStore(d)}
	o, err := Open(ctx, s, testTables)
	if err != nil {
		t.Fatal(err)
	}
	end := int64(60)
	for try, others := range []int64{0, 0, 5, 1} {
		takeOver(t, memStore(d), 0, end+others, 1)
		end += others
		s.listed, s.opened = 0, 0
		pos, err := o.Resume(ctx, logTopic, 0)
		if err != nil || pos.Next != end {
			t.Fatalf("resumed at %d (%v), want %d", pos.Next, err, end)
		}
		if most := 4 + int(others); try > 0 && (s.listed > 0 || s.opened > most) {
			t.Errorf("after %d commits of others: %d names, %d files opened", others, s.listed, s.opened)
		}
		if reached, err := o.Reached(ctx, logTopic, 0, end+1); reached || err != nil {
			t.Errorf("offset %d is reached (%v)", end+1, err)
		}
		if _, err := o.Commit(ctx, logBatch(end, 1)); err != nil {
			t.Fatal(err)
		}
		if reached, err := o.Reached(ctx, logTopic, 0, end+1); !reached || err != nil {
			t.Errorf("offset %d is not reached (%v)", end+1, err)
		}
		end++
	}
	mustBeWhole(t, memStore(d), 0, end)
}

// What is printed of a file is bounded, and says what it leaves out.
func TestFileSummariesAreBounded(t *testing.T) {
	s := &FileSummary{Path: "large.parquet", Metadata: map[string]string{"a": strings.Repeat("x", 50<<20), "b": "two\nlines\x1b"}}
	for i := range 3000 {
		s.Metadata[fmt.Sprint("key", i)] = "value"
		s.Columns = append(s.Columns, ColumnSummary{Name: fmt.Sprint("column", i)})
	}
	text := s.String()
	for _, want := range []string{"and 2000 more columns; --json", "and 2802 more metadata; --json", fmt.Sprintf("and %d more bytes; --json", 50<<20-4000), `b = "two\nlines\x1b"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	if len(text) > 1<<20 {
		t.Errorf("%d bytes", len(text))
	}
}
