// Package pointnet trains small PointNets (Qi and others 2017) for the rows of the truth
// page about shapes: layers on each point, the maximum of each feature over the points of
// a cloud, and layers on these maxima. It holds their losses, too: cross-entropy of
// classes, the Chamfer distance of clouds, and H_diff of features.
//
// A linear layer and ReLU follow each other, without ReLU after the last layer; there is
// no batch normalisation. Products, gradients and updates are those of package mat, so
// that the bits of a training do not depend on the number of workers.
package pointnet

import (
	"math"
	"math/rand/v2"

	"entropipe/models/mat"
)

// Dims is the number of coordinates of a point.
const Dims = 3

// Net is a network and the state of its training. It keeps the activations of the last
// Forward for Backward, and is not safe for concurrent use.
type Net struct {
	Workers int // goroutines of a product; 0 and 1 mean the caller's alone

	local, head         []layer
	params, grads, m, v []float32
	steps               int
	clouds, points      int // clouds, and points of each, in the last Forward
	peaks, dPeaks       []float32
	at                  []int32 // row of each maximum
}

// layer is a linear layer with its activations y [rows][out] and their gradients d.
type layer struct {
	in, out         int
	weights, bias   []float32 // [out][in], [out]
	gWeights, gBias []float32
	y, d            []float32
	forward, back   mat.Weights
	relu            bool
	packed          bool // forward holds the weights as they are
	input           mat.Matrix
}

// New returns a network with the widths of the layers on points, and of the layers on
// maxima, the last of which is the number of outputs. Weights are drawn from r with He's
// variance.
func New(local, head []int, r *rand.Rand) *Net {
	n := &Net{Workers: 1}
	width, total := Dims, 0
	add := func(layers *[]layer, widths []int) {
		for _, w := range widths {
			*layers = append(*layers, layer{in: width, out: w, relu: true})
			total += (width + 1) * w
			width = w
		}
	}
	add(&n.local, local)
	add(&n.head, head)
	n.head[len(n.head)-1].relu = false
	for _, v := range []*[]float32{&n.params, &n.grads, &n.m, &n.v} {
		*v = make([]float32, total)
	}
	at := 0
	view := func(size int) (p, g []float32) {
		p, g = n.params[at:at+size:at+size], n.grads[at:at+size:at+size]
		at += size
		return p, g
	}
	for l := range n.each {
		l.weights, l.gWeights = view(l.in * l.out)
		l.bias, l.gBias = view(l.out)
		deviation := math.Sqrt(2 / float64(l.in))
		if !l.relu {
			deviation = 0.1 / math.Sqrt(float64(l.in)) // outputs begin near zero
		}
		for i := range l.weights {
			l.weights[i] = float32(deviation * r.NormFloat64())
		}
	}
	return n
}

// each calls yield for every layer, in the order of a forward pass.
func (n *Net) each(yield func(*layer) bool) {
	for _, layers := range [][]layer{n.local, n.head} {
		for i := range layers {
			if !yield(&layers[i]) {
				return
			}
		}
	}
}

// Width returns the number of features of a point.
func (n *Net) Width() int { return n.local[len(n.local)-1].out }

// Outputs returns the number of outputs of a cloud.
func (n *Net) Outputs() int { return n.head[len(n.head)-1].out }

// Forward returns the outputs [clouds][Outputs] of clouds of equally many points,
// x [clouds·points][3], in memory of n until the next call.
func (n *Net) Forward(x []float32, points int) []float32 {
	n.points, n.clouds = points, len(x)/Dims/points
	h := mat.Of(len(x)/Dims, Dims, x)
	for i := range n.local {
		h = n.local[i].run(h, n.Workers)
	}
	width := n.Width()
	n.peaks, n.at = grown(n.peaks, n.clouds*width), grown(n.at, n.clouds*width)
	for i := range n.peaks {
		n.peaks[i] = float32(math.Inf(-1))
	}
	for c := range n.clouds {
		mat.ColumnMax(n.peaks[c*width:][:width], n.at[c*width:][:width], h.Slice(c*points, (c+1)*points),
			int32(c*points))
	}
	h = mat.Of(n.clouds, width, n.peaks)
	for i := range n.head {
		h = n.head[i].run(h, n.Workers)
	}
	return h.Data[:n.clouds*n.Outputs()]
}

