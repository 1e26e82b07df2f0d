// Package sched packs token sequences into batches for a model. A batch holds at
// most a budget of tokens and is ragged: it has no padding.
//
// It decides only which sequences are computed together. A model's rows do not
// depend on their neighbours, so that no packing changes a result. Packing is first
// fit in order, a pure function of the lengths, so that a run can be repeated.
//
// Words: the budget is the largest number of tokens of a batch; the fill of a batch
// is its tokens divided by the budget; a batch is open while sequences may be added.
package sched

// window is the number of open batches. A later sequence may fill one of them, which
// packs mixed lengths well. More open batches would gain little and delay the results
// of early sequences.
const window = 8

// A Packer packs sequences into batches. The zero value with a Budget is ready. It
// owns the memory of its batches and serves one goroutine at a time.
type Packer struct {
	Budget int // largest number of tokens of a batch; below 1, every sequence is a batch of its own

	batches [][]int32
	tokens  []int
}

// Pack returns batches of indices into lengths. Together they hold every index once.
// Indices ascend within a batch, and batches are in the order of their first
// indices. A sequence longer than the budget is alone in its batch. Without
// sequences there are no batches. Cost: O(len(lengths)). The batches are valid until
// the next call.
func (p *Packer) Pack(lengths []int) [][]int32 {
	n := 0
	p.tokens = p.tokens[:0]
	first := 0 // first open batch
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

// fit returns the first open batch with room for length tokens, or n for a new
// batch. It compares a difference because a sum could overflow.
func (p *Packer) fit(first, n, length int) int {
	for b := first; b < n; b++ {
		if length <= p.Budget-p.tokens[b] {
			return b
		}
	}
	return n
}

// Fill returns tokens/budget of batch b of the last Pack. It is above 1 for a
// sequence longer than the budget.
func (p *Packer) Fill(b int) float64 {
	return float64(p.tokens[b]) / float64(max(p.Budget, 1))
}
