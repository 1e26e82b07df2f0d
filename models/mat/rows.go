package mat

import "math"

//go:generate go run -C gen ./rows -out ../rows_amd64.s -stubs ../rows_amd64.go -pkg mat

// The functions below compute every row separately: the bits of a row do not
// depend on other rows. In their comments x is a number of a row of n numbers.

// Softmax replaces every row by exp(scale·x)/Σexp(scale·x): weights from 0 to 1
// that sum to 1. scale must not be negative. The relative error of a weight is at
// most 1e-6·(1+scale·(top-x)+n/500), where top is the row's largest number; weights
// below 2⁻¹²⁶ may be 0.
func Softmax(x Matrix, scale float32) {
	x.check()
	if x.empty() {
		return
	}
	for i := range x.Rows {
		row := x.Row(i)
		if level == Portable {
			softmaxPortable(row, scale)
			continue
		}
		p, n := &row[0], len(row)
		rowScale(p, n, 1/rowExp(p, n, rowMax(p, n), scale))
	}
}

func softmaxPortable(row []float32, scale float32) {
	top := row[0]
	for _, v := range row {
		top = max(top, v)
	}
	sum := 0.0
	for j, v := range row {
		e := math.Exp(float64(scale) * (float64(v) - float64(top)))
		sum += e
		row[j] = float32(e)
	}
	for j, v := range row {
		row[j] = float32(float64(v) / sum)
	}
}

// LayerNorm sets every row of dst to y·gamma+beta, where y = (x-mean)/√(variance+eps)
// with the mean and the variance Σ(x-mean)²/n of src's row (Ba, Kiros and Hinton
// 2016). dst may be src. The error is at most
// 1e-6·(1+n/500)·(|mean|/√(variance+eps)+|y|)·|gamma|+1e-6·|beta|.
func LayerNorm(dst, src Matrix, gamma, beta []float32, eps float32) {
	sameShape(dst, src)
	lengths(src.Cols, gamma, beta)
	if src.empty() {
		return
	}
	for i := range src.Rows {
		in, out := src.Row(i), dst.Row(i)
		if level == Portable {
			layerNormPortable(out, in, gamma, beta, eps)
			continue
		}
		p, n := &in[0], len(in)
		mean := float32(float64(rowSum(p, n)) / float64(n))
		rowApply(p, n, &out[0], mean, inverseRoot(rowSquares(p, n, mean), n, eps), &gamma[0], &beta[0])
	}
}

// inverseRoot returns 1/√(square/n+eps).
func inverseRoot(square float32, n int, eps float32) float32 {
	return float32(1 / math.Sqrt(float64(square)/float64(n)+float64(eps)))
}

func layerNormPortable(out, in, gamma, beta []float32, eps float32) {
	mean, square := 0.0, 0.0
	for _, v := range in {
		mean += float64(v)
	}
	mean /= float64(len(in))
	for _, v := range in {
		d := float64(v) - mean
		square += float64(d * d)
	}
	f := 1 / math.Sqrt(square/float64(len(in))+float64(eps))
	for j, v := range in {
		out[j] = float32(float64((float64(v)-mean)*f*float64(gamma[j])) + float64(beta[j]))
	}
}

// RMSNorm sets every row of dst to x/√(Σx²/n+eps)·gamma (Zhang and Sennrich 2019).
// The relative error is at most 1e-6·(1+n/500). dst may be src.
func RMSNorm(dst, src Matrix, gamma []float32, eps float32) {
	sameShape(dst, src)
	lengths(src.Cols, gamma)
	if src.empty() {
		return
	}
	for i := range src.Rows {
		in, out := src.Row(i), dst.Row(i)
		if level == Portable {
			rmsNormPortable(out, in, gamma, eps)
			continue
		}
		p, n := &in[0], len(in)
		rowApply(p, n, &out[0], 0, inverseRoot(rowSquares(p, n, 0), n, eps), &gamma[0], nil)
	}
}

func rmsNormPortable(out, in, gamma []float32, eps float32) {
	square := 0.0
	for _, v := range in {
		square += float64(float64(v) * float64(v))
	}
	f := 1 / math.Sqrt(square/float64(len(in))+float64(eps))
	for j, v := range in {
		out[j] = float32(float64(v) * f * float64(gamma[j]))
	}
}

// The functions below call the kernel of the vector level in use. They are not a
// table, because arguments of calls through function values escape to the heap.

func rowMax(x *float32, n int) float32 {
	if level == AVX512 {
		return rowMaxAVX512(x, n)
	}
	return rowMaxAVX2(x, n)
}

func rowSum(x *float32, n int) float32 {
	if level == AVX512 {
		return rowSumAVX512(x, n)
	}
	return rowSumAVX2(x, n)
}

func rowSquares(x *float32, n int, center float32) float32 {
	if level == AVX512 {
		return rowSquaresAVX512(x, n, center)
	}
	return rowSquaresAVX2(x, n, center)
}

func rowExp(x *float32, n int, top, scale float32) float32 {
	if level == AVX512 {
		return rowExpAVX512(x, n, top, scale)
	}
	return rowExpAVX2(x, n, top, scale)
}

func rowScale(x *float32, n int, factor float32) {
	if level == AVX512 {
		rowScaleAVX512(x, n, factor)
	} else {
		rowScaleAVX2(x, n, factor)
	}
}

func rowApply(x *float32, n int, dst *float32, center, factor float32, gamma, beta *float32) {
	if level == AVX512 {
		rowApplyAVX512(x, n, dst, center, factor, gamma, beta)
	} else {
		rowApplyAVX2(x, n, dst, center, factor, gamma, beta)
	}
}
