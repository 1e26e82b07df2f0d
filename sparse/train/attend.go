package train

import (
	"math"

	"entropipe/models/mat"
)

// keyBlock is the number of keys that a product takes at a time; above the
// diagonal of a causal head nothing but the rest of its block is computed.
const keyBlock = 64

// head are views of one head of one sequence in one layer.
type head struct {
	q, k, v mat.Matrix // [n][headDim]
	probs   mat.Matrix // [n][n]
	causal  bool
}

func (p *pass) head(l, s, h int, qkv []float32) head {
	f := &p.net.form
	all := p.of(3*f.dim, qkv).Slice(s*f.n, (s+1)*f.n)
	c := f.headDim()
	part := func(k int) mat.Matrix { return all.Columns(k*f.dim+h*c, k*f.dim+(h+1)*c) }
	size := f.n * f.n
	at := (s*f.heads + h) * size
	return head{part(0), part(1), part(2), mat.Of(f.n, f.n, p.layers[l].probs[at:at+size]), f.causal()}
}

// blocks calls do for every block of keys, lo to hi-1, with the first query
// that sees one of them.
func (a *head) blocks(do func(lo, hi, first int)) {
	n := a.k.Rows
	for lo := 0; lo < n; lo += keyBlock {
		first := 0
		if a.causal {
			first = lo
		}
		do(lo, min(lo+keyBlock, n), first)
	}
}

// sees is the number of keys that query i sees.
func (a *head) sees(i int) int {
	if a.causal {
		return i + 1
	}
	return a.k.Rows
}

// end is where the products for query i stop: the end of the block of the last
// key that it sees.
func (a *head) end(i int) int { return min(a.k.Rows, (a.sees(i)-1)/keyBlock*keyBlock+keyBlock) }

// weighted sets dst to the means of the rows of v by the weights w, [n][n].
func (p *pass) weighted(a *head, dst, w, v mat.Matrix) {
	n := a.k.Rows
	a.blocks(func(lo, hi, first int) {
		p.pack.Pack(v.Slice(lo, hi))
		p.pack.Mul(dst.Slice(first, n), w.Slice(first, n).Columns(lo, hi), mat.Epilogue{Add: lo > 0}, 1)
	})
}

// paired sets dst, [n][n], to the products of the rows of q and k, or adds them.
func (p *pass) paired(a *head, dst, q, k mat.Matrix, more bool) {
	n := a.k.Rows
	a.blocks(func(lo, hi, first int) {
		p.pack.PackT(k.Slice(lo, hi))
		p.pack.Mul(dst.Slice(first, n).Columns(lo, hi), q.Slice(first, n), mat.Epilogue{Add: more}, 1)
	})
}

// gathered sets the rows of dst, one a key, to the sums of the rows of g by the
// key's weights in w.
func gathered(a *head, dst, w, g mat.Matrix) {
	n := a.k.Rows
	a.blocks(func(lo, hi, first int) {
		mat.TMul(dst.Slice(lo, hi), w.Slice(first, n).Columns(lo, hi), g.Slice(first, n), false, 1)
	})
}

func (p *pass) headForward(l, s, h int, g *gates) {
	f := &p.net.form
	a := p.head(l, s, h, p.layers[l].qkv)
	scale := float32(1 / math.Sqrt(float64(f.headDim())))
	p.paired(&a, a.probs, a.q, a.k, false)
	if g != nil {
		g.bias(l, h, &a, 1/scale)
	}
	for i := range f.n {
		row, n := a.probs.Row(i), a.sees(i)
		mat.Softmax(mat.Of(1, n, row[:n]), scale)
		clear(row[n:a.end(i)])
	}
	c := f.headDim()
	p.weighted(&a, p.of(f.dim, p.layers[l].o).Slice(s*f.n, (s+1)*f.n).Columns(h*c, (h+1)*c), a.probs, a.v)
}

// headBackward sets the gradients of a head's queries, keys and values in dqkv
// from those of its outputs in do, adds those of what the regulariser learns,
// and returns its value.
func (p *pass) headBackward(l, s, h int, do, dqkv mat.Matrix, r *regulariser) (penalty float64) {
	f := &p.net.form
	c := f.headDim()
	a, d := p.head(l, s, h, p.layers[l].qkv), p.head(l, s, h, dqkv.Data)
	do = do.Slice(s*f.n, (s+1)*f.n).Columns(h*c, (h+1)*c)
	dw := mat.Of(f.n, f.n, p.scores)
	p.paired(&a, dw, do, a.v, false)
	gathered(&a, d.v, a.probs, do)
	clusters := r.anchors != nil && r.lambda > 0
	if clusters {
		penalty = p.cluster(&a, l, h, dw, r)
	}
	scale := float32(1 / math.Sqrt(float64(c)))
	for i := range f.n {
		n := a.sees(i)
		mat.SoftmaxBackward(dw.Slice(i, i+1).Columns(0, n), a.probs.Slice(i, i+1).Columns(0, n))
		clear(dw.Row(i)[n:a.end(i)])
	}
	if r.gates != nil {
		r.gates.gather(r.to.gates, l, h, &a, dw)
	}
	p.weighted(&a, d.q, dw, a.k)
	gathered(&a, d.k, dw, a.q)
	scaleRows(d.q, scale)
	scaleRows(d.k, scale)
	if clusters {
		p.clusterKeys(&a, d.k, l, h, r)
	}
	return penalty
}

func scaleRows(m mat.Matrix, by float32) {
	for i := range m.Rows {
		row := m.Row(i)
		for j := range row {
			row[j] *= by
		}
	}
}
