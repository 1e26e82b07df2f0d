package top

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"entropipe/cmd/command"
	"entropipe/cmd/terminaltest"
)

// watchedAddress makes the test's program the command top of that address.
const watchedAddress = "TOP_TEST_ADDRESS"

func TestMain(m *testing.M) {
	address := os.Getenv(watchedAddress)
	if address == "" {
		os.Exit(m.Run())
	}
	ctx, stop := command.UntilSignal(context.Background(), func() {})
	defer stop()
	c := Command{What: address, Interval: leastInterval}
	if err := c.Run(&command.Env{Ctx: ctx, Stdout: os.Stdout, Stderr: os.Stderr,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}); err != nil {
		os.Exit(command.Fail(os.Stderr, err))
	}
	os.Exit(0)
}

// tape collects what a terminal gets.
type tape struct {
	mu   sync.Mutex
	text bytes.Buffer
	done chan struct{}
}

func (p *tape) copy(from io.Reader) {
	defer close(p.done)
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		p.text.Write(buffer[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *tape) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// until waits for text after the first from bytes, and returns what is there then.
func (p *tape) until(t *testing.T, from int, text string) string {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if got := p.String(); len(got) >= from && strings.Contains(got[from:], text) {
			return got
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no %q in %q", text, p.String())
	return ""
}

// On a terminal top fills the alternate screen, and a key or a signal gives the terminal back as
// it was. A dumb one gets lines.
func TestTerminal(t *testing.T) {
	const alternate, usual = "\x1b[?1049h", "\x1b[?1049l"
	color := regexp.MustCompile("\x1b\\[[349][0-9]m")
	for _, c := range []struct {
		name, term string
		variables  []string
		end        func(here *os.File, p *os.Process)
	}{
		{"q", "xterm-256color", nil, func(here *os.File, _ *os.Process) { here.WriteString("q") }},
		{"Ctrl-C", "xterm", []string{"NO_COLOR=1"}, func(here *os.File, _ *os.Process) { here.WriteString("\x03") }},
		{"SIGTERM", "xterm", nil, func(_ *os.File, p *os.Process) { p.Signal(syscall.SIGTERM) }},
		{"SIGHUP", "screen", nil, func(_ *os.File, p *os.Process) { p.Signal(syscall.SIGHUP) }},
		{"SIGQUIT", "linux", nil, func(_ *os.File, p *os.Process) { p.Signal(syscall.SIGQUIT) }},
		{"dumb", "dumb", nil, func(here *os.File, _ *os.Process) { here.WriteString("\x03") }},
		{"unknown", "no-such-terminal", nil, func(here *os.File, _ *os.Process) { here.WriteString("\x03") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			here, there := terminaltest.Open(t, 80)
			before, err := unix.IoctlGetTermios(int(there.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), append(c.variables, "TERM="+c.term, watchedAddress+"="+serve(t, "").URL,
				"LC_ALL=C.UTF-8", "COLORTERM=")...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = there, there, there
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			p := &tape{done: make(chan struct{})}
			go p.copy(here)
			full := c.term != "dumb" && c.term != "no-such-terminal"
			p.until(t, 0, `keeping up\u009b2J`)
			if full {
				from := len(p.String())
				winsize := &unix.Winsize{Row: 12, Col: 60}
				if err := unix.IoctlSetWinsize(int(here.Fd()), unix.TIOCSWINSZ, winsize); err != nil {
					t.Fatal(err)
				}
				p.until(t, from, "keeping up") // drawn anew
				from = len(p.String())
				here.WriteString("?\x0c") // Ctrl-L draws all cells
				p.until(t, from, "choose a pane")
			}
			c.end(here, cmd.Process)
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v\n%q", err, p.String())
			}
			after, err := unix.IoctlGetTermios(int(there.Fd()), unix.TCGETS)
			if err != nil || *after != *before {
				t.Errorf("%v; the terminal is %+v, was %+v", err, after, before)
			}
			if full && (c.term[0] == 'x' || c.term[0] == 's') {
				text := p.until(t, 0, usual)
				if !strings.Contains(text, alternate) {
					t.Errorf("no alternate screen in %q", text)
				}
			} else if text := p.String(); !full && strings.Contains(text, "\x1b") {
				t.Errorf("escape sequences in %q", text)
			}
			if text := p.String(); full && color.MatchString(text) == (len(c.variables) > 0) {
				t.Errorf("colours, or none, against NO_COLOR: %q", text)
			}
			if strings.Contains(p.String(), "\u009b") {
				t.Error("a control character of the process reached the terminal")
			}
		})
	}
}
