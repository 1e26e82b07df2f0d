package train

import (
	"math"
	"math/rand/v2"

	"entropipe/models/mat"
)

// form is the shape of a network. A network for text has a vocabulary, a network
// for images has classes.
type form struct {
	layers, dim, heads int
	n                  int // tokens of a sequence
	vocab              int // number of tokens of the vocabulary; 0 for images
	answers            int // targets of a sequence of text; 0 if every token has a target
	side, channels     int // pixels a side of an image, numbers a pixel
	patch, classes     int
	eps                float32 // epsilon of layer norms
}

func (f *form) causal() bool { return f.vocab > 0 }

// headDim returns the length of a head's queries, keys and values.
func (f *form) headDim() int { return f.dim / f.heads }

// pixels returns the length of a patch: patch²·channels.
func (f *form) pixels() int { return f.patch * f.patch * f.channels }

// outputs returns the number of rows of logits of a sequence.
func (f *form) outputs() int {
	if f.causal() {
		return f.n
	}
	return 1
}

// targets returns the number of targets of a sequence.
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
	tokens    mat.Matrix // [vocab][dim]; both the embedding and the layer of the logits
	patches   mat.Matrix // [pixels of a patch][dim]
	positions mat.Matrix // [n][dim]
	head      mat.Matrix // [dim][classes]
	blocks    []blockWeights

	patchB, class []float32
	gamma, beta   []float32 // scale and shift of the last norm
	headB         []float32
}

// view returns views of the tensors in data, which lie one after the other,
// matrices first.
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

// matrices returns the number of values of all matrices, which lie before the
// vectors.
func (f *form) matrices() int {
	n := f.n*f.dim + f.layers*12*f.dim*f.dim
	if f.causal() {
		return n + f.vocab*f.dim
	}
	return n + (f.pixels()+f.classes)*f.dim
}

// size returns the number of all values.
func (f *form) size() int {
	n := f.matrices() + f.layers*13*f.dim + 2*f.dim
	if !f.causal() {
		n += 2*f.dim + f.classes
	}
	return n
}

// multiplications returns the number of multiplications for a token, forward and
// backward, without the regulariser.
func (f *form) multiplications() float64 {
	d, keys, out := float64(f.dim), float64(f.n), float64(f.vocab)
	if f.causal() {
		keys /= 2
	} else {
		out = float64(f.classes) / keys
	}
	return 3 * (float64(f.layers)*(12*d*d+2*keys*d) + out*d)
}

// packed holds a matrix packed twice: for the outputs of its layer, and for the
// gradients of its inputs.
type packed struct{ out, in mat.Weights }

// network holds the learned values, and the same packed for the products of a
// step.
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

// start draws the first values, as GPT-2 does: with deviation 0.02, and less for
// layers that add to the residual stream. The layer of patches reads many numbers
// of size 1, so its deviation is less, too: patches and positions then begin with
// the same size.
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
		waves(w.positions, 2*deviation) // with the size of a token, tokens would hide positions
	} else {
		draw(w.positions.Slice(0, 1), deviation)
		waves2(w.positions.Slice(1, n.form.n), n.form.side/n.form.patch, 2*deviation)
	}
	residual := deviation / math.Sqrt(2*float64(n.form.layers))
	for l := range w.blocks {
		b := &w.blocks[l]
		// In narrow networks 0.02 is too little for the layers that read a
		// normalised row: 0.5/√dim keeps the size of their outputs at any width.
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

// frequency returns the frequency of a pair of columns of the first positions, in
// radians a token: wavelengths grow from 2.5 tokens to four contexts.
func frequency(pair, pairs, n int) float64 {
	return 2 * math.Pi / (2.5 * math.Pow(1.6*float64(n), float64(pair)/float64(max(1, pairs-1))))
}

// waves sets positions to sines and cosines (Vaswani et al. 2017), from which
// training starts.
func waves(m mat.Matrix, amplitude float64) {
	for i := range m.Rows {
		wave(m.Row(i), i, m.Rows, amplitude)
	}
}

// waves2 is waves for places in a square: half of the columns hold waves of a
// patch's column, half hold waves of its row.
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

// lookBack changes the queries and keys of the first block so that head h attends
// to the token h+1 places before its own, for every head but the last: keys become
// waves of their positions, and queries the same waves turned back by h+1 places.
// Drawn weights attend to all tokens alike, and a small network with a long
// context spends more than a thousand steps on that plateau before the first head
// finds its neighbour.
func (n *network) lookBack() {
	const peak = 12 // score of the token h+1 places before, in logits
	f, qkv := &n.form, n.w.blocks[0].qkv
	headDim, pairs := f.headDim(), f.dim/2
	own := min(headDim/2, pairs) // a head reads the shortest waves
	gain := math.Sqrt(peak * math.Sqrt(float64(headDim)) / float64(max(1, own)))
	for h := range max(1, f.heads-1) {
		for pair := range own {
			sin, cos := math.Sincos(frequency(pair, (f.dim+1)/2, f.n) * float64(h+1))
			query, key := h*headDim+2*pair, f.dim+h*headDim+2*pair
			even, odd := qkv.Row(2*pair), qkv.Row(2*pair+1)
			even[query] += float32(gain * cos)
			odd[query] += float32(gain * sin)
			even[query+1] -= float32(gain * sin)
			odd[query+1] += float32(gain * cos)
			even[key] += float32(gain)
			odd[key+1] += float32(gain)
		}
	}
}

// pack copies the weights into the order in which products read them.
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
