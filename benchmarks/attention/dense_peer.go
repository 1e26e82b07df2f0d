package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
)

//go:embed dense_peer.py
var densePeerProgram string

// densePeer is dense_peer.py at work: it makes the models, and runs them when
// it is asked to.
type densePeer struct {
	*rig.Script
	folder   string
	versions string
}

// peerAnswer is what a request to a peer may bring.
type peerAnswer struct {
	Versions string  `json:"versions"`
	Ns       []int64 `json:"ns"`
}

func startDensePeer(ctx context.Context, c *denseCmd, folder string) (*densePeer, error) {
	var hello peerAnswer
	script, err := rig.StartScript(ctx, rig.ScriptSpec{
		Python: c.Python, Name: "dense_peer.py", Text: densePeerProgram,
		Args: []string{folder, strings.Join(c.Models, ","), c.MiniLM},
		Env:  []string{"HF_HUB_OFFLINE=1", "TRANSFORMERS_VERBOSITY=error", "HF_HUB_DISABLE_PROGRESS_BARS=1"},
	}, &hello)
	return &densePeer{script, folder, hello.Versions}, err
}

// turn asks for runs of an engine that take span, at least one.
func (p *densePeer) turn(engine, name string, n, threads int, span time.Duration) ([]int64, error) {
	var a peerAnswer
	err := p.Ask(map[string]any{"engine": engine, "model": name, "n": n, "threads": threads, "span": span.Seconds()},
		&a)
	return a.Ns, err
}

// hidden asks for what an engine computes.
func (p *densePeer) hidden(engine, name string, n int) ([]float32, error) {
	path := filepath.Join(p.folder, "hidden")
	if err := p.Ask(map[string]any{"engine": engine, "model": name, "n": n, "threads": 2, "file": path},
		&peerAnswer{}); err != nil {
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
