package compact

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
)

// listedStore holds the files that a list names, and nothing else.
type listedStore struct {
	sinks.Reader
	with sinks.Reader
	list *read.FileList
}

// List implements sinks.Reader.
func (s *listedStore) List(_ context.Context, _ string, f func(sinks.Entry) error) error {
	for _, t := range s.list.Tables {
		for _, name := range slices.Concat(t.Compacted, t.Files) {
			if err := f(sinks.Entry{Name: name}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Open implements sinks.Reader.
func (s *listedStore) Open(ctx context.Context, name string) (sinks.Object, error) {
	for _, t := range s.list.Tables {
		if slices.Contains(t.Compacted, name) {
			return s.with.Open(ctx, name)
		}
	}
	return s.Reader.Open(ctx, name)
}

// listed lists the files of an output and its compaction.
func listed(t *testing.T, out, with sinks.Reader) *listedStore {
	t.Helper()
	list, err := read.ListFiles(t.Context(), out, with)
	if err != nil {
		t.Fatal(err)
	}
	return &listedStore{out, with, list}
}

// Law: the files of a list hold each row of the output once, wherever its compaction ends and
// whatever a vacuum has retired.
func TestListsHoldEachRowOnce(t *testing.T) {
	from, into := sinktest.NewMemDisk(), sinktest.NewMemDisk()
	out, with := sinktest.MemStore(from), sinktest.MemStore(into)
	sinktest.TakeOver(t, out, 0, 20, 2)
	want := rowsOf(t, out)
	must := func(what string, store *listedStore, compacted, end int64) {
		t.Helper()
		if got := rowsOf(t, store); !maps.Equal(got, want) {
			t.Errorf("%s: %d different rows, want %d", what, len(got), len(want))
		}
		wantParts := []read.PartitionFileList{{Topic: sinktest.LogTopic, Compacted: compacted, End: end}}
		if !slices.Equal(store.list.Partitions, wantParts) {
			t.Errorf("%s: %+v, want %+v", what, store.list.Partitions, wantParts)
		}
		for _, table := range store.list.Tables {
			rows := int64(0)
			for _, f := range mustVerify(t, out).Tables {
				if f.Table == table.Table {
					rows = f.Rows
				}
			}
			if len(mustVerify(t, out).Retired) == 0 && rows != table.Rows {
				t.Errorf("%s: %d rows of %s, verify counts %d", what, table.Rows, table.Table, rows)
			}
		}
	}
	must("without a compaction", listed(t, out, nil), 0, 20)
	c, err := Open(t.Context(), out, with, Config{TargetBytes: 15_000})
	if err != nil {
		t.Fatal(err)
	}
	must("of an empty compaction", listed(t, out, with), 0, 20)
	h, err := c.resumedForTest(t)
	if err != nil {
		t.Fatal(err)
	}
	must("of a part", listed(t, out, with), h, 20)
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	must("of the whole", listed(t, out, with), 20, 20)
	if _, err := vacuumed(t.Context(), out, with, false); err != nil {
		t.Fatal(err)
	}
	must("after a vacuum", listed(t, out, with), 20, 20)
	if _, err := read.ListFiles(t.Context(), out, nil); !isRetired(err) {
		t.Errorf("without the compaction after a vacuum: %v", err)
	}
	sinktest.TakeOver(t, out, 0, 23, 3)
	want = rowsOf(t, &listedStore{out, with, listed(t, out, with).list})
	if wrong := sinktest.ExactlyOnce(t, listed(t, out, with), 0, 23); wrong != "" {
		t.Error(wrong)
	}
	must("with a tail after a vacuum", listed(t, out, with), 20, 23)
}

// resumedForTest copies one range, and returns its end.
func (c *Compactor) resumedForTest(t *testing.T) (int64, error) {
	p := record.TopicPartition{Topic: sinktest.LogTopic}
	if _, err := c.topics(t.Context()); err != nil {
		return 0, err
	}
	h, err := c.resumed(t.Context(), p)
	if err != nil {
		return 0, err
	}
	r, err := h.ready(t.Context(), c, true)
	if err == nil {
		err = c.commit(t.Context(), r)
		h.drop(r)
	}
	return r.manifest().End, err
}

func isRetired(err error) bool {
	retired := (*read.RetiredError)(nil)
	return errors.As(err, &retired)
}

// Law: of commits whose files are not all in their place a list has none, and says so; the
// compaction's newest one is taken from the output.
func TestListsLeaveOutWhatIsNotInPlace(t *testing.T) {
	from, into := logOn(t, 12, 3), sinktest.NewMemDisk()
	out, with := sinktest.MemStore(from), sinktest.MemStore(into)
	if err := compactOnce(t.Context(), out, with, Config{TargetBytes: 1}); err != nil {
		t.Fatal(err)
	}
	sinktest.TakeOver(t, out, 0, 15, 3)
	for disk, start := range map[*sinktest.MemDisk]int64{from: 12, into: 6} {
		_, m := sinktest.ManifestOf(t, disk, start)
		for _, dir := range []string{record.StagingFolder, path.Dir(m.Files[0].Staged)} {
			if err := disk.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
		}
		if err := disk.Rename(m.Files[0].Path, m.Files[0].Staged); err != nil {
			t.Fatal(err)
		}
	}
	found := listed(t, out, with)
	if wrong := sinktest.ExactlyOnce(t, found, 0, 12); wrong != "" {
		t.Error(wrong)
	}
	want := read.PartitionFileList{Topic: sinktest.LogTopic, Compacted: 6, End: 12, Left: 15}
	if got := found.list.Partitions; len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A list is refused of two outputs that do not belong together, and of one with a hole.
func TestListsAreRefused(t *testing.T) {
	from, other, into := logOn(t, 12, 3), logOn(t, 6, 2), sinktest.NewMemDisk()
	if err := compactOnce(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), Config{}); err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]*sinktest.MemDisk{"another output": {other, into}, "swapped": {into, from},
		"itself": {from, from}, "no compaction": {from, other}} {
		_, err := read.ListFiles(t.Context(), sinktest.MemStore(pair[0]), sinktest.MemStore(pair[1]))
		if wrong := (*sinks.ConfigError)(nil); !errors.As(err, &wrong) || wrong.Field != "with" {
			t.Errorf("%s: %v", name, err)
		}
	}
	name, _ := sinktest.ManifestOf(t, from, 3)
	if err := from.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := read.ListFiles(t.Context(), sinktest.MemStore(from), nil); err == nil ||
		!strings.Contains(err.Error(), "no commit begins at offset 3") {
		t.Errorf("a hole: %v", err)
	}
}

// Law: a list that is made beside a writer, a compactor and a vacuum has each row of the commits
// that it covers once, and never fewer than the list before.
func TestListsBesideAllOthers(t *testing.T) {
	const end = 60
	from, into := logOn(t, 6, 2), sinktest.NewMemDisk()
	out, with := sinktest.MemStore(from), sinktest.MemStore(into)
	if err := compactOnce(t.Context(), out, with, Config{}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	written := make(chan struct{})
	all.Go(func() {
		defer close(written)
		sinktest.TakeOver(t, sinktest.MemStore(from), 0, end, 2)
	})
	all.Go(func() {
		for !closed(written) {
			if err := compactOnce(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), Config{}); err != nil {
				t.Error(err)
			}
			if _, err := vacuumed(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), false); err != nil {
				t.Error(err)
			}
		}
	})
	last := int64(0)
	for done := false; !done; {
		done = closed(written)
		list, err := read.ListFiles(t.Context(), out, with)
		if err != nil {
			t.Fatal(err)
		}
		p := list.Partitions[0]
		batch := &schemas.Batch{}
		if p.End > 0 {
			batch = sinktest.LogBatch(0, int(p.End))
		}
		rows := int64(0)
		for _, table := range list.Tables {
			if table.Table == record.Frames {
				rows = table.Rows
			}
		}
		if rows != int64(len(batch.Results)) || p.End < last {
			t.Errorf("%+v after %d: %d rows, want %d", p, last, rows, len(batch.Results))
		}
		last = p.End
	}
	all.Wait()
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
