package pointnet

import (
	"math"
	"math/rand/v2"

	"entropipe/models/mat"
)

// Balls is H_diff of the features of points: the entropy of the masses of anchors, which
// learn with the network. Features are divided by the root of their mean squared length,
// a constant for gradients, because Alpha is meant for clouds in a unit box.
type Balls struct {
	Alpha float64 // inverse temperature
	Count int     // anchors

	anchors, grads, m, v []float32 // [Count][width]
	steps                int
	scaled, bias, p, d   []float32
	forward, back        mat.Weights
}

// begin takes anchors from the features of points.
func (b *Balls) begin(x mat.Matrix, scale float64, r *rand.Rand) {
	size := b.Count * x.Cols
	for _, v := range []*[]float32{&b.anchors, &b.grads, &b.m, &b.v, &b.scaled} {
		*v = make([]float32, size)
	}
	b.bias = make([]float32, b.Count)
	for j := range b.Count {
		for k, v := range x.Row(r.IntN(x.Rows)) {
			b.anchors[j*x.Cols+k] = float32(scale * float64(v))
		}
	}
}

// Gradient returns the mean of H_diff over clouds of equally many points with features
// x [rows][width], and sets d [rows][width] to weight times its gradient. The first call
// draws the anchors from r.
func (b *Balls) Gradient(d, x []float32, width, points int, weight float64, r *rand.Rand) (h float64) {
	rows := len(x) / width
	in := mat.Of(rows, width, x)
	square := 0.0
	for _, v := range x {
		square += float64(v) * float64(v) / float64(rows)
	}
	scale := 1 / math.Sqrt(max(square, 1e-12)) // features times scale have unit length
	if b.anchors == nil {
		b.begin(in, scale, r)
	}
	for j := range b.Count {
		length := 0.0
		for k, v := range b.anchors[j*width:][:width] {
			length += float64(v) * float64(v)
			b.scaled[j*width+k] = float32(2 * b.Alpha * scale * float64(v))
		}
		b.bias[j] = float32(-b.Alpha * length)
	}
	anchors := mat.Of(b.Count, width, b.scaled)
	b.p, b.d = grown(b.p, rows*b.Count), grown(b.d, rows*b.Count)
	p, dLogit := mat.Of(rows, b.Count, b.p), mat.Of(rows, b.Count, b.d)
	b.forward.PackT(anchors)
	b.forward.Mul(p, in, mat.Epilogue{Bias: b.bias}, 1)
	mat.Softmax(p, 1)
	clouds := rows / points
	for c := range clouds {
		h += b.cloud(p.Slice(c*points, (c+1)*points), dLogit.Slice(c*points, (c+1)*points),
			weight/float64(clouds)) / float64(clouds)
	}
	b.back.Pack(anchors)
	b.back.Mul(mat.Of(rows, width, d), dLogit, mat.Epilogue{}, 1)
	b.learn(in, dLogit, scale)
	return h
}

// cloud returns H_diff of a cloud with assignments p, and sets d to weight times the
// gradient by the logits.
func (b *Balls) cloud(p, d mat.Matrix, weight float64) (h float64) {
	mass := make([]float64, b.Count)
	for i := range p.Rows {
		for j, v := range p.Row(i) {
			mass[j] += float64(v) / float64(p.Rows)
		}
	}
	slope := make([]float64, b.Count) // derivative of H by p_ij, times the number of points
	for j, v := range mass {
		v = max(v, 1e-30)
		h -= v * math.Log(v)
		slope[j] = -math.Log(v) - 1
	}
	for i := range p.Rows {
		row, g, mean := p.Row(i), d.Row(i), 0.0
		for j, v := range row {
			mean += float64(v) * slope[j]
		}
		for j, v := range row {
			g[j] = float32(weight / float64(p.Rows) * float64(v) * (slope[j] - mean))
		}
	}
	return h
}

// learn computes the gradients of the anchors.
func (b *Balls) learn(x, dLogit mat.Matrix, scale float64) {
	grads := mat.Of(b.Count, x.Cols, b.grads)
	mat.TMul(grads, dLogit, x, 1)
	for j := range b.Count {
		sum := 0.0
		for i := range dLogit.Rows {
			sum += float64(dLogit.Row(i)[j])
		}
		for k, v := range b.anchors[j*x.Cols:][:x.Cols] {
			g := &b.grads[j*x.Cols+k]
			*g = float32(2 * b.Alpha * (scale*float64(*g) - sum*float64(v)))
		}
	}
}

// Update takes one step of the anchors against their gradients.
func (b *Balls) Update(rate float64) {
	b.steps++
	o := adam(rate)
	o.Decay = 0
	o.Update(b.anchors, b.grads, b.m, b.v, b.steps, 1)
}
