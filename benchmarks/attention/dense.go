package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
	"entropipe/sparse/support"
)

// denseCmd times stacks of encoder layers, one sequence at a time, from ids to
// the last hidden state: embeddings, biases, norms and GELU included.
//
// Words: a cell is a model, a length and a number of threads; an entry is one
// way to compute it; a turn is a few runs of one entry, and the entries of a
// cell take turns.
type denseCmd struct {
	Quick   bool          `help:"Four lengths and short turns, less than two minutes."`
	Models  []string      `default:"minilm,bert" help:"minilm: 6 layers of 384; bert: 4 of 768 (${default})."`
	Lengths []int         `help:"Tokens of a sequence (32 to 4096, doubling; with --quick 32, 128, 512, 1024)."`
	Threads []int         `default:"1,2" help:"Numbers of threads, of all (${default})."`
	Rounds  int           `help:"Turns in a cell (15; --quick: 3; at most 7 from 1024 tokens, 3 from 2048)."`
	Turn    time.Duration `help:"Time of a turn, at least one run (150ms; with --quick 60ms)."`
	Python  string        `env:"ENTROPIPE_TORCH_PYTHON" placeholder:"PATH" help:"Python with torch and onnxruntime."`
	MiniLM  string        `env:"ENTROPIPE_MINILM" placeholder:"DIR" help:"MiniLM checkpoint; else random weights."`
	Results string        `placeholder:"DIR" help:"Folder of the result (benchmarks/results; --quick: none); -: none."`
	Resume  bool          `help:"Keep the cells that attention-dense.jsonl has, and measure the others."`
}

const (
	ours    = "entropipe"
	onnx    = "ONNX Runtime"
	torch   = "PyTorch"
	sparse  = "entropipe, 75 % sparse"
	maxRows = 4096
)

// from here on a sparse entry is measured beside the dense ones.
const sparseFrom = 512

func (c *denseCmd) defaults() {
	if c.Rounds == 0 {
		c.Rounds = 15
		if c.Quick {
			c.Rounds = 3
		}
	}
	if c.Turn == 0 {
		c.Turn = 150 * time.Millisecond
		if c.Quick {
			c.Turn = 60 * time.Millisecond
		}
	}
	if len(c.Lengths) == 0 {
		c.Lengths = []int{32, 64, 128, 256, 512, 1024, 2048, 4096}
		if c.Quick {
			c.Lengths = []int{32, 128, 512, 1024}
		}
	}
}

