package train

import (
	"math"

	"entropipe/models/mat"
)

// regulariser holds the arguments of backward that do not come from the loss.
type regulariser struct {
	kind              Regulariser
	lambda, mu, alpha float64
	share             float64 // weight of one head of one sequence in the mean over all
	anchors           *anchors
	gates             *gates
	to                *part
}

// regularRoom is memory for the clusters of one head of one sequence: n rows of
// k numbers, one row for each token and one column for each anchor.
type regularRoom struct {
	assigned   []float32 // share of each key that belongs to each anchor
	seen       []float32 // attention of each query to each cluster
	bySeen     []float32 // gradient by seen
	byAssigned []float32 // gradient by assigned; in clusterKeys by its logits
	bias       []float32 // [k] -‖c‖²/2 of each anchor c
	pack       mat.Weights
}

func (r *regularRoom) reserve(n, k int) {
	if len(r.assigned) < n*k {
		r.assigned, r.seen = make([]float32, n*k), make([]float32, n*k)
		r.bySeen, r.byAssigned = make([]float32, n*k), make([]float32, n*k)
		r.bias = make([]float32, k)
	}
}

// temperature returns the inverse temperature of a head's clusters.
func (r *regulariser) temperature(layer, h int) float64 {
	if r.kind == Paper {
		return r.alpha
	}
	return r.anchors.alpha[layer*r.anchors.heads+h]
}

// assign returns the share of each key j that belongs to each anchor i, [n][k]:
// softmax_i(-α‖k_j-c_i‖²), in which ‖k_j‖² cancels. The result lies in the room.
func (p *pass) assign(view *head, anchors mat.Matrix, alpha float64) mat.Matrix {
	room := &p.room
	room.reserve(view.k.Rows, anchors.Rows)
	for i := range anchors.Rows {
		room.bias[i] = 0
		for _, v := range anchors.Row(i) {
			room.bias[i] -= v * v / 2
		}
	}
	assigned := mat.Of(view.k.Rows, anchors.Rows, room.assigned)
	room.pack.PackT(anchors)
	room.pack.Mul(assigned, view.k, mat.Epilogue{Bias: room.bias}, 1)
	mat.Softmax(assigned, float32(2*alpha))
	return assigned
}

// cluster returns the head's share of the regulariser's value, adds the gradient
// by attention's weights to dw, and leaves the gradient by the assignment in
// the room, for clusterKeys.
//
// With the assignment p and a = w·p, the gradient of H(a_t) by w_tj is
// -Σ_i p_ji log a_ti up to a constant, which the softmax of attention cancels; its
// gradient by p_ji is -Σ_t w_tj (1+log a_ti).
func (p *pass) cluster(view *head, layer, h int, dw mat.Matrix, r *regulariser) float64 {
	n := view.k.Rows
	anchors := r.anchors.of(layer, h)
	k := anchors.Rows
	assigned := p.assign(view, anchors, r.temperature(layer, h))
	byAssigned := mat.Of(n, k, p.room.byAssigned)
	if r.kind == Paper {
		for i := range n {
			clear(byAssigned.Row(i))
		}
		return r.share * shares(assigned, byAssigned, -r.lambda*r.share)
	}
	seen, bySeen := mat.Of(n, k, p.room.seen), mat.Of(n, k, p.room.bySeen)
	p.weighted(view, seen, view.probs, assigned)
	value, weight := 0.0, r.lambda*r.share/float64(n)
	for t := range n {
		out := bySeen.Row(t)
		for i, m := range seen.Row(t) {
			// Below the least normal number m·log m is taken as zero.
			log := math.Log(max(float64(m), 0x1p-126))
			value -= float64(m) * log
			out[i] = float32(-weight * (1 + log))
		}
	}
	value /= float64(n)
	p.paired(view, dw, bySeen, assigned, mat.Epilogue{Add: true})
	gathered(view, byAssigned, view.probs, bySeen)
	balance := shares(assigned, byAssigned, r.mu*r.share)
	return r.share * (value - r.mu/r.lambda*balance)
}

// shares returns the entropy H(s) of the clusters' shares s of the keys, and adds
// -weight·∂H(s)/∂assigned to gradient.
func shares(assigned, gradient mat.Matrix, weight float64) (entropy float64) {
	share := make([]float64, assigned.Cols)
	for j := range assigned.Rows {
		for i, v := range assigned.Row(j) {
			share[i] += float64(v) / float64(assigned.Rows)
		}
	}
	for i, v := range share {
		log := math.Log(max(v, 0x1p-126))
		entropy -= v * log
		share[i] = weight / float64(assigned.Rows) * (1 + log)
	}
	for j := range gradient.Rows {
		row := gradient.Row(j)
		for i, v := range share {
			row[i] += float32(v)
		}
	}
	return entropy
}

// clusterKeys continues the backward pass from the gradient that cluster left in
// the room. It adds the gradient of the keys to dk, and the gradient of the
// anchors to the part if anchors are learned (Paper).
func (p *pass) clusterKeys(view *head, dk mat.Matrix, layer, h int, r *regulariser) {
	n, anchors, alpha := view.k.Rows, r.anchors.of(layer, h), r.temperature(layer, h)
	assigned, byAssigned := mat.Of(n, anchors.Rows, p.room.assigned), mat.Of(n, anchors.Rows, p.room.byAssigned)
	mat.SoftmaxBackward(byAssigned, assigned)
	scaleRows(byAssigned, float32(2*alpha))
	p.room.pack.Pack(anchors)
	p.room.pack.Mul(dk, byAssigned, mat.Epilogue{Add: true}, 1)
	if r.kind != Paper {
		return
	}
	to := r.anchors.view(r.to.anchors, layer, h)
	mat.AddTMul(to, byAssigned, view.k, 1)
	for j := range n {
		for i, v := range byAssigned.Row(j) {
			row := to.Row(i)
			for c, x := range anchors.Row(i) {
				row[c] -= v * x
			}
		}
	}
}
