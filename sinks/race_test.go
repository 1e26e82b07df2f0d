package sinks_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/disk"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/read"
	"entropipe/sinks/record"
)

// faultStore lets a test have a say before and after each call that changes a
// store, whatever store it is.
type faultStore struct {
	sinks.Store
	before func(op, name string) error
	after  func(op, name string) error
}

func (s *faultStore) ask(op, name string, do func() error) error {
	if s.before != nil {
		if err := s.before(op, name); err != nil {
			return err
		}
	}
	err := do()
	if err == nil && s.after != nil {
		err = s.after(op, name)
	}
	return err
}

func (s *faultStore) Create(ctx context.Context, name string, data []byte) error {
	return s.ask("create", name, func() error { return s.Store.Create(ctx, name, data) })
}

func (s *faultStore) Stage(ctx context.Context, name string) (w io.WriteCloser, err error) {
	err = s.ask("stage", name, func() error { w, err = s.Store.Stage(ctx, name); return err })
	return w, err
}

func (s *faultStore) Publish(ctx context.Context, moves []sinks.Move) error {
	return s.ask("publish", "", func() error { return s.Store.Publish(ctx, moves) })
}

func (s *faultStore) Discard(ctx context.Context, folder string) error {
	return s.ask("discard", folder, func() error { return s.Store.Discard(ctx, folder) })
}

// overwriting is a store whose Create is no compare-and-set: the last one wins.
type overwriting struct {
	sinks.Store
	disk disk.Disk
}

func (s overwriting) Create(ctx context.Context, name string, data []byte) error {
	s.disk.Remove(name)
	return s.Store.Create(ctx, name, data)
}

// baseless is a store on which every writer has a base of its own.
type baseless struct {
	sinks.Store
	own map[string][]byte
}

func (s baseless) Create(ctx context.Context, name string, data []byte) error {
	if strings.HasSuffix(name, "/"+record.BaseFile) {
		s.own[name] = data
		return nil
	}
	return s.Store.Create(ctx, name, data)
}

func (s baseless) Read(ctx context.Context, name string) ([]byte, error) {
	if strings.HasSuffix(name, "/"+record.BaseFile) {
		if data := s.own[name]; data != nil {
			return data, nil
		}
		return nil, sinks.ErrNotFound
	}
	return s.Store.Read(ctx, name)
}

// zombie is a writer that a test can freeze: it stops before it creates its
// manifest, when everything is staged, and goes on when the test says so.
type zombie struct {
	frozen, thaw chan struct{}
	result       chan error
}

// freeze runs one commit of w, with records [pos, pos+n), up to its manifest.
func freeze(t *testing.T, store sinks.Store, base int64, n int) *zombie {
	t.Helper()
	ctx := context.Background()
	z := &zombie{make(chan struct{}), make(chan struct{}), make(chan error, 1)}
	once := sync.OnceFunc(func() { close(z.frozen); <-z.thaw })
	o, err := sinks.Open(ctx, &faultStore{Store: store, before: func(op, name string) error {
		if _, isManifest := record.ManifestStart(name[strings.LastIndexByte(name, '/')+1:]); op == "create" &&
			isManifest {
			once()
		}
		return nil
	}}, sinktest.EncoderOf(), sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Base(ctx, sinktest.LogTopic, schemas.TopicID{}, map[int32]int64{0: base}); err != nil {
		t.Fatal(err)
	}
	pos, err := o.Resume(ctx, sinktest.LogTopic, 0)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := o.Commit(ctx, sinktest.LogBatch(pos.Next, n))
		z.result <- err
	}()
	<-z.frozen
	return z
}

// wake lets the zombie go on, and returns how its commit ended.
func (z *zombie) wake() error {
	close(z.thaw)
	return <-z.result
}

// A writer that freezes between staging and manifest, while another takes over
// and commits, must lose when it wakes up: at any manifest, the first included.
func TestZombieLoses(t *testing.T) {
	for _, done := range []int64{0, 12} {
		for _, size := range []int{5, 10, 20} { // less than, as much as, and more than the other commits
			everyStore(t, func(t *testing.T, store sinks.Store) {
				if done > 0 {
					sinktest.TakeOver(t, store, 0, done, 6)
				}
				z := freeze(t, store, 0, size)
				sinktest.TakeOver(t, store, 0, done+10, 10)
				if err := z.wake(); !errors.Is(err, schemas.ErrLost) {
					t.Errorf("after %d records, %d: the zombie's commit ended with %v, want ErrLost", done, size, err)
				}
				sinktest.MustBeWhole(t, store, 0, done+10)
				if left := namesIn(t, store, record.StagingFolder); len(left) > 0 {
					t.Errorf("after %d records, %d: %q are left in staging", done, size, left)
				}
			})
		}
	}
}

