package sinks

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entropipe/schemas"
)

// staged counts the files in staging.
func staged(d *memDisk) (n int) {
	for name := range d.live.files {
		if len(name) > len(stagingFolder) && name[:len(stagingFolder)] == stagingFolder {
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

// open opens an output with one partition that has been resumed.
func openResumed(t *testing.T, d *memDisk) *Output {
	t.Helper()
	ctx := context.Background()
	o, err := Open(ctx, memStore(d), testTables)
	if err == nil {
		err = o.Base(ctx, logTopic, schemas.TopicID{}, map[int32]int64{0: 0})
	}
	if err == nil {
		_, err = o.Resume(ctx, logTopic, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Law: a batch in parts is the same commit as the batch at once, but for its
// files: the same counts, the same rows, each once, wherever it is cut.
func TestPartsAreOneCommit(t *testing.T) {
	ctx := context.Background()
	for first := 0; first < 12; first += min(sparse, 5) {
		for second := range 4 {
			d := newMemDisk()
			o := openResumed(t, d)
			b := logBatch(0, 10)
			whole := countsOf(b)
			one, rest := split(b, min(first, len(b.Results)))
			two, rest := split(rest, min(second, len(rest.Results)))
			for _, part := range []*schemas.Batch{one, two} {
				if err := o.Stage(ctx, part); err != nil {
					t.Fatalf("cuts %d, %d: %v", first, second, err)
				}
				if rows := tally(t, memStore(d)); len(rows) > 0 {
					t.Fatalf("cuts %d, %d: rows before the commit", first, second)
				}
			}
			done, err := o.Commit(ctx, rest)
			if err != nil {
				t.Fatalf("cuts %d, %d: %v", first, second, err)
			}
			for _, table := range done.Tables {
				if table.Table == tableFrames && table.Rows != whole.Frames || table.Table == tableRejects && table.Rows != whole.Rejects {
					t.Errorf("cuts %d, %d: %+v of %+v", first, second, table, whole)
				}
			}
			if _, err := o.Commit(ctx, logBatch(10, 5)); err != nil { // nothing of the first attempt is left in it
				t.Fatal(err)
			}
			m, err := o.readManifest(ctx, manifestFile(partition{logTopic, 0}, 0))
			if err != nil || cmp.Diff(whole, m.Counts) != "" {
				t.Fatalf("cuts %d, %d: %v %s", first, second, err, cmp.Diff(whole, m.Counts))
			}
			if mustBeWhole(t, memStore(d), 0, 15); t.Failed() {
				t.Fatalf("cuts %d, %d", first, second)
			}
			mustBeClean(t, d)
		}
	}
}

// Parts of a batch that never comes leave nothing behind: not when the partition
// is resumed, not when another batch comes instead.
func TestPartsAreForgotten(t *testing.T) {
	ctx := context.Background()
	for name, instead := range map[string]func(*Output) error{
		"resume": func(o *Output) error {
			if _, err := o.Resume(ctx, logTopic, 0); err != nil {
				return err
			}
			_, err := o.Commit(ctx, logBatch(0, 10))
			return err
		},
		"another range": func(o *Output) error { _, err := o.Commit(ctx, logBatch(0, 7)); return err },
		"parts of another range": func(o *Output) error {
			part, rest := split(logBatch(0, 8), 3)
			if err := o.Stage(ctx, part); err != nil {
				return err
			}
			_, err := o.Commit(ctx, rest)
			return err
		},
	} {
		d := newMemDisk()
		o := openResumed(t, d)
		part, _ := split(logBatch(0, 10), 4)
		if err := o.Stage(ctx, part); err != nil || staged(d) == 0 {
			t.Fatalf("%s: %v, %d files staged", name, err, staged(d))
		}
		if err := instead(o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		mustBeClean(t, d)
		pos, err := o.Resume(ctx, logTopic, 0)
		if err != nil {
			t.Fatal(err)
		}
		mustBeWhole(t, memStore(d), 0, pos.Next)
	}
}

// Parts keep the order of rows, and are not taken before the partition is
// resumed.
func TestWrongParts(t *testing.T) {
	ctx, d := context.Background(), newMemDisk()
	o := openResumed(t, d)
	first, rest := split(logBatch(0, 10), 4)
	if err := o.Stage(ctx, rest); err != nil {
		t.Fatal(err)
	}
	if err := o.Stage(ctx, first); err == nil {
		t.Error("parts were taken in the wrong order")
	}
	if _, err := o.Commit(ctx, first); err == nil {
		t.Error("and committed")
	}
	o, err := Open(ctx, memStore(d), testTables)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Stage(ctx, first); err == nil {
		t.Error("a part was taken before Resume")
	}
	if _, err := o.Commit(ctx, first); err == nil {
		t.Error("and committed")
	}
	mustBeWhole(t, memStore(d), 0, 0)
}

// What processes that died have staged of a large batch goes with its commit,
// not only when the partition is resumed once more.
func TestPartsOfTheDeadGoWithTheCommit(t *testing.T) {
	ctx, d := context.Background(), newMemDisk()
	for range 2 {
		o := openResumed(t, d)
		part, _ := split(logBatch(0, 10), 4)
		if err := o.Stage(ctx, part); err != nil {
			t.Fatal(err)
		}
	}
	if staged(d) == 0 {
		t.Fatal("nothing was tested")
	}
	o := openResumed(t, d)
	part, rest := split(logBatch(0, 10), 5)
	if err := o.Stage(ctx, part); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Commit(ctx, rest); err != nil {
		t.Fatal(err)
	}
	mustBeClean(t, d)
	mustBeWhole(t, memStore(d), 0, 10)
}
