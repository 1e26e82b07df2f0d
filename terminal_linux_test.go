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

	"entropipe/cmd/terminaltest"
)

// wide is the width of a test's terminal: no bar and no message is cut.
const wide = 250

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
	here, there := terminaltest.Open(t, columns)
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
	rows, err := terminaltest.Screen(text)
	if err != nil {
		p.t.Fatalf("%v: %v:\n%q", p.cmd.Args, err, text)
	}
	return rows
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
