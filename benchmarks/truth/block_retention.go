package main

import (
	"fmt"
	"math"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

// blockRetention is RetNet's attention in its parallel form, by blocks, of which a mask may leave
// some out: out_t = scale·Σ γ^(t-j) (q_t·k_j) v_j over the keys j ≤ t of the blocks that the
// block of t reads.
type blockRetention struct {
	block        int
	masks        []*support.Layout // by head; nil reads all blocks
	keys, values []mat.Weights     // by block of keys
	scores       []float32
	decays       [][][]float32 // by head and distance of blocks: [block][block], with the scale
}

// newBlockRetention returns one for jobs of at most tokens tokens.
func newBlockRetention(heads, dim, block, tokens int, scale float32, masks []*support.Layout) *blockRetention {
	blocks := support.Blocks(tokens, block)
	b := &blockRetention{block: block, masks: masks, keys: make([]mat.Weights, blocks),
		values: make([]mat.Weights, blocks), scores: make([]float32, block*block)}
	for h := range heads {
		gamma := retentionDecay(h)
		var far [][]float32
		for distance := range blocks {
			d := make([]float32, block*block)
			for i := range block {
				for j := range block {
					if steps := distance*block + i - j; steps >= 0 {
						d[i*block+j] = scale * float32(math.Pow(gamma, float64(steps)))
					}
				}
			}
			far = append(far, d)
		}
		b.decays = append(b.decays, far)
	}
	return b
}

// attend computes a job, whose Causal is taken to be true.
func (b *blockRetention) attend(j *kern.Job) {
	n := j.K.Rows
	for h := range j.Heads {
		part := func(m mat.Matrix, block int) mat.Matrix {
			return m.Columns(h*j.Dim, (h+1)*j.Dim).Slice(block*b.block, min((block+1)*b.block, n))
		}
		for c := range support.Blocks(n, b.block) {
			b.keys[c].PackT(part(j.K, c))
			b.values[c].Pack(part(j.V, c))
		}
		for r := range support.Blocks(n, b.block) {
			q, out := part(j.Q, r), part(j.Out, r)
			for place, c := range b.reads(h, r) {
				rows, cols := q.Rows, min((c+1)*b.block, n)-c*b.block
				scores := mat.Of(rows, cols, b.scores)
				decay := mat.Of(b.block, b.block, b.decays[h][r-c]).Slice(0, rows).Columns(0, cols)
				b.keys[c].Mul(scores, q, mat.Epilogue{Times: decay}, 1)
				b.values[c].Mul(out, scores, mat.Epilogue{Add: place > 0}, 1)
			}
		}
	}
}

// reads lists the blocks of keys of a block of queries.
func (b *blockRetention) reads(head, row int) (blocks []int) {
	if b.masks == nil {
		for c := range row + 1 {
			blocks = append(blocks, c)
		}
		return blocks
	}
	cols, _ := b.masks[head].Row(row)
	for _, c := range cols {
		blocks = append(blocks, int(c))
	}
	return blocks
}

// scaleOf is 1/√dim.
func scaleOf(dim int) float32 { return float32(1 / math.Sqrt(float64(dim))) }

// layerName names a layer and its length.
func layerName(layer string, tokens float64) string {
	return fmt.Sprintf("%s, %.0f tokens", layer, tokens)
}

// distinct are the different values of records, in their order.
func distinct(records []record, name string) (values []float64) {
	seen := map[float64]bool{}
	for _, r := range records {
		if v := r.Values[name]; !seen[v] {
			seen[v] = true
			values = append(values, v)
		}
	}
	return values
}

// withValue are the records that have a value.
func withValue(records []record, name string, v float64) (some []record) {
	for _, r := range records {
		if r.Values[name] == v {
			some = append(some, r)
		}
	}
	return some
}
