package sinks_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
	"entropipe/sinks/tables"
)

// staged counts the files in staging.
func staged(d *sinktest.MemDisk) (n int) {
	for name := range d.Live.Files {
		if len(name) > len(record.StagingFolder) && name[:len(record.StagingFolder)] == record.StagingFolder {
			n++
		}
	}
	return n
}

// split returns the first n results of b, with the rejects before the next, and
// the rest.
func split(b *schemas.Batch, n int) (part, rest *schemas.Batch) {
	p, r := *b, *b
	p.Results, r.Results = b.Results[:n], b.Results[n:]
	k := 0
	for k < len(b.Rejects) && n < len(b.Results) && b.Rejects[k].Offset < b.Results[n].Offset {
		k++
	}
	p.Rejects, r.Rejects = b.Rejects[:k], b.Rejects[k:]
	return &p, &r
}

// Law: a batch in parts is the same commit as the batch at once, but for its
// files: the same counts, the same rows, each once, wherever it is cut.
func TestPartsAreOneCommit(t *testing.T) {
	ctx := context.Background()
	for first := 0; first < 12; first += min(batches.Sparse, 5) {
		for second := range 4 {
			d := sinktest.NewMemDisk()
			o := sinktest.OpenResumed(t, d)
			b := sinktest.LogBatch(0, 10)
			whole := sinktest.CountsOf(b)
			one, rest := split(b, min(first, len(b.Results)))
			two, rest := split(rest, min(second, len(rest.Results)))
			for _, part := range []*schemas.Batch{one, two} {
				if err := o.Stage(ctx, part); err != nil {
					t.Fatalf("cuts %d, %d: %v", first, second, err)
				}
				if rows := sinktest.Tally(t, sinktest.MemStore(d)); len(rows) > 0 {
					t.Fatalf("cuts %d, %d: rows before the commit", first, second)
				}
			}
			done, err := o.Commit(ctx, rest)
			if err != nil {
				t.Fatalf("cuts %d, %d: %v", first, second, err)
			}
			for _, table := range done.Tables {
				if table.Table == tables.Frames && table.Rows != whole.Frames ||
					table.Table == tables.Rejects && table.Rows != whole.Rejects {
					t.Errorf("cuts %d, %d: %+v of %+v", first, second, table, whole)
				}
			}
			// nothing of the first attempt is left in it
			if _, err := o.Commit(ctx, sinktest.LogBatch(10, 5)); err != nil {
				t.Fatal(err)
			}
			_, m := sinktest.ManifestOf(t, d, 0)
			if cmp.Diff(whole, m.Counts) != "" {
				t.Fatalf("cuts %d, %d: %s", first, second, cmp.Diff(whole, m.Counts))
			}
			if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 15); t.Failed() {
				t.Fatalf("cuts %d, %d", first, second)
			}
			sinktest.MustBeClean(t, d)
		}
	}
}

// Parts of a batch that never comes leave nothing behind: not when the partition
// is resumed, not when another batch comes instead.
func TestPartsAreForgotten(t *testing.T) {
	ctx := context.Background()
	for name, instead := range map[string]func(*sinks.Output) error{
		"resume": func(o *sinks.Output) error {
			if _, err := o.Resume(ctx, sinktest.LogTopic, 0); err != nil {
				return err
			}
			_, err := o.Commit(ctx, sinktest.LogBatch(0, 10))
			return err
		},
		"another range": func(o *sinks.Output) error { _, err := o.Commit(ctx, sinktest.LogBatch(0, 7)); return err },
		"parts of another range": func(o *sinks.Output) error {
			part, rest := split(sinktest.LogBatch(0, 8), 3)
			if err := o.Stage(ctx, part); err != nil {
				return err
			}
			_, err := o.Commit(ctx, rest)
			return err
		},
	} {
		d := sinktest.NewMemDisk()
		o := sinktest.OpenResumed(t, d)
		part, _ := split(sinktest.LogBatch(0, 10), 4)
		if err := o.Stage(ctx, part); err != nil || staged(d) == 0 {
			t.Fatalf("%s: %v, %d files staged", name, err, staged(d))
		}
		if err := instead(o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sinktest.MustBeClean(t, d)
		pos, err := o.Resume(ctx, sinktest.LogTopic, 0)
		if err != nil {
			t.Fatal(err)
		}
		sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, pos.Next)
	}
}

// Parts keep the order of rows, and are not taken before the partition is
// resumed.
func TestWrongParts(t *testing.T) {
	ctx, d := context.Background(), sinktest.NewMemDisk()
	o := sinktest.OpenResumed(t, d)
	first, rest := split(sinktest.LogBatch(0, 10), 4)
	if err := o.Stage(ctx, rest); err != nil {
		t.Fatal(err)
	}
	if err := o.Stage(ctx, first); err == nil {
		t.Error("parts were taken in the wrong order")
	}
	if _, err := o.Commit(ctx, first); err == nil {
		t.Error("and committed")
	}
	o, err := sinks.Open(ctx, sinktest.MemStore(d), sinktest.EncoderOf(), sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Stage(ctx, first); err == nil {
		t.Error("a part was taken before Resume")
	}
	if _, err := o.Commit(ctx, first); err == nil {
		t.Error("and committed")
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 0)
}

// What processes that died have staged of a large batch goes with its commit,
// not only when the partition is resumed once more.
func TestPartsOfTheDeadGoWithTheCommit(t *testing.T) {
	ctx, d := context.Background(), sinktest.NewMemDisk()
	for range 2 {
		o := sinktest.OpenResumed(t, d)
		part, _ := split(sinktest.LogBatch(0, 10), 4)
		if err := o.Stage(ctx, part); err != nil {
			t.Fatal(err)
		}
	}
	if staged(d) == 0 {
		t.Fatal("nothing was tested")
	}
	o := sinktest.OpenResumed(t, d)
	part, rest := split(sinktest.LogBatch(0, 10), 5)
	if err := o.Stage(ctx, part); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Commit(ctx, rest); err != nil {
		t.Fatal(err)
	}
	sinktest.MustBeClean(t, d)
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 10)
}
