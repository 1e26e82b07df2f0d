package train

import (
	"math"
	"math/rand/v2"

	"entropipe/models/mat"
	"entropipe/preprocess/net"
)

// norm is a layer of batch normalisation after a linear layer: its parameters, their
// gradients, the running statistics for inference, and the values of one batch that
// the backward pass needs.
type norm struct {
	gamma, beta   []float32
	gGamma, gBeta []float32
	mean, vari    []float32 // running, as PyTorch keeps them: vari is unbiased

	center       []float32 // subtracted before this batch is summed: the running mean before it
	batch        []float32 // mean of this batch
	inverse      []float32 // 1/√(variance+eps)
	scale, shift []float32
	sums         [][2][]float64 // Σ(z-center), Σ(z-center)² of each cloud
	back         [][2][]float64 // Σd, Σd·(z-batch) of each cloud
	a, b, c      []float32
}

func (p *norm) size(width int) {
	for _, v := range []*[]float32{&p.mean, &p.vari, &p.center, &p.batch, &p.inverse, &p.scale, &p.shift,
		&p.a, &p.b, &p.c} {
		*v = make([]float32, width)
	}
	for i := range p.vari {
		p.vari[i] = 1
	}
}

const (
	normEps  = 1e-5
	momentum = 0.1 // weight of a batch in the running statistics
)

// tileRows is the number of rows of a tile. The memory of a tile, some kilobytes a
// row, stays in the second-level cache. Sums over tiles are in float64.
const tileRows = 192

// network is EntropyNet during training. The rows of a batch are the points of its
// clouds, one cloud after the other. A goroutine works on one cloud at a time, and
// sums over the batch are taken cloud by cloud, so the bits of a step do not depend on
// the number of goroutines.
type network struct {
	dims    int
	workers int
	tile    int // tileRows, but for tests
	dropout float64

	params, grads []float32 // all trained parameters; the slices below are views of them
	weights       [4][]float32
	gWeights      [4][]float32
	last, gLast   []float32 // [dims][net.Head]
	bias, gBias   []float32 // bias of the last layer
	norms         [4]norm

	ends  []int     // end of each cloud in the batch
	x     []float32 // inputs, [row][dims]
	z     [4][]float32
	dz    [4][]float32
	h     []float32 // the head after ReLU and dropout
	out   []float32 // before tanh, [row][dims]
	dOut  []float32
	pool  []cloudScratch // scratch memory of each cloud
	packs [4]mat.Weights // outputs from inputs
	backs [4]mat.Weights // gradients of inputs from those of outputs
	final mat.Weights
	left  mat.Weights
	lastS []float32 // last layer, scaled for dropout
	state uint64    // random state of dropout, set for every step
}

// cloudScratch is the scratch memory of one cloud besides its rows.
type cloudScratch struct {
	tile   [2][]float32
	sum    [2][]float32
	peak   []float32 // the global feature
	at     []int32   // row of each maximum
	offset []float32 // the global feature's part of each row of the head
	shift  []float32
	center []float32
	dPeak  []float32
	dRow   []float32    // Σ of the head's gradients
	parts  [4][]float32 // this cloud's part of the gradients
	gLast  []float32
	gBias  []float32
}

// in returns the width of the input of a layer.
func (n *network) in(layer int) int {
	if layer == 0 {
		return n.dims
	}
	return net.Local[layer-1]
}

func (n *network) width(layer int) int {
	if layer == 3 {
		return net.Head
	}
	return net.Local[layer]
}

// newNetwork returns a network with dropout of that probability, rounded to 1/256. Its
// weights are drawn from r: with He's variance in the hidden layers, and so small in
// the last layer that first displacements are short.
func newNetwork(dims, workers int, dropout float64, r *rand.Rand) *network {
	n := &network{dims: dims, workers: workers, tile: tileRows, dropout: math.Round(dropout*256) / 256}
	n.lay()
	for l := range n.weights {
		fan := n.in(l)
		if l == 3 {
			fan = 2 * net.Global
		}
		for i := range n.weights[l] {
			n.weights[l][i] = float32(r.NormFloat64() * math.Sqrt(2/float64(fan)))
		}
		for i := range n.norms[l].gamma {
			n.norms[l].gamma[i] = 1
		}
	}
	for i := range n.last {
		n.last[i] = float32(r.NormFloat64() * 0.1 / math.Sqrt(net.Head))
	}
	return n
}

