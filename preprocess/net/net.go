// Package net runs the network that moves points, and computes the exact error of
// answers that were found on moved points.
//
// The network is EntropyNet of the paper "Differentiable Entropy Regularization",
// a PointNet (Qi et al. 2017): three layers on each point (64, 128, 256), the
// maximum of each feature over all points, and two layers on the point's features
// and these maxima together (128, then a displacement). ReLU and batch
// normalisation follow every layer but the last. A point moves by sigma times tanh
// of the last layer's output. Package train makes such networks.
//
// The network costs 150 thousand floating-point operations a point, far more than
// the exact operators: an exact planar hull takes about a nanosecond a point.
//
// Guarantees: no coordinate moves by more than sigma. A point's displacement
// depends on the point and on the frame's global features, not on the order of the
// points or the number of workers. Displacements are the same bits on one class of
// CPU. Judge computes the exact error of an answer.
package net

import (
	"fmt"

	"entropipe/models"
	"entropipe/models/mat"
)

// Local holds the widths of the three layers on each point.
var Local = [3]int{64, 128, Global}

const (
	Global = 256 // width of the frame's features
	Head   = 128 // width of the layer on point and frame together
)

// Net is a network for inference, with batch normalisation folded into the
// weights. A Net is immutable, so goroutines may share it.
type Net struct {
	dims  int
	sigma float64

	local  [3]mat.Weights
	bias   [3][]float32
	head   mat.Weights // half of the head's weights, for the point's features
	global []float32   // half of the head's weights, for the frame's features, [Head][Global]
	offset []float32   // bias of the head
	last   mat.Weights
	end    []float32 // bias of the last layer
}

// New returns the network of a valid model; models.ReadEntropyNet returns valid
// models only. New fails if the model's mode is neither Perturb nor Denoise.
func New(m *models.EntropyNet) (*Net, error) {
	if m.Meta.Mode != models.Perturb && m.Meta.Mode != models.Denoise {
		return nil, fmt.Errorf("a model of mode %s holds no network: want %s or %s", m.Meta.Mode,
			models.Perturb, models.Denoise)
	}
	n := &Net{dims: m.Meta.Dims, sigma: m.Meta.Sigma}
	in := n.dims
	for l, out := range Local {
		w, b, err := m.Fold(fmt.Sprintf("local.%d", l))
		if err != nil {
			return nil, err
		}
		n.local[l].PackT(mat.Of(out, in, w))
		n.bias[l] = b
		in = out
	}
	w, b, err := m.Fold("head.0")
	if err != nil {
		return nil, err
	}
	both := mat.Of(Head, 2*Global, w)
	n.head.PackT(both.Columns(0, Global))
	for j := range Head {
		n.global = append(n.global, both.Row(j)[Global:]...)
	}
	n.offset = b
	n.last.PackT(mat.Of(n.dims, Head, m.Tensors["head.1.weight"].Data))
	n.end = m.Tensors["head.1.bias"].Data
	return n, nil
}

// Dims returns the number of coordinates of a point: 2 or 3.
func (n *Net) Dims() int { return n.dims }
