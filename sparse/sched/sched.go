// Package sched packs token sequences into batches for a model: at most a
// budget of tokens each, ragged, so that nothing is padded.
//
// It decides only what is computed together. A model's rows do not depend on
// their neighbours, so no packing changes a result; it is first fit in order
// all the same, a pure function of the lengths, so that a run can be repeated.
//
// Vocabulary: the budget is the tokens that a batch may hold; the fill of a
// batch is its tokens over the budget; padding is what is computed beyond the
// sequences' own tokens.
package sched

// window is how many batches stay open. A later sequence may fill one of them,
// which packs mixed lengths well; more would find little and keep results of
// early sequences waiting.
const window = 8

// A Packer packs. The zero value with a Budget is ready; it owns memory that
// its batches are in, so it is one goroutine's.
type Packer struct {
	Budget int // tokens of a batch; below 1: every sequence is a batch of its own

	batches [][]int32
	tokens  []int
}

// Pack returns batches of indices into lengths, each ascending, in the order
// of their first sequences; together they hold every index once. A sequence
// longer than the budget is alone in its batch. No sequences, no batches. Time
// is linear. The batches are valid until the next call.
func (p *Packer) Pack(lengths []int) [][]int32 {
	n := 0
	p.tokens = p.tokens[:0]
	first := 0 // batches before it are closed
	for i, length := range lengths {
		at := p.fit(first, n, length)
		if at == n {
			if n == len(p.batches) {
				p.batches = append(p.batches, nil)
			}
			p.batches[n] = p.batches[n][:0]
			p.tokens = append(p.tokens, 0)
			n++
			first = max(first, n-window)
		}
		p.batches[at] = append(p.batches[at], int32(i))
		p.tokens[at] += length
	}
	return p.batches[:n]
}

// fit returns the first open batch with room, n for a new one. A difference
// cannot overflow where a sum of hostile lengths could.
func (p *Packer) fit(first, n, length int) int {
	for b := first; b < n; b++ {
		if length <= p.Budget-p.tokens[b] {
			return b
		}
	}
	return n
}

// Fill returns the tokens of batch b of the last Pack over the budget: above 1
// for a sequence longer than it.
func (p *Packer) Fill(b int) float64 {
	return float64(p.tokens[b]) / float64(max(p.Budget, 1))
}
