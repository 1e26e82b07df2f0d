package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// ErrUsage is a mistake of the command line: a benchmark that ends with it has status 2.
var ErrUsage = errors.New("usage")

// Main runs a benchmark's command and ends the process: with status 0; with 2 after ErrUsage and
// 1 after another error, which it shows under the benchmark's name; or in silence with the status
// that the error has. An interrupt or a termination signal ends ctx, a second one the process.
func Main(name string, command func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(status(name, os.Stderr, command(ctx)))
}

func status(name string, shown io.Writer, err error) int {
	var own kong.ExitCoder
	switch {
	case err == nil:
		return 0
	case errors.As(err, &own):
		return own.ExitCode()
	}
	fmt.Fprintf(shown, "%s: %v\n", name, err)
	if errors.Is(err, ErrUsage) {
		return 2
	}
	return 1
}
