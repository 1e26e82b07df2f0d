package command

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"entropipe/ingest"
)

// UntilSignal returns a context that the first SIGTERM or Ctrl-C ends, so that work
// drains. The second signal calls aborted and ends the process with status 130: committed
// records stay, all others will be read again. The CancelFunc stops listening to signals.
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

// UntilStopped calls f and returns its error, or the context's error if a signal comes
// first. It is for calls that no context interrupts, such as parsing a large file. After a
// signal f runs on in its goroutine until the process ends, so f must leave nothing half
// written.
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

// UnlessStopped returns err, or nil if a signal has come and err is its consequence: a
// cancelled context, or brokers that had not answered yet.
func UnlessStopped(e *Env, err error) error {
	if err == nil || e.Ctx.Err() == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, ingest.ErrNoBroker) {
		return err
	}
	e.Log.Debug("stopped early", "error", err)
	return nil
}
