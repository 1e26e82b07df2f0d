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

// Exit statuses. 130, after a second signal, is in signals.go.
const (
	ExitRuntime     = 1
	ExitUsage       = 2
	exitInterrupted = 75 // before the end that was to be reached: trying again helps
	ExitConfig      = 78
)

// Fail prints err as one line, or one a problem, and returns its exit status.
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
		fmt.Fprintf(w, "entropipe: %v\nentropipe --help lists the commands; entropipe COMMAND --help their flags.\n", err)
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

// InterruptedError says that a signal ended what was to go on to an end: another
// run goes on from there.
type InterruptedError struct{ Left string }

// Error says what is missing.
func (e *InterruptedError) Error() string {
	if e.Left == "" {
		return "interrupted before it began; run it again"
	}
	return "interrupted before the end, which " + e.Left + " has not reached; run it again to go on from there"
}
