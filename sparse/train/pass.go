package train

import (
	"entropipe/models/mat"
)

// pass computes a chunk of sequences, forward and backward, and owns the memory
// for it. It serves one goroutine at a time.
type pass struct {
	net  *network
	most int // largest number of sequences
	seqs int // sequences of this chunk
	rows int // tokens of this chunk

	// Input and targets of text: for every row a token and its target.
	ids, next []int32
	// Input and targets of images: a row for every patch, a class for every image.
	pixels []float32
	labels []int32

	layers []layerRoom
	final  []float32 // the last block's output
	normed []float32 // final, normalised; for images only the rows of the class token
	logits []float32
	hidden []float32 // rows of the class token in final, for images

	// Gradients that backward writes.
	dx, da, dqkv, dup []float32
	scores            []float32 // [n][n] gradient by the weights of one head of one sequence
	ones              []float32
	pack              mat.Weights
	room              regularRoom

	adversary *adversary // nil unless the training is adversarial
}

// layerRoom holds the values of a block's forward pass that backward reads.
type layerRoom struct {
	x     []float32 // input of the block
	a     []float32 // x normalised
	qkv   []float32
	probs []float32 // attention's weights: [sequence][head][n][n]
	o     []float32 // the heads' outputs
	mid   []float32 // x with attention added
	b     []float32 // mid normalised
	up    []float32 // input of GELU
	act   []float32 // output of GELU
}

func newPass(n *network, most int) *pass {
	f := &n.form
	rows, d := most*f.n, f.dim
	p := &pass{net: n, most: most, layers: make([]layerRoom, f.layers)}
	room := func(cols int) []float32 { return make([]float32, rows*cols) }
	for l := range p.layers {
		p.layers[l] = layerRoom{
			x: room(d), a: room(d), qkv: room(3 * d), probs: room(f.heads * f.n), o: room(d),
			mid: room(d), b: room(d), up: room(4 * d), act: room(4 * d),
		}
	}
	p.final, p.normed = room(d), room(d)
	p.dx, p.da, p.dqkv, p.dup = room(d), room(d), room(3*d), room(4*d)
	p.scores, p.ones = make([]float32, f.n*f.n), room(1)
	for i := range p.ones {
		p.ones[i] = 1
	}
	if f.causal() {
		p.ids, p.next = make([]int32, rows), make([]int32, rows)
		p.logits = room(f.vocab)
	} else {
		p.pixels, p.labels = make([]float32, most*(f.n-1)*f.pixels()), make([]int32, most)
		p.logits, p.hidden = make([]float32, most*f.classes), make([]float32, most*d)
	}
	return p
}

// begin starts a chunk of seqs sequences.
func (p *pass) begin(seqs int) { p.seqs, p.rows = seqs, seqs*p.net.form.n }

// of returns the rows of this chunk in data.
func (p *pass) of(cols int, data []float32) mat.Matrix { return mat.Of(p.rows, cols, data) }

// forward computes the last block's output. gates may be nil.
func (p *pass) forward(g *gates) {
	p.embed()
	n, d := p.net, p.net.form.dim
	for l := range p.layers {
		b, w, k := &p.layers[l], &n.w.blocks[l], &n.blocks[l]
		x, a, o, mid := p.of(d, b.x), p.of(d, b.a), p.of(d, b.o), p.of(d, b.mid)
		mat.LayerNorm(a, x, w.gamma1, w.beta1, n.form.eps)
		k.qkv.out.Mul(p.of(3*d, b.qkv), a, mat.Epilogue{Bias: w.qkvB}, 1)
		for s := range p.seqs {
			for h := range n.form.heads {
				p.headForward(l, s, h, g)
			}
		}
		copy(b.mid[:p.rows*d], b.x)
		k.proj.out.Mul(mid, o, mat.Epilogue{Add: true, Bias: w.projB}, 1)
		mat.LayerNorm(p.of(d, b.b), mid, w.gamma2, w.beta2, n.form.eps)
		k.up.out.Mul(p.of(4*d, b.up), p.of(d, b.b), mat.Epilogue{Bias: w.upB}, 1)
		n.form.gelu(b.act[:p.rows*4*d], b.up[:p.rows*4*d])
		next := p.final
		if l+1 < len(p.layers) {
			next = p.layers[l+1].x
		}
		copy(next[:p.rows*d], b.mid)
		k.down.out.Mul(p.of(d, next), p.of(4*d, b.act), mat.Epilogue{Add: true, Bias: w.downB}, 1)
	}
}

