package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// wide is the width of a test's terminal: no bar and no message is cut.
const wide = 250

// terminal opens a pseudo-terminal of so many columns and returns its two ends.
func terminal(t *testing.T, columns uint16) (here, there *os.File) {
	t.Helper()
	here, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { here.Close() })
	var lock, n int32
	size := [4]uint16{24, columns}
	control := func(f *os.File, what uintptr, with unsafe.Pointer) {
		t.Helper()
		if _, _, code := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), what, uintptr(with)); code != 0 {
			t.Skipf("no pseudo-terminals here: %v", code)
		}
	}
	control(here, syscall.TIOCSPTLCK, unsafe.Pointer(&lock))
	control(here, syscall.TIOCGPTN, unsafe.Pointer(&n))
	there, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { there.Close() })
	control(there, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	return here, there
}

// attended is an entropipe in a session of its own, whose terminal the test watches
// and types at.
type attended struct {
	t    *testing.T
	cmd  *exec.Cmd
	here *os.File
	done chan struct{} // all of its output has been read

	mu    sync.Mutex
	shown bytes.Buffer
	news  chan struct{} // replaced, and closed, with every read
}

// attend starts entropipe args in dir on a terminal. Variables are added to those
// that are there.
func attend(t *testing.T, dir string, columns uint16, variables []string, args ...string) *attended {
	t.Helper()
	here, there := terminal(t, columns)
	p := &attended{t: t, cmd: exec.Command("entropipe", args...), here: here, done: make(chan struct{}), news: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = dir, there, there, there
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ENTROPIPE_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	p.cmd.Env = append(append(p.cmd.Env, "TERM=xterm"), variables...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	there.Close()
	go p.read()
	t.Cleanup(func() {
		p.cmd.Process.Kill() // by its id; an error says that it has ended
		<-p.done
		p.cmd.Wait()
	})
	return p
}

// read ends, with EIO, when nobody has the other end open.
func (p *attended) read() {
	defer close(p.done)
	buffer := make([]byte, 4096)
	for {
		n, err := p.here.Read(buffer)
		p.mu.Lock()
		p.shown.Write(buffer[:n])
		close(p.news)
		p.news = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *attended) output() (string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String(), p.news
}

// until waits for output that matches.
func (p *attended) until(pattern string) {
	p.t.Helper()
	want, deadline := regexp.MustCompile(pattern), time.After(patience)
	for {
		text, news := p.output()
		if want.MatchString(text) {
			return
		}
		select {
		case <-news:
		case <-p.done:
			if text, _ := p.output(); !want.MatchString(text) {
				p.t.Fatalf("%v ended without %s:\n%q", p.cmd.Args, pattern, text)
			}
			return
		case <-deadline:
			p.t.Fatalf("%v: no %s after %v:\n%q", p.cmd.Args, pattern, patience, text)
		}
	}
}

// types sends what a key sends.
func (p *attended) types(key string) {
	p.t.Helper()
	if _, err := p.here.WriteString(key); err != nil {
		p.t.Fatal(err)
	}
}

// ctrlC is the key that interrupts.
const ctrlC = "\x03"

// ends waits for the end, checks the status, and returns what stands on the screen.
func (p *attended) ends(status int) []string {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines are shown, soon
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
		}
		text, _ := p.output()
		p.t.Fatalf("%v has not ended after %v:\n%s", p.cmd.Args, patience, text)
	}
	text, _ := p.output()
	p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != status || strings.Contains(text, "goroutine ") {
		p.t.Fatalf("%v: exit status %d, want %d:\n%s", p.cmd.Args, got, status, text)
	}
	rows, err := screenOf(text)
	if err != nil {
		p.t.Fatalf("%v: %v:\n%q", p.cmd.Args, err, text)
	}
	return rows
}

// screenOf returns the rows of a terminal that got text, without the blanks at their
// ends. Rows are as long as need be.
func screenOf(text string) (rows []string, err error) {
	var row []rune
	at := 0
	for _, r := range text {
		switch {
		case r == '\r':
			at = 0
		case r == '\n':
			rows, row, at = append(rows, strings.TrimRight(string(row), " ")), row[:0], 0
		case r < ' ' || r == 0x7f:
			return nil, fmt.Errorf("the control character %q", r)
		default:
			if at == len(row) {
				row = append(row, r)
			} else {
				row[at] = r
			}
			at++
		}
	}
	return append(rows, strings.TrimRight(string(row), " ")), nil
}

// inOrder checks that rows match the patterns, one after the other, with any rows
// between them.
func inOrder(rows, patterns []string) error {
	at := 0
	for _, pattern := range patterns {
		want, begin := regexp.MustCompile(pattern), at
		for at < len(rows) && !want.MatchString(rows[at]) {
			at++
		}
		if at == len(rows) {
			return fmt.Errorf("from row %d on none matches %s:\n%s", begin, pattern, strings.Join(rows, "\n"))
		}
		at++
	}
	return nil
}

// What is binary does not go to a terminal; text does, and a file may. A device that
// is no terminal takes anything.
func TestExportToATerminal(t *testing.T) {
	_, there := terminal(t, wide)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, c := range []struct {
		cmd     exportCmd
		refused bool
	}{
		{exportCmd{As: "png"}, true}, {exportCmd{As: "ply", File: "-"}, true}, {exportCmd{As: "ply", ASCII: true}, false},
		{exportCmd{As: "svg"}, false}, {exportCmd{As: "geojson"}, false}, {exportCmd{File: "a.PNG"}, false},
	} {
		c.cmd.Width = 300
		if err := c.cmd.check(there); (err != nil) != c.refused {
			t.Errorf("%+v: %v", c.cmd, err)
		}
		if err := c.cmd.check(&bytes.Buffer{}); err != nil {
			t.Errorf("%+v to a pipe: %v", c.cmd, err)
		}
		if err := c.cmd.check(null); err != nil {
			t.Errorf("%+v to %s: %v", c.cmd, os.DevNull, err)
		}
	}
}
