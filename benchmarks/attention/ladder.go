package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/sparse/freeze"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/plan"
	"entropipe/sparse/support"
)

// ladderCmd times MiniLM dense, with frozen masks, and with masks and a ladder,
// in turns, and counts the rungs.
type ladderCmd struct {
	Quick    bool      `help:"One cell of few pieces."`
	MiniLM   string    `env:"ENTROPIPE_MINILM" required:"" placeholder:"DIR" help:"The MiniLM checkpoint (${env})."`
	Lengths  []int     `help:"Tokens of a piece (256, 512; with --quick 256)."`
	Select   []string  `default:"window,mass" help:"Selectors of masks (${default})."`
	Sparsity float64   `default:"0.75" help:"Share of the blocks, of 16 tokens, that masks do not read (${default})."`
	Delta    []float64 `default:"0.05,0.1,0.2,0.5" help:"Limits of the ladders (${default})."`
	Pieces   int       `help:"Pieces of WikiText-2 that are read (24; with --quick 3)."`
	Results  string    `placeholder:"DIR" help:"Folder of the result (benchmarks/results; --quick: none); -: none."`
	Resume   bool      `help:"Keep the cells that attention-ladder.jsonl has, and measure the others."`
}

// ladderCell is one mask at one length.
type ladderCell struct {
	Length   int            `json:"length"`
	Select   string         `json:"select"`
	Pieces   int            `json:"pieces,omitempty"`
	Sparsity float64        `json:"sparsity,omitempty"` // share of the blocks that the mask leaves out
	Ways     []ladderResult `json:"ways"`
}

// ladderResult is one way to attend.
type ladderResult struct {
	Way       string  `json:"way"`
	Ns        float64 `json:"ns"`              // mean over the pieces of each piece's fastest run
	Stay      float64 `json:"stay,omitempty"`  // share of rows of heads that read what the mask says
	Summaries float64 `json:"summaries"`       // share that block summaries would have certified
	Worst     float64 `json:"worst,omitempty"` // largest error of a row of a head over 2·B·δ's limit
	Cosine    float64 `json:"cosine"`          // mean, of embeddings to those of dense attention
	ladder    *kern.Ladder
	options   model.Options
}

// Run is the subcommand.
func (c *ladderCmd) Run(ctx context.Context) error {
	pieces, lengths := 24, []int{256, 512}
	if c.Quick {
		pieces, lengths = 3, lengths[:1]
	}
	if c.Pieces == 0 {
		c.Pieces = pieces
	}
	if len(c.Lengths) == 0 {
		c.Lengths = lengths
	}
	var r ladderReport
	if err := r.open("ladder", c.Results, rig.KindOf(c.Quick), resumed(c.Resume)); err != nil {
		return err
	}
	m, err := model.Load(c.MiniLM)
	if err != nil {
		return err
	}
	for _, length := range c.Lengths {
		for _, selector := range c.Select {
			if r.has(func(x *ladderCell) bool { return x.Length == length && x.Select == selector }) {
				continue
			}
			cell, err := c.measure(ctx, m, length, selector)
			if err != nil {
				return err
			}
			var lines strings.Builder
			for _, line := range cell.lines() {
				lines.WriteString(ladderTable.Row(line))
			}
			if err := r.keep(cell, lines.String()); err != nil {
				return err
			}
		}
	}
	return r.publish(os.Stdout, r.markdown())
}

