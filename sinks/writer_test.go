package sinks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"entropipe/ops/leaktest"
	"entropipe/schemas"
	"entropipe/schemas/codec/parquetfile"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	logTopic = "points"
	logSeed  = 42
)

// testTables keeps files few where the protocol is tested, not the tables.
var testTables = Config{Tables: []string{}}

// writer is one process that copies a log, offsets [0, end), to an output: what
// the pipeline does, without Kafka.
type writer struct {
	store Store
	end   int64
	base  int64             // what it would like the base to be
	roll  func() int        // records of its next batch
	fail  func(error) error // what to do about an error: nil to go on from Resume
	cfg   Config
	parts int // of a batch that are staged before it is committed
}

// run copies until the end, and returns what fail returns.
func (w *writer) run(ctx context.Context) error {
	for {
		err := w.session(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !errors.Is(err, schemas.ErrLost) {
			if err := w.fail(err); err != nil {
				return err
			}
		}
	}
}

func (w *writer) session(ctx context.Context) error {
	o, err := Open(ctx, w.store, w.cfg)
	if err != nil {
		return err
	}
	if err := o.Base(ctx, logTopic, schemas.TopicID{}, map[int32]int64{0: w.base}); err != nil {
		return err
	}
	pos, err := o.Resume(ctx, logTopic, 0)
	for err == nil && pos.Next < w.end {
		n := min(int64(w.roll()), w.end-pos.Next)
		b := logBatch(pos.Next, int(n))
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

// stage takes parts off the front of b.
func (w *writer) stage(ctx context.Context, o *Output, b *schemas.Batch) error {
	for i := range w.parts {
		part, n := *b, len(b.Results)/(w.parts-i+1)
		part.Results, b.Results = b.Results[:n], b.Results[n:]
		k := len(b.Rejects)
		if len(b.Results) > 0 {
			k = slices.IndexFunc(append(b.Rejects, schemas.Reject{Offset: b.End}), func(r schemas.Reject) bool { return r.Offset >= b.Results[0].Offset })
		}
		part.Rejects, b.Rejects = b.Rejects[:k], b.Rejects[k:]
		if err := o.Stage(ctx, &part); err != nil {
			return err
		}
	}
	return nil
}

// logBatch is what the log's records [start, start+n) become, whoever reads
// them and however they are cut.
func logBatch(start int64, n int) *schemas.Batch {
	return synthetic(batchSpec{topic: logTopic, start: start, records: n, frames: 2, points: 4, datasets: []string{"a", "b"}, seed: logSeed})
}

// tally reads every frames and rejects file, as a user would: by looking for
// files, not by the manifests.
func tally(t *testing.T, store Reader) map[rowKey]int {
	t.Helper()
	ctx, rows := context.Background(), map[rowKey]int{}
	err := store.List(ctx, ".", func(e Entry) error {
		if !strings.HasSuffix(e.Name, dataSuffix) || !strings.HasPrefix(e.Name, tableFrames+"/") && !strings.HasPrefix(e.Name, tableRejects+"/") {
			return nil
		}
		o, err := store.Open(ctx, e.Name)
		if err != nil {
			return err
		}
		defer o.Close()
		f, err := parquetfile.Open(o, o.Size())
		if err != nil {
			return err
		}
		keys, err := rowKeys(nil, f, 0)
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

// exactlyOnce says how the rows of an output differ from those of the log's
// records [from, end), each once; empty: not at all.
func exactlyOnce(t *testing.T, store Reader, from, end int64) string {
	t.Helper()
	want := logBatch(from, int(end-from))
	got := tally(t, store)
	var wrong []string
	expect := func(k rowKey) {
		if got[k] != 1 {
			wrong = append(wrong, fmt.Sprintf("offset %d index %d: %d times", k.offset, k.index, got[k]))
		}
		delete(got, k)
	}
	for i := range want.Results {
		expect(rowKey{want.Results[i].Offset, want.Results[i].Index})
	}
	for i := range want.Rejects {
		expect(rowKey{want.Rejects[i].Offset, want.Rejects[i].Index})
	}
	for _, k := range slices.SortedFunc(maps.Keys(got), compareKeys) {
		wrong = append(wrong, fmt.Sprintf("offset %d index %d: %d times, but it is not in the log", k.offset, k.index, got[k]))
	}
	return strings.Join(wrong, "\n")
}

// mustBeWhole fails the test unless the output holds the log's records
// [from, end) exactly once and Verify agrees.
func mustBeWhole(t *testing.T, store Reader, from, end int64) {
	t.Helper()
	if wrong := exactlyOnce(t, store, from, end); wrong != "" {
		t.Errorf("not exactly once:\n%s", wrong)
	}
	report, err := Verify(context.Background(), store, VerifyOptions{Workers: 1, Ends: map[string]map[int32]int64{logTopic: {0: end}}})
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	if !report.OK {
		t.Errorf("verify:\n%s", report)
	}
}

func roll(n int) func() int { return func() int { return n } }

func memStore(d disk) *Local { return newLocal(d, "mem", func() error { return nil }) }
