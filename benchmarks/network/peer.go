package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

//go:embed peer.py
var peerProgram string

//go:embed requirements.txt
var requirements string

// peer is peer.py at work with one number of threads.
type peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// answer is what a request may bring.
type answer struct {
	Version string    `json:"version"`
	Ns      []int64   `json:"ns"`
	F       []float64 `json:"f"`
	Error   string    `json:"error"`
}

func startPeer(ctx context.Context, python string, threads int) (*peer, string, error) {
	n := fmt.Sprint(threads)
	cmd := exec.CommandContext(ctx, python, "-c", peerProgram, n)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS="+n, "MKL_NUM_THREADS="+n)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	p := &peer{cmd, in, bufio.NewReader(out)}
	hello, err := p.read()
	return p, hello.Version, err
}

// ask sends a request and waits for its answer.
func (p *peer) ask(request map[string]any) (answer, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return answer{}, err
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return answer{}, err
	}
	return p.read()
}

func (p *peer) read() (answer, error) {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return answer{}, fmt.Errorf("peer.py ended: %w", err)
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("%q is no answer: %w", line, err)
	}
	if a.Error != "" {
		return a, errors.New("peer.py: " + a.Error)
	}
	return a, nil
}

func (p *peer) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }
