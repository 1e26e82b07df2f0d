package sinks_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/tables"
)

// An output keeps its identity, and refuses to be partitioned in another way.
func TestOpenAgain(t *testing.T) {
	ctx, d := context.Background(), sinktest.NewMemDisk()
	byDate, err := tables.New(tables.Config{PartitionBy: []string{"dataset", "date"}})
	if err != nil {
		t.Fatal(err)
	}
	first, err := sinks.Open(ctx, sinktest.MemStore(d), byDate, sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(
		`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(first.UUID()) {
		t.Errorf("uuid %q", first.UUID())
	}
	if want := "entropipe-" + first.UUID()[:8]; first.DefaultGroup() != want {
		t.Errorf("group %q, want %q", first.DefaultGroup(), want)
	}
	second, err := sinks.Open(ctx, sinktest.MemStore(d), byDate, sinks.Config{})
	if err != nil || second.UUID() != first.UUID() {
		t.Errorf("opened again as %v, %v", second, err)
	}
	var wrong *sinks.ConfigError
	if _, err := sinks.Open(ctx, sinktest.MemStore(d), sinktest.EncoderOf(), sinks.Config{}); !errors.As(err, &wrong) ||
		!strings.Contains(err.Error(), "dataset,date") {
		t.Errorf("opened with another partition-by: %v", err)
	}
	for _, cfg := range []tables.Config{{PartitionBy: []string{"label"}}, {Tables: []string{"hulls4d"}},
		{Tables: []string{"nonsense"}}} {
		if _, err := tables.New(cfg); !errors.As(err, &wrong) {
			t.Errorf("an encoder of %+v: %v", cfg, err)
		}
	}
}

// Two processes that open a new output at once agree on what it is.
func TestOpenAtOnce(t *testing.T) {
	d := sinktest.NewMemDisk()
	var wg sync.WaitGroup
	uuids := make([]string, 8)
	for i := range uuids {
		wg.Go(func() {
			o, err := sinks.Open(context.Background(), sinktest.MemStore(d), sinktest.EncoderOf(), sinks.Config{})
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
	ctx, d := context.Background(), sinktest.NewMemDisk()
	o, err := sinks.Open(ctx, sinktest.MemStore(d), sinktest.EncoderOf(), sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Resume(ctx, sinktest.LogTopic, 0); !errors.Is(err, sinks.ErrNotFound) {
		t.Errorf("resumed without a base: %v", err)
	}
	if found, err := o.HasBase(ctx, sinktest.LogTopic); found || err != nil {
		t.Errorf("a base before there is one: %t, %v", found, err)
	}
	if err := o.Base(ctx, sinktest.LogTopic, schemas.TopicID{}, map[int32]int64{0: -1}); err == nil {
		t.Error("a base of -1 is accepted")
	}
	for _, starts := range []map[int32]int64{{0: 5, 1: 7}, {0: 9, 2: 9}} {
		if err := o.Base(ctx, sinktest.LogTopic, schemas.TopicID{}, starts); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[int32]int64{0: 5, 1: 7, 2: 0} {
		if pos, err := o.Resume(ctx, sinktest.LogTopic, id); err != nil || pos.Next != want || pos.Last != nil {
			t.Errorf("partition %d resumes at %+v (%v), want %d", id, pos, err, want)
		}
	}
	if found, err := o.HasBase(ctx, sinktest.LogTopic); !found || err != nil {
		t.Errorf("no base where there is one: %t, %v", found, err)
	}
}

// Topics are any names, and different topics never meet.
func TestHostileTopicNames(t *testing.T) {
	ctx, d := context.Background(), sinktest.NewMemDisk()
	o, err := sinks.Open(ctx, sinktest.MemStore(d), sinktest.EncoderOf(), sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	topics := []string{".", "..", "00", "points", "Points", "x-", "x-00", "a-0", "a", "base.json",
		strings.Repeat("t", 249), strings.Repeat("t", 248) + "u"}
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
		b := batches.Synthetic(batches.Spec{Topic: topic, Start: pos.Next, Records: 5, Frames: 1, Points: 4,
			Datasets: []string{"../..", ""}})
		if _, err := o.Commit(ctx, b); err != nil {
			t.Fatalf("%q: %v", topic, err)
		}
	}
	r, err := read.Verify(ctx, sinktest.MemStore(d), read.VerifyOptions{})
	if err != nil || !r.OK || len(r.Partitions) != len(topics) {
		t.Errorf("%v:\n%s", err, r)
	}
}

// A batch that would break the promise of the manifests is refused, and
// nothing of it is written.
func TestWrongBatches(t *testing.T) {
	for name, harm := range map[string]func(b *schemas.Batch){
		"empty":                 func(b *schemas.Batch) { b.End = b.Start },
		"another start":         func(b *schemas.Batch) { *b = *sinktest.LogBatch(11, 10) },
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
		"message not kept":      func(b *schemas.Batch) { keep(b); b.Originals = b.Originals[1:] },
		"message kept twice":    func(b *schemas.Batch) { keep(b); b.Originals[1].Offset = b.Originals[0].Offset },
		"another one kept":      func(b *schemas.Batch) { keep(b); b.Originals[1].Partition++ },
		"kept outside": func(b *schemas.Batch) {
			keep(b)
			b.Originals[len(b.Originals)-1].Offset = b.End
		},
	} {
		ctx, d := context.Background(), sinktest.NewMemDisk()
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, 10, 10)
		o, err := sinks.Open(ctx, sinktest.MemStore(d), sinktest.EncoderOf(), sinks.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Resume(ctx, sinktest.LogTopic, 0); err != nil {
			t.Fatal(err)
		}
		b := sinktest.LogBatch(10, 10)
		harm(b)
		if c, err := o.Commit(ctx, b); err == nil {
			t.Errorf("%s: committed as %+v", name, c)
		}
		sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 10)
		sinktest.MustBeClean(t, d)
	}
}

// keep adds the messages themselves to b.
func keep(b *schemas.Batch) {
	b.Originals = batches.Synthetic(batches.Spec{Topic: b.Topic, Partition: b.Partition, Start: b.Start,
		Records: int(b.End - b.Start), Frames: 1, Originals: true}).Originals
}

// A commit that was not resumed to, or comes after one that failed, is refused:
// the files of the manifest before it may not be published.
func TestCommitNeedsResume(t *testing.T) {
	ctx, d := context.Background(), sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 10, 10)
	s := &faultStore{Store: sinktest.MemStore(d)}
	o, err := sinks.Open(ctx, s, sinktest.EncoderOf(), sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Commit(ctx, sinktest.LogBatch(10, 5)); err == nil {
		t.Error("committed without Resume")
	}
	if _, err := o.Resume(ctx, sinktest.LogTopic, 0); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("publishing fails")
	s.before = func(op, _ string) error {
		if op == "publish" {
			return broken
		}
		return nil
	}
	if _, err := o.Commit(ctx, sinktest.LogBatch(10, 5)); !errors.Is(err, broken) {
		t.Errorf("commit: %v", err)
	}
	if _, err := o.Commit(ctx, sinktest.LogBatch(15, 5)); err == nil || errors.Is(err, broken) {
		t.Errorf("the next manifest is attempted before this one is published: %v", err)
	}
	if _, err := o.Resume(ctx, sinktest.LogTopic, 0); !errors.Is(err, broken) {
		t.Errorf("resume: %v", err)
	}
	s.before = nil
	if pos, err := o.Resume(ctx, sinktest.LogTopic, 0); err != nil || pos.Next != 15 {
		t.Errorf("resumed at %+v, %v: want the commit rolled forward", pos, err)
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 15)
}

// Partitions commit at the same time, each exactly once.
func TestPartitionsAtOnce(t *testing.T) {
	ctx := context.Background()
	s, err := sinks.OpenLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o, err := sinks.Open(ctx, s, sinktest.EncoderOf(), sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Base(ctx, sinktest.LogTopic, schemas.TopicID{}, nil); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for id := range int32(6) {
		wg.Go(func() {
			pos, err := o.Resume(ctx, sinktest.LogTopic, id)
			for range 3 {
				if err != nil {
					t.Error(err)
					return
				}
				b := batches.Synthetic(batches.Spec{Topic: sinktest.LogTopic, Partition: id, Start: pos.Next,
					Records: 20, Frames: 2, Points: 9, Seed: uint64(id)})
				_, err = o.Commit(ctx, b)
				pos.Next = b.End
			}
		})
	}
	wg.Wait()
	r, err := read.Verify(ctx, s, read.VerifyOptions{})
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
	o, err := sinks.Open(ctx, sinktest.MemStore(sinktest.NewMemDisk()), sinktest.EncoderOf(tables.Hulls, tables.Maxima),
		sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Base(ctx, sinktest.LogTopic, schemas.TopicID{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Resume(ctx, sinktest.LogTopic, 0); err != nil {
		t.Fatal(err)
	}
	b := sinktest.LogBatch(0, 20)
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
	if n := int64(len(b.Results)); rows[tables.Frames] != n || rows[tables.Hulls] != n || rows[tables.Maxima] != 2*n ||
		rows[tables.Rejects] != int64(len(b.Rejects)) {
		t.Errorf("rows %v of %d frames", rows, n)
	}
}

// countingStore counts what is asked of a store.
type countingStore struct {
	sinks.Store
	listed, opened int
}

func (s *countingStore) Names(ctx context.Context, folder string) ([]string, error) {
	names, err := s.Store.Names(ctx, folder)
	s.listed += len(names)
	return names, err
}

func (s *countingStore) Open(ctx context.Context, name string) (sinks.Object, error) {
	s.opened++
	return s.Store.Open(ctx, name)
}

// Who resumes a partition again looks only at the manifests that are new, its own
// and others'; what it finds is what a new process finds.
func TestResumeAgainCostsWhatIsNew(t *testing.T) {
	ctx, d := t.Context(), sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 60, 1)
	s := &countingStore{Store: sinktest.MemStore(d)}
	o, err := sinks.Open(ctx, s, sinktest.EncoderOf(), sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	end := int64(60)
	for try, others := range []int64{0, 0, 5, 1} {
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, end+others, 1)
		end += others
		s.listed, s.opened = 0, 0
		pos, err := o.Resume(ctx, sinktest.LogTopic, 0)
		if err != nil || pos.Next != end {
			t.Fatalf("resumed at %d (%v), want %d", pos.Next, err, end)
		}
		if most := 4 + int(others); try > 0 && (s.listed > 0 || s.opened > most) {
			t.Errorf("after %d commits of others: %d names, %d files opened", others, s.listed, s.opened)
		}
		if reached, err := o.Reached(ctx, sinktest.LogTopic, 0, end+1); reached || err != nil {
			t.Errorf("offset %d is reached (%v)", end+1, err)
		}
		if _, err := o.Commit(ctx, sinktest.LogBatch(end, 1)); err != nil {
			t.Fatal(err)
		}
		if reached, err := o.Reached(ctx, sinktest.LogTopic, 0, end+1); !reached || err != nil {
			t.Errorf("offset %d is not reached (%v)", end+1, err)
		}
		end++
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end)
}
