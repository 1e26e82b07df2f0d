package sinks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"entropipe/schemas"
)

var errCrashed = errors.New("the process is gone")

// process is one process that may die: from the n-th change of the disk on,
// every call of its disk fails and its context is over.
type process struct {
	disk faultDisk
	ctx  context.Context
	dead bool
}

func dieAt(d disk, n int) *process {
	ctx, die := context.WithCancel(context.Background())
	p, count := &process{ctx: ctx}, 0
	p.disk = faultDisk{disk: d, before: func(op, _ string) error {
		if op != "look" {
			if count == n {
				p.dead = true
				die()
			}
			count++
		}
		if p.dead {
			return errCrashed
		}
		return nil
	}}
	return p
}

func isCrash(err error) error { return err }

// A crash at any change of the disk, with any loss of what was not fsynced,
// costs no record and doubles none.
func TestCrashAtEveryOperation(t *testing.T) {
	const end = 20 // three batches
	ways := map[string]func(n int) func() bool{
		"all that was not fsynced is lost": func(int) func() bool { return keepNone },
		"nothing is lost":                  func(int) func() bool { return keepAll },
		"some is lost":                     func(n int) func() bool { return keepSome(uint64(n)) },
	}
	for name, keep := range ways {
		for parts := range 2 {
			if parts > 0 && name != "some is lost" {
				continue // the other ways lose nothing that this does not lose at some change
			}
			t.Run(fmt.Sprintf("%s, %d parts ahead", name, parts), func(t *testing.T) { crashEverywhere(t, keep, end, parts) })
		}
	}
}

// crashEverywhere crashes a writer, whose batches have so many parts ahead, once
// at each change.
func crashEverywhere(t *testing.T, keep func(n int) func() bool, end int64, parts int) {
	ctx := context.Background()
	for n := 0; ; n += sparse {
		d := newMemDisk()
		p := dieAt(d, n)
		w := writer{store: memStore(&p.disk), end: end, roll: roll(7), fail: isCrash, cfg: testTables, parts: parts}
		if err := w.run(p.ctx); !p.dead {
			if err != nil {
				t.Fatalf("without a crash: %v", err)
			}
			t.Logf("%d places to crash", n)
			break
		}
		d = d.crash(keep(n))
		w = writer{store: memStore(d), end: end, roll: roll(6), fail: isCrash, cfg: testTables, parts: 1 - parts} // other batches than before
		if err := w.run(ctx); err != nil {
			t.Fatalf("after a crash at change %d: %v", n, err)
		}
		if mustBeWhole(t, memStore(d), 0, end); t.Failed() {
			t.Fatalf("after a crash at change %d", n)
		}
		w.run(ctx) // a restart with nothing to do
		if mustBeClean(t, d); t.Failed() {
			t.Fatalf("after a crash at change %d", n)
		}
	}
}

// mustBeClean fails the test if anything is left in staging or aside.
func mustBeClean(t *testing.T, d *memDisk) {
	t.Helper()
	for name := range d.live.files {
		if strings.Contains(name, "/"+aside) || strings.HasPrefix(name, stagingFolder) {
			t.Errorf("%s is left", name)
		}
	}
}

// Crash upon crash, at random, recoveries included.
func TestRepeatedCrashes(t *testing.T) {
	const end = 60
	ctx := context.Background()
	for seed := range uint64(16 / sparse) {
		rng := rand.New(rand.NewPCG(seed, 3))
		d := newMemDisk()
		for range 16 {
			p := dieAt(d, rng.IntN(120))
			w := writer{store: memStore(&p.disk), end: end, roll: func() int { return 1 + rng.IntN(12) }, fail: isCrash, cfg: testTables, parts: rng.IntN(3)}
			if err := w.run(p.ctx); err != nil && !p.dead {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if rng.IntN(2) == 0 { // else the process alone has died, and the next one sees what is not fsynced
				d = d.crash(keepSome(rng.Uint64()))
			}
		}
		w := writer{store: memStore(d), end: end, roll: roll(10), fail: isCrash, cfg: testTables}
		if err := w.run(ctx); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if mustBeWhole(t, memStore(d), 0, end); t.Failed() {
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
	for n := 0; ; n += sparse {
		d := newMemDisk()
		p := dieAt(d, n)
		w := writer{store: memStore(&p.disk), end: end, roll: roll(6), fail: isCrash, cfg: testTables}
		if w.run(p.ctx); !p.dead {
			break
		}
		next := writer{store: memStore(d), end: 0, fail: isCrash, cfg: testTables} // resumes, and does nothing
		if err := next.run(ctx); err != nil {
			t.Fatalf("death at change %d: %v", n, err)
		}
		d = d.crash(keepNone)
		takeOver(t, memStore(d), 0, end, 5)
		if mustBeWhole(t, memStore(d), 0, end); t.Failed() {
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
		d := newMemDisk()
		writes, failures := 0, 0
		f := &faultDisk{disk: d, before: func(op, name string) error {
			if op == "write" {
				if writes++; writes > full/2 && writes <= full/2+3 {
					return pathError(op, name, syscall.ENOSPC)
				}
			}
			return nil
		}}
		w := writer{store: memStore(f), end: end, roll: roll(10), cfg: testTables, parts: parts, fail: func(err error) error {
			failures++
			if !errors.Is(err, syscall.ENOSPC) {
				return fmt.Errorf("not ENOSPC: %w", err)
			}
			if left, _ := d.readDir(stagingFolder); len(left) > 0 {
				return fmt.Errorf("%s is left in staging after %w", left[0].Name(), err)
			}
			return nil
		}}
		if err := w.run(ctx); err != nil {
			t.Fatalf("full at write %d: %v", full, err)
		}
		if failures == 0 && full < 8 {
			t.Errorf("full at write %d: nothing failed", full)
		}
		mustBeWhole(t, memStore(d), 0, end)
	}
}

// Wherever a writer dies, what Reached calls reached is where readers look:
// also what was committed and not yet published.
func TestReachedAfterACrashAtEveryOperation(t *testing.T) {
	const end = 7 // one batch
	ctx := context.Background()
	var before, after int
	for n := 0; ; n++ {
		d := newMemDisk()
		p := dieAt(d, n)
		w := writer{store: memStore(&p.disk), end: end, roll: roll(end), fail: isCrash, cfg: testTables}
		w.run(p.ctx)
		d = d.crash(keepNone)
		o, err := Open(ctx, memStore(d), testTables)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Base(ctx, logTopic, schemas.TopicID{}, map[int32]int64{0: 0}); err != nil {
			t.Fatal(err)
		}
		reached, err := o.Reached(ctx, logTopic, 0, end)
		if err != nil {
			t.Fatalf("after a crash at change %d: %v", n, err)
		}
		if reached {
			after++
			mustBeWhole(t, memStore(d), 0, end)
		} else {
			before++
		}
		if further, err := o.Reached(ctx, logTopic, 0, end+1); further || err != nil {
			t.Errorf("after a crash at change %d: offset %d is reached: %v, %v", n, end+1, further, err)
		}
		if nothing, err := o.Reached(ctx, logTopic, 1, 0); !nothing || err != nil {
			t.Errorf("after a crash at change %d: the empty partition 1 is not reached, %v", n, err)
		}
		if t.Failed() {
			t.Fatalf("after a crash at change %d", n)
		}
		if !p.dead {
			break
		}
	}
	if before < 5 || after < 5 {
		t.Errorf("%d crashes before the commit, %d after it", before, after)
	}
}
