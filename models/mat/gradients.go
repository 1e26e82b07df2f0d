package mat

import "math"

// binary holds the bodies of a function of pairs of numbers, one for each
// level.
type binary struct {
	portable     func(dst, a, b []float32)
	avx2, avx512 func(dst, a, b *float32, n int)
}

func (f *binary) apply(dst, a, b []float32) {
	lengths(len(dst), a, b)
	switch {
	case len(dst) == 0:
	case level == AVX512:
		f.avx512(&dst[0], &a[0], &b[0], len(dst))
	case level == AVX2:
		f.avx2(&dst[0], &a[0], &b[0], len(dst))
	default:
		f.portable(dst, a, b)
	}
}

var (
	multiplyFunction         = binary{multiplyPortable, multiplyAVX2, multiplyAVX512}
	geluBackwardFunction     = binary{geluBackwardPortable, geluGradAVX2, geluGradAVX512}
	geluTanhBackwardFunction = binary{geluTanhBackwardPortable, geluTanhGradAVX2, geluTanhGradAVX512}
)

// Multiply sets dst[i] to a[i]·b[i]. The slices have the same length; dst may be a
// or b.
func Multiply(dst, a, b []float32) { multiplyFunction.apply(dst, a, b) }

func multiplyPortable(dst, a, b []float32) {
	for i, x := range a {
		dst[i] = x * b[i]
	}
}

// The next two functions multiply d[i], the gradient by f(x[i]), by the derivative
// of f at x[i], so that d[i] becomes the gradient by x[i]. d and x have the same
// length. The derivative is within 2e-6 of the real one for every finite x.

// GELUBackward multiplies d by the derivative of GELU, Φ(x)+x·φ(x).
func GELUBackward(d, x []float32) { geluBackwardFunction.apply(d, d, x) }

func geluBackwardPortable(dst, d, x []float32) {
	for i, v := range x {
		dst[i] = float32(float64(d[i]) * geluSlope(float64(v)))
	}
}

func geluSlope(x float64) float64 {
	return 0.5*math.Erfc(-x/math.Sqrt2) + x*math.Exp(-0.5*x*x)/math.Sqrt(2*math.Pi)
}

// GELUTanhBackward multiplies d by the derivative of GELUTanh.
func GELUTanhBackward(d, x []float32) { geluTanhBackwardFunction.apply(d, d, x) }

func geluTanhBackwardPortable(dst, d, x []float32) {
	for i, v := range x {
		dst[i] = float32(float64(d[i]) * geluTanhSlope(float64(v)))
	}
}

func geluTanhSlope(x float64) float64 {
	x = min(max(x, -20), 20) // beyond ±20 the slope is 1 or 0
	s := 1 / (1 + math.Exp(-geluA*x*(1+geluB*x*x)))
	return s * (1 + x*(1-s)*geluA*(1+3*geluB*x*x))
}

// SoftmaxBackward replaces the rows of d, the gradients by rows w of Softmax, by
// the gradients by scale·x: w·(d-Σw·d). d and w are [rows][n]. Each number is
// within 1e-6·(1+n/500)·w·(|d|+Σw·|d|) of the real one.
func SoftmaxBackward(d, w Matrix) {
	sameShape(d, w)
	if d.empty() {
		return
	}
	for i := range d.Rows {
		g, v := d.Row(i), w.Row(i)
		switch level {
		case AVX512:
			rowSoftmaxGradAVX512(&g[0], len(g), &v[0], rowDotAVX512(&g[0], len(g), &v[0]))
		case AVX2:
			rowSoftmaxGradAVX2(&g[0], len(g), &v[0], rowDotAVX2(&g[0], len(g), &v[0]))
		default:
			mean := 0.0
			for j, x := range g {
				mean += float64(x) * float64(v[j])
			}
			for j, x := range g {
				g[j] = float32(float64(v[j]) * (float64(x) - mean))
			}
		}
	}
}

// LayerNormBackward adds the gradients of LayerNorm to dx [rows][n], dgamma [n]
// and dbeta [n]. dy is the gradient by its result, and x its argument. Rows are
// added in ascending order; tiles that run at once need separate dgamma and dbeta.
// dx must not overlap dy or x. Cost: two reads of each row.
func LayerNormBackward(dx, dy, x Matrix, gamma, dgamma, dbeta []float32, eps float32) {
	sameShape(dx, dy, x)
	lengths(x.Cols, gamma, dgamma, dbeta)
	if x.empty() {
		return
	}
	for i := range x.Rows {
		in, d, out := x.Row(i), dy.Row(i), dx.Row(i)
		if level == Portable {
			layerNormBackward(out, d, in, gamma, dgamma, dbeta, eps)
			continue
		}
		p, n := &in[0], len(in)
		mean := float32(float64(rowSum(p, n)) / float64(n))
		f := inverseRoot(rowSquares(p, n, mean), n, eps)
		var sums [2]float32 // Σdy·gamma and Σdy·gamma·y
		if level == AVX512 {
			normGatherAVX512(p, n, &d[0], &gamma[0], &dgamma[0], &dbeta[0], mean, f, &sums)
			normSpreadAVX512(p, n, &d[0], &gamma[0], &out[0], mean, f, sums[0]/float32(n), f*sums[1]/float32(n))
		} else {
			normGatherAVX2(p, n, &d[0], &gamma[0], &dgamma[0], &dbeta[0], mean, f, &sums)
			normSpreadAVX2(p, n, &d[0], &gamma[0], &out[0], mean, f, sums[0]/float32(n), f*sums[1]/float32(n))
		}
	}
}

// layerNormBackward is the definition of LayerNormBackward for one row, in float64.
func layerNormBackward(dx, dy, x, gamma, dgamma, dbeta []float32, eps float32) {
	n := float64(len(x))
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += float64(v) / n
	}
	for _, v := range x {
		square += (float64(v) - mean) * (float64(v) - mean) / n
	}
	f := 1 / math.Sqrt(square+float64(eps))
	sum, dot := 0.0, 0.0
	for j, v := range x {
		y, d := (float64(v)-mean)*f, float64(dy[j])
		dbeta[j] += dy[j]
		dgamma[j] += float32(d * y)
		sum += d * float64(gamma[j]) / n
		dot += d * float64(gamma[j]) * y / n
	}
	for j, v := range x {
		y := (float64(v) - mean) * f
		dx[j] += float32(f * (float64(dy[j])*float64(gamma[j]) - sum - y*dot))
	}
}