// lay allocates all parameters as one slice, so that a step and a checkpoint are one
// loop each.
func (n *network) lay() {
	type view struct {
		p, g *[]float32
		size int
	}
	var views []view
	total := 0
	add := func(p, g *[]float32, size int) { views = append(views, view{p, g, size}); total += size }
	for l := range 4 {
		fan := n.in(l)
		if l == 3 {
			fan = 2 * net.Global
		}
		p := &n.norms[l]
		p.size(n.width(l))
		add(&n.weights[l], &n.gWeights[l], n.width(l)*fan)
		add(&p.gamma, &p.gGamma, n.width(l))
		add(&p.beta, &p.gBeta, n.width(l))
	}
	add(&n.last, &n.gLast, n.dims*net.Head)
	add(&n.bias, &n.gBias, n.dims)
	n.params, n.grads = make([]float32, total), make([]float32, total)
	at := 0
	for _, v := range views {
		*v.p, *v.g = n.params[at:at+v.size:at+v.size], n.grads[at:at+v.size:at+v.size]
		at += v.size
	}
	n.lastS = make([]float32, len(n.last))
}

// reserve allocates a batch whose clouds end at the rows ends, and returns the inputs
// for the caller to fill, [rows][dims].
func (n *network) reserve(ends []int) []float32 {
	n.ends = append(n.ends[:0], ends...)
	rows := 0
	if len(ends) > 0 {
		rows = ends[len(ends)-1]
	}
	n.x, n.out, n.dOut = grown(n.x, rows*n.dims), grown(n.out, rows*n.dims), grown(n.dOut, rows*n.dims)
	for l := range 4 {
		n.z[l], n.dz[l] = grown(n.z[l], rows*n.width(l)), grown(n.dz[l], rows*n.width(l))
		for p := &n.norms[l]; len(p.sums) < len(ends); {
			w := n.width(l)
			p.sums = append(p.sums, [2][]float64{make([]float64, w), make([]float64, w)})
			p.back = append(p.back, [2][]float64{make([]float64, w), make([]float64, w)})
		}
	}
	n.h = grown(n.h, rows*net.Head)
	for len(n.pool) < len(ends) {
		n.pool = append(n.pool, n.newScratch())
	}
	return n.x
}

func (n *network) newScratch() cloudScratch {
	const wide = net.Global
	floats := func(k int) []float32 { return make([]float32, k) }
	s := cloudScratch{at: make([]int32, wide), peak: floats(wide), dPeak: floats(wide), offset: floats(net.Head),
		shift:  floats(net.Head),
		center: floats(net.Head), dRow: floats(net.Head), gLast: floats(len(n.last)), gBias: floats(n.dims)}
	for k := range 2 {
		s.tile[k], s.sum[k] = floats(n.tile*wide), floats(wide)
	}
	for l := range s.parts {
		fan := n.in(l)
		if l == 3 {
			fan = net.Global
		}
		s.parts[l] = floats(n.width(l) * fan)
	}
	return s
}

// grown returns a slice of length n, in s's memory if that is large enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// begin returns the first row of cloud b.
func (n *network) begin(b int) int {
	if b == 0 {
		return 0
	}
	return n.ends[b-1]
}

// eachCloud calls f for every cloud, in several goroutines.
func (n *network) eachCloud(f func(b int, s *cloudScratch)) {
	mat.Tiles(len(n.ends), 1, n.workers, func(b, _ int) { f(b, &n.pool[b]) })
}

// eachTile calls f for the rows of cloud b, tile by tile.
func (n *network) eachTile(b int, f func(lo, hi int)) {
	mat.Tiles(n.ends[b]-n.begin(b), n.tile, 1, func(lo, hi int) { f(n.begin(b)+lo, n.begin(b)+hi) })
}

// rowsOf returns rows lo to hi-1 of a matrix with the width.
func rowsOf(data []float32, width, lo, hi int) mat.Matrix {
	return mat.Of(hi-lo, width, data[lo*width:hi*width])
}
