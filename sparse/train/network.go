package train

import (
	"math"
	"math/rand/v2"

	"entropipe/models/mat"
)

// form is the shape of a network. A text's has a vocabulary, an image's has
// classes.
type form struct {
	layers, dim, heads int
	n                  int // tokens of a sequence
	vocab              int // 0: images
	answers            int // of a sequence of text; 0: every token has a target
	side, channels     int // of images, in pixels and numbers a pixel
	patch, classes     int
	eps                float32 // of layer norms
}

func (f *form) causal() bool { return f.vocab > 0 }

// headDim is the length of a head's queries, keys and values.
func (f *form) headDim() int { return f.dim / f.heads }

// pixels is the number of numbers of a patch.
func (f *form) pixels() int { return f.patch * f.patch * f.channels }

// outputs is the number of rows of logits of a sequence.
func (f *form) outputs() int {
	if f.causal() {
		return f.n
	}
	return 1
}

// targets is the number of targets of a sequence.
func (f *form) targets() int {
	if f.answers > 0 {
		return f.answers
	}
	return f.outputs()
}

// blockWeights are views of one block's tensors, or of their gradients.
// Matrices are [in][out].
type blockWeights struct {
	qkv, proj, up, down     mat.Matrix
	qkvB, projB, upB, downB []float32
	gamma1, beta1           []float32
	gamma2, beta2           []float32
}

// weights are views of all tensors.
type weights struct {
	tokens    mat.Matrix // [vocab][dim]; the logits' too
	patches   mat.Matrix // [pixels of a patch][dim]
	positions mat.Matrix // [n][dim]
	head      mat.Matrix // [dim][classes]
	blocks    []blockWeights

	patchB, class []float32
	gamma, beta   []float32 // of the last norm
	headB         []float32
}

// view cuts data, all tensors one after the other: matrices first.
func (f *form) view(data []float32) (w weights) {
	vector := func(n int) (v []float32) { v, data = data[:n:n], data[n:]; return v }
	matrix := func(rows, cols int) mat.Matrix { return mat.Of(rows, cols, vector(rows*cols)) }
	w.blocks = make([]blockWeights, f.layers)
	d := f.dim
	if f.causal() {
		w.tokens = matrix(f.vocab, d)
	} else {
		w.patches, w.head = matrix(f.pixels(), d), matrix(d, f.classes)
	}
	w.positions = matrix(f.n, d)
	for l := range w.blocks {
		b := &w.blocks[l]
		b.qkv, b.proj, b.up, b.down = matrix(d, 3*d), matrix(d, d), matrix(d, 4*d), matrix(4*d, d)
	}
	for l := range w.blocks {
		b := &w.blocks[l]
		b.qkvB, b.projB, b.upB, b.downB = vector(3*d), vector(d), vector(4*d), vector(d)
		b.gamma1, b.beta1, b.gamma2, b.beta2 = vector(d), vector(d), vector(d), vector(d)
	}
	w.gamma, w.beta = vector(d), vector(d)
	if !f.causal() {
		w.patchB, w.class, w.headB = vector(d), vector(d), vector(f.classes)
	}
	return w
}

// matrices is the number of values of all matrices, which stand first.
func (f *form) matrices() int {
	n := f.n*f.dim + f.layers*12*f.dim*f.dim
	if f.causal() {
		return n + f.vocab*f.dim
	}
	return n + (f.pixels()+f.classes)*f.dim
}

// size is the number of all values.
func (f *form) size() int {
	n := f.matrices() + f.layers*13*f.dim + 2*f.dim
	if !f.causal() {
		n += 2*f.dim + f.classes
	}
	return n
}

// multiplications of a token, forward and backward, regularisers left out.
func (f *form) multiplications() float64 {
	d, keys, out := float64(f.dim), float64(f.n), float64(f.vocab)
	if f.causal() {
		keys /= 2
	} else {
		out = float64(f.classes) / keys
	}
	return 3 * (float64(f.layers)*(12*d*d+2*keys*d) + out*d)
}

// packed are a matrix for the outputs of its layer, and for the gradients of
// its inputs.
type packed struct{ out, in mat.Weights }

// network is what is learned, and packed for the products of a step.
type network struct {
	form   form
	params []float32
	w      weights // views of params

	blocks []struct{ qkv, proj, up, down packed }
	first  mat.Weights // patches to tokens
	last   packed      // tokens to logits
}

func newNetwork(f form, r *rand.Rand) *network {
	n := &network{form: f, params: make([]float32, f.size())}
	n.w = f.view(n.params)
	n.blocks = make([]struct{ qkv, proj, up, down packed }, f.layers)
	n.start(r)
	return n
}

