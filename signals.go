package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"entropipe/ingest"
)

// exitAborted is the exit status after a second signal.
const exitAborted = 130

// untilSignal returns a context that the first SIGTERM or Ctrl-C ends, so that
// work drains. The second one ends the process at once: everything that is
// committed stays, everything else will be read again. Before that, aborted is
// called.
func untilSignal(parent context.Context, aborted func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
		select {
		case <-signals:
			aborted()
			os.Exit(exitAborted)
		case <-parent.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

// untilStopped calls f and returns its error, or, when a signal comes first, that
// there is none to wait for: f may be in a call that no signal interrupts, as
// parsing a large file is. f goes on until the process ends, so it must leave
// nothing half done.
func untilStopped(e *env, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-e.ctx.Done():
		return e.ctx.Err()
	}
}

// unlessStopped drops an error that came of being stopped: what a call says
// that was waiting for brokers is no news to who has pressed Ctrl-C.
func unlessStopped(e *env, err error) error {
	if err == nil || e.ctx.Err() == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, ingest.ErrNoBroker) {
		return err
	}
	e.log.Debug("stopped early", "error", err)
	return nil
}