// embed computes the first block's input.
func (p *pass) embed() {
	f, w := &p.net.form, &p.net.w
	x := p.of(f.dim, p.layers[0].x)
	if f.causal() {
		for i := range p.rows {
			row, token := x.Row(i), w.tokens.Row(int(p.ids[i]))
			for j, v := range w.positions.Row(i % f.n) {
				row[j] = token[j] + v
			}
		}
		return
	}
	for s := range p.seqs {
		first := x.Row(s * f.n)
		for j, v := range w.positions.Row(0) {
			first[j] = w.class[j] + v
		}
		rest := x.Slice(s*f.n+1, (s+1)*f.n)
		for i := range rest.Rows {
			copy(rest.Row(i), w.positions.Row(i+1))
		}
		p.net.first.Mul(rest, p.patchesOf(s), mat.Epilogue{Add: true, Bias: w.patchB}, 1)
	}
}

func (p *pass) patchesOf(s int) mat.Matrix {
	f := &p.net.form
	size := (f.n - 1) * f.pixels()
	return mat.Of(f.n-1, f.pixels(), p.pixels[s*size:(s+1)*size])
}

// backward adds the gradients of the chunk to w and returns the value of the
// regulariser. It starts from the gradient of the final output in dx.
func (p *pass) backward(w *weights, r *regulariser) float64 {
	n, d, penalty := p.net, p.net.form.dim, 0.0
	for l := len(p.layers) - 1; l >= 0; l-- {
		b, from, to, k := &p.layers[l], &n.w.blocks[l], &w.blocks[l], &n.blocks[l]
		dx, da, dup, dqkv := p.of(d, p.dx), p.of(d, p.da), p.of(4*d, p.dup), p.of(3*d, p.dqkv)

		mat.AddTMul(to.down, p.of(4*d, b.act), dx, 1)
		p.columnSums(to.downB, dx)
		k.down.in.Mul(dup, dx, mat.Epilogue{}, 1)
		n.form.geluBackward(p.dup[:p.rows*4*d], b.up[:p.rows*4*d])
		mat.AddTMul(to.up, p.of(d, b.b), dup, 1)
		p.columnSums(to.upB, dup)
		k.up.in.Mul(da, dup, mat.Epilogue{}, 1)
		mat.LayerNormBackward(dx, da, p.of(d, b.mid), from.gamma2, to.gamma2, to.beta2, n.form.eps)

		mat.AddTMul(to.proj, p.of(d, b.o), dx, 1)
		p.columnSums(to.projB, dx)
		k.proj.in.Mul(da, dx, mat.Epilogue{}, 1)
		for s := range p.seqs {
			for h := range n.form.heads {
				penalty += p.headBackward(l, s, h, da, dqkv, r)
			}
		}
		mat.AddTMul(to.qkv, p.of(d, b.a), dqkv, 1)
		p.columnSums(to.qkvB, dqkv)
		k.qkv.in.Mul(da, dqkv, mat.Epilogue{}, 1)
		mat.LayerNormBackward(dx, da, p.of(d, b.x), from.gamma1, to.gamma1, to.beta1, n.form.eps)
	}
	p.embedBackward(w)
	return penalty
}

// columnSums adds the sum of every column of m to sums.
func (p *pass) columnSums(sums []float32, m mat.Matrix) {
	mat.AddTMul(mat.Of(1, len(sums), sums), mat.Of(m.Rows, 1, p.ones), m, 1)
}

// embedBackward adds the gradients of the tensors that embed reads.
func (p *pass) embedBackward(w *weights) {
	f := &p.net.form
	dx := p.of(f.dim, p.dx)
	for i := range p.rows {
		row := dx.Row(i)
		add(w.positions.Row(i%f.n), row)
		if f.causal() {
			add(w.tokens.Row(int(p.ids[i])), row)
		}
	}
	if f.causal() {
		return
	}
	for s := range p.seqs {
		add(w.class, dx.Row(s*f.n))
		rest := dx.Slice(s*f.n+1, (s+1)*f.n)
		mat.AddTMul(w.patches, p.patchesOf(s), rest, 1)
		p.columnSums(w.patchB, rest)
	}
}