// Law: what attempts have staged that lost is swept from all partitions of a topic; what may
// still be committed, and what other topics have staged, stays.
func TestSweepDiscardsWhatLost(t *testing.T) {
	d := sinktest.NewMemDisk()
	lost := freeze(t, sinktest.MemStore(d), 0, 5)
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 10, 10)
	store := sinktest.MemStore(d)
	alive := record.StagingName(record.TopicPartition{Topic: sinktest.LogTopic, ID: 7}, 3, record.NewUUID())
	if w, err := store.Stage(t.Context(), alive+"/frames-0"); err != nil || w.Close() != nil {
		t.Fatal("nothing can be staged", err)
	}
	o, err := sinks.Open(t.Context(), store, sinktest.EncoderOf(), sinks.Config{})
	if err != nil {
		t.Fatal(err)
	}
	staged := func() int {
		names, err := d.ReadDir(record.StagingFolder)
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	for _, c := range []struct {
		topic string
		left  int
	}{{"another", 2}, {sinktest.LogTopic + "-0", 2}, {sinktest.LogTopic, 1}, {sinktest.LogTopic, 1}} {
		if err := o.Sweep(t.Context(), c.topic); err != nil || staged() != c.left {
			t.Errorf("topic %s: %d attempts are staged, %v; want %d", c.topic, staged(), err, c.left)
		}
	}
	if err := lost.wake(); !errors.Is(err, schemas.ErrLost) {
		t.Errorf("the commit that lost ended with %v, want ErrLost", err)
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 10)
	if staged() != 1 {
		t.Errorf("%d attempts are staged, want the one that may still be committed", staged())
	}
}

// The same where the compare-and-set is taken out: the zombie's rows are added
// to the other's. If this test fails, the one above cannot fail.
func TestZombieDoublesWithoutCompareAndSet(t *testing.T) {
	d := sinktest.NewMemDisk()
	broken := func() sinks.Store { return overwriting{sinktest.MemStore(d), d} }
	z := freeze(t, broken(), 0, 20)
	sinktest.TakeOver(t, broken(), 0, 10, 10)
	if err := z.wake(); err != nil {
		t.Fatalf("the zombie's commit ended with %v: the store is not broken enough", err)
	}
	if wrong := sinktest.ExactlyOnce(t, sinktest.MemStore(d), 0, 20); !strings.Contains(wrong, "2 times") {
		t.Errorf("no row is doubled: %s", wrong)
	}
	report, err := read.Verify(context.Background(), sinktest.MemStore(d), read.VerifyOptions{})
	if err != nil || report.OK {
		t.Errorf("verify finds no fault (%v):\n%s", err, report)
	}
}

// Two writers with different ideas of the beginning: the first base holds for
// both, so that they compete for the same first manifest.
func TestZombieWithAnotherBase(t *testing.T) {
	d := sinktest.NewMemDisk()
	z := freeze(t, sinktest.MemStore(d), 0, 20)
	sinktest.TakeOver(t, sinktest.MemStore(d), 10, 30, 30) // would begin at 10, but adopts 0
	if err := z.wake(); !errors.Is(err, schemas.ErrLost) {
		t.Errorf("the zombie's commit ended with %v, want ErrLost", err)
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 30)
}

// The same without the base: both commit, and their ranges overlap. If this
// test fails, the one above cannot fail.
func TestZombieDoublesWithoutBase(t *testing.T) {
	d := sinktest.NewMemDisk()
	broken := func() sinks.Store { return baseless{sinktest.MemStore(d), map[string][]byte{}} }
	z := freeze(t, broken(), 0, 20)
	sinktest.TakeOver(t, broken(), 10, 30, 30)
	if err := z.wake(); err != nil {
		t.Fatalf("the zombie's commit ended with %v: the store is not broken enough", err)
	}
	if wrong := sinktest.ExactlyOnce(t, sinktest.MemStore(d), 0, 30); !strings.Contains(wrong, "2 times") {
		t.Errorf("no row is doubled: %s", wrong)
	}
}

