package train

import (
	"math"

	"entropipe/models/mat"
)

// regulariser is what backward does besides the loss.
type regulariser struct {
	kind              Regulariser
	lambda, mu, alpha float64
	share             float64 // of one head of one sequence in the mean over all
	anchors           *anchors
	gates             *gates
	to                *part
}

// regularRoom is memory for the clusters of one head and sequence, rows of k
// numbers.
type regularRoom struct {
	p, a, g, d []float32
	bias       []float32 // of every anchor
	pack       mat.Weights
}

func (r *regularRoom) reserve(n, k int) {
	if len(r.p) < n*k {
		r.p, r.a, r.g, r.d = make([]float32, n*k), make([]float32, n*k), make([]float32, n*k), make([]float32, n*k)
		r.bias = make([]float32, k)
	}
}

// temperature is the inverse one of a head's clusters.
func (r *regulariser) temperature(l, h int) float64 {
	if r.kind == Paper {
		return r.alpha
	}
	return r.anchors.alpha[l*r.anchors.heads+h]
}

// assign sets the room's p, [n][k], to what share of each key belongs to each
// anchor: softmax_i(-α‖k_j-c_i‖²), where ‖k_j‖² cancels.
func (p *pass) assign(a *head, c mat.Matrix, alpha float64) mat.Matrix {
	r := &p.room
	r.reserve(a.k.Rows, c.Rows)
	for i := range c.Rows {
		r.bias[i] = 0
		for _, v := range c.Row(i) {
			r.bias[i] -= v * v / 2
		}
	}
	to := mat.Of(a.k.Rows, c.Rows, r.p)
	r.pack.PackT(c)
	r.pack.Mul(to, a.k, mat.Epilogue{Bias: r.bias}, 1)
	mat.Softmax(to, float32(2*alpha))
	return to
}

// cluster returns the head's share of the regulariser's value, adds its
// gradient by attention's weights to dw, and leaves that by the logits of p in
// the room's d for clusterKeys.
//
// With a = w·p the gradient of H(a_t) by w_tj is -Σ_i p_ji log a_ti but for a
// constant, which the softmax of attention takes away; by p_ji it is
// -Σ_t w_tj (1+log a_ti).
func (p *pass) cluster(a *head, l, h int, dw mat.Matrix, r *regulariser) float64 {
	n := a.k.Rows
	c := r.anchors.of(l, h)
	k := c.Rows
	assigned := p.assign(a, c, r.temperature(l, h))
	d := mat.Of(n, k, p.room.d)
	if r.kind == Paper {
		for i := range n {
			clear(d.Row(i))
		}
		return r.share * shares(assigned, d, -r.lambda*r.share)
	}
	seen, g := mat.Of(n, k, p.room.a), mat.Of(n, k, p.room.g)
	p.weighted(a, seen, a.probs, assigned)
	value, weight := 0.0, r.lambda*r.share/float64(n)
	for t := range n {
		out := g.Row(t)
		for i, m := range seen.Row(t) {
			// Below the least normal number the entropy is nothing.
			log := math.Log(max(float64(m), 0x1p-126))
			value -= float64(m) * log
			out[i] = float32(-weight * (1 + log))
		}
	}
	value /= float64(n)
	p.paired(a, dw, g, assigned, true)
	gathered(a, d, a.probs, g)
	balance := shares(assigned, d, r.mu*r.share)
	return r.share * (value - r.mu/r.lambda*balance)
}

// shares returns H(s) of the shares s of the keys that the clusters hold, and
// adds -weight·∂H(s)/∂p to d.
func shares(p, d mat.Matrix, weight float64) (entropy float64) {
	s := make([]float64, p.Cols)
	for j := range p.Rows {
		for i, v := range p.Row(j) {
			s[i] += float64(v) / float64(p.Rows)
		}
	}
	for i, v := range s {
		log := math.Log(max(v, 0x1p-126))
		entropy -= v * log
		s[i] = weight / float64(p.Rows) * (1 + log)
	}
	for j := range d.Rows {
		row := d.Row(j)
		for i, v := range s {
			row[i] += float32(v)
		}
	}
	return entropy
}

// clusterKeys goes on from the gradient by p, which cluster left, to that of
// the keys, which it adds to dk, and of the anchors where they learn.
func (p *pass) clusterKeys(a *head, dk mat.Matrix, l, h int, r *regulariser) {
	n, c, alpha := a.k.Rows, r.anchors.of(l, h), r.temperature(l, h)
	assigned, d := mat.Of(n, c.Rows, p.room.p), mat.Of(n, c.Rows, p.room.d)
	mat.SoftmaxBackward(d, assigned)
	scaleRows(d, float32(2*alpha))
	p.room.pack.Pack(c)
	p.room.pack.Mul(dk, d, mat.Epilogue{Add: true}, 1)
	if r.kind != Paper {
		return
	}
	to := r.anchors.view(r.to.anchors, l, h)
	mat.TMul(to, d, a.k, true, 1)
	for j := range n {
		for i, v := range d.Row(j) {
			row := to.Row(i)
			for x, y := range c.Row(i) {
				row[x] -= v * y
			}
		}
	}
}
