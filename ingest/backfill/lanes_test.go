package backfill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"entropipe/schemas"
	"entropipe/sinks"
	verify "entropipe/sinks/read"
	"entropipe/sinks/record"
)

// worker is a process that works on the lanes of a plan as the pipeline does: it resumes,
// checks, fetches and commits, and begins again when another one was first.
type worker struct {
	t      *testing.T
	output *sinks.Output
	opener *Opener
	lanes  *Lanes
	size   int32                  // bytes of a fetch, each of which is committed
	before func(lane int32) error // called before each commit; may be nil
	worked atomic.Int64           // commits
	lost   atomic.Int64           // commits that another process won
}

func newWorker(t *testing.T, dir string, a *shelf, p *record.Plan, store *parts, shard Shard, order uint64) *worker {
	_, o := outputIn(t, dir, flags)
	if err := o.Base(t.Context(), p.Name, TopicID(p), nil); err != nil {
		t.Fatal(err)
	}
	w := &worker{t: t, output: o, opener: shelfOpener(a, p, store), lanes: NewLanes(p, shard, o, order), size: 1}
	w.lanes.Patience = 50 * time.Millisecond
	return w
}

// work is what a process does with a lane.
func (w *worker) work(ctx context.Context, n int32) error {
	p := w.opener.Lane(n)
	defer p.Close()
	for {
		err := w.session(ctx, p)
		switch {
		case ctx.Err() != nil, errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, schemas.ErrLost):
			w.lost.Add(1)
		case err != nil:
			return err
		}
	}
}

func (w *worker) session(ctx context.Context, p *Partition) error {
	topic := w.opener.Plan.Name
	pos, err := w.output.Resume(ctx, topic, p.number)
	if err == nil {
		pos.TopicID, err = p.Check(ctx, pos)
	}
	for err == nil {
		var f schemas.Fetched
		if f, err = p.Fetch(ctx, pos.Next, w.size); err != nil {
			return err
		}
		b := &schemas.Batch{Topic: topic, Partition: p.number, Start: f.From, End: f.Next, TopicID: pos.TopicID,
			Messages: int64(len(f.Messages)), Holes: f.Next - f.From - int64(len(f.Messages)), Last: pos.Last}
		for _, m := range f.Messages {
			id := m.ID()
			b.Last = &id
			b.Rejects = append(b.Rejects, schemas.Reject{Topic: topic, Partition: p.number, Offset: m.Offset, Index: -1,
				Stage: schemas.StageDecode, Reason: "not_arrow", Value: append([]byte{}, m.Value...), ValueSize: 1})
		}
		if f.Release != nil {
			f.Release()
		}
		if w.before != nil {
			if err = w.before(p.number); err != nil {
				return err
			}
		}
		if _, err = w.output.Commit(ctx, b); err == nil {
			p.Committed(ctx, b.End)
			w.worked.Add(1)
		}
		pos.Next, pos.Last = b.End, b.Last
	}
	return err
}

// whole fails the test unless every item of the plan is in the output once, and verify
// agrees.
func whole(t *testing.T, dir string, p *record.Plan, store *parts) {
	t.Helper()
	s, _ := outputIn(t, dir, flags)
	for name, data := range store.files {
		if err := s.Create(t.Context(), name, data); err != nil && !errors.Is(err, sinks.ErrExists) {
			t.Fatal(err)
		}
	}
	if _, err := sinks.CreatePlan(t.Context(), s, p); err != nil {
		t.Fatal(err)
	}
	r, err := verify.Verify(t.Context(), s, verify.VerifyOptions{})
	if err != nil || !r.OK {
		t.Fatalf("%v\n%v", err, r)
	}
	if len(r.Plans) != 1 || r.Plans[0].Done != p.Lanes || r.Plans[0].Committed != p.Items {
		t.Fatalf("%+v of %d lanes with %d items", r.Plans, p.Lanes, p.Items)
	}
	total := int64(0)
	for _, l := range r.Partitions {
		total += l.Messages + l.Holes
	}
	if total != p.Items {
		t.Fatalf("%d items, want %d", total, p.Items)
	}
}

// millShelf has four lanes of ten items each, with two bad ones.
func millShelf(t *testing.T) (*shelf, *record.Plan, *parts) {
	a := &shelf{root: "/archive", inputs: []shelfInput{{name: "a", items: 25, perFile: 1, size: 5, listed: true},
		{name: "b", items: 10, size: 70, bad: map[int64]bool{3: true, 9: true}}}}
	p, store := planOf(t, a, Options{items: 10})
	return a, p, store
}

