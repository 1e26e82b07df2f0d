package model

import (
	"sort"

	"entropipe/models/mat"
	"entropipe/sparse/hf"
	"entropipe/sparse/kern"
	"entropipe/sparse/kv"
	"entropipe/sparse/plan"
)

// Session is the memory of one caller: one goroutine at a time. It grows to the
// largest batch, (hidden + 2·heads' width + 2·key heads' width)·4 bytes a token,
// to a tile's rows of the MLP for every worker, and to the pages of Generate.
type Session struct {
	m       *Model
	workers int

	x, qkv, ctx []float32    // rows of the batch
	memory      []tileMemory // of each worker
	attention   kern.Scratch
	jobs        []kern.Job
	plans       []*plan.Plan
	rungs       []kern.Rungs // of each sequence
	ids         []int32      // of the batch's rows, a view
	starts      []int32      // of the rows of each sequence
	offsets     []int32      // position of each sequence's first row; nil: zeros
	cos, sin    mat.Matrix
	sum         []float64

	pool           kv.Pool // of Generate
	picked, logits []float32
}

// tileMemory is what a tile needs between two attentions.
type tileMemory struct{ norm, up, gate []float32 }

// NewSession returns a session whose calls use up to workers goroutines.
func (m *Model) NewSession(workers int) *Session {
	if workers < 1 {
		panic(badWorkers)
	}
	return &Session{m: m, workers: workers, memory: make([]tileMemory, workers)}
}

// Options change how a batch is computed. The zero value is dense attention.
type Options struct {
	// Plan returns what a sequence of n tokens attends to; nil is dense.
	Plan func(n int) *plan.Plan
	// Hook is called before the attention of each layer and sequence, with
	// queries and keys as they are attended. It may change the job's Layouts, and
	// keeps nothing.
	Hook func(layer, sequence int, j *kern.Job)
	// Attend computes the jobs of a layer, as kern.Scratch.Attend does, which nil
	// stands for; several sessions may call it at once. Not used by Generate.
	Attend func(jobs []kern.Job, workers int)
	// Ladder lets rows of an encoder read more than their layouts say; nil: none
	// does. Not beside Attend.
	Ladder *kern.Ladder
}

// Hidden returns the last hidden state [tokens][hidden] of a batch, after the
// model's last norm: a view until the next call. A sequence that the model
// cannot take is an *InputError, and nothing has been computed. An empty batch
// has no rows.
func (s *Session) Hidden(b Batch, o Options) (mat.Matrix, error) {
	if s.m.config.Arch == hf.ViT {
		panic(badClass)
	}
	if err := b.check(s.m.config, 0); err != nil {
		return mat.Matrix{}, err
	}
	s.begin(b.IDs, b.Starts, nil, o)
	s.run(o, s.attend)
	return s.rows(), nil
}

// Rungs returns what Options.Ladder did with the rows of each sequence of the
// last batch, of all layers and heads: a view until the next call. Without a
// ladder they are zero.
func (s *Session) Rungs() []kern.Rungs { return s.rungs }

// begin sets up the rows of a batch; ids are nil where they are images, whose
// rows the caller fills.
func (s *Session) begin(ids, starts, offsets []int32, o Options) {
	if o.Ladder != nil && (s.m.config.Causal || o.Attend != nil) {
		panic(badLadder)
	}
	s.ids, s.starts, s.offsets = ids, append(s.starts[:0], starts...), offsets
	n := 0
	if len(starts) > 0 {
		n = int(starts[len(starts)-1])
	}
	c := s.m.config
	s.x = grow(s.x, n*c.Hidden)
	s.qkv = grow(s.qkv, n*s.qkvWidth())
	s.ctx = grow(s.ctx, n*c.Heads*c.Dim)
	s.plans = s.plans[:0]
	s.rungs = grow(s.rungs, max(len(starts)-1, 0))
	clear(s.rungs)
	for i := range max(len(starts)-1, 0) {
		var p *plan.Plan
		if o.Plan != nil {
			p = o.Plan(int(starts[i+1] - starts[i]))
		}
		s.plans = append(s.plans, p)
	}
}

func (s *Session) qkvWidth() int {
	return (s.m.config.Heads + 2*s.m.config.KVHeads) * s.m.config.Dim
}

// grow returns a slice of n numbers, v's memory if it is large enough; what it
// holds is of no meaning.
func grow[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	return v[:n]
}

// rows are the hidden states of the batch.
func (s *Session) rows() mat.Matrix {
	return mat.Of(len(s.x)/s.m.config.Hidden, s.m.config.Hidden, s.x)
}

// embed fills rows lo to hi-1 of the batch from the tables.
func (s *Session) embed(lo, hi int) {
	x, at := s.rows(), s.sequence(lo)
	for r := lo; r < hi; r++ {
		for int(s.starts[at+1]) <= r {
			at++
		}
		word := s.m.word(s.ids[r], x.Row(r))
		if s.m.positions.Rows == 0 {
			copy(x.Row(r), word.Row(0))
			continue
		}
		position := s.offset(at) + r - int(s.starts[at])
		mat.Affine(x.Slice(r, r+1), word, s.m.ones, s.m.positions.Row(position))
	}
}

// word returns the embedding of a token: a row of the table, or dst, where the
// output matrix is the only copy.
func (m *Model) word(id int32, dst []float32) mat.Matrix {
	if m.words.Rows > 0 {
		return m.words.Slice(int(id), int(id)+1)
	}
	m.head.w.Column(dst, int(id))
	return mat.Of(1, len(dst), dst)
}

// sequence returns the one that a row of the batch belongs to.
func (s *Session) sequence(row int) int {
	return sort.Search(len(s.starts)-1, func(i int) bool { return int(s.starts[i+1]) > row })
}

// offset is the position of the first row of sequence i.
func (s *Session) offset(i int) int {
	if s.offsets == nil {
		return 0
	}
	return int(s.offsets[i])
}

// attend computes the attention of a layer within each sequence.
func (s *Session) attend(layer int, o Options) {
	c := s.m.config
	q, kv := c.Heads*c.Dim, c.KVHeads*c.Dim
	n := len(s.x) / c.Hidden
	qkv, ctx := mat.Of(n, q+2*kv, s.qkv), mat.Of(n, q, s.ctx)
	s.jobs = s.jobs[:0]
	for i := range max(len(s.starts)-1, 0) {
		lo, hi := int(s.starts[i]), int(s.starts[i+1])
		rows := qkv.Slice(lo, hi)
		j := kern.Job{
			Q: rows.Columns(0, q), K: rows.Columns(q, q+kv), V: rows.Columns(q+kv, q+2*kv), Out: ctx.Slice(lo, hi),
			Heads: c.Heads, KVHeads: c.KVHeads, Dim: c.Dim, Scale: s.m.scale(layer), Causal: c.Causal,
		}
		if p := s.plans[i]; p != nil && len(p.Layouts) > 0 {
			j.Layouts = p.Layouts[layer]
		}
		s.jobs = append(s.jobs, j)
	}
	if o.Hook != nil {
		for i := range s.jobs {
			o.Hook(layer, i, &s.jobs[i])
		}
	}
	switch {
	case o.Ladder != nil:
		s.attention.AttendWithin(s.jobs, *o.Ladder, s.rungs, s.workers)
	case o.Attend != nil:
		o.Attend(s.jobs, s.workers)
	default:
		s.attention.Attend(s.jobs, s.workers)
	}
}

func (m *Model) scale(layer int) float32 {
	if m.config.ScaleByLayer {
		return m.config.Scale / float32(layer+1)
	}
	return m.config.Scale
}
