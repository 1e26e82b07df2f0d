package rig

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

type exit int

func (e exit) Error() string { return "exit" }
func (e exit) ExitCode() int { return int(e) }

// An error is shown under the benchmark's name; its kind decides the status.
func TestStatusOfABenchmark(t *testing.T) {
	for _, c := range []struct {
		err   error
		want  int
		shown string
	}{
		{nil, 0, ""},
		{errors.New("no disk"), 1, "speed: no disk\n"},
		{fmt.Errorf("%w: --rounds 0", ErrUsage), 2, "speed: usage: --rounds 0\n"},
		{fmt.Errorf("worker: %w", exit(7)), 7, ""},
	} {
		var shown strings.Builder
		if got := status("speed", &shown, c.err); got != c.want || shown.String() != c.shown {
			t.Errorf("%v: status %d, %q; want %d, %q", c.err, got, shown.String(), c.want, c.shown)
		}
	}
}
