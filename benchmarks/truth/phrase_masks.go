package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"entropipe/sparse/freeze"
	"entropipe/sparse/kern"
	"entropipe/sparse/model"
	"entropipe/sparse/support"
)

// Masks of short sequences. Blocks of 16 keys are too coarse for a phrase of 25 tokens, so
// these masks list single keys: a layout of one block, whose bits say which keys a query
// reads. Every query reads its own key and the first one, as with the selectors of package
// freeze, and as many keys as the sparsity allows.

// keyScores sets score, a number for each key, to how much a query of a head wants the key.
type keyScores func(score []float64, query int)

// phraseMask chooses the keys of the heads of a layer. kv is the head's number.
type phraseMask func(layer, kv int, j *kern.Job) keyScores

// longestPhrase is the most tokens of a phrase, and the largest block of a layout.
const longestPhrase = 128

// hook returns the function that masks all layers at a sparsity.
func (m phraseMask) hook(sparsity float64) func(layer, sequence int, j *kern.Job) {
	return func(layer, _ int, j *kern.Job) {
		layouts := make([]*support.Layout, j.KVHeads)
		budget := support.Budget(sparsity, 0, j.K.Rows, false)
		for kv := range layouts {
			layouts[kv] = keyLayout(j.K.Rows, budget, m(layer, kv, j))
		}
		j.Layouts = layouts
	}
}

// keyLayout returns the layout of n keys, at most longestPhrase, in which every query reads
// budget of them.
func keyLayout(n, budget int, wants keyScores) *support.Layout {
	block := 16
	for block < n {
		block *= 2
	}
	l := &support.Layout{Block: block, Rows: 1, Cols: 1, RowPtr: []int32{0, 1}, Col: []int32{0},
		Kind: []uint8{support.Masked}, Bits: make([]uint64, block*block/64)}
	read := func(query, key int) {
		at := query*block + key
		l.Bits[at/64] |= 1 << (at % 64)
	}
	score := make([]float64, n)
	for query := range block {
		if query >= n { // a row behind the sequence needs a key, too
			read(query, 0)
			continue
		}
		wants(score, query)
		for _, key := range support.Top(score, budget, query, 0) {
			read(query, int(key))
		}
	}
	return l
}

// nearKeys is the window.
func nearKeys(int, int, *kern.Job) keyScores {
	return func(score []float64, query int) {
		for k := range score {
			score[k] = -math.Abs(float64(k - query))
		}
	}
}

// lotKeys returns keys by lot, the same for all sequences of a length, or, for BigBird, half
// of the budget near the query and half by lot.
func lotKeys(seed uint64, sparsity float64, bigBird bool) phraseMask {
	return func(layer, kv int, j *kern.Job) keyScores {
		draw := rand.New(rand.NewPCG(seed, uint64(layer<<16|kv)))
		near := nearKeys(layer, kv, j)
		half := (support.Budget(sparsity, 0, j.K.Rows, false) + 1) / 2
		return func(score []float64, query int) {
			var first []int32
			if bigBird {
				near(score, query)
				first = support.Top(score, half, query, 0)
			}
			for k := range score {
				score[k] = draw.Float64()
			}
			for _, k := range first {
				score[k] = 2
			}
		}
	}
}

// ownMass returns the keys with the most weight in the sequence's own attention: the best
// that a mask of keys can choose.
func ownMass(_, kv int, j *kern.Job) keyScores {
	return func(score []float64, query int) { attentionRow(score, j, kv, query) }
}

// attentionRow sets dst to the softmax weights of a query of a head.
func attentionRow(dst []float64, j *kern.Job, head, query int) {
	q := j.Q.Row(query)[head*j.Dim : (head+1)*j.Dim]
	top := math.Inf(-1)
	for k := range dst {
		dot := float32(0)
		for c, v := range j.K.Row(k)[head*j.Dim : (head+1)*j.Dim] {
			dot += v * q[c]
		}
		dst[k] = float64(dot * j.Scale)
		top = max(top, dst[k])
	}
	sum := 0.0
	for k := range dst {
		dst[k] = math.Exp(dst[k] - top)
		sum += dst[k]
	}
	for k := range dst {
		dst[k] /= sum
	}
}

// massTable is the mean weight by position of query and key, of calibrating sequences.
type massTable struct {
	sums  map[[2]int][]float64 // by layer and head: [longestPhrase][longestPhrase]
	seen  []float64            // [longestPhrase] sequences that have the position
	score []float64
}

