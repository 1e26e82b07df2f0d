package train

import (
	"cmp"
	"math"
	"slices"

	"entropipe/models/mat"
	"entropipe/sparse/support"
)

// gates multiply attention's weights before they are normalised, one for every
// block of queries and of keys of every head. The blocks on the diagonal are
// always open, so every query has keys.
type gates struct {
	layers, heads, block, rows int
	causal                     bool
	fixed                      bool // the gates are not learned: the nearest blocks stay open

	theta []float32 // [layers][heads][rows][rows]; the gate is the logistic function of theta
	m, v  []float32
	hard  bool // the gates in shut are closed for good, the others open
	shut  []bool
}

// firstGate is the first logit of a gate: open by 88 %.
const firstGate = 2

// gateRate is the learning rate of the logits.
const gateRate = 0.02

// newGates returns the gates of L1, which are learned, or of Window, which are not.
func newGates(f *form, block int, kind Regulariser) *gates {
	g := &gates{
		layers: f.layers, heads: f.heads, block: block, rows: (f.n + block - 1) / block,
		causal: f.causal(), fixed: kind == Window,
	}
	n := g.layers * g.heads * g.rows * g.rows
	g.theta, g.m, g.v, g.shut = make([]float32, n), make([]float32, n), make([]float32, n), make([]bool, n)
	for i := range g.theta {
		g.theta[i] = firstGate
		if g.fixed {
			g.theta[i] = g.nearness(i/g.rows%g.rows, i%g.rows)
		}
	}
	return g
}

// nearness orders the blocks that query block u may keep: near blocks are larger,
// and the first block, to which many heads attend, is larger than all blocks but
// block u itself.
func (g *gates) nearness(u, b int) float32 {
	if b == 0 {
		return -0.5
	}
	return -float32(max(u-b, b-u))
}

// unseen reports whether no query of block u sees a key of block b.
func (g *gates) unseen(u, b int) bool { return g.causal && b > u }

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// of returns the offset of a head's gates in theta.
func (g *gates) of(layer, h int) int { return (layer*g.heads + h) * g.rows * g.rows }

// each calls do for every block that has a gate, with the gate's place in theta
// and the block's part of w.
func (g *gates) each(layer, h int, view *head, do func(at int, w mat.Matrix), w mat.Matrix) {
	n, first := view.k.Rows, g.of(layer, h)
	for u := range g.rows {
		end := g.rows
		if view.causal {
			end = u
		}
		rows := w.Slice(u*g.block, min(n, (u+1)*g.block))
		for b := range end {
			if b != u {
				do(first+u*g.rows+b, rows.Columns(b*g.block, min(n, (b+1)*g.block)))
			}
		}
	}
}

// closed is a score whose weight is 0.
const closed = -1e30

// bias adds the logarithms of the gates to the unscaled scores; scale is the
// reciprocal of the factor that scores get later.
func (g *gates) bias(layer, h int, view *head, scale float32) {
	if g.fixed && !g.hard {
		return
	}
	g.each(layer, h, view, func(at int, w mat.Matrix) {
		v := scale * float32(-math.Log1p(math.Exp(-float64(g.theta[at]))))
		if g.hard {
			if !g.shut[at] {
				return
			}
			v = closed
		}
		for i := range w.Rows {
			row := w.Row(i)
			for j := range row {
				row[j] += v
			}
		}
	}, view.probs)
}

// gather adds the gradients of the gates' logits to to, from the gradients dw of
// the scaled scores.
func (g *gates) gather(to []float32, layer, h int, view *head, dw mat.Matrix) {
	if g.hard || g.fixed {
		return
	}
	g.each(layer, h, view, func(at int, w mat.Matrix) {
		var sum float32
		for i := range w.Rows {
			for _, v := range w.Row(i) {
				sum += v
			}
		}
		to[at] += sum * float32(1-logistic(float64(g.theta[at])))
	}, dw)
}

// penalty returns the mean over rows of blocks of the sum of their gates, and adds
// the gradient of λ times that mean to to.
func (g *gates) penalty(to []float32, now plan) (value float64) {
	if g.fixed {
		return 0
	}
	share := 1 / float64(g.layers*g.heads*g.rows)
	for i, x := range g.theta {
		u, b := i/g.rows%g.rows, i%g.rows
		if u == b || g.unseen(u, b) || g.hard && g.shut[i] {
			continue
		}
		open := 1.0
		if !g.hard {
			open = logistic(float64(x))
			to[i] += float32(now.lambda * share * open * (1 - open))
		}
		value += share * open
	}
	return value
}

func (g *gates) update(grads []float32, step int, now plan) {
	if g.hard || now.lambda == 0 {
		return
	}
	o := mat.AdamW{Rate: gateRate, Beta1: 0.9, Beta2: 0.99, Eps: 1e-12}
	o.Update(g.theta, grads, g.m, g.v, step+1, 1)
}

// close leaves, in each row of blocks, as many blocks open as a mask of the same
// sparsity reads, and closes the blocks whose gates are least open; among equal
// gates, the first. The block on the diagonal stays open.
func (g *gates) close(sparsity float64) {
	g.hard = true
	for lh := range g.layers * g.heads {
		for u := range g.rows {
			row := g.theta[(lh*g.rows+u)*g.rows : (lh*g.rows+u+1)*g.rows]
			var order []int
			for b := range row {
				if b != u && !g.unseen(u, b) {
					order = append(order, b)
				}
			}
			slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(row[a], row[b]) })
			open := support.Budget(sparsity, u, g.rows, g.causal) // with the block on the diagonal
			for _, b := range order[:len(order)+1-open] {
				g.shut[(lh*g.rows+u)*g.rows+b] = true
			}
		}
	}
}
