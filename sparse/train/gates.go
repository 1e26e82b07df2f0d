package train

import (
	"cmp"
	"math"
	"slices"

	"entropipe/models/mat"
)

// gates multiply attention's weights before they are normalised, one for every
// block of queries and of keys of every head. The blocks on the diagonal are
// always open, so no query is without keys.
type gates struct {
	layers, heads, block, rows int
	causal                     bool
	fixed                      bool // which ones close is not learned: the nearest stay

	theta []float32 // [layers][heads][rows][rows]; the gate is its logistic function
	m, v  []float32
	hard  bool // some are closed for good, the others open
	shut  []bool
}

// firstGate is the logit that gates begin with: open by 88 %.
const firstGate = 2

// gateRate is the rate of learning of the logits.
const gateRate = 0.02

func newGates(f *form, block int, fixed bool) *gates {
	g := &gates{layers: f.layers, heads: f.heads, block: block, rows: (f.n + block - 1) / block, causal: f.causal(), fixed: fixed}
	n := g.layers * g.heads * g.rows * g.rows
	g.theta, g.m, g.v, g.shut = make([]float32, n), make([]float32, n), make([]float32, n), make([]bool, n)
	for i := range g.theta {
		g.theta[i] = firstGate
		if fixed {
			g.theta[i] = g.nearness(i/g.rows%g.rows, i%g.rows)
		}
	}
	return g
}

// nearness orders the blocks that query block u may keep: near ones last, and the
// first block, which many heads rest on, after all but its own.
func (g *gates) nearness(u, b int) float32 {
	if b == 0 {
		return -0.5
	}
	return -float32(max(u-b, b-u))
}

// unseen says whether no query of block u sees a key of block b.
func (g *gates) unseen(u, b int) bool { return g.causal && b > u }

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// of returns where the gates of a head begin.
func (g *gates) of(l, h int) int { return (l*g.heads + h) * g.rows * g.rows }

// each calls do for every block that has a gate, with its number in theta and
// the rows and columns it stands for.
func (g *gates) each(l, h int, a *head, do func(at int, w mat.Matrix), w mat.Matrix) {
	n, first := a.k.Rows, g.of(l, h)
	for u := range g.rows {
		end := g.rows
		if a.causal {
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

// closed is a score whose weight is nothing.
const closed = -1e30

// bias adds the logarithms of the gates to the scores, before their scale.
func (g *gates) bias(l, h int, a *head, scale float32) {
	if g.fixed && !g.hard {
		return
	}
	g.each(l, h, a, func(at int, w mat.Matrix) {
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
	}, a.probs)
}

// gather adds to the gradients of the gates' logits what those of the scores,
// before their scale, say.
func (g *gates) gather(to []float32, l, h int, a *head, dw mat.Matrix) {
	if g.hard || g.fixed {
		return
	}
	g.each(l, h, a, func(at int, w mat.Matrix) {
		var sum float32
		for i := range w.Rows {
			for _, v := range w.Row(i) {
				sum += v
			}
		}
		to[at] += sum * float32(1-logistic(float64(g.theta[at])))
	}, dw)
}

// penalty returns the mean number of open gates of a row of blocks, and adds
// the gradient of its share in the loss.
func (g *gates) penalty(to []float32, p plan) (value float64) {
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
			to[i] += float32(p.lambda * share * open * (1 - open))
		}
		value += share * open
	}
	return value
}

func (g *gates) update(grads []float32, step int, p plan) {
	if g.hard || p.lambda == 0 {
		return
	}
	o := mat.AdamW{Rate: gateRate, Beta1: 0.9, Beta2: 0.99, Eps: 1e-12}
	o.Update(g.theta, grads, g.m, g.v, step+1, 1)
}

// close closes the share sparsity of the blocks that each row of blocks sees,
// rounded down: those whose gates are least open, of equal ones the first. The
// block on the diagonal stays.
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
			for _, b := range order[:min(len(order), int(sparsity*float64(len(order)+1)))] {
				g.shut[(lh*g.rows+u)*g.rows+b] = true
			}
		}
	}
}
