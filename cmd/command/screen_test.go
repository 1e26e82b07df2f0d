package command

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"entropipe/cmd/terminaltest"
)

// Lines that are logged while there is a bar stay, above it, and the bar is once on
// the screen.
func TestLogAboveTheBar(t *testing.T) {
	t.Parallel()
	var tape bytes.Buffer
	s := &Screen{w: &tape, width: func() int { return 30 }}
	fmt.Fprintln(s, "before")
	s.draw("a bar that is too long for the window")
	fmt.Fprintln(s, "first, longer than the bar and the window")
	fmt.Fprint(s, "second")
	tape.WriteString("^C") // as the terminal does
	s.draw("bar 2")
	fmt.Fprintln(s, "third")
	s.Abandon()
	s.leave()
	fmt.Fprintln(s, "after")
	got, err := terminaltest.Screen(tape.String())
	want := []string{"before", "first, longer than the bar and the window", "second", "third", "bar 2", "after", ""}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v\n%q\nwant\n%q", err, got, want)
	}
	if wrong := regexp.MustCompile(`[^\n\r]{30}`).FindString(strings.ReplaceAll(tape.String(),
		"first, longer than the bar and the window", "")); wrong != "" {
		t.Errorf("a full row: %q", wrong)
	}
}
