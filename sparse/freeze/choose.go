package freeze

import (
	"math"
	"slices"

	"entropipe/sparse/support"
)

// natural returns the layout of a head in the keys' own order. scores returns a
// score for every block of keys; a causal row uses the first r+1.
func (f *run) natural(length int, scores func(r int) []float64) *support.Layout {
	blocks := support.Blocks(length, f.o.Block)
	return support.New(length, f.o.Block, f.c.Causal, func(r int) []int32 {
		return support.Top(scores(r)[:f.sees(r, blocks)], f.budget(r, blocks), r, 0)
	})
}

// budget returns the number of key blocks that query block r reads.
func (f *run) budget(r, blocks int) int {
	return support.Budget(f.o.Sparsity, r, blocks, f.c.Causal)
}

// sees returns the number of key blocks that query block r can see.
func (f *run) sees(r, blocks int) int {
	if f.c.Causal {
		return r + 1
	}
	return blocks
}

// nearness scores key blocks by minus their distance to query block r.
func nearness(r, blocks int) []float64 {
	score := make([]float64, blocks)
	for c := range score {
		score[c] = -math.Abs(float64(c - r))
	}
	return score
}

// lots scores blocks for BigBird. The first half of the budget is the row's own
// block, the first block and the nearest blocks; the scores of the other blocks are
// random. A random number is a hash of seed, head, row and column, and so equal for
// every length and program.
func (f *run) lots(head, r, blocks int) []float64 {
	seen := f.sees(r, blocks)
	near := support.Top(nearness(r, seen), (f.budget(r, blocks)+1)/2, r, 0)
	score := make([]float64, blocks)
	for c := range score {
		score[c] = float64(lot(f.o.Seed, uint64(head), uint64(r), uint64(c))>>11) / (1 << 53)
	}
	for _, c := range near {
		score[c] = 2
	}
	return score
}

// lot returns a hash of numbers.
func lot(numbers ...uint64) (h uint64) {
	for _, n := range numbers {
		h = mix(h, n)
	}
	return h
}

// mix adds a number to a hash by a round of SplitMix64 (Steele, Lea and Flood 2014).
func mix(h, n uint64) uint64 {
	h += n + 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// newSet returns a set without layouts.
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

// put sets the layout of a head. Heads with equal layouts share one.
func put(b *support.Bucket, head int, l *support.Layout) {
	i := slices.IndexFunc(b.Layouts, l.Equal)
	if i < 0 {
		i = len(b.Layouts)
		b.Layouts = append(b.Layouts, l)
	}
	b.Of[head] = int32(i)
}

// window returns a set of windows with the budget of this run.
func (f *run) window() *support.Set {
	return f.windowOf(func(_, r, blocks int) int { return f.budget(r, blocks) })
}

// windowLike returns a set of windows that read as many blocks as s: in each row the
// mean over the heads of s, rounded up.
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
		return f.fromScores(func(b, head, r, blocks int) []float64 {
			return masses[b].sums[head][r*blocks:][:blocks]
		}), nil
	}
	return f.clustered()
}

// fromScores returns a set whose layouts, in the keys' own order, have the blocks
// with the largest scores.
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
