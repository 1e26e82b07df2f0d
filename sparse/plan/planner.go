package plan

import (
	"fmt"
	"slices"
	"sync"

	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

// Facts identify the model of a planner and hold its options.
type Facts struct {
	support.Facts
	// Always uses the layouts wherever they fit, even if the set recommends dense
	// attention and even if they save no time (kern.Pays). Without Always, layouts
	// that save no time are still used if the model is better with them than with
	// dense attention (support.Quality.Better).
	Always bool
}

// Planner makes plans and caches them. It is safe for concurrent use.
type Planner struct {
	set   *support.Set
	facts Facts
	sha   string

	mu    sync.Mutex
	plans map[key]*Plan
	kept  int // bytes of the layouts that plans hold
}

// key identifies the lengths that share a plan.
type key struct {
	bucket, blocks int
	// last is the number of tokens of the last block. It is 1 for all lengths that do
	// not fill that block, except in buckets with masked entries.
	last int
}

// maxKept bounds the bytes of the layouts in cached plans.
const maxKept = 40 << 20

// New returns a planner of a set for a model. It is an error if the set has a fault
// or was made for another model. The Planner keeps set, which must not change.
func New(set *support.Set, of Facts) (*Planner, error) {
	if err := set.Validate(); err != nil {
		return nil, fmt.Errorf("mask: %w", err)
	}
	if err := fits(&set.Facts, &of.Facts); err != nil {
		return nil, fmt.Errorf("mask: %w", err)
	}
	sha, err := set.SHA256()
	if err != nil {
		return nil, err
	}
	return &Planner{set: set, facts: of, sha: sha, plans: map[key]*Plan{}}, nil
}

func fits(set, model *support.Facts) error {
	switch {
	case set.Weights != model.Weights:
		return fmt.Errorf("it was made for the weights %.12s…, and the model has %.12s…: freeze it for this checkpoint",
			set.Weights, model.Weights)
	case *set != *model:
		return fmt.Errorf("it was made for %s, and the model is %s", describe(set), describe(model))
	}
	return nil
}

func describe(f *support.Facts) string {
	return fmt.Sprintf("%s with %d layers, %d heads (%d of keys) of %d, causal: %v",
		f.Arch, f.Layers, f.Heads, f.KVHeads, f.Dim, f.Causal)
}

// For returns the plan for sequences of n tokens; without tokens it is dense. A
// sequence that grows while tokens are generated keeps the plan of the longest
// length that it may reach. In mode support.Anchor a plan that is not dense has no
// layouts: Hook makes them for each input. Plans are cached, so that only the first
// call for a length costs O(layers·heads·blocks·entries of a row).
func (p *Planner) For(n int) *Plan {
	s := p.set
	switch {
	case n <= 0:
		return p.dense("no tokens")
	case !p.facts.Always && s.Serve == support.Dense:
		return p.dense("the mask says dense: " + s.Reason)
	}
	b := 0
	for b < len(s.Buckets) && s.Buckets[b].Length < n {
		b++
	}
	switch {
	case b < len(s.Buckets):
	case s.Beyond == nil:
		return p.dense(fmt.Sprintf("longer than the longest bucket, %d", s.Buckets[b-1].Length))
	case beyond(s, n) > maxBeyond:
		return p.dense(fmt.Sprintf("%d tokens have too many blocks for the pattern beyond the longest bucket", n))
	}
	k := key{b, support.Blocks(n, s.Block), (n-1)%s.Block + 1}
	if k.last < s.Block && !(b < len(s.Buckets) && masked(&s.Buckets[b])) {
		k.last = 1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	plan, ok := p.plans[k]
	if !ok {
		plan = p.make(k, n)
		if p.kept > maxKept {
			clear(p.plans) // making a plan again gives the same plan
			p.kept = 0
		}
		p.plans[k] = plan
		for _, l := range plan.distinct() {
			p.kept += 5*len(l.Col) + 8*len(l.Bits)
		}
	}
	if plan.Dense == "" && !p.facts.Always && !s.Quality.Better() && !kern.Pays(n, p.facts.Dim, plan.density) {
		return p.dense(fmt.Sprintf("%d tokens with %.0f %% of the blocks are not faster than dense",
			n, 100*plan.density))
	}
	return plan
}

// maxBeyond bounds the blocks that a pattern of any length may read.
const maxBeyond = 1 << 26

// beyond returns an upper bound of the number of blocks that the pattern reads in n
// tokens.
func beyond(s *support.Set, n int) int {
	blocks := support.Blocks(n, s.Block)
	row := s.Beyond.Sink + s.Beyond.Local
	if s.Beyond.Stride > 0 {
		row += blocks/s.Beyond.Stride + 1
	}
	return blocks * min(row, blocks)
}

// masked says whether bits say in some layout which keys are read.
func masked(b *support.Bucket) bool {
	return slices.ContainsFunc(b.Layouts, func(l *support.Layout) bool { return len(l.Bits) > 0 })
}

func (p *Planner) dense(why string) *Plan {
	return &Plan{Dense: why, MaskSHA: p.sha, kvHeads: p.facts.KVHeads}
}

// make cuts the layouts of a bucket, or of the pattern beyond, to n tokens.
func (p *Planner) make(k key, n int) *Plan {
	s := p.set
	if s.Mode == support.Anchor {
		return &Plan{MaskSHA: p.sha, kvHeads: s.KVHeads, density: 1 - s.Select.Sparsity}
	}
	if k.bucket == len(s.Buckets) {
		l := support.New(n, s.Block, s.Causal, func(r int) []int32 { return s.Beyond.Row(r, k.blocks, s.Causal) })
		of := make([]int32, s.Layers*s.KVHeads)
		return p.assemble([]*support.Layout{l}, of)
	}
	b := &s.Buckets[k.bucket]
	cut := make([]*support.Layout, len(b.Layouts))
	for i, l := range b.Layouts {
		if cut[i] = l.Prefix(n); cut[i] == nil {
			return p.dense(fmt.Sprintf("a layout of the bucket of %d does not serve this length", b.Length))
		}
	}
	return p.assemble(cut, b.Of)
}

// assemble returns the plan in which head i has the layout of[i].
func (p *Planner) assemble(layouts []*support.Layout, of []int32) *Plan {
	s := p.set
	plan := &Plan{MaskSHA: p.sha, kvHeads: s.KVHeads, lastUse: make([][]int32, len(of))}
	uses := make([][]int32, len(layouts))
	for i, l := range layouts {
		uses[i] = lastUses(l)
	}
	dense := 0
	for layer := range s.Layers {
		heads := make([]*support.Layout, s.KVHeads)
		for h := range heads {
			i := layer*s.KVHeads + h
			if of[i] < 0 {
				plan.density++
				dense++
				continue
			}
			heads[h], plan.lastUse[i] = layouts[of[i]], uses[of[i]]
			plan.density += 1 - heads[h].Sparsity(s.Causal)
		}
		plan.Layouts = append(plan.Layouts, heads)
	}
	if dense == len(of) {
		return p.dense("every head is dense")
	}
	plan.density /= float64(len(of))
	return plan
}

// lastUses returns, for every block of keys, the last block of queries that reads
// it, or -1 if none does. It returns nil for a layout with an Order, whose keys are
// all needed to the end.
func lastUses(l *support.Layout) []int32 {
	if l.Order != nil {
		return nil
	}
	last := make([]int32, l.Cols)
	for c := range last {
		last[c] = -1
	}
	for r := range l.Rows {
		cols, _ := l.Row(r)
		for _, c := range cols {
			last[c] = int32(r)
		}
	}
	return last
}

// distinct returns the layouts of a plan without duplicates.
func (p *Plan) distinct() []*support.Layout {
	var all []*support.Layout
	for _, heads := range p.Layouts {
		for _, l := range heads {
			if l != nil && !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
	}
	return all
}
