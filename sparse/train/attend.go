package train

import (
	"math"

	"entropipe/models/mat"
)

// keyBlock is the number of keys of one product. In a causal head, the products
// above the diagonal are computed only within the last block of a query.
const keyBlock = 64

// head holds views of one head of one sequence in one layer.
type head struct {
	q, k, v mat.Matrix // [n][headDim]
	probs   mat.Matrix // [n][n]
	causal  bool
}

func (p *pass) head(layer, seq, h int, qkv []float32) head {
	f := &p.net.form
	all := p.of(3*f.dim, qkv).Slice(seq*f.n, (seq+1)*f.n)
	c := f.headDim()
	part := func(k int) mat.Matrix { return all.Columns(k*f.dim+h*c, k*f.dim+(h+1)*c) }
	size := f.n * f.n
	at := (seq*f.heads + h) * size
	return head{part(0), part(1), part(2), mat.Of(f.n, f.n, p.layers[layer].probs[at:at+size]), f.causal()}
}

// blocks calls do for every block of keys, lo to hi-1, with the first query that
// sees a key of the block.
func (view *head) blocks(do func(lo, hi, first int)) {
	n := view.k.Rows
	for lo := 0; lo < n; lo += keyBlock {
		first := 0
		if view.causal {
			first = lo
		}
		do(lo, min(lo+keyBlock, n), first)
	}
}

// sees returns the number of keys that query i sees.
func (view *head) sees(i int) int {
	if view.causal {
		return i + 1
	}
	return view.k.Rows
}

// end returns the number of keys in the products of query i: the end of the block
// of the last key that it sees.
func (view *head) end(i int) int {
	return min(view.k.Rows, (view.sees(i)-1)/keyBlock*keyBlock+keyBlock)
}

// weighted sets dst to w·v: the means of the rows of v by the weights w [n][n].
func (p *pass) weighted(view *head, dst, w, v mat.Matrix) {
	n := view.k.Rows
	view.blocks(func(lo, hi, first int) {
		p.pack.Pack(v.Slice(lo, hi))
		p.pack.Mul(dst.Slice(first, n), w.Slice(first, n).Columns(lo, hi), mat.Epilogue{Add: lo > 0}, 1)
	})
}

// paired sets dst [n][n] to q·kᵀ, or adds q·kᵀ to dst if the epilogue says so.
func (p *pass) paired(view *head, dst, q, k mat.Matrix, e mat.Epilogue) {
	n := view.k.Rows
	view.blocks(func(lo, hi, first int) {
		p.pack.PackT(k.Slice(lo, hi))
		p.pack.Mul(dst.Slice(first, n).Columns(lo, hi), q.Slice(first, n), e, 1)
	})
}

// gathered sets dst, which has a row for each key, to wᵀ·g.
func gathered(view *head, dst, w, g mat.Matrix) {
	n := view.k.Rows
	view.blocks(func(lo, hi, first int) {
		mat.TMul(dst.Slice(lo, hi), w.Slice(first, n).Columns(lo, hi), g.Slice(first, n), 1)
	})
}

// headForward computes the weights and outputs of one head of one sequence.
func (p *pass) headForward(layer, seq, h int, g *gates) {
	f := &p.net.form
	view := p.head(layer, seq, h, p.layers[layer].qkv)
	scale := float32(1 / math.Sqrt(float64(f.headDim())))
	p.paired(&view, view.probs, view.q, view.k, mat.Epilogue{})
	if g != nil {
		g.bias(layer, h, &view, 1/scale)
	}
	for i := range f.n {
		row, n := view.probs.Row(i), view.sees(i)
		mat.Softmax(mat.Of(1, n, row[:n]), scale)
		clear(row[n:view.end(i)])
	}
	c := f.headDim()
	out := p.of(f.dim, p.layers[layer].o).Slice(seq*f.n, (seq+1)*f.n).Columns(h*c, (h+1)*c)
	p.weighted(&view, out, view.probs, view.v)
}

// headBackward sets the gradients of a head's queries, keys and values in dqkv
// from the gradients of its outputs in do. It adds the gradients of the
// regulariser's own parameters to the part, and returns the regulariser's value.
func (p *pass) headBackward(layer, seq, h int, do, dqkv mat.Matrix, r *regulariser) (penalty float64) {
	f := &p.net.form
	c := f.headDim()
	view, d := p.head(layer, seq, h, p.layers[layer].qkv), p.head(layer, seq, h, dqkv.Data)
	do = do.Slice(seq*f.n, (seq+1)*f.n).Columns(h*c, (h+1)*c)
	dw := mat.Of(f.n, f.n, p.scores)
	p.paired(&view, dw, do, view.v, mat.Epilogue{})
	gathered(&view, d.v, view.probs, do)
	clusters := r.anchors != nil && r.lambda > 0
	if clusters {
		penalty = p.cluster(&view, layer, h, dw, r)
	}
	scale := float32(1 / math.Sqrt(float64(c)))
	for i := range f.n {
		n := view.sees(i)
		mat.SoftmaxBackward(dw.Slice(i, i+1).Columns(0, n), view.probs.Slice(i, i+1).Columns(0, n))
		clear(dw.Row(i)[n:view.end(i)])
	}
	if r.gates != nil {
		r.gates.gather(r.to.gates, layer, h, &view, dw)
	}
	p.weighted(&view, d.q, dw, view.k)
	gathered(&view, d.k, dw, view.q)
	scaleRows(d.q, scale)
	scaleRows(d.k, scale)
	if clusters {
		p.clusterKeys(&view, d.k, layer, h, r)
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
