package sinks_test

import (
	"context"
	"errors"
	"fmt"
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
	"entropipe/sinks/tables"
)

// What disks answer. Which of them comes matters: some say for certain that
// nothing was done.
var refusals = []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EMFILE, syscall.EACCES,
	syscall.EDQUOT, syscall.ETIMEDOUT}

// brokenFrom returns a disk whose calls from number n on fail, so many of them:
// those that only look too, reads of an open file included. Where they are hidden
// the call was made all the same.
func brokenFrom(d disk.Disk, n, calls int, refusal syscall.Errno, hidden bool) (f *sinktest.FaultDisk, failed *int) {
	var mu sync.Mutex
	count, failed := 0, new(int)
	fail := func(op, name string) error {
		mu.Lock()
		defer mu.Unlock()
		if count++; count > n && count <= n+calls {
			*failed++
			return sinktest.PathError(op, name, refusal)
		}
		return nil
	}
	f = &sinktest.FaultDisk{Disk: d, Before: fail}
	if hidden {
		f.Before, f.After = nil, fail
	}
	return f, failed
}

// Law: whichever call of the file system fails, once or for a while, with
// whatever error, whether or not it was made: the error that comes out wraps the
// disk's, the output goes on from Resume, nothing is lost or doubled, and nothing
// is left once the partition is resumed again.
func TestFaultAtEveryCall(t *testing.T) {
	const end = 5 // two batches, the second of one record
	for way, c := range []struct {
		name        string
		calls, step int
		hidden      bool
	}{{"once", 1, 1, false}, {"once, hidden", 1, 1, true}, {"for a while", 20, 2, false}} {
		t.Run(c.name, func(t *testing.T) {
			const most = 150 // more calls than there are
			var runs [most]faultyRun
			var wg sync.WaitGroup
			room := make(chan struct{}, 12) // writers take memory
			for n := 0; n < most; n += c.step * batches.Sparse {
				r := &runs[n]
				r.disk, r.refusal = sinktest.NewMemDisk(), refusals[(n+way)%len(refusals)]
				room <- struct{}{}
				// to wait together between tries of a creation
				wg.Go(func() { r.run(n, c.calls, c.hidden, end); <-room })
			}
			wg.Wait()
			last := 0
			for n := 0; n < most; n += c.step * batches.Sparse {
				r := &runs[n]
				if r.err != nil {
					t.Fatalf("%v at call %d: %v", r.refusal, n, r.err)
				}
				if r.failed > 0 {
					last = n
				}
				sinktest.TakeOver(t, sinktest.MemStore(r.disk), 0, end, end)
				sinktest.MustBeClean(t, r.disk)
				if sinktest.MustBeWhole(t, sinktest.MemStore(r.disk), 0, end); t.Failed() {
					t.Fatalf("%v at call %d", r.refusal, n)
				}
			}
			if t.Logf("%d calls", last+1); last < 80/batches.Sparse || last+2*batches.Sparse >= most {
				t.Errorf("the last call that failed is number %d", last)
			}
		})
	}
}

// faultyRun is a writer on a disk that fails for a while.
type faultyRun struct {
	disk    *sinktest.MemDisk
	refusal syscall.Errno
	failed  int // calls
	err     error
}

func (r *faultyRun) run(n, calls int, hidden bool, end int64) {
	f, failed := brokenFrom(r.disk, n, calls, r.refusal, hidden)
	w := sinktest.Writer{Store: sinktest.MemStore(f), End: end, Roll: sinktest.Roll(4), Parts: 1,
		Fail: func(err error) error {
			if !errors.Is(err, r.refusal) {
				return fmt.Errorf("the disk's error is lost: %w", err)
			}
			return nil
		}}
	r.err = w.Run(context.Background())
	r.failed = *failed
}

// A disk that refuses for certain leaves nothing staged, even if it is the
// manifest's name that it refuses: what is staged would keep a full disk full.
func TestRefusedManifestLeavesNoStaging(t *testing.T) {
	for _, refusal := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES,
		syscall.EMFILE, syscall.ENOTSUP} {
		d := sinktest.NewMemDisk()
		f := &sinktest.FaultDisk{Disk: d}
		o := sinktest.OpenResumed(t, f)
		blind := refusal == syscall.EMFILE // nor can it be looked whether it is there
		f.Before = func(op, name string) error {
			if op == "link" || blind && op == "look" && strings.HasSuffix(name, ".json") {
				return sinktest.PathError(op, name, refusal)
			}
			return nil
		}
		if _, err := o.Commit(t.Context(), sinktest.LogBatch(0, 5)); !errors.Is(err, refusal) ||
			!errors.Is(err, sinks.ErrNotCreated) {
			t.Errorf("%v: %v", refusal, err)
		}
		f.Before = nil
		if n := staged(d); n > 0 {
			t.Errorf("%v: %d files are left", refusal, n)
		}
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, 5, 5)
		sinktest.MustBeClean(t, d)
		sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 5)
	}
}