// start draws the first values, as GPT-2 does: deviation 0.02, less for what
// adds to the residual stream. A patch's layer sees many numbers of size 1, so
// its deviation is less too: patches and positions begin alike.
func (n *network) start(r *rand.Rand) {
	const deviation = 0.02
	draw := func(m mat.Matrix, sigma float64) {
		for i := range m.Rows {
			for j := range m.Row(i) {
				m.Row(i)[j] = float32(sigma * r.NormFloat64())
			}
		}
	}
	ones := func(v []float32) {
		for i := range v {
			v[i] = 1
		}
	}
	w := &n.w
	draw(w.tokens, deviation)
	if !n.form.causal() {
		draw(w.patches, 2*deviation/math.Sqrt(float64(n.form.pixels())))
	}
	draw(w.head, deviation)
	if n.form.causal() {
		waves(w.positions, 2*deviation) // twice a token's size, or tokens drown them
	} else {
		draw(w.positions.Slice(0, 1), deviation)
		waves2(w.positions.Slice(1, n.form.n), n.form.side/n.form.patch, 2*deviation)
	}
	residual := deviation / math.Sqrt(2*float64(n.form.layers))
	for l := range w.blocks {
		b := &w.blocks[l]
		// Of narrow networks 0.02 is too little for the layers that read a
		// normalised row: 1/√dim keeps their outputs' size, whatever the width.
		wide := max(deviation, 0.5/math.Sqrt(float64(n.form.dim)))
		draw(b.qkv, wide)
		draw(b.proj, residual)
		draw(b.up, wide)
		draw(b.down, residual)
		ones(b.gamma1)
		ones(b.gamma2)
	}
	ones(w.gamma)
	if n.form.causal() {
		n.lookBack()
	}
}

// frequency is that of a pair of columns of the first positions, in radians a
// token: wavelengths grow from 2.5 tokens to four contexts.
func frequency(pair, pairs, n int) float64 {
	return 2 * math.Pi / (2.5 * math.Pow(1.6*float64(n), float64(pair)/float64(max(1, pairs-1))))
}

// waves sets positions to sines and cosines (Vaswani et al.) as a beginning of
// what is learned.
func waves(m mat.Matrix, amplitude float64) {
	for i := range m.Rows {
		wave(m.Row(i), i, m.Rows, amplitude)
	}
}

// waves2 is waves of places in a square: half of the columns for how far a
// patch is to the right, half for how far down.
func waves2(m mat.Matrix, across int, amplitude float64) {
	for i := range m.Rows {
		row := m.Row(i)
		wave(row[:len(row)/2], i%across, across, amplitude)
		wave(row[len(row)/2:], i/across, across, amplitude)
	}
}

// wave sets row to the waves of place i of n.
func wave(row []float32, i, n int, amplitude float64) {
	for j := range row {
		f := frequency(j/2, (len(row)+1)/2, n)
		row[j] = float32(amplitude * math.Cos(f*float64(i)-math.Pi/2*float64(j%2)))
	}
}

// lookBack adds to the queries and keys of the first block what makes all heads
// but the last look at the token 1, 2, … before their own: keys are waves of
// their positions, queries the same, turned back. Drawn weights look at all
// tokens alike, and a small network with a long context spends more than a
// thousand steps on that plateau before the first head finds its neighbour.
func (n *network) lookBack() {
	const peak = 12 // the score of the token looked for, in logits
	f, qkv := &n.form, n.w.blocks[0].qkv
	c, pairs := f.headDim(), f.dim/2
	own := min(c/2, pairs) // a head sees the shortest waves
	gain := math.Sqrt(peak * math.Sqrt(float64(c)) / float64(max(1, own)))
	for h := range max(1, f.heads-1) {
		for m := range own {
			sin, cos := math.Sincos(frequency(m, (f.dim+1)/2, f.n) * float64(h+1))
			q, k := h*c+2*m, f.dim+h*c+2*m
			x, y := qkv.Row(2*m), qkv.Row(2*m+1)
			x[q] += float32(gain * cos)
			y[q] += float32(gain * sin)
			x[q+1] -= float32(gain * sin)
			y[q+1] += float32(gain * cos)
			x[k] += float32(gain)
			y[k+1] += float32(gain)
		}
	}
}

// pack copies the weights into the order that products read them in.
func (n *network) pack(workers int) {
	mat.Tiles(len(n.blocks)+1, 1, workers, func(l, _ int) {
		if l == len(n.blocks) {
			if n.form.causal() {
				n.last.out.PackT(n.w.tokens)
				n.last.in.Pack(n.w.tokens)
				return
			}
			n.first.Pack(n.w.patches)
			n.last.out.Pack(n.w.head)
			n.last.in.PackT(n.w.head)
			return
		}
		b, w := &n.blocks[l], &n.w.blocks[l]
		for _, p := range []struct {
			to   *packed
			from mat.Matrix
		}{{&b.qkv, w.qkv}, {&b.proj, w.proj}, {&b.up, w.up}, {&b.down, w.down}} {
			p.to.out.Pack(p.from)
			p.to.in.PackT(p.from)
		}
	})
}
