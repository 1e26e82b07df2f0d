package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/sinktest"
	"entropipe/sinks/record"
)

// A crash at any change of the disk, with any loss of what was not fsynced,
// costs no record and doubles none.
func TestCrashAtEveryOperation(t *testing.T) {
	const end = 20 // three batches
	ways := map[string]func(n int) func() bool{
		"all that was not fsynced is lost": func(int) func() bool { return sinktest.KeepNone },
		"nothing is lost":                  func(int) func() bool { return sinktest.KeepAll },
		"some is lost":                     func(n int) func() bool { return sinktest.KeepSome(uint64(n)) },
	}
	for name, keep := range ways {
		for parts := range 2 {
			if parts > 0 && name != "some is lost" {
				continue // the other ways lose nothing that this does not lose at some change
			}
			t.Run(fmt.Sprintf("%s, %d parts ahead", name, parts),
				func(t *testing.T) { crashEverywhere(t, keep, end, parts) })
		}
	}
}

// crashEverywhere crashes a writer, whose batches have so many parts ahead, once
// at each change.
func crashEverywhere(t *testing.T, keep func(n int) func() bool, end int64, parts int) {
	ctx := context.Background()
	for n := 0; ; n += batches.Sparse {
		d := sinktest.NewMemDisk()
		p := sinktest.DieAt(d, n)
		w := sinktest.Writer{Store: sinktest.MemStore(&p.Disk), End: end, Roll: sinktest.Roll(7),
			Fail: sinktest.IsCrash, Parts: parts}
		if err := w.Run(p.Ctx); !p.Dead {
			if err != nil {
				t.Fatalf("without a crash: %v", err)
			}
			t.Logf("%d places to crash", n)
			break
		}
		d = d.Crash(keep(n))
		// other batches than before
		w = sinktest.Writer{Store: sinktest.MemStore(d), End: end, Roll: sinktest.Roll(6),
			Fail: sinktest.IsCrash, Parts: 1 - parts}
		if err := w.Run(ctx); err != nil {
			t.Fatalf("after a crash at change %d: %v", n, err)
		}
		if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end); t.Failed() {
			t.Fatalf("after a crash at change %d", n)
		}
		w.Run(ctx) // a restart with nothing to do
		if sinktest.MustBeClean(t, d); t.Failed() {
			t.Fatalf("after a crash at change %d", n)
		}
	}
}

