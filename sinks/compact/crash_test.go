package compact

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
)

// logOn writes a log of n records to a new disk, some records a commit.
func logOn(t *testing.T, n, roll int64) *sinktest.MemDisk {
	t.Helper()
	d := sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, n, int(roll))
	return d
}

// compactOnce runs a compactor in one process.
func compactOnce(ctx context.Context, from sinks.Reader, into sinks.Store, cfg Config) error {
	c, err := Open(ctx, from, into, cfg)
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// Law: a compactor that dies at any change of the target's disk, with any loss of what was not
// fsynced, costs no row and doubles none.
func TestCrashAtEveryOperation(t *testing.T) {
	const end = 12
	from := sinktest.MemStore(logOn(t, end, 2))
	small := Config{TargetBytes: 12_000, Readers: 1} // ranges of two or three commits
	ways := map[string]func(n int) func() bool{
		"all that was not fsynced is lost": func(int) func() bool { return sinktest.KeepNone },
		"nothing is lost":                  func(int) func() bool { return sinktest.KeepAll },
		"some is lost":                     func(n int) func() bool { return sinktest.KeepSome(uint64(n)) },
	}
	step := crashStep * batches.Sparse
	for name, keep := range ways {
		t.Run(name, func(t *testing.T) {
			for n := len(name) % step; ; n += step {
				d := sinktest.NewMemDisk()
				p := sinktest.DieAt(d, n)
				err := compactOnce(p.Ctx, from, sinktest.MemStore(&p.Disk), small)
				if !p.Dead {
					if err != nil {
						t.Fatalf("without a crash: %v", err)
					}
					t.Logf("%d places to crash", n)
					return
				}
				d = d.Crash(keep(n))
				if err := compactOnce(t.Context(), from, sinktest.MemStore(d), Config{Readers: 1}); err != nil {
					t.Fatalf("after a crash at change %d: %v", n, err)
				}
				if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end); t.Failed() {
					t.Fatalf("after a crash at change %d", n)
				}
				// nothing is left to do
				if err := compactOnce(t.Context(), from, sinktest.MemStore(d), small); err != nil {
					t.Fatal(err)
				}
				if sinktest.MustBeClean(t, d); t.Failed() {
					t.Fatalf("after a crash at change %d", n)
				}
			}
		})
	}
}

// stopping is a store that ends a context when a file is opened for the n-th time.
type stopping struct {
	sinks.Reader
	mu   sync.Mutex
	left int
	stop context.CancelFunc
}

// Open implements sinks.Reader.
func (s *stopping) Open(ctx context.Context, name string) (sinks.Object, error) {
	s.mu.Lock()
	if s.left--; s.left == 0 {
		s.stop()
	}
	s.mu.Unlock()
	return s.Reader.Open(ctx, name)
}

// Law: a compactor that is told to stop while it reads any file of the source ends with the error
// of its context, and what it has committed is whole.
func TestStopAtEveryFile(t *testing.T) {
	const end = 12
	from := sinktest.MemStore(logOn(t, end, 2))
	step := max(1, crashStep*batches.Sparse/6)
	for n := 1; ; n += step {
		d := sinktest.NewMemDisk()
		ctx, stop := context.WithCancel(t.Context())
		source := &stopping{Reader: from, left: n, stop: stop}
		err := compactOnce(ctx, source, sinktest.MemStore(d), Config{TargetBytes: 20_000, Readers: 1 + n%3})
		stopped := ctx.Err() != nil
		stop()
		if !stopped {
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d files", n)
			return
		}
		reached := int64(0)
		if m, ok := newestOf(t, sinktest.MemStore(d)); ok {
			reached = m.End
		}
		if reached > 0 {
			sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, reached)
		}
		if reached < end && !errors.Is(err, context.Canceled) {
			t.Errorf("stopped at file %d, at offset %d: %v", n, reached, err)
		}
		if err := compactOnce(t.Context(), from, sinktest.MemStore(d), Config{}); err != nil {
			t.Fatal(err)
		}
		if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end); t.Failed() {
			t.Fatalf("stopped at file %d", n)
		}
	}
}

// newestOf returns the newest manifest of the log.
func newestOf(t *testing.T, store sinks.Reader) (newest *record.Manifest, ok bool) {
	t.Helper()
	names, err := store.Names(t.Context(), record.ManifestFolder(record.TopicPartition{Topic: sinktest.LogTopic}))
	if err != nil && !errors.Is(err, sinks.ErrNotFound) {
		return nil, false
	}
	for _, name := range names {
		start, ok := record.ManifestStart(name)
		if !ok || newest != nil && start < newest.Start {
			continue
		}
		newest, err = sinks.ReadManifest(t.Context(), store,
			record.ManifestName(record.TopicPartition{Topic: sinktest.LogTopic}, start))
		if err != nil {
			t.Fatal(err)
		}
	}
	return newest, newest != nil
}

