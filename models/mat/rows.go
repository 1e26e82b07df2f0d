package mat

import "math"

// Softmax replaces every row x by exp(scale·x) over its sum: weights that are
// positive and sum to 1. Each is within 1e-6 of the real one, relative to it,
// times 1+|scale·x|; what is below 2⁻¹²⁶ may be 0. A row of one number is 1.
func Softmax(x Matrix, scale float32) {
	x.check()
	if x.empty() {
		return
	}
	for i := range x.Rows {
		softmaxPortable(x.Row(i), scale)
	}
}

func softmaxPortable(row []float32, scale float32) {
	top := math.Inf(-1)
	for _, v := range row {
		top = max(top, float64(v)*float64(scale))
	}
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(float64(v)*float64(scale) - top)
	}
	for j, v := range row {
		row[j] = float32(math.Exp(float64(v)*float64(scale)-top) / sum)
	}
}

// LayerNorm sets every row of dst to (x-mean)/√(variance+eps)·gamma+beta, mean
// and variance (over n) those of src's row (Ba, Kiros and Hinton). dst may be
// src. A row's mean is subtracted before anything is squared; the error is at
// most 1e-6·(|mean|/√(variance+eps)+|y|)+1e-6·|beta| with y the result before
// gamma and beta, times gamma.
func LayerNorm(dst, src Matrix, gamma, beta []float32, eps float32) {
	sameShape(dst, src)
	lengths(src.Cols, gamma, beta)
	if src.empty() {
		return
	}
	for i := range src.Rows {
		in, out := src.Row(i), dst.Row(i)
		mean, square := 0.0, 0.0
		for _, v := range in {
			mean += float64(v)
		}
		mean /= float64(len(in))
		for _, v := range in {
			square += (float64(v) - mean) * (float64(v) - mean)
		}
		f := 1 / math.Sqrt(square/float64(len(in))+float64(eps))
		for j, v := range in {
			out[j] = float32((float64(v)-mean)*f*float64(gamma[j]) + float64(beta[j]))
		}
	}
}

// RMSNorm sets every row of dst to x/√(mean of x²+eps)·gamma (Zhang and
// Sennrich), within 1e-6 of it. dst may be src.
func RMSNorm(dst, src Matrix, gamma []float32, eps float32) {
	sameShape(dst, src)
	lengths(src.Cols, gamma)
	if src.empty() {
		return
	}
	for i := range src.Rows {
		in, out := src.Row(i), dst.Row(i)
		square := 0.0
		for _, v := range in {
			square += float64(v) * float64(v)
		}
		f := 1 / math.Sqrt(square/float64(len(in))+float64(eps))
		for j, v := range in {
			out[j] = float32(float64(v) * f * float64(gamma[j]))
		}
	}
}
