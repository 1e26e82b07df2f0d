package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// The protocol. A program says what it is in one line of JSON,
//
//	{"peer": NAME, "version": TEXT, "ops": [OP, ...]}
//
// where an op is an operation, or operation:variant. Then it answers each line
// of its standard input with one line of JSON, until that ends:
//
//	load DIMS PATH   {"points": N}    read float64 coordinates, point by point, little-endian
//	run OP TIMES     {"ns": [...], "count": N}   vertices, maxima or triangles found
//	save OP PATH     {"form": FORM}   write the last result of OP
//
// or with {"error": TEXT}. Reading and converting are not timed. Forms:
// "vertices" and "triangles" are int32 indices, "points" are coordinates of
// vertices in float64, "count" is nothing: the library gives no more.

// hello is a program's first line.
type hello struct {
	Peer    string   `json:"peer"`
	Version string   `json:"version"`
	Ops     []string `json:"ops"`
}

// reply is an answer to any request.
type reply struct {
	Points int     `json:"points"`
	Ns     []int64 `json:"ns"`
	Count  int     `json:"count"`
	Form   string  `json:"form"`
	Error  string  `json:"error"`
}

// process is a peer's program. After a request that fails by taking too long
// it is gone, and the next load starts it anew.
type process struct {
	command []string
	limit   time.Duration // longest time of a request

	hello hello
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []byte // lines of its standard output; closed at its end
}

// errTooLong says that a request was given up.
var errTooLong = errors.New("took too long")

func (p *process) name() string    { return p.hello.Peer }
func (p *process) version() string { return p.hello.Version }
func (p *process) ops() []string   { return p.hello.Ops }

// start starts the program and reads what it is.
func (p *process) start(ctx context.Context) error {
	p.cmd = exec.Command(p.command[0], p.command[1:]...)
	p.cmd.Env = append(p.cmd.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.in, p.lines = in, make(chan []byte, 1)
	go func(lines chan<- []byte) {
		defer close(lines)
		s := bufio.NewScanner(out)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			lines <- append([]byte(nil), s.Bytes()...)
		}
	}(p.lines)
	line, err := p.line(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(line, &p.hello)
}

// line waits for a line. Without one in time, or at the program's end, the
// program is gone.
func (p *process) line(ctx context.Context) ([]byte, error) {
	timer := time.NewTimer(p.limit)
	defer timer.Stop()
	select {
	case line, ok := <-p.lines:
		if ok {
			return line, nil
		}
		err := p.cmd.Wait()
		p.cmd = nil
		return nil, fmt.Errorf("%s ended: %w", p.command[0], errors.Join(err, io.ErrUnexpectedEOF))
	case <-timer.C:
		p.close()
		return nil, fmt.Errorf("%w: more than %v", errTooLong, p.limit)
	case <-ctx.Done():
		p.close()
		return nil, context.Cause(ctx)
	}
}

// close ends the program.
func (p *process) close() {
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Kill() // fails only when it has ended
	for range p.lines {  // until its end
	}
	p.cmd.Wait() // it was killed
	p.cmd = nil
}

// ask sends a request and returns the answer.
func (p *process) ask(ctx context.Context, request string) (reply, error) {
	var r reply
	if p.cmd == nil {
		return r, errors.New("not running")
	}
	if _, err := io.WriteString(p.in, request+"\n"); err != nil {
		p.close()
		return r, err
	}
	line, err := p.line(ctx)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(line, &r); err != nil {
		p.close()
		return r, fmt.Errorf("%q is no answer: %w", line, err)
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

func (p *process) load(ctx context.Context, in *cloudFile) error {
	if p.cmd == nil {
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	r, err := p.ask(ctx, fmt.Sprintf("load %d %s", in.dims, in.path))
	if err == nil && r.Points != in.cloud.Len() {
		return fmt.Errorf("read %d points of %d", r.Points, in.cloud.Len())
	}
	return err
}

func (p *process) run(ctx context.Context, op string, times int) ([]int64, int, error) {
	r, err := p.ask(ctx, fmt.Sprintf("run %s %d", op, times))
	if err == nil && len(r.Ns) != times {
		return nil, 0, fmt.Errorf("%d times of %d", len(r.Ns), times)
	}
	return r.Ns, r.Count, err
}

func (p *process) save(ctx context.Context, op, path string) (found, error) {
	r, err := p.ask(ctx, "save "+op+" "+path)
	if err != nil {
		return found{}, err
	}
	return readFound(r.Form, path)
}