// Law: several compactors of one target at once, of different ranges, and a writer of the source
// beside them, make one compaction with every row once.
func TestCompactorsRace(t *testing.T) {
	const end = 60
	source, target := sinktest.NewMemDisk(), sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(source), 0, 10, 2)
	var all sync.WaitGroup
	all.Go(func() { sinktest.TakeOver(t, sinktest.MemStore(source), 0, end, 3) })
	for k := range 3 {
		all.Go(func() {
			for range 4 {
				err := compactOnce(t.Context(), sinktest.MemStore(source), sinktest.MemStore(target),
					Config{TargetBytes: int64(5000 * (k + 1)), Readers: 2})
				if err != nil {
					t.Errorf("compactor %d: %v", k, err)
				}
			}
		})
	}
	all.Wait()
	if err := compactOnce(t.Context(), sinktest.MemStore(source), sinktest.MemStore(target), Config{}); err != nil {
		t.Fatal(err)
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(target), 0, end)
	if want, got := rowsOf(t, sinktest.MemStore(source)), rowsOf(t, sinktest.MemStore(target)); !maps.Equal(want, got) {
		t.Errorf("%d different rows of %d", len(got), len(want))
	}
}

// Law: a reader that lists the files of a compaction never sees a row twice, nor fewer rows than
// before, while a writer adds to the source and compactors follow it and are killed.
func TestReadersSeeOnlyGrowth(t *testing.T) {
	const end = 80
	source, target := sinktest.NewMemDisk(), sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(source), 0, 4, 2)
	written := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		defer close(written)
		sinktest.TakeOver(t, sinktest.MemStore(source), 0, end, 2)
	})
	rng := rand.New(rand.NewPCG(5, 5))
	seen := 0
	look := func() {
		rows := sinktest.Tally(t, sinktest.MemStore(target))
		for k, n := range rows {
			if n != 1 {
				t.Errorf("%+v: %d times", k, n)
			}
		}
		if len(rows) < seen {
			t.Errorf("%d rows after %d", len(rows), seen)
		}
		seen = len(rows)
	}
	for working := true; working; {
		select {
		case <-written:
			working = false
		default:
		}
		p := sinktest.DieAt(target, 20+rng.IntN(200))
		c, err := Open(p.Ctx, sinktest.MemStore(source), sinktest.MemStore(&p.Disk),
			Config{TargetBytes: 10_000, Poll: time.Microsecond, MaxAge: time.Microsecond, Readers: 2})
		if err == nil {
			ctx, stop := context.WithTimeout(p.Ctx, 300*time.Millisecond) // it has nothing to do, and cannot die
			err = c.Follow(ctx)
			stop()
		}
		if err == nil {
			t.Fatal("a follower ended")
		}
		look()
	}
	all.Wait()
	if err := compactOnce(t.Context(), sinktest.MemStore(source), sinktest.MemStore(target), Config{}); err != nil {
		t.Fatal(err)
	}
	look()
	sinktest.MustBeWhole(t, sinktest.MemStore(target), 0, end)
}

// A writer that is no compaction of the same output is refused, whoever comes first.
func TestCompactionsAreOfOneOutput(t *testing.T) {
	from, other, into := logOn(t, 6, 3), logOn(t, 6, 2), sinktest.NewMemDisk()
	if err := compactOnce(t.Context(), sinktest.MemStore(from), sinktest.MemStore(into), Config{}); err != nil {
		t.Fatal(err)
	}
	_, err := sinks.Open(t.Context(), sinktest.MemStore(into), sinktest.EncoderOf(), sinks.Config{})
	mustRefuse(t, err, "out")
	mustRefuse(t, compactOnce(t.Context(), sinktest.MemStore(other), sinktest.MemStore(into), Config{}), "into")
	mustRefuse(t, compactOnce(t.Context(), sinktest.MemStore(from), sinktest.MemStore(other), Config{}), "into")
	mustRefuse(t, compactOnce(t.Context(), sinktest.MemStore(from), sinktest.MemStore(from), Config{}), "into")
	again := sinktest.NewMemDisk() // a compaction of a compaction
	if err := compactOnce(t.Context(), sinktest.MemStore(into), sinktest.MemStore(again), Config{}); err != nil {
		t.Fatal(err)
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(again), 0, 6)
}