// Processes that share a plan, with or without shards, doubled shards included, commit
// each item once.
func TestProcessesShareAPlan(t *testing.T) {
	for name, shards := range map[string][]Shard{
		"one":            {{}},
		"four, shuffled": {{}, {}, {}, {}},
		"two shards":     {{0, 2}, {1, 2}},
		"doubled shards": {{0, 2}, {0, 2}, {1, 2}, {1, 2}},
		"seven shards":   {{0, 7}, {1, 7}, {2, 7}, {3, 7}, {4, 7}, {5, 7}, {6, 7}},
		"shards and all": {{0, 3}, {}, {1, 3}, {2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			a, p, store := millShelf(t)
			dir := t.TempDir()
			var wg sync.WaitGroup
			for i, shard := range shards {
				w := newWorker(t, dir, a, p, store, shard, uint64(i))
				wg.Go(func() {
					if err := w.lanes.Run(t.Context(), 2, w.work); err != nil {
						t.Error(err)
					}
					c := w.lanes.Counts()
					if c.Done != c.Lanes || c.DoneItems != c.Items || c.Stopped != 0 {
						t.Errorf("shard %s: %+v", shard, c)
					}
				})
			}
			wg.Wait()
			whole(t, dir, p, store)
		})
	}
}

// A lane on which another process commits is left alone while that one lives, and taken
// over once it has stood still.
func TestLaneOfAnotherProcess(t *testing.T) {
	a := &shelf{root: "/archive", inputs: []shelfInput{{name: "a", items: 40, perFile: 1, size: 5}}}
	p, store := planOf(t, a, Options{})
	dir := t.TempDir()
	first, second := newWorker(t, dir, a, p, store, Shard{}, 1), newWorker(t, dir, a, p, store, Shard{}, 2)
	first.lanes.Patience, second.lanes.Patience = time.Minute, 300*time.Millisecond
	ctx, die := context.WithCancel(t.Context())
	begun, raced := make(chan struct{}), make(chan struct{})
	commits := 0
	first.before = func(int32) error { // it dies in the middle, and says nothing
		switch commits++; commits {
		case 3:
			close(begun)
			<-raced // the other one has read the same items, and loses the next commit
		case 20:
			die()
		}
		return ctx.Err()
	}
	once := sync.OnceFunc(func() { close(raced); time.Sleep(50 * time.Millisecond) })
	second.before = func(int32) error { once(); return nil }
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := first.lanes.Run(ctx, 1, first.work); err != nil {
			t.Error(err)
		}
	})
	<-begun
	if err := second.lanes.Run(t.Context(), 3, second.work); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if c := second.lanes.Counts(); c.Done != 1 {
		t.Errorf("%+v", c)
	}
	if n := first.lost.Load() + second.lost.Load(); n > 6 {
		t.Errorf("%d races were lost: the lane was not left alone", n)
	}
	if first.worked.Load() == 0 || second.worked.Load() == 0 {
		t.Errorf("%d and %d commits", first.worked.Load(), second.worked.Load())
	}
	whole(t, dir, p, store)
}

// Processes that stop anywhere, all the time, lose nothing and double nothing.
func TestProcessesThatStop(t *testing.T) {
	a, p, store := millShelf(t)
	dir := t.TempDir()
	var stops atomic.Int64
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 3))
			for round := 0; ; round++ {
				ctx, stop := context.WithCancel(t.Context())
				w := newWorker(t, dir, a, p, store, Shard{}, rng.Uint64())
				w.lanes.Patience = 5 * time.Millisecond
				left := rng.IntN(4)
				w.before = func(int32) error {
					if left--; left < 0 && round < 8 {
						stops.Add(1)
						stop()
					}
					return ctx.Err()
				}
				err := w.lanes.Run(ctx, 1, w.work)
				c := w.lanes.Counts()
				stop()
				if err != nil || c.Done == c.Lanes {
					if err != nil {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d stops", stops.Load())
	whole(t, dir, p, store)
}

// A source that fails stops its lane; an output that fails stops the process.
func TestFailuresOfLanes(t *testing.T) {
	a, p, store := millShelf(t)
	w := newWorker(t, t.TempDir(), a, p, store, Shard{0, 1}, 1)
	w.before = func(lane int32) error {
		switch lane {
		case 1:
			return &SourceChangedError{Plan: p.Name, Lane: lane, File: "x", Detail: "y"}
		case 2:
			return fmt.Errorf("wrapped: %w", &SourceError{File: "z", Err: syscall.EIO})
		}
		return nil
	}
	if err := w.lanes.Run(t.Context(), 2, w.work); err != nil {
		t.Fatal(err)
	}
	if c := w.lanes.Counts(); c.Done != 2 || c.Stopped != 2 || len(w.lanes.Stopped()) != 2 {
		t.Errorf("%+v, %v", c, w.lanes.Stopped())
	}
	broken := errors.New("the disk is on fire")
	w = newWorker(t, t.TempDir(), a, p, store, Shard{}, 1)
	w.before = func(int32) error { return broken }
	if err := w.lanes.Run(t.Context(), 2, w.work); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	w = newWorker(t, t.TempDir(), a, p, store, Shard{}, 1)
	w.lanes = NewLanes(p, Shard{}, brokenOutput{broken}, 1)
	if err := w.lanes.Run(t.Context(), 2, w.work); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

type brokenOutput struct{ err error }

func (b brokenOutput) Reached(context.Context, string, int32, int64) (bool, error) {
	return false, b.err
}
func (b brokenOutput) Newest(context.Context, string, int32) (*record.Manifest, error) {
	return nil, b.err
}
