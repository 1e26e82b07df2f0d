package command

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"entropipe/cmd/config/value"
	"entropipe/cmd/mistake"
)

// Exit statuses of the program; 0 is success.
const (
	ExitRuntime     = 1
	ExitUsage       = 2
	exitInterrupted = 75 // a signal came before --until-end was reached: another run goes on
	ExitConfig      = 78
)

// ExitStatuses says when the program ends with which status.
var ExitStatuses = []struct {
	Status int
	When   string
}{
	{0, "Done; also a service, broker or produce that SIGTERM or Ctrl-C ended."},
	{ExitRuntime, "A failure at run time; faults that verify found; more rejects than --max-rejects allows."},
	{ExitUsage, "A mistake on the command line."},
	{exitInterrupted, "A signal ended backfill, compact or run --until-end before the end: run it again."},
	{ExitConfig, "A mistake in the configuration."},
	{exitAborted, "A second signal."},
}

// Fail prints err as one line, or one line for each problem of a configuration, without
// passwords, and returns its exit status.
func Fail(to io.Writer, err error) int {
	var text strings.Builder
	defer func() { io.WriteString(to, value.Discreet(text.String())) }()
	w := &text
	var (
		usage   mistake.Usage
		parsing *kong.ParseError
		config  *mistake.Config
		stopped *InterruptedError
	)
	switch {
	case errors.As(err, &config):
		fmt.Fprintln(w, err)
		return ExitConfig
	case errors.As(err, &usage), errors.As(err, &parsing):
		fmt.Fprintf(w, "entropipe: %v\nentropipe --help lists the commands; entropipe COMMAND --help their flags.\n",
			err)
		return ExitUsage
	}
	fmt.Fprintf(w, "entropipe: %v\n", err)
	if errors.As(err, &stopped) {
		return exitInterrupted
	}
	return ExitRuntime
}

// exitAborted is the exit status after a second signal.
const exitAborted = 130

// InterruptedError says that a signal ended a run before the end that it was to reach.
// Another run continues from there.
type InterruptedError struct {
	Left  string // the partitions that have not reached the end; empty: nothing was read
	Lanes int    // lanes that are left, of All, in place of Left; 0: it has no lanes
	All   int
}

// Error names the partitions that have not reached the end.
func (e *InterruptedError) Error() string {
	if e.Lanes > 0 {
		are := "are"
		if e.Lanes == 1 {
			are = "is"
		}
		return fmt.Sprintf("interrupted before the end: %s of %s lanes %s left; run it again to go on from there",
			Count(int64(e.Lanes)), Count(int64(e.All)), are)
	}
	if e.Left == "" {
		return "interrupted before it began; run it again"
	}
	return "interrupted before the end, which " + e.Left + " has not reached; run it again to go on from there"
}
