package model

import (
	"math"

	"entropipe/models/mat"
	"entropipe/sparse/hf"
)

// Logits sets dst [rows][vocabulary] to the logits of hidden [rows][hidden]. It
// panics if the model has no output matrix (hf.Config.Head) or the shapes do not
// fit.
func (s *Session) Logits(dst, hidden mat.Matrix) {
	s.product(dst, hidden, s.m.config.Vocab)
}

// Classify sets dst [images][labels] to the logits of images, from the result of
// Images. It panics if the model has no classifier or the shapes do not fit.
func (s *Session) Classify(dst, hidden mat.Matrix) {
	n := s.m.config.MaxPositions
	if hidden.Rows%n != 0 {
		panic(badHead)
	}
	first := hidden
	first.Rows, first.Stride = hidden.Rows/n, n*hidden.Stride
	s.product(dst, first, s.m.config.Labels)
}

func (s *Session) product(dst, hidden mat.Matrix, outputs int) {
	if !s.m.config.Head || dst.Rows != hidden.Rows || dst.Cols != outputs || hidden.Cols != s.m.config.Hidden {
		panic(badHead)
	}
	s.m.head.w.Mul(dst, hidden, mat.Epilogue{Bias: s.m.head.bias}, s.workers)
}

// Pool sets dst [hidden] to the embedding of one sequence, from its rows
// [tokens][hidden]. Without rows, and with hf.None, dst is zero. A zero vector
// stays zero when it is normalised.
func (s *Session) Pool(dst []float32, hidden mat.Matrix, p hf.Pooling) {
	if len(dst) != s.m.config.Hidden || hidden.Cols != len(dst) {
		panic(badPooling)
	}
	clear(dst)
	switch {
	case p.Mode == hf.None || hidden.Rows == 0:
	case p.Mode == hf.CLS:
		copy(dst, hidden.Row(0))
	case p.Mode == hf.Mean:
		s.sum = grow(s.sum, len(dst))
		clear(s.sum)
		for i := range hidden.Rows {
			for j, x := range hidden.Row(i) {
				s.sum[j] += float64(x)
			}
		}
		for j := range dst {
			dst[j] = float32(s.sum[j] / float64(hidden.Rows))
		}
	default:
		panic(badPooling)
	}
	if p.Normalize {
		normalize(dst)
	}
}

// normalize scales a vector to length 1; a zero vector stays zero.
func normalize(v []float32) {
	square := 0.0
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if square == 0 {
		return
	}
	f := 1 / math.Sqrt(square)
	for i, x := range v {
		v[i] = float32(float64(x) * f)
	}
}
