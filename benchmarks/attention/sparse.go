package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"entropipe/benchmarks/rig"
	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/kv"
	"entropipe/sparse/support"
)

// sparseCmd times attention alone: ours dense, with a layout of all blocks, and
// with a quarter of them; beside PyTorch where a Python is named.
type sparseCmd struct {
	Quick   bool          `help:"Two lengths and short turns."`
	Heads   int           `default:"12" help:"Heads of the sequence (${default})."`
	Dims    []int         `default:"64,32" help:"Numbers of a head, of all (${default})."`
	Lengths []int         `help:"Keys of a sequence (512 to 4096, doubling; with --quick 512, 1024)."`
	Threads []int         `default:"1,2" help:"Numbers of threads, of all (${default})."`
	Block   int           `default:"64" help:"Rows of a block (${default})."`
	Keep    float64       `default:"0.25" help:"Share of the blocks that the layout reads (${default})."`
	Rounds  int           `help:"Turns of each entry in a cell (15; with --quick 3)."`
	Turn    time.Duration `help:"Time of a turn, at least one run (80ms; with --quick 30ms)."`
	Python  string        `env:"ENTROPIPE_TORCH_PYTHON" placeholder:"PATH" help:"Python with torch; else ours alone."`
	Results string        `placeholder:"DIR" help:"Folder of the result (benchmarks/results; --quick: none); -: none."`
	Resume  bool          `help:"Keep the cells that attention-sparse.jsonl has, and measure the others."`
}

// Entries of a cell. The first three are ours.
const (
	kernDense  = "dense"
	kernFull   = "all blocks"
	kernSparse = "sparse"
	peerSDPA   = "SDPA"
	peerFlex   = "FlexAttention"
)

func (c *sparseCmd) defaults() {
	if c.Rounds == 0 {
		c.Rounds = 15
		if c.Quick {
			c.Rounds = 3
		}
	}
	if c.Turn == 0 {
		c.Turn = 80 * time.Millisecond
		if c.Quick {
			c.Turn = 30 * time.Millisecond
		}
	}
	if len(c.Lengths) == 0 {
		c.Lengths = []int{512, 1024, 2048, 4096}
		if c.Quick {
			c.Lengths = []int{512, 1024}
		}
	}
}

// Run is the subcommand.
func (c *sparseCmd) Run(ctx context.Context) error {
	c.defaults()
	if c.Heads < 1 || !slices.Contains([]int{16, 32, 64, 128}, c.Block) || !(c.Keep > 0 && c.Keep <= 1) {
		return fmt.Errorf("heads from 1, blocks of 16, 32, 64 or 128, a share of blocks above 0 and at most 1")
	}
	r, err := c.report()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "entropipe-sparse-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for _, threads := range c.Threads {
		if err := c.measureThreads(ctx, r, folder, threads); err != nil {
			return err
		}
	}
	return r.write(os.Stdout)
}

