package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Spec says what to start.
type Spec struct {
	Path string
	Args []string
	Env  []string // beside those of this process
	Dir  string   // working directory; empty: that of this process
	Log  string   // file that stderr is appended to; empty: none is kept but its last lines
}

// Process is a child. Its methods may be called concurrently.
type Process struct {
	cmd     *exec.Cmd
	started time.Time
	stdout  bytes.Buffer // complete once done is closed
	log     string
	temp    bool // log is ours to remove
	done    chan struct{}
	exit    Exit
}

// Exit is how a process ended and what it cost.
type Exit struct {
	Status int            // exit status; -1 after a signal
	Signal syscall.Signal // signal that ended the process; 0: it returned
	Wall   time.Duration  // from start to end
	CPU    time.Duration  // user and system time, of all its threads
	MaxRSS int64          // largest resident set, bytes
}

// Start starts a process. It is ended by Kill, by a signal, or by itself; the
// caller waits for it in each case.
func Start(s Spec) (*Process, error) {
	p := &Process{cmd: exec.Command(s.Path, s.Args...), log: s.Log, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.SysProcAttr = s.Dir, &p.stdout, attributes()
	p.cmd.WaitDelay = 5 * time.Second // a grandchild may hold stdout open
	p.cmd.Env = append(os.Environ(), s.Env...)
	stderr, err := p.openLog()
	if err != nil {
		return nil, err
	}
	defer stderr.Close() // the child has its own descriptor
	p.cmd.Stderr = stderr
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	go p.wait()
	return p, nil
}

func (p *Process) openLog() (f *os.File, err error) {
	if p.log == "" {
		f, err = os.CreateTemp("", "entropipe-stderr-")
		if err == nil {
			p.log, p.temp = f.Name(), true
		}
		return f, err
	}
	return os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
}

func (p *Process) wait() {
	p.cmd.Wait() // its error says no more than ProcessState
	p.exit.Wall = time.Since(p.started)
	st := p.cmd.ProcessState
	p.exit.Status, p.exit.CPU = st.ExitCode(), st.UserTime()+st.SystemTime()
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		p.exit.Signal = ws.Signal()
	}
	p.exit.MaxRSS = maxRSS(st)
	close(p.done)
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends sig, and does nothing when the process has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Kill ends the process with kill -9, frozen or not, and waits until it is gone.
func (p *Process) Kill() Exit {
	p.cmd.Process.Kill() // fails only when it has ended
	<-p.done
	p.forget()
	return p.exit
}

// Wait waits for the end of the process. When ctx ends first it is killed, and
// the error says so. A status other than 0 is an error that quotes the last
// lines of stderr.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		tail := p.Tail(10)
		return p.Kill(), fmt.Errorf("%s: not ended in time (%w), killed; the last it logged:\n%s", p.name(),
			context.Cause(ctx), tail)
	}
	defer p.forget()
	if p.exit.Status != 0 {
		return p.exit, fmt.Errorf("%s: %s; the last it logged:\n%s", p.name(), p.cmd.ProcessState, p.Tail(10))
	}
	return p.exit, nil
}

func (p *Process) name() string {
	name := filepath.Base(p.cmd.Path)
	if len(p.cmd.Args) > 1 {
		name += " " + p.cmd.Args[1]
	}
	return name
}

// Stop asks the process to end (SIGTERM) and waits at most grace for it; then,
// or with a status other than 0, it is an error.
func (p *Process) Stop(grace time.Duration) (Exit, error) {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return Exit{}, err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), grace, fmt.Errorf("%v after SIGTERM", grace))
	defer cancel()
	return p.Wait(ctx)
}

// Output returns what the process wrote to stdout. It is called after its end.
func (p *Process) Output() string { return p.stdout.String() }

// Tail returns the last n lines of stderr.
func (p *Process) Tail(n int) string {
	const most = 64 << 10
	f, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > most {
		f.Seek(-most, io.SeekEnd) // a file always can
	}
	b, _ := io.ReadAll(f)
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (p *Process) forget() {
	if p.temp {
		os.Remove(p.log)
	}
}

// Run starts a process and waits for its end; it returns what it wrote to
// stdout.
func Run(ctx context.Context, s Spec) (Exit, string, error) {
	p, err := Start(s)
	if err != nil {
		return Exit{}, "", err
	}
	exit, err := p.Wait(ctx)
	return exit, p.Output(), err
}

// Run runs the program to its end.
func (p Program) Run(ctx context.Context, args ...string) (Exit, string, error) {
	return Run(ctx, Spec{Path: p.Path, Args: args})
}