// Crash upon crash, at random, recoveries included.
func TestRepeatedCrashes(t *testing.T) {
	const end = 60
	ctx := context.Background()
	for seed := range uint64(16 / batches.Sparse) {
		rng := rand.New(rand.NewPCG(seed, 3))
		d := sinktest.NewMemDisk()
		for range 16 {
			p := sinktest.DieAt(d, rng.IntN(120))
			w := sinktest.Writer{Store: sinktest.MemStore(&p.Disk), End: end,
				Roll: func() int { return 1 + rng.IntN(12) }, Fail: sinktest.IsCrash, Parts: rng.IntN(3)}
			if err := w.Run(p.Ctx); err != nil && !p.Dead {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if rng.IntN(2) == 0 { // otherwise only the process has died, and the next process sees unsynced data
				d = d.Crash(sinktest.KeepSome(rng.Uint64()))
			}
		}
		w := sinktest.Writer{Store: sinktest.MemStore(d), End: end, Roll: sinktest.Roll(10), Fail: sinktest.IsCrash}
		if err := w.Run(ctx); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A process that dies between making a record and fsyncing it leaves one that
// others see but a power cut may take away. Who resumes from it must fsync it
// before publishing its files, or these would stay without it.
func TestPowerCutAfterResume(t *testing.T) {
	const end = 12
	ctx := context.Background()
	for n := 0; ; n += batches.Sparse {
		d := sinktest.NewMemDisk()
		p := sinktest.DieAt(d, n)
		w := sinktest.Writer{Store: sinktest.MemStore(&p.Disk), End: end, Roll: sinktest.Roll(6),
			Fail: sinktest.IsCrash}
		if w.Run(p.Ctx); !p.Dead {
			break
		}
		// resumes, and does nothing
		next := sinktest.Writer{Store: sinktest.MemStore(d), End: 0, Fail: sinktest.IsCrash}
		if err := next.Run(ctx); err != nil {
			t.Fatalf("death at change %d: %v", n, err)
		}
		d = d.Crash(sinktest.KeepNone)
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, end, 5)
		if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end); t.Failed() {
			t.Fatalf("death at change %d", n)
		}
	}
}

// A disk that is full at any time stops the output with an error that says so,
// leaves nothing behind that would keep it full, and loses nothing.
func TestFullDisk(t *testing.T) {
	const end = 30
	ctx := context.Background()
	for full := range 24 {
		parts := full % 2
		d := sinktest.NewMemDisk()
		writes, failures := 0, 0
		f := &sinktest.FaultDisk{Disk: d, Before: func(op, name string) error {
			if op == "write" {
				if writes++; writes > full/2 && writes <= full/2+3 {
					return sinktest.PathError(op, name, syscall.ENOSPC)
				}
			}
			return nil
		}}
		w := sinktest.Writer{Store: sinktest.MemStore(f), End: end, Roll: sinktest.Roll(10), Parts: parts,
			Fail: func(err error) error {
				failures++
				if !errors.Is(err, syscall.ENOSPC) {
					return fmt.Errorf("not ENOSPC: %w", err)
				}
				if left, _ := d.ReadDir(record.StagingFolder); len(left) > 0 {
					return fmt.Errorf("%s is left in staging after %w", left[0].Name(), err)
				}
				return nil
			}}
		if err := w.Run(ctx); err != nil {
			t.Fatalf("full at write %d: %v", full, err)
		}
		if failures == 0 && full < 8 {
			t.Errorf("full at write %d: nothing failed", full)
		}
		sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end)
	}
}

// Wherever a writer dies, what Reached calls reached is where readers look:
// also what was committed and not yet published.
func TestReachedAfterACrashAtEveryOperation(t *testing.T) {
	const end = 7 // one batch
	ctx := context.Background()
	var before, after int
	for n := 0; ; n++ {
		d := sinktest.NewMemDisk()
		p := sinktest.DieAt(d, n)
		w := sinktest.Writer{Store: sinktest.MemStore(&p.Disk), End: end, Roll: sinktest.Roll(end),
			Fail: sinktest.IsCrash}
		w.Run(p.Ctx)
		d = d.Crash(sinktest.KeepNone)
		o, err := sinks.Open(ctx, sinktest.MemStore(d), sinktest.EncoderOf(), sinks.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Base(ctx, sinktest.LogTopic, schemas.TopicID{}, map[int32]int64{0: 0}); err != nil {
			t.Fatal(err)
		}
		reached, err := o.Reached(ctx, sinktest.LogTopic, 0, end)
		if err != nil {
			t.Fatalf("after a crash at change %d: %v", n, err)
		}
		if reached {
			after++
			sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, end)
		} else {
			before++
		}
		if further, err := o.Reached(ctx, sinktest.LogTopic, 0, end+1); further || err != nil {
			t.Errorf("after a crash at change %d: offset %d is reached: %v, %v", n, end+1, further, err)
		}
		if nothing, err := o.Reached(ctx, sinktest.LogTopic, 1, 0); !nothing || err != nil {
			t.Errorf("after a crash at change %d: the empty partition 1 is not reached, %v", n, err)
		}
		if t.Failed() {
			t.Fatalf("after a crash at change %d", n)
		}
		if !p.Dead {
			break
		}
	}
	if before < 5 || after < 5 {
		t.Errorf("%d crashes before the commit, %d after it", before, after)
	}
}
