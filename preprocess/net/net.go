// Package net runs the network that moves points, and says how wrong an answer
// is that was found on moved points.
//
// The network is EntropyNet, as the paper "Differentiable Entropy
// Regularization" describes it, in the manner of PointNet (Qi et al. 2017):
// three layers for each point (64, 128, 256), the maximum of each feature over
// all points, two layers on the point's features beside these (128, then a
// displacement), ReLU and batch normalisation behind all but the last. A point
// moves by tanh of that, times sigma. Package train makes such networks.
//
// It is not exact, and it is far dearer than the operators: 150 thousand
// floating-point operations a point, where an exact planar hull needs a
// nanosecond. What it promises: no coordinate moves by more than sigma; a
// point's displacement depends on the point and on the frame's global features,
// not on the order of points or the number of workers; on one class of CPU it
// is the same bits. Judge adds the exact error of an answer.
package net

import (
	"fmt"

	"entropipe/models"
	"entropipe/models/mat"
)

// Local are the widths of the layers of a point by itself, Global that of the
// frame's features, Head that of the layer on both.
var Local = [3]int{64, 128, Global}

const (
	Global = 256
	Head   = 128
)

// Net is a network ready to run: batch normalisation is folded into the
// weights. It is not changed by use, so many goroutines may share one.
type Net struct {
	dims  int
	sigma float64

	local  [3]mat.Weights
	bias   [3][]float32
	head   mat.Weights // the half that takes a point's features
	global []float32   // the half that takes the frame's, [Head][Global]
	offset []float32   // bias of the head
	last   mat.Weights
	end    []float32 // bias of the last layer
}

// New makes the network of a model, which must be valid (models.ReadEntropyNet
// returns no other). A model that moves no points is an error.
func New(m *models.EntropyNet) (*Net, error) {
	if m.Meta.Mode != models.Perturb && m.Meta.Mode != models.Denoise {
		return nil, fmt.Errorf("a model of mode %s holds no network: want %s or %s", m.Meta.Mode, models.Perturb, models.Denoise)
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

// Dims is the number of coordinates of the points that the network moves.
func (n *Net) Dims() int { return n.dims }