func mustRefuse(t *testing.T, err error, field string) {
	t.Helper()
	if wrong := (*sinks.ConfigError)(nil); !errors.As(err, &wrong) || wrong.Field != field {
		t.Errorf("%v, want a refusal of --%s", err, field)
	}
}

// Damaged and missing files, and a source that was repaired behind the target, stop a compactor
// with an error that names them. Nothing of the range is in the target.
func TestFaultsOfTheSource(t *testing.T) {
	p := record.TopicPartition{Topic: sinktest.LogTopic}
	for name, c := range map[string]struct {
		harm func(d *sinktest.MemDisk, m *record.Manifest)
		is   func(err error) bool
	}{
		"a byte of a file": {func(d *sinktest.MemDisk, m *record.Manifest) {
			d.Live.Files[m.Files[0].Path].Data[100] ^= 1
		}, isSourceError},
		"a shorter file": {func(d *sinktest.MemDisk, m *record.Manifest) {
			f := d.Live.Files[m.Files[0].Path]
			f.Data = f.Data[:len(f.Data)-1]
		}, isSourceError},
		"a lost file": {func(d *sinktest.MemDisk, m *record.Manifest) {
			d.Remove(m.Files[0].Path)
		}, isSourceError},
		"a lost manifest": {func(d *sinktest.MemDisk, m *record.Manifest) {
			d.Remove(record.ManifestName(p, m.Start))
		}, func(err error) bool { return err != nil }},
		"a damaged manifest": {func(d *sinktest.MemDisk, m *record.Manifest) {
			d.Live.Files[record.ManifestName(p, m.Start)].Data[40] ^= 1
		}, func(err error) bool { damaged := (*record.DamagedError)(nil); return errors.As(err, &damaged) }},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := logOn(t, 12, 3), sinktest.NewMemDisk()
			_, m := sinktest.ManifestOf(t, source, 6)
			c.harm(source, m)
			err := compactOnce(t.Context(), sinktest.MemStore(source), sinktest.MemStore(target),
				Config{TargetBytes: 1})
			if !c.is(err) {
				t.Errorf("%v", err)
			}
			sinktest.MustBeWhole(t, sinktest.MemStore(target), 0, 6)
			sinktest.MustBeClean(t, target)
		})
	}
	t.Run("a repaired source", func(t *testing.T) {
		source, target := logOn(t, 12, 3), sinktest.NewMemDisk()
		if err := compactOnce(t.Context(), sinktest.MemStore(source), sinktest.MemStore(target), Config{}); err != nil {
			t.Fatal(err)
		}
		for _, start := range []int64{9, 6} {
			name, m := sinktest.ManifestOf(t, source, start)
			for i := range m.Files {
				source.Remove(m.Files[i].Path)
			}
			source.Remove(name)
		}
		for _, end := range []int64{6, 20} { // before and after a writer has gone on
			sinktest.TakeOver(t, sinktest.MemStore(source), 0, end, 14)
			err := compactOnce(t.Context(), sinktest.MemStore(source), sinktest.MemStore(target), Config{})
			if err == nil || errors.Is(err, schemas.ErrLost) {
				t.Errorf("source that ends at %d: %v", end, err)
			}
		}
	})
}

func isSourceError(err error) bool {
	fault := (*SourceError)(nil)
	return errors.As(err, &fault) && fault.Name != ""
}

// A source whose disk fails for a while stops a single run with an error, and a follower waits.
func TestFollowersWait(t *testing.T) {
	source, target := logOn(t, 12, 3), sinktest.NewMemDisk()
	failures := 0
	bad := &sinktest.FaultDisk{Disk: target, Before: func(op, name string) error {
		if op == "write" && failures < 3 {
			failures++
			return sinktest.PathError(op, name, syscall.ENOSPC)
		}
		return nil
	}}
	told := 0
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c, err := Open(ctx, sinktest.MemStore(source), sinktest.MemStore(target), Config{Poll: time.Microsecond,
		Waiting: func(error) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	c.into = sinktest.MemStore(bad)
	go func() {
		for ctx.Err() == nil {
			if m, _ := c.out.Newest(ctx, sinktest.LogTopic, 0); m != nil && m.End == 12 {
				stop()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if err := c.Follow(ctx); !errors.Is(err, context.Canceled) || told == 0 {
		t.Errorf("%v, told %d times", err, told)
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(target), 0, 12)
}