// Law: what Verify cannot read it does not pass.
func TestVerifyPassesNothingUnread(t *testing.T) {
	d := sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 8, 4)
	for n := 0; ; n += batches.Sparse {
		f, failed := brokenFrom(d, n, 1, syscall.EIO, false)
		r, err := read.Verify(t.Context(), sinktest.MemStore(f), read.VerifyOptions{Workers: 1})
		if *failed == 0 {
			if err != nil || !r.OK {
				t.Fatalf("%v\n%s", err, r)
			}
			t.Logf("%d calls", n)
			return
		}
		if err == nil && r.OK {
			t.Errorf("call %d failed, and all is well:\n%s", n, r)
		}
	}
}

// leavingOut is a store whose listings lack a name, as one may that is made while
// files are.
type leavingOut struct {
	sinks.Reader
	name string
}

func (s leavingOut) List(ctx context.Context, folder string, f func(sinks.Entry) error) error {
	return s.Reader.List(ctx, folder, func(e sinks.Entry) error {
		if e.Name == s.name {
			return nil
		}
		return f(e)
	})
}

// A manifest that was created while manifests were listed, and is not in the
// list while the next one is, is no hole.
func TestVerifyFindsManifestsThatAListingLacks(t *testing.T) {
	d := sinktest.NewMemDisk()
	sinktest.TakeOver(t, sinktest.MemStore(d), 0, 30, 10)
	for _, start := range []int64{0, 10} {
		var done, total int
		r, err := read.Verify(t.Context(), leavingOut{sinktest.MemStore(d),
			record.ManifestName(record.TopicPartition{Topic: sinktest.LogTopic, ID: 0}, start)},
			read.VerifyOptions{Workers: 1, Progress: func(d, n int) {
				done, total = d, n
			}})
		if err != nil || !r.OK || r.Partitions[0].Manifests != 3 || done != 3 || total != 3 {
			t.Errorf("without %d: %v, %d of %d done\n%s", start, err, done, total, r)
		}
	}
}

// A part that is refused is forgotten with those before it: what was counted
// until the fault was seen is not taken for rows.
func TestRefusedPartsAreForgotten(t *testing.T) {
	ctx := t.Context()
	for name, stage := range map[string]func(*sinks.Output, *schemas.Batch) error{
		"Stage":  func(o *sinks.Output, b *schemas.Batch) error { return o.Stage(ctx, b) },
		"Commit": func(o *sinks.Output, b *schemas.Batch) error { _, err := o.Commit(ctx, b); return err },
	} {
		d := sinktest.NewMemDisk()
		o := sinktest.OpenResumed(t, d)
		first, rest := split(sinktest.LogBatch(0, 10), 4)
		if err := o.Stage(ctx, first); err != nil {
			t.Fatal(err)
		}
		wrong, rest := split(rest, 4)
		// in order up to here
		wrong.Results = append(wrong.Results[:len(wrong.Results):len(wrong.Results)], wrong.Results[0])
		if err := stage(o, wrong); err == nil {
			t.Fatalf("%s: a part out of order is taken", name)
		}
		if n := staged(d); n > 0 {
			t.Errorf("%s: %d files are left in staging", name, n)
		}
		if _, err := o.Commit(ctx, rest); err == nil {
			t.Errorf("%s: the rest is committed without the part", name)
		}
		sinktest.TakeOver(t, sinktest.MemStore(d), 0, 10, 10)
		sinktest.MustBeClean(t, d)
		sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 10)
	}
}

// Tables on another file system than staging: one clear error, and what is
// committed is moved once the mount is gone.
func TestTablesOnAnotherFileSystem(t *testing.T) {
	d := sinktest.NewMemDisk()
	mounted := true
	f := &sinktest.FaultDisk{Disk: d, Before: func(op, name string) error {
		if mounted && op == "rename" && strings.HasPrefix(name, tables.Frames+"/") {
			return sinktest.PathError(op, name, syscall.EXDEV)
		}
		return nil
	}}
	w := sinktest.Writer{Store: sinktest.MemStore(f), End: 10, Roll: sinktest.Roll(5), Fail: func(err error) error {
		if !errors.Is(err, syscall.EXDEV) || !strings.Contains(err.Error(), "on one file system") {
			return fmt.Errorf("not clear: %w", err)
		}
		mounted = false
		return nil
	}}
	if err := w.Run(t.Context()); err != nil || mounted {
		t.Fatalf("mounted %v: %v", mounted, err)
	}
	sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 10)
}

// A record that nobody could read again is not created.
func TestRecordTooLargeToRead(t *testing.T) {
	d := sinktest.NewMemDisk()
	if err := sinktest.MemStore(d).Create(t.Context(), record.StoreFile,
		make([]byte, record.MaxSize+1)); !errors.Is(err, sinks.ErrNotCreated) || len(d.Live.Files) > 0 {
		t.Errorf("%v; %d files", err, len(d.Live.Files))
	}
}
