package freeze

import (
	"math"
	"slices"

	"entropipe/sparse/support"
)

// natural makes the layout of a head in the keys' own order: scores returns a
// number for every block of keys, of which a causal row sees the first r+1.
func (f *run) natural(length int, scores func(r int) []float64) *support.Layout {
	blocks := support.Blocks(length, f.o.Block)
	return support.New(length, f.o.Block, f.c.Causal, func(r int) []int32 {
		return support.Top(scores(r)[:f.sees(r, blocks)], support.Budget(f.o.Sparsity, r, blocks, f.c.Causal), r, 0)
	})
}

// sees is the number of key blocks that query block r can see.
func (f *run) sees(r, blocks int) int {
	if f.c.Causal {
		return r + 1
	}
	return blocks
}

// nearness scores blocks by their distance to the queries' own.
func nearness(r, blocks int) []float64 {
	score := make([]float64, blocks)
	for c := range score {
		score[c] = -math.Abs(float64(c - r))
	}
	return score
}

// lots scores blocks for BigBird: of a budget of b the first, the row's own and
// the nearest up to half of b, then the others by lot. A lot is a hash of seed,
// head, row and column: the same for every length and program.
func (f *run) lots(head, r, blocks int) []float64 {
	seen := f.sees(r, blocks)
	near := support.Top(nearness(r, seen), (support.Budget(f.o.Sparsity, r, blocks, f.c.Causal)+1)/2, r, 0)
	score := make([]float64, blocks)
	for c := range score {
		score[c] = float64(lot(f.o.Seed, uint64(head), uint64(r), uint64(c))>>11) / (1 << 53)
	}
	for _, c := range near {
		score[c] = 2
	}
	return score
}

// lot is a hash of numbers.
func lot(numbers ...uint64) (h uint64) {
	for _, n := range numbers {
		h = mix(h, n)
	}
	return h
}

// mix takes one more number into a hash: a round of splitmix64 (Steele, Lea,
// Flood 2014).
func mix(h, n uint64) uint64 {
	h += n + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// newSet is a set without layouts.
func (f *run) newSet() *support.Set {
	s := &support.Set{
		Facts: Facts(f.m), Block: f.o.Block, Mode: support.Static, Beyond: f.o.Beyond,
		Select: support.Selector{Name: f.o.Select, Sparsity: f.o.Sparsity, Seed: f.o.Seed},
		Source: f.source(), Serve: support.Dense, Reason: "not measured",
	}
	for _, n := range f.buckets {
		s.Buckets = append(s.Buckets, support.Bucket{Length: n, Of: make([]int32, f.c.Layers*f.c.KVHeads)})
	}
	return s
}

// put gives a head its layout, which it shares with heads that have the same.
func put(b *support.Bucket, head int, l *support.Layout) {
	i := slices.IndexFunc(b.Layouts, l.Equal)
	if i < 0 {
		i = len(b.Layouts)
		b.Layouts = append(b.Layouts, l)
	}
	b.Of[head] = int32(i)
}

// window is the set of windows with the budget of this run.
func (f *run) window() *support.Set {
	return f.windowOf(func(_, r, blocks int) int { return support.Budget(f.o.Sparsity, r, blocks, f.c.Causal) })
}

// windowLike is the set of windows that read as much as a set does: row by row
// the mean of its heads, rounded up.
func (f *run) windowLike(s *support.Set) *support.Set {
	if s.Mode == support.Anchor {
		return f.window()
	}
	return f.windowOf(func(bucket, r, blocks int) int {
		b, sum := &s.Buckets[bucket], 0
		for _, of := range b.Of {
			if of < 0 {
				sum += f.sees(r, blocks)
				continue
			}
			cols, _ := b.Layouts[of].Row(r)
			sum += len(cols)
		}
		return (sum + len(b.Of) - 1) / len(b.Of)
	})
}

func (f *run) windowOf(budget func(bucket, r, blocks int) int) *support.Set {
	s := f.newSet()
	s.Select.Name = Window
	for i := range s.Buckets {
		b := &s.Buckets[i]
		blocks := support.Blocks(b.Length, f.o.Block)
		l := support.New(b.Length, f.o.Block, f.c.Causal, func(r int) []int32 {
			return support.Top(nearness(r, blocks)[:f.sees(r, blocks)], budget(i, r, blocks), r, 0)
		})
		for head := range b.Of {
			put(b, head, l)
		}
	}
	return s
}

// choose runs the selector.
func (f *run) choose() (*support.Set, error) {
	switch f.o.Select {
	case Window:
		return f.window(), nil
	case Imported:
		return f.imported()
	case BigBird:
		return f.fromScores(func(_, head, r, blocks int) []float64 { return f.lots(head, r, blocks) }), nil
	case Mass:
		masses, err := f.captureMass()
		if err != nil {
			return nil, err
		}
		return f.fromScores(func(b, head, r, blocks int) []float64 { return masses[b].sums[head][r*blocks:][:blocks] }), nil
	}
	return f.clustered()
}

// fromScores makes the layouts of all buckets and heads from scores, with the keys in
// their own order.
func (f *run) fromScores(scores func(bucket, head, r, blocks int) []float64) *support.Set {
	s := f.newSet()
	for i := range s.Buckets {
		b := &s.Buckets[i]
		blocks := support.Blocks(b.Length, f.o.Block)
		for head := range b.Of {
			put(b, head, f.natural(b.Length, func(r int) []float64 { return scores(i, head, r, blocks) }))
		}
	}
	return s
}
