package main

import (
	"context"
	_ "embed"
	"fmt"

	"entropipe/benchmarks/rig"
)

//go:embed peer.py
var peerProgram string

//go:embed requirements.txt
var requirements string

// answer is what a request to peer.py may bring.
type answer struct {
	Version string    `json:"version"`
	Ns      []int64   `json:"ns"`
	F       []float64 `json:"f"`
}

// peer is peer.py at work with one number of threads.
type peer struct{ *rig.Script }

func startPeer(ctx context.Context, python string, threads int) (*peer, string, error) {
	var hello answer
	n := fmt.Sprint(threads)
	script, err := rig.StartScript(ctx, rig.ScriptSpec{
		Python: python, Name: "peer.py", Text: peerProgram, Args: []string{n},
		Env: []string{"OMP_NUM_THREADS=" + n, "MKL_NUM_THREADS=" + n},
	}, &hello)
	return &peer{script}, hello.Version, err
}

// ask sends a request and waits for its answer.
func (p *peer) ask(request map[string]any) (a answer, err error) {
	err = p.Ask(request, &a)
	return a, err
}
