package command

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"entropipe/ingest"
)

// UntilSignal returns a context that the first SIGTERM or Ctrl-C ends, so that
// work drains. The second one ends the process at once: everything that is
// committed stays, everything else will be read again. Before that, aborted is
// called.
func UntilSignal(parent context.Context, aborted func()) (context.Context, context.CancelFunc) {
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

// UntilStopped calls f and returns its error, or, when a signal comes first, that
// there is none to wait for: f may be in a call that no signal interrupts, as
// parsing a large file is. f goes on until the process ends, so it must leave
// nothing half done.
func UntilStopped(e *Env, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-e.Ctx.Done():
		return e.Ctx.Err()
	}
}

// UnlessStopped drops an error that came of being stopped: what a call says
// that was waiting for brokers is no news to who has pressed Ctrl-C.
func UnlessStopped(e *Env, err error) error {
	if err == nil || e.Ctx.Err() == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, ingest.ErrNoBroker) {
		return err
	}
	e.Log.Debug("stopped early", "error", err)
	return nil
}
