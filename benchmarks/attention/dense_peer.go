package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed dense_peer.py
var densePeerProgram string

// densePeer is dense_peer.py at work: it makes the models, and runs them when
// it is asked to.
type densePeer struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
	folder   string
	versions string
}

type denseAnswer struct {
	Versions string  `json:"versions"`
	Ns       []int64 `json:"ns"`
	Error    string  `json:"error"`
}

func startDensePeer(ctx context.Context, c *denseCmd, folder string) (*densePeer, error) {
	cmd := exec.CommandContext(ctx, c.Python, "-c", densePeerProgram, folder, strings.Join(c.Models, ","), c.MiniLM)
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "TRANSFORMERS_VERBOSITY=error", "HF_HUB_DISABLE_PROGRESS_BARS=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &densePeer{cmd: cmd, in: in, out: bufio.NewReader(out), folder: folder}
	hello, err := p.read()
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.versions = hello.Versions
	return p, nil
}

// turn asks for runs of an engine that take span, at least one.
func (p *densePeer) turn(engine, name string, n, threads int, span time.Duration) ([]int64, error) {
	a, err := p.ask(map[string]any{"engine": engine, "model": name, "n": n, "threads": threads, "span": span.Seconds()})
	return a.Ns, err
}

// hidden asks for what an engine computes.
func (p *densePeer) hidden(engine, name string, n int) ([]float32, error) {
	path := filepath.Join(p.folder, "hidden")
	if _, err := p.ask(map[string]any{"engine": engine, "model": name, "n": n, "threads": 2, "file": path}); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v := make([]float32, len(data)/4)
	_, err = binary.Decode(data, binary.LittleEndian, v)
	return v, err
}

func (p *densePeer) ask(request map[string]any) (denseAnswer, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return denseAnswer{}, err
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return denseAnswer{}, err
	}
	return p.read()
}

func (p *densePeer) read() (denseAnswer, error) {
	var a denseAnswer
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return a, fmt.Errorf("dense_peer.py ended: %w", err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("%q is no answer: %w", line, err)
	}
	if a.Error != "" {
		return a, errors.New("dense_peer.py: " + a.Error)
	}
	return a, nil
}

func (p *densePeer) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }
