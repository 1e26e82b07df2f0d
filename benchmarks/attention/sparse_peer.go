package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

//go:embed sparse_peer.py
var sparsePeerProgram string

// sparsePeer is sparse_peer.py at work.
type sparsePeer struct {
	*rig.Script
	versions string
}

func startSparsePeer(ctx context.Context, python string, threads int) (*sparsePeer, error) {
	var hello peerAnswer
	script, err := rig.StartScript(ctx, rig.ScriptSpec{
		Python: python, Name: "sparse_peer.py", Text: sparsePeerProgram, Args: []string{strconv.Itoa(threads)},
	}, &hello)
	return &sparsePeer{script, hello.Versions}, err
}

// peers writes the case for the peer, holds its results against ours and
// returns its entries. FlexAttention has no case of a single query.
func (s *sparseCase) peers(p *sparsePeer, span time.Duration, folder string) ([]entry, error) {
	if err := s.save(folder); err != nil {
		return nil, err
	}
	j := &s.job
	if err := p.Ask(map[string]any{"do": "load", "folder": folder, "heads": j.Heads, "rows": j.K.Rows, "dim": j.Dim},
		&peerAnswer{}); err != nil {
		return nil, err
	}
	engines := []struct {
		name, engine string
		layout       *support.Layout
	}{{peerSDPA, "sdpa", nil}, {peerFlex, "flex", s.sparse}}
	if j.Q.Rows == 1 {
		engines = engines[:1]
	}
	var entries []entry
	for _, e := range engines {
		if err := s.same(p, e.engine, e.layout, folder); err != nil {
			return nil, err
		}
		entries = append(entries, entry{e.name, func() ([]int64, error) {
			var a peerAnswer
			err := p.Ask(map[string]any{"do": "turn", "folder": folder, "engine": e.engine, "span": span.Seconds()}, &a)
			return a.Ns, err
		}})
	}
	return entries, nil
}

// same says how far the peer's result is from ours, where that is too far.
func (s *sparseCase) same(p *sparsePeer, engine string, l *support.Layout, folder string) error {
	path := filepath.Join(folder, "out")
	if err := p.Ask(map[string]any{"do": "result", "folder": folder, "engine": engine, "file": path},
		&peerAnswer{}); err != nil {
		return err
	}
	want, err := readFloats(path)
	if err != nil {
		return err
	}
	j := s.with(l)
	new(kern.Scratch).Attend([]kern.Job{j}, 2)
	got := byHead(j.Out, j.Heads)
	if len(want) != len(got) {
		return fmt.Errorf("%s gives %d numbers, want %d", engine, len(want), len(got))
	}
	for i, x := range got {
		if !(math.Abs(float64(x-want[i])) <= 1e-5) {
			return fmt.Errorf("%s gives %g where we have %g", engine, want[i], x)
		}
	}
	return nil
}

// save writes q, k and v by heads, and the layout of a whole sequence.
func (s *sparseCase) save(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for name, m := range map[string]mat.Matrix{"q": s.job.Q, "k": s.job.K, "v": s.job.V} {
		f, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		if err := errors.Join(binary.Write(f, binary.LittleEndian, byHead(m, s.job.Heads)), f.Close()); err != nil {
			return err
		}
	}
	if s.job.Q.Rows == 1 {
		return nil
	}
	text, err := json.Marshal(map[string]any{"block": s.sparse.Block, "row_ptr": s.sparse.RowPtr, "col": s.sparse.Col})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "layout.json"), text, 0o666)
}

// byHead returns [rows][heads*dim] as [heads][rows][dim].
func byHead(m mat.Matrix, heads int) []float32 {
	dim := m.Cols / heads
	v := make([]float32, 0, m.Rows*m.Cols)
	for h := range heads {
		for i := range m.Rows {
			v = append(v, m.Row(i)[h*dim:(h+1)*dim]...)
		}
	}
	return v
}

func readFloats(path string) ([]float32, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v := make([]float32, len(data)/4)
	_, err = binary.Decode(data, binary.LittleEndian, v)
	return v, err
}