// An exclusive creation whose answer is lost is told from a lost race by
// reading back, whether or not the record was created.
func TestUnknownAnswer(t *testing.T) {
	const end = 24
	for seed := range uint64(max(2, 8/batches.Sparse)) {
		d := sinktest.NewMemDisk()
		rng := rand.New(rand.NewPCG(seed, 9))
		row := 0 // answers lost in a row; too many and the writer gives up
		answer := func(op, name string) error {
			if row++; op == "create" && row < 4 && rng.IntN(2) == 0 {
				return syscall.ETIMEDOUT
			}
			row = 0
			return nil
		}
		s := &faultStore{Store: sinktest.MemStore(d)}
		if seed%2 == 0 {
			s.before = answer
		} else {
			s.after = answer
		}
		w := sinktest.Writer{Store: s, End: end, Roll: sinktest.Roll(8), Fail: sinktest.IsCrash}
		if err := w.Run(context.Background()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A create that worked, whose answer is lost and which cannot be read back
// either, must not be taken for one that failed: its staging is needed.
func TestUnknownAnswerKeepsStaging(t *testing.T) {
	d := sinktest.NewMemDisk()
	ctx, cancel := context.WithCancel(context.Background())
	s := &faultStore{Store: sinktest.MemStore(d), after: func(op, name string) error {
		if op == "create" && strings.HasSuffix(name, "0.json") {
			cancel()
			d.Remove(name) // not visible yet: the answer may come any time
			return syscall.ETIMEDOUT
		}
		return nil
	}}
	w := sinktest.Writer{Store: s, End: 8, Roll: sinktest.Roll(8), Fail: sinktest.IsCrash}
	if err := w.Run(ctx); err == nil {
		t.Fatal("the commit succeeded without a manifest")
	}
	if left, _ := d.ReadDir(record.StagingFolder); len(left) != 1 {
		t.Errorf("%d attempts in staging, want the one whose fate is unknown", len(left))
	}
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 8, 8)
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 8, 8)
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 8)
	sinktest.MustBeClean(t, d)
}

// turns makes several goroutines take turns at every call of the disk, in an
// order that a seed decides.
type turns struct {
	mu      sync.Mutex
	rng     *rand.Rand
	waiting []chan struct{}
	running int
}

// wait blocks until it is the caller's turn.
func (s *turns) wait() {
	s.mu.Lock()
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	s.running--
	s.next()
	s.mu.Unlock()
	<-turn
}

// next starts one of those that wait, once nobody runs.
func (s *turns) next() {
	if s.running > 0 || len(s.waiting) == 0 {
		return
	}
	i := s.rng.IntN(len(s.waiting))
	turn := s.waiting[i]
	s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
	s.running++
	close(turn)
}

func (s *turns) done() {
	s.mu.Lock()
	s.running--
	s.next()
	s.mu.Unlock()
}

// Writers that race on one partition, interleaved call by call, some of them
// dying on the way: every record is there once.
func TestRacingWriters(t *testing.T) {
	const end, writers = 40, 3
	for seed := range uint64(32 / batches.Sparse) {
		d := sinktest.NewMemDisk()
		s := &turns{rng: rand.New(rand.NewPCG(seed, 5)), running: writers}
		var wg sync.WaitGroup
		errs := make([]error, writers)
		for i := range writers {
			rng := rand.New(rand.NewPCG(seed, uint64(100+i)))
			p := sinktest.DieAt(d, 1<<30)
			if i > 0 { // the first one lives
				p = sinktest.DieAt(d, rng.IntN(400))
			}
			die := p.Disk.Before
			p.Disk.Before = func(op, name string) error { s.wait(); return die(op, name) }
			w := sinktest.Writer{Store: sinktest.MemStore(&p.Disk), End: end,
				Roll: func() int { return 1 + rng.IntN(12) }, Fail: sinktest.IsCrash}
			wg.Go(func() {
				defer s.done()
				if err := w.Run(p.Ctx); err != nil && !p.Dead {
					errs[i] = err
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, end, 5)
		if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