// run computes the layer's activations from its input.
func (l *layer) run(x mat.Matrix, workers int) mat.Matrix {
	l.input = x
	if !l.packed {
		l.forward.PackT(mat.Of(l.out, l.in, l.weights))
		l.packed = true
	}
	l.y = grown(l.y, x.Rows*l.out)
	y := mat.Of(x.Rows, l.out, l.y)
	l.forward.Mul(y, x, mat.Epilogue{Bias: l.bias, ReLU: l.relu}, workers)
	return y
}

// Features returns the features of all points of the last Forward, [rows][Width], in
// memory of n.
func (n *Net) Features() []float32 {
	l := &n.local[len(n.local)-1]
	return l.y[:n.clouds*n.points*l.out]
}

// Backward computes the gradients of all weights from that of the outputs of the last
// Forward, dOut [clouds][Outputs], and from that of the features, dFeatures
// [rows][Width], which may be nil.
func (n *Net) Backward(dOut, dFeatures []float32) {
	last := &n.head[len(n.head)-1]
	last.d = append(last.d[:0], dOut...)
	n.dPeaks = grown(n.dPeaks, len(n.peaks))
	for i := len(n.head) - 1; i >= 0; i-- {
		under := n.dPeaks
		if i > 0 {
			under = n.head[i-1].gradient(n.clouds)
		}
		n.head[i].turn(under, n.Workers)
	}
	top := &n.local[len(n.local)-1]
	d := top.gradient(n.clouds * n.points)
	if dFeatures == nil {
		clear(d)
	} else {
		copy(d, dFeatures)
	}
	for i, g := range n.dPeaks {
		d[int(n.at[i])*top.out+i%top.out] += g
	}
	for i := len(n.local) - 1; i >= 0; i-- {
		var under []float32
		if i > 0 {
			under = n.local[i-1].gradient(n.clouds * n.points)
		}
		n.local[i].turn(under, n.Workers)
	}
}

// gradient returns room for the gradients of the activations.
func (l *layer) gradient(rows int) []float32 {
	l.d = grown(l.d, rows*l.out)
	return l.d
}

// turn computes the gradients of the layer's weights from l.d, and those of its input
// unless under is nil.
func (l *layer) turn(under []float32, workers int) {
	rows := l.input.Rows
	if l.relu {
		for i, v := range l.y[:rows*l.out] {
			if v <= 0 {
				l.d[i] = 0
			}
		}
	}
	d := mat.Of(rows, l.out, l.d)
	mat.TMul(mat.Of(l.out, l.in, l.gWeights), d, l.input, workers)
	clear(l.gBias)
	for i := range rows {
		for j, v := range d.Row(i) {
			l.gBias[j] += v
		}
	}
	if under != nil {
		l.back.Pack(mat.Of(l.out, l.in, l.weights))
		l.back.Mul(mat.Of(rows, l.in, under), d, mat.Epilogue{}, workers)
	}
}

// Update takes one step of AdamW against the gradients of the last Backward, whose norm
// it cuts at 1.
func (n *Net) Update(rate float64) {
	square := 0.0
	for _, g := range n.grads {
		square += float64(g) * float64(g)
	}
	n.steps++
	adam(rate).Update(n.params, n.grads, n.m, n.v, n.steps, float32(1/max(1, math.Sqrt(square))))
	n.changed()
}

// changed says that weights are others than those of the last Forward.
func (n *Net) changed() {
	for l := range n.each {
		l.packed = false
	}
}

// adam is the optimiser of package preprocess/train.
func adam(rate float64) mat.AdamW {
	return mat.AdamW{Rate: rate, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 1e-4}
}

// grown returns a slice of length n, in s's memory if that is large enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