// Run is the subcommand.
func (c *denseCmd) Run(ctx context.Context) error {
	c.defaults()
	if c.Python == "" {
		return errors.New("name a Python that has torch, transformers, onnx and onnxruntime: --python or " +
			"ENTROPIPE_TORCH_PYTHON")
	}
	if slices.Max(c.Lengths) > maxRows || slices.Min(c.Lengths) < 1 {
		return fmt.Errorf("lengths are from 1 to %d", maxRows)
	}
	r, err := c.report()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "entropipe-dense-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	p, err := startDensePeer(ctx, c, folder)
	if err != nil {
		return err
	}
	defer p.Close()
	for _, name := range c.Models {
		m, err := model.Load(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		if err := c.measureModel(ctx, p, m, name, r); err != nil {
			return err
		}
	}
	return r.write(os.Stdout)
}

func (c *denseCmd) measureModel(ctx context.Context, p *densePeer, m *model.Model, name string, r *denseReport) error {
	for _, n := range c.Lengths {
		if err := checkSame(p, m, name, n); err != nil {
			return err
		}
		for _, threads := range c.Threads {
			if r.has(name, n, threads) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			cell, err := c.measure(p, m, name, n, threads)
			if err != nil {
				return err
			}
			if err := r.add(cell); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure lets the entries of a cell take turns. Who begins changes from round
// to round.
func (c *denseCmd) measure(p *densePeer, m *model.Model, name string, n, threads int) (*denseCell, error) {
	cell := &denseCell{Model: name, Tokens: n, Threads: threads, Versions: p.versions,
		Weights: trainedWeights, Ns: rig.Times{}}
	if c.MiniLM == "" {
		cell.Weights = randomWeights
	}
	session := m.NewSession(threads)
	batch := sequence(n)
	run := func(o model.Options) func() ([]int64, error) {
		return func() ([]int64, error) { return turn(c.Turn, session, batch, o) }
	}
	entries := []entry{
		{ours, run(model.Options{})},
		{onnx, func() ([]int64, error) { return p.turn("ort", name, n, threads, c.Turn) }},
		{torch, func() ([]int64, error) { return p.turn("torch", name, n, threads, c.Turn) }},
	}
	if n >= sparseFrom {
		forced := window(m, n)
		entries = append(entries, entry{sparse, run(model.Options{Plan: func(int) *plan.Plan { return forced }})})
	}
	for _, e := range entries { // warms up
		if _, err := e.run(); err != nil {
			return nil, err
		}
	}
	for round := range c.rounds(n) {
		for i := range entries {
			e := entries[(i+round)%len(entries)]
			ns, err := e.run()
			if err != nil {
				return nil, err
			}
			cell.Ns[e.name] = append(cell.Ns[e.name], ns...)
		}
	}
	return cell, nil
}

// rounds are fewer where a run takes seconds.
func (c *denseCmd) rounds(n int) int {
	switch {
	case n >= 2048:
		return min(c.Rounds, 3)
	case n >= 1024:
		return min(c.Rounds, 7)
	}
	return c.Rounds
}

type entry struct {
	name string
	run  func() ([]int64, error)
}

// turn runs our model for some time, at least once.
func turn(span time.Duration, s *model.Session, b model.Batch, o model.Options) ([]int64, error) {
	var ns []int64
	for begin := time.Now(); len(ns) == 0 || time.Since(begin) < span; {
		start := time.Now()
		if _, err := s.Hidden(b, o); err != nil {
			return nil, err
		}
		ns = append(ns, time.Since(start).Nanoseconds())
	}
	return ns, nil
}

// sequence returns n ids, as the peer makes them.
func sequence(n int) model.Batch {
	b := model.Batch{IDs: make([]int32, n), Starts: []int32{0, int32(n)}}
	for i := range b.IDs {
		b.IDs[i] = int32(1000 + i*7919%900)
	}
	return b
}

// window is a plan in which every head reads windowLayout.
func window(m *model.Model, n int) *plan.Plan {
	l, p := windowLayout(n), &plan.Plan{}
	for range m.Config().Layers {
		heads := make([]*support.Layout, m.Config().KVHeads)
		for h := range heads {
			heads[h] = l
		}
		p.Layouts = append(p.Layouts, heads)
	}
	return p
}

// windowLayout keeps a quarter of the blocks: in each row the first block and
// those nearest to the diagonal.
func windowLayout(n int) *support.Layout {
	const block = 64
	blocks := support.Blocks(n, block)
	keep := max(1, blocks/4)
	return support.New(n, block, false, func(r int) []int32 {
		var row []int32
		lo := min(max(r-keep/2, 0), blocks-keep)
		if lo > 0 && keep > 1 {
			row = append(row, 0)
			lo = min(max(r-keep/2+1, 1), blocks-keep+1)
		}
		for c := lo; len(row) < keep; c++ {
			row = append(row, int32(c))
		}
		return row
	})
}

// tolerance is how far the hidden states of two engines may be apart; they are
// normalised, so about 1 in size.
const tolerance = 2e-4

// checkSame compares what all engines compute, with two workers.
func checkSame(p *densePeer, m *model.Model, name string, n int) error {
	hidden, err := m.NewSession(2).Hidden(sequence(n), model.Options{})
	if err != nil {
		return err
	}
	for _, engine := range []string{"ort", "torch"} {
		want, err := p.hidden(engine, name, n)
		if err != nil {
			return err
		}
		if off := farthest(hidden, want); !(off <= tolerance) {
			return fmt.Errorf("%s, %d tokens: our hidden states and those of %s are %g apart", name, n, engine, off)
		}
	}
	return nil
}

func farthest(m mat.Matrix, want []float32) float64 {
	if len(want) != m.Rows*m.Cols {
		return math.NaN()
	}
	off := 0.0
	for i := range m.Rows {
		for j, x := range m.Row(i) {
			off = max(off, math.Abs(float64(x-want[i*m.Cols+j])))
		}
	}
	return off
}
