package model

import (
	"math"
	"slices"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/kv"
	"entropipe/sparse/plan"
)

// defaultBlock is the number of positions of a page for a dense head.
const defaultBlock = 64

// generation is the state of Generate.
type generation struct {
	*Session
	maxNew int
	open   []*growing
	batch  []int32 // starts of a step, in which each sequence has one row
	at     []int32 // positions of a step
	new    []int32 // ids of a step
}

// growing is a sequence that has not ended.
type growing struct {
	number int // number of the sequence in the batch
	cache  *kv.Cache
	plan   *plan.Plan
	length int   // tokens whose keys are in the cache
	next   int32 // next token
}

// Generate continues every sequence by up to maxNew tokens and returns the new
// tokens of each. Each token has the largest logit; among equal logits, the lowest
// id wins. A sequence ends after an end token of the model, which is returned, too.
// If the model has fewer positions than prompt and maxNew tokens together, Generate
// returns an *InputError with TooLong; if a logit is not finite, it ends all
// sequences and returns NotFinite.
//
// Keys and values lie in pages (package kv). A sequence keeps one plan, that of its
// prompt plus maxNew tokens, so that pages are freed after their last use. The
// tokens, and the bits of their logits, are those of Hidden and Logits for the
// sequence so far under that plan. Generate calls neither Options.Hook nor
// Options.Attend. It panics if the model is not causal or has no output matrix.
func (s *Session) Generate(b Batch, maxNew int, o Options) ([][]int32, error) {
	c := s.m.config
	if !c.Causal || !c.Head {
		panic(badClass)
	}
	maxNew = max(maxNew, 0)
	if err := b.check(c, maxNew); err != nil {
		return nil, err
	}
	out := make([][]int32, b.Len())
	if maxNew == 0 || len(out) == 0 {
		return out, nil
	}
	g := &generation{Session: s, maxNew: maxNew}
	s.pool.ResetPeak()
	defer g.close()
	err := g.prompt(b, o)
	for err == nil {
		g.collect(out)
		if len(g.open) == 0 {
			break
		}
		err = g.step()
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// CacheBytes returns the bytes of the pages of Generate in use, which is 0 between
// calls, and their largest number in the last call.
func (s *Session) CacheBytes() (inUse, peak int) { return s.pool.Bytes() }

// close frees the pages of sequences that have not ended.
func (g *generation) close() {
	for _, q := range g.open {
		q.cache.Close()
	}
	g.offsets = nil
}

// prompt computes all prompts in one pass, and chooses the first new tokens.
func (g *generation) prompt(b Batch, o Options) error {
	whole := Options{}
	if o.Plan != nil {
		whole.Plan = func(n int) *plan.Plan { return o.Plan(n + g.maxNew) }
	}
	g.begin(b.IDs, b.Starts, nil, whole)
	for i := range b.Len() {
		n := int(b.Starts[i+1] - b.Starts[i])
		g.open = append(g.open, &growing{number: i, cache: g.newCache(g.plans[i]), plan: g.plans[i], length: n})
	}
	c := g.m.config
	q, wide := c.Heads*c.Dim, c.KVHeads*c.Dim
	g.run(whole, func(layer int, o Options) {
		qkv := mat.Of(len(g.x)/c.Hidden, g.qkvWidth(), g.qkv)
		for i, p := range g.open {
			rows := qkv.Slice(int(b.Starts[i]), int(b.Starts[i+1]))
			p.cache.Put(layer, 0, rows.Columns(q, q+wide), rows.Columns(q+wide, q+2*wide), p.length)
		}
		g.attend(layer, o)
	})
	last := make([]int32, 0, len(g.open))
	for i := range g.open {
		last = append(last, b.Starts[i+1]-1)
	}
	return g.choose(last)
}

// newCache returns a cache whose blocks are the blocks of the plan's layouts.
func (g *generation) newCache(p *plan.Plan) *kv.Cache {
	c := g.m.config
	shape := kv.Shape{Layers: c.Layers, Heads: c.KVHeads, Dim: c.Dim}
	if p == nil || len(p.Layouts) == 0 {
		shape.Block = func(int, int) int { return defaultBlock }
		return kv.New(&g.pool, shape)
	}
	shape.LastUse = p.LastUse
	shape.Block = func(layer, head int) int {
		if l := p.Layouts[layer][head]; l != nil {
			return l.Block
		}
		return defaultBlock
	}
	return kv.New(&g.pool, shape)
}

// collect appends each sequence's next token to out, and removes the sequences that
// have ended.
func (g *generation) collect(out [][]int32) {
	g.open = slices.DeleteFunc(g.open, func(q *growing) bool {
		out[q.number] = append(out[q.number], q.next)
		done := len(out[q.number]) == g.maxNew || slices.Contains(g.m.config.EOS, q.next)
		if done {
			q.cache.Close()
		}
		return done
	})
}

// step computes one more token of every open sequence.
func (g *generation) step() error {
	g.batch, g.at = g.batch[:0], g.at[:0]
	g.new = g.new[:0]
	for i, q := range g.open {
		g.batch, g.at = append(g.batch, int32(i)), append(g.at, int32(q.length))
		g.new = append(g.new, q.next)
	}
	g.batch = append(g.batch, int32(len(g.open)))
	g.begin(g.new, g.batch, g.at, Options{})
	g.run(Options{}, g.attendCached)
	for _, q := range g.open {
		q.length++
		q.cache.Free(q.length)
	}
	return g.choose(g.batch[:len(g.open)])
}

// attendCached stores the key and value of every sequence's row, and attends the
// row to all rows of its sequence so far.
func (g *generation) attendCached(layer int, _ Options) {
	c := g.m.config
	q, wide := c.Heads*c.Dim, c.KVHeads*c.Dim
	n := len(g.open)
	qkv, ctx := mat.Of(n, q+2*wide, g.qkv), mat.Of(n, q, g.ctx)
	for i, p := range g.open { // one goroutine stores all rows: the pool serves one at a time
		row := qkv.Slice(i, i+1)
		p.cache.Put(layer, p.length, row.Columns(q, q+wide), row.Columns(q+wide, q+2*wide), p.length)
	}
	g.jobs = grow(g.jobs, n)
	for i, p := range g.open {
		g.jobs[i] = kern.Job{
			Q: qkv.Slice(i, i+1).Columns(0, q), K: mat.Matrix{Rows: p.length + 1}, Paged: p.cache.Pages(layer),
			Out: ctx.Slice(i, i+1), Heads: c.Heads, KVHeads: c.KVHeads, Dim: c.Dim,
			Scale: g.m.scale(layer), Causal: true, Offset: p.length,
		}
		if p.plan != nil && len(p.plan.Layouts) > 0 {
			g.jobs[i].Layouts = p.plan.Layouts[layer]
		}
	}
	g.attention.Attend(g.jobs, g.workers)
}

// choose sets every open sequence's next token from its row of the hidden states.
func (g *generation) choose(rows []int32) error {
	c := g.m.config
	g.picked = grow(g.picked, len(rows)*c.Hidden)
	hidden, x := mat.Of(len(rows), c.Hidden, g.picked), g.rows()
	for i, r := range rows {
		copy(hidden.Row(i), x.Row(int(r)))
	}
	g.logits = grow(g.logits, len(rows)*c.Vocab)
	logits := mat.Of(len(rows), c.Vocab, g.logits)
	g.Logits(logits, hidden)
	for i, q := range g.open {
		best, ok := largest(logits.Row(i))
		if !ok {
			return &InputError{NotFinite, q.number, q.length}
		}
		q.next = int32(best)
	}
	return nil
}

// largest returns the index of the largest number; among equal numbers, the first.
// ok is false if a number is not finite.
func largest(v []float32) (best int, ok bool) {
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return 0, false
		}
		if x > v[best] {
			best = i
		}
	}
	return best, true
}
