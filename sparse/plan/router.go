package plan

import (
	"math"

	"entropipe/models/mat"
	"entropipe/sparse/kern"
	"entropipe/sparse/support"
)

// Hook returns the function for model.Options.Hook that a set of mode support.Anchor
// needs, or nil for a set whose plans have layouts. The function sets the job's
// layouts by Route if the plan for its length is not dense. Several goroutines may
// call it at once.
func (p *Planner) Hook() func(layer, sequence int, j *kern.Job) {
	if p.set.Mode != support.Anchor {
		return nil
	}
	return func(layer, _ int, j *kern.Job) {
		if p.For(j.Q.Rows).Dense == "" {
			j.Layouts = p.Route(layer, j)
		}
	}
}

// Route returns the layouts [kv head] of a layer for one sequence, made from its own
// queries and keys. The set must be of mode support.Anchor. Keys are sorted by their
// nearest anchors and cut into blocks. A block of queries reads the block of the
// first key, and the blocks with the largest max q·μ + ln(size), where the maximum
// is over its queries and μ is the mean key of the block. The result depends on the
// job's queries and keys alone. Cost: keys·anchors + queries·blocks dot products;
// it allocates the layouts. Sources: Routing Transformer (Roy et al. 2021), SMYRF
// (Daras et al. 2020).
func (p *Planner) Route(layer int, j *kern.Job) []*support.Layout {
	layouts := make([]*support.Layout, j.KVHeads)
	for kv := range layouts {
		order, first := p.order(layer, kv, j)
		layouts[kv] = p.route(order, first, kv, j)
	}
	return layouts
}

// order returns a head's keys sorted by their nearest anchor, stably, and the place
// of key 0 among them.
func (p *Planner) order(layer, kv int, j *kern.Job) (order []int32, first int) {
	a := p.set.Anchors
	centres := mat.Of(a.K, j.Dim, a.Of(&p.set.Facts, layer, kv))
	cluster := make([]int, j.K.Rows)
	start := make([]int, a.K+1)
	for k := range cluster {
		cluster[k] = nearest(centres, head(j.K, k, kv, j.Dim))
		start[cluster[k]+1]++
	}
	for i := range a.K {
		start[i+1] += start[i]
	}
	first = start[cluster[0]]
	order = make([]int32, len(cluster))
	for k, c := range cluster {
		order[start[c]] = int32(k)
		start[c]++
	}
	return order, first
}

// nearest returns the row of centres with the least squared distance to x; among
// equal distances, the first.
func nearest(centres mat.Matrix, x []float32) int {
	best, least := 0, float32(math.Inf(1))
	for i := range centres.Rows {
		d := float32(0)
		for c, v := range centres.Row(i) {
			e := v - x[c]
			d += float32(e * e)
		}
		if d < least {
			best, least = i, d
		}
	}
	return best
}

// route returns the layout of a head: for every block of queries the best blocks of
// the ordered keys.
func (p *Planner) route(order []int32, first, kv int, j *kern.Job) *support.Layout {
	n, block := len(order), p.set.Block
	blocks := support.Blocks(n, block)
	means := mat.Of(blocks, j.Dim, make([]float32, blocks*j.Dim))
	for b := range blocks {
		keys := order[b*block : min((b+1)*block, n)]
		mean := means.Row(b)
		for _, k := range keys {
			for c, v := range head(j.K, int(k), kv, j.Dim) {
				mean[c] += v
			}
		}
		for c := range mean {
			mean[c] /= float32(len(keys))
		}
	}
	score := make([]float64, blocks)
	l := support.New(n, block, false, func(r int) []int32 {
		p.promise(score, means, r, kv, j)
		for b := range score {
			score[b] += math.Log(float64(min(block, n-b*block)))
		}
		return support.Top(score, support.Budget(p.set.Select.Sparsity, r, blocks, false), first/block)
	})
	l.Order = order
	return l
}

// promise sets score to the largest q·μ over the queries of block r.
func (p *Planner) promise(score []float64, means mat.Matrix, r, kv int, j *kern.Job) {
	group := j.Heads / j.KVHeads
	for b := range score {
		score[b] = math.Inf(-1)
	}
	for q := r * p.set.Block; q < min((r+1)*p.set.Block, j.Q.Rows); q++ {
		for h := kv * group; h < (kv+1)*group; h++ {
			query := head(j.Q, q, h, j.Dim)
			for b := range score {
				dot := float32(0)
				for c, v := range means.Row(b) {
					dot += float32(v * query[c])
				}
				score[b] = max(score[b], float64(dot*j.Scale))
			}
		}
	}
}

// head returns the numbers of a row that belong to a head.
func head(m mat.Matrix, row, h, dim int) []float32 { return m.Row(row)[h*dim:][:dim] }
