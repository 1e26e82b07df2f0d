package sinks_test

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/internal/batches"
	"entropipe/sinks/internal/sinktest"
)

// Law: a disk that refuses every change from some call on, for a while, with an error
// that passes, makes Commit and Resume say so; whoever then tries again in the same
// process, as the pipeline does, has each record once. With EIO or a folder that is
// gone neither says that waiting helps.
func TestWaitingForTheDisk(t *testing.T) {
	// Creations are tried again after a while. The time cannot be a bubble's of
	// synctest: encoders made in one would come out of their pool in other tests.
	defer sinks.SetCreateWait(sinks.SetCreateWait(time.Microsecond))
	for _, refusal := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EMFILE, syscall.EIO,
		syscall.ENOENT, syscall.EACCES} {
		passes := slices.Contains(sinks.Passing, refusal)
		if want := !slices.Contains([]syscall.Errno{syscall.EIO, syscall.ENOENT, syscall.EACCES},
			refusal); passes != want {
			t.Fatalf("%v passes: %v", refusal, passes)
		}
		refused := 0
		for n := 0; n < 40; n += batches.Sparse {
			d := sinktest.NewMemDisk()
			f := &sinktest.FaultDisk{Disk: d}
			o := sinktest.OpenResumed(t, f)
			calls := 0
			f.Before = func(op, name string) error {
				if op == "look" || op == "close" || op == "remove" && refusal != syscall.EROFS {
					return nil
				}
				if calls++; calls > n && calls <= n+8 {
					return sinktest.PathError(op, name, refusal)
				}
				return nil
			}
			done, err := o.Commit(t.Context(), sinktest.LogBatch(0, 5))
			if err == nil {
				continue // fewer calls than that
			}
			refused++
			if got := isUnavailable(err); got != passes || !errors.Is(err, refusal) {
				t.Fatalf("%v at call %d: %v, unavailable: %v", refusal, n, err, got)
			}
			if !passes { // the fault is over with the process that met it
				f.Before = nil
			}
			written(t, o, done)
			if t.Failed() {
				t.Fatalf("%v at call %d", refusal, n)
			}
			sinktest.TakeOver(t, sinktest.MemStore(d), 0, 5, 5)
			sinktest.MustBeClean(t, d)
			if sinktest.MustBeWhole(t, sinktest.MemStore(d), 0, 5); t.Failed() {
				t.Fatalf("%v at call %d", refusal, n)
			}
		}
		if refused < 10/batches.Sparse {
			t.Errorf("%v: %d commits were refused", refusal, refused)
		}
	}
}

// written tries again until the batch is committed. held is what the refused commit
// said of it.
func written(t *testing.T, o *sinks.Output, held schemas.Committed) {
	t.Helper()
	for range 50 {
		pos, err := o.Resume(t.Context(), sinktest.LogTopic, 0)
		switch {
		case err == nil && pos.Next == 5:
			if held.Tables == nil {
				t.Error("an earlier commit was made, and its counts are unknown")
			}
			return
		case err == nil:
			var done schemas.Committed
			if done, err = o.Commit(t.Context(), sinktest.LogBatch(0, 5)); err == nil {
				return
			}
			if done.Tables != nil {
				held = done
			}
		}
		if !isUnavailable(err) {
			t.Fatalf("a further try: %v", err)
		}
	}
	t.Fatal("not written in 50 tries")
}

func isUnavailable(err error) bool {
	passing := (*schemas.UnavailableError)(nil)
	return errors.As(err, &passing)
}