// meanMass runs the calibrating sequences.
func (l *minilmLab) meanMass(sequences [][]int32) (*massTable, error) {
	t := &massTable{sums: map[[2]int][]float64{}, seen: make([]float64, longestPhrase),
		score: make([]float64, longestPhrase)}
	_, err := l.embed(sequences, model.Options{Hook: func(layer, _ int, j *kern.Job) {
		for head := range j.Heads {
			t.add(layer, head, j)
		}
	}})
	return t, err
}

func (t *massTable) add(layer, head int, j *kern.Job) {
	at := [2]int{layer, head}
	if t.sums[at] == nil {
		t.sums[at] = make([]float64, longestPhrase*longestPhrase)
	}
	n := min(j.K.Rows, longestPhrase)
	for q := range n {
		if layer == 0 && head == 0 {
			t.seen[q]++
		}
		attentionRow(t.score[:n], j, head, q)
		sums := t.sums[at][q*longestPhrase:]
		for k, w := range t.score[:n] {
			sums[k] += w
		}
	}
}

// keys is the mask by mean mass. Positions that no calibrating sequence has are worth less
// than all others, the nearest first.
func (t *massTable) keys(layer, kv int, _ *kern.Job) keyScores {
	sums := t.sums[[2]int{layer, kv}]
	return func(score []float64, query int) {
		for k := range score {
			if seen := t.seen[max(query, k)]; seen > 0 {
				score[k] = sums[query*longestPhrase+k] / seen
			} else {
				score[k] = -math.Abs(float64(k - query))
			}
		}
	}
}

// clusteredKeys are masks by clusters of keys: anchors that package freeze has fitted to keys
// of calibrating sequences, and each key of a sequence belongs to the nearest anchor.
type clusteredKeys struct {
	set *support.Set
	// routed is set where a query wants the clusters whose mean key it scores highest; else
	// it wants the cluster of its own key, as masks of H_diff do.
	routed bool
}

// fitAnchors has package freeze fit anchors by a selector, entropy or affinity.
func (l *minilmLab) fitAnchors(ctx context.Context, selector string, calibrate [][]int32, sparsity float64,
	seed uint64) (*clusteredKeys, error) {
	longest := 0
	for _, s := range calibrate {
		longest = max(longest, len(s))
	}
	// What the package itself would judge by is judged here, so it gets two empty sequences.
	inputs := append(slices.Clone(calibrate), l.ends[:], l.ends[:])
	set, err := freeze.Freeze(ctx, l.model, freeze.Inputs{Sequences: inputs}, freeze.Options{Select: selector,
		Sparsity: sparsity, Block: 16, Buckets: []int{longest}, Seed: seed, Mode: support.Anchor,
		HeldOut: 2, Workers: 1})
	if err != nil {
		return nil, fmt.Errorf("anchors by %s: %w", selector, err)
	}
	return &clusteredKeys{set: set, routed: selector == freeze.Entropy}, nil
}

// keys is the mask. Among keys of equal clusters the nearest come first.
func (c *clusteredKeys) keys(layer, kv int, j *kern.Job) keyScores {
	anchors := c.set.Anchors.Of(&c.set.Facts, layer, kv)
	n, dim := j.K.Rows, j.Dim
	of := make([]int, n)
	means, sizes := make([]float64, c.set.Anchors.K*dim), make([]float64, c.set.Anchors.K)
	for k := range of {
		key := j.K.Row(k)[kv*dim : (kv+1)*dim]
		of[k] = nearestAnchor(anchors, key)
		sizes[of[k]]++
		for i, v := range key {
			means[of[k]*dim+i] += float64(v)
		}
	}
	promise := make([]float64, len(sizes))
	return func(score []float64, query int) {
		for i := range promise {
			promise[i] = 0
			if !c.routed || sizes[i] == 0 {
				continue
			}
			for d, v := range j.Q.Row(query)[kv*dim : (kv+1)*dim] {
				promise[i] += float64(v) * means[i*dim+d] / sizes[i] * float64(j.Scale)
			}
		}
		if !c.routed {
			promise[of[query]] = 1
		}
		for k := range score {
			score[k] = promise[of[k]] - 1e-9*math.Abs(float64(k-query))
		}
	}
}

// nearestAnchor returns the number of the anchor [k][dim] with the least distance to a key.
func nearestAnchor(anchors, key []float32) int {
	best, least := 0, math.Inf(1)
	for at := 0; at < len(anchors); at += len(key) {
		far := 0.0
		for i, v := range key {
			d := float64(v - anchors[at+i])
			far += d * d
		}
		if far < least {
			best, least = at/len(key), far
		}
	}
	return best
}