// measure freezes a mask on some pieces and reads others in all ways.
func (c *ladderCmd) measure(ctx context.Context, m *model.Model, length int, selector string) (*ladderCell, error) {
	const calibrate = 12
	pieces, err := wikiPieces(c.MiniLM, length, calibrate+c.Pieces)
	if err != nil {
		return nil, err
	}
	if len(pieces) <= calibrate {
		return nil, errors.New("the texts are too short")
	}
	set, err := freeze.Freeze(ctx, m, freeze.Inputs{Sequences: pieces[:calibrate]},
		freeze.Options{Select: selector, Sparsity: c.Sparsity, Block: 16,
			Buckets: []int{length}, Seed: 1, Mode: support.Static, Workers: 1})
	if err != nil {
		return nil, err
	}
	planner, err := plan.New(set, plan.Facts{Facts: freeze.Facts(m), Always: true})
	if err != nil {
		return nil, err
	}
	cell := &ladderCell{Length: length, Select: selector, Pieces: c.Pieces, Sparsity: c.Sparsity,
		Ways: []ladderResult{{Way: "dense"}, {Way: "mask", options: model.Options{Plan: planner.For}}}}
	for _, d := range c.Delta {
		l := &kern.Ladder{Delta: d}
		cell.Ways = append(cell.Ways, ladderResult{Way: fmt.Sprintf("ladder %g", d), ladder: l,
			options: model.Options{Plan: planner.For, Ladder: l}})
	}
	return cell, cell.read(ctx, m.NewSession(1), m, pieces[calibrate:])
}

// read reads the pieces three times in turns of all ways.
func (x *ladderCell) read(ctx context.Context, s *model.Session, m *model.Model, pieces [][]int32) error {
	const rounds = 3
	wide := m.Config().Hidden
	dense, got := make([]float32, wide), make([]float32, wide)
	for _, ids := range pieces {
		least := make([]time.Duration, len(x.Ways))
		for round := range rounds {
			for i := range x.Ways {
				if err := ctx.Err(); err != nil {
					return err
				}
				w := &x.Ways[(i+round)%len(x.Ways)]
				if round == 0 {
					w = &x.Ways[i] // dense first: the others are compared with it
				}
				begin := time.Now()
				hidden, err := s.Hidden(model.Batch{IDs: ids, Starts: []int32{0, int32(len(ids))}}, w.options)
				if err != nil {
					return err
				}
				at := slices.IndexFunc(x.Ways, func(o ladderResult) bool { return o.Way == w.Way })
				if took := time.Since(begin); round == 0 || took < least[at] {
					least[at] = took
				}
				if round > 0 {
					continue
				}
				s.Pool(got, hidden, m.Pooling())
				if i == 0 {
					copy(dense, got)
				}
				w.Cosine += cosine(got, dense) / float64(len(pieces))
				if r := s.Rungs()[0]; r.Rows > 0 {
					w.Stay += (1 - float64(r.Dense+r.Extended)/float64(r.Rows)) / float64(len(pieces))
				}
			}
		}
		for i := range x.Ways {
			x.Ways[i].Ns += float64(least[i].Nanoseconds()) / float64(len(pieces))
		}
	}
	return x.certify(s, pieces[0])
}

// certify compares every layer of a piece with dense attention, head by head, and
// asks for some rows what summaries of blocks know.
func (x *ladderCell) certify(s *model.Session, ids []int32) error {
	const every = 16
	var scratch kern.Scratch
	for i := range x.Ways {
		w := &x.Ways[i]
		if w.ladder == nil {
			continue
		}
		certified, asked := 0, 0
		o := w.options
		o.Hook = func(_, _ int, j *kern.Job) {
			for _, stat := range scratch.Audit(nil, j, w.ladder, 1) {
				if stat.Bound > 0 {
					w.Worst = max(w.Worst, stat.Error/stat.Bound)
				}
				c := kern.NewCertifier(j, stat.Head, 16)
				for row := stat.Head % every; row < j.Q.Rows; row += every {
					asked++
					if c.Certify(row).Upper <= w.ladder.Delta {
						certified++
					}
				}
			}
		}
		if _, err := s.Hidden(model.Batch{IDs: ids, Starts: []int32{0, int32(len(ids))}}, o); err != nil {
			return err
		}
		w.Summaries = float64(certified) / float64(asked)
	}
	return nil
}
