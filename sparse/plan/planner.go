package plan

import (
	"fmt"
	"sync"

	"entropipe/sparse/support"
)

// Facts say for which model plans are made, and how.
type Facts struct {
	support.Facts
	// Always serves the layouts wherever they fit: also where the set says
	// dense, and where they do not pay.
	Always bool
}

// Planner makes plans. It may be used by several goroutines.
type Planner struct {
	set   *support.Set
	facts Facts
	sha   string

	mu      sync.Mutex
	plans   map[key]*Plan
	entries int // of the layouts that plans hold
}

// key says which lengths share a plan.
type key struct {
	bucket, blocks int
	cut            bool // the last block is not full
}

// maxEntries bounds the memory of plans that are kept: five bytes each.
const maxEntries = 1 << 23

// New makes a planner of a set for a model. A set that was made for another
// model is an error.
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
		return fmt.Errorf("made for the weights %.12s…, and the model has %.12s…: freeze it for this checkpoint", set.Weights, model.Weights)
	case *set != *model:
		return fmt.Errorf("made for %s, and the model is %s", describe(set), describe(model))
	}
	return nil
}

func describe(f *support.Facts) string {
	return fmt.Sprintf("%s with %d layers, %d heads (%d of keys) of %d, causal: %v", f.Arch, f.Layers, f.Heads, f.KVHeads, f.Dim, f.Causal)
}

// For returns the plan for sequences of n tokens. A sequence that grows while
// tokens are generated keeps the plan of the longest length that it may reach.
func (p *Planner) For(n int) *Plan {
	if !p.facts.Always && p.set.Serve == support.Dense {
		return p.dense("the mask says dense: " + p.set.Reason)
	}
	return p.dense("not yet")
}

func (p *Planner) dense(why string) *Plan { return &Plan{Dense: why, MaskSHA: p.sha, kvHeads: p.facts.KVHeads} }