// measureThreads has one peer for its cells: what it compiles knows the number
// of threads.
func (c *sparseCmd) measureThreads(ctx context.Context, r *sparseReport, folder string, threads int) (err error) {
	var p *sparsePeer
	if c.Python != "" {
		if p, err = startSparsePeer(ctx, c.Python, threads); err != nil {
			return err
		}
		defer p.Close()
	}
	for _, dim := range c.Dims {
		for _, n := range c.Lengths {
			for _, queries := range []int{n, 1} {
				if r.has(dim, n, queries, threads) {
					continue
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				cell := &sparseCell{Dim: dim, Keys: n, Queries: queries, Threads: threads,
					Heads: c.Heads, Block: c.Block, Versions: "no peer", Ns: rig.Times{}}
				if p != nil {
					cell.Versions = p.versions
				}
				at := filepath.Join(folder, fmt.Sprintf("%d-%d-%d", dim, n, queries))
				if err := c.measure(p, cell, at); err != nil {
					return err
				}
				if err := r.add(cell); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *sparseCmd) measure(p *sparsePeer, cell *sparseCell, folder string) error {
	s := newSparseCase(c, cell)
	cell.Kept = s.kept
	entries := s.entries(c.Turn, cell.Threads)
	if p != nil {
		theirs, err := s.peers(p, c.Turn, folder)
		if err != nil {
			return err
		}
		entries = append(entries, theirs...)
	}
	for _, e := range entries { // warms up
		if _, err := e.run(); err != nil {
			return err
		}
	}
	for round := range c.Rounds {
		for i := range entries {
			e := entries[(i+round)%len(entries)]
			ns, err := e.run()
			if err != nil {
				return err
			}
			cell.Ns[e.name] = append(cell.Ns[e.name], ns...)
		}
	}
	return nil
}

// sparseCase is the attention of one sequence, or of its last query.
type sparseCase struct {
	job          kern.Job
	full, sparse *support.Layout
	kept         float64 // share of the blocks
}

// newSparseCase draws queries, keys and values, columns of one matrix as in a
// model.
func newSparseCase(c *sparseCmd, cell *sparseCell) *sparseCase {
	r := rand.New(rand.NewPCG(uint64(cell.Keys), uint64(cell.Dim)))
	n, e := cell.Keys, c.Heads*cell.Dim
	fused := mat.Of(n, 3*e, make([]float32, n*3*e))
	for i := range fused.Data {
		fused.Data[i] = float32(r.NormFloat64())
	}
	s := &sparseCase{job: kern.Job{
		Q: fused.Columns(0, e).Slice(n-cell.Queries, n), K: fused.Columns(e, 2*e), V: fused.Columns(2*e, 3*e),
		Out: mat.Of(cell.Queries, e, make([]float32, cell.Queries*e)), Offset: n - cell.Queries,
		Heads: c.Heads, KVHeads: c.Heads, Dim: cell.Dim, Scale: float32(1 / math.Sqrt(float64(cell.Dim))),
	}}
	s.full = sinkAndWindow(n, c.Block, 1)
	s.sparse = sinkAndWindow(n, c.Block, c.Keep)
	s.kept = 1 - s.sparse.Sparsity(false)
	return s
}

// sinkAndWindow reads the first block and those nearest to the diagonal, keep
// of all.
func sinkAndWindow(n, block int, keep float64) *support.Layout {
	blocks := support.Blocks(n, block)
	want := max(1, int(math.Round(keep*float64(blocks))))
	return support.New(n, block, false, func(r int) []int32 {
		lo := min(max(r-want/2, 0), blocks-want)
		var row []int32
		if lo > 0 {
			row = append(row, 0)
			lo++
		}
		for c := lo; len(row) < want; c++ {
			row = append(row, int32(c))
		}
		return row
	})
}

// entries are ours. One query is attended as in decoding: its key and value are
// written to a cache that holds the others.
func (s *sparseCase) entries(span time.Duration, threads int) []entry {
	of := func(name string, l *support.Layout) entry {
		scratch, jobs, put := new(kern.Scratch), []kern.Job{s.with(l)}, func() {}
		if s.job.Q.Rows == 1 {
			put = s.cached(&jobs[0])
		}
		return entry{name, func() ([]int64, error) {
			var ns []int64
			for begin := time.Now(); len(ns) == 0 || time.Since(begin) < span; {
				start := time.Now()
				put()
				scratch.Attend(jobs, threads)
				ns = append(ns, time.Since(start).Nanoseconds())
			}
			return ns, nil
		}}
	}
	return []entry{of(kernDense, nil), of(kernFull, s.full), of(kernSparse, s.sparse)}
}

// cached has the job read keys and values from a cache. put writes the last of
// them.
func (s *sparseCase) cached(j *kern.Job) (put func()) {
	last := j.K.Rows - 1
	cache := kv.New(new(kv.Pool), kv.Shape{Layers: 1, Heads: j.KVHeads, Dim: j.Dim, Block: func(int, int) int {
		return s.sparse.Block
	}})
	cache.Put(0, 0, j.K.Slice(0, last), j.V.Slice(0, last), last)
	k, v := j.K.Slice(last, last+1), j.V.Slice(last, last+1)
	put = func() { cache.Put(0, last, k, v, last) }
	put()
	j.Paged = cache.Pages(0)
	return put
}

// with is the job with one layout for all heads.
func (s *sparseCase) with(l *support.Layout) kern.Job {
	j := s.job
	if l != nil {
		for range j.KVHeads {
			j.Layouts = append(j.Layouts, l)
		}
	}
	return j
}
