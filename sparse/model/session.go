package model

import (
	"sort"

	"entropipe/models/mat"
	"entropipe/sparse/hf"
	"entropipe/sparse/kern"
	"entropipe/sparse/kv"
	"entropipe/sparse/plan"
)

// Session is the memory of one caller. It serves one goroutine at a time. Its
// memory grows to (hidden + 2·Heads·Dim + 2·KVHeads·Dim)·4 bytes for each token of
// the largest batch, the rows of the MLP of a tile for every worker, and the pages
// of Generate.
type Session struct {
	m       *Model
	workers int

	x, qkv, ctx []float32    // rows of the batch
	memory      []tileMemory // [workers]
	attention   kern.Scratch
	jobs        []kern.Job
	plans       []*plan.Plan
	rungs       []kern.Rungs // [sequences]
	ids         []int32      // id of each row of the batch, a view of the caller's
	starts      []int32      // first row of each sequence, and the end of the last
	offsets     []int32      // position of each sequence's first row; nil if all are 0
	cos, sin    mat.Matrix
	sum         []float64

	pool           kv.Pool // pages of Generate
	picked, logits []float32
}

// tileMemory is the memory of a tile between two attentions.
type tileMemory struct{ norm, up, gate []float32 }

// NewSession returns a session whose calls use at most workers goroutines. It
// panics if workers is below 1.
func (m *Model) NewSession(workers int) *Session {
	if workers < 1 {
		panic(badWorkers)
	}
	return &Session{m: m, workers: workers, memory: make([]tileMemory, workers)}
}

// Options change how a batch is computed. The zero value is dense attention.
type Options struct {
	// Plan returns the plan of a sequence of n tokens. A nil function or plan is
	// dense.
	Plan func(n int) *plan.Plan
	// Hook is called before the attention of each layer and sequence, with queries
	// and keys as they will be attended. It may change the job's Layouts and must
	// keep no reference to the job.
	Hook func(layer, sequence int, j *kern.Job)
	// Attend replaces kern.Scratch.Attend for the jobs of a layer; nil keeps it.
	// Several sessions may call Attend at once. Generate does not use it.
	Attend func(jobs []kern.Job, workers int)
	// Ladder extends rows of an encoder beyond their layouts; nil extends none. It
	// excludes Attend.
	Ladder *kern.Ladder
}

// Hidden returns the last hidden state [tokens][hidden] of a batch, after the
// model's last norm: a view that is valid until the next call. If the model cannot
// compute a sequence, Hidden returns an *InputError and computes nothing. An empty
// batch has no rows. Hidden panics for a ViT.
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

// Rungs returns, for each sequence of the last batch, the counts of Options.Ladder
// over all layers and heads: a view that is valid until the next call. Without a
// ladder the counts are zero.
func (s *Session) Rungs() []kern.Rungs { return s.rungs }

// begin sets up the rows of a batch. ids are nil for images, whose rows the caller
// fills.
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

// grow returns a slice of n elements with undefined contents. It uses the memory
// of v if that is large enough.
func grow[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, n)
	}
	return v[:n]
}

// rows returns the hidden states of the batch.
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

// word returns the embedding of a token: a row of the table, or dst if the output
// matrix is the only copy.
func (m *Model) word(id int32, dst []float32) mat.Matrix {
	if m.words.Rows > 0 {
		return m.words.Slice(int(id), int(id)+1)
	}
	m.head.w.Column(dst, int(id))
	return mat.Of(1, len(dst), dst)
}

// sequence returns the number of the sequence of a row of the batch.
func (s *Session) sequence(row int) int {
	return sort.Search(len(s.starts)-1, func(i int) bool { return int(s.starts[i+1]) > row })
}

// offset returns the position of the first row of sequence i.
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
			Q: rows.Columns(0, q), K: rows.Columns(q, q+kv), V: rows.Columns(q+kv, q+2*kv),
			Out: ctx.Slice(lo, hi), Heads: c.Heads, KVHeads: c.KVHeads, Dim: c.Dim,
			Scale: s.m.scale(layer), Causal: c.Causal,
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
