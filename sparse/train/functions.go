package train

import (
	"math"

	"entropipe/models/mat"
)

// gelu is the form that the class of models uses: GPT-2's has a hyperbolic
// tangent, ViT's is exact.
func (f *form) gelu(dst, src []float32) {
	if f.causal() {
		mat.GELUTanh(dst, src)
	} else {
		mat.GELU(dst, src)
	}
}

// geluBackward multiplies d by the derivative at x, where y is the value. y/x,
// which both forms are within rounding a smooth function of, saves the tangent
// and the distribution.
func (f *form) geluBackward(d, x, y []float32) {
	const (
		a = 2 * 0.7978845608028654 // 2√(2/π)
		b = 0.044715
	)
	y = y[:len(x)]
	d = d[:len(x)]
	if f.causal() {
		for i, v := range x {
			s := float32(0.5)
			if v != 0 {
				s = y[i] / v
			}
			// x·s with s the logistic function of u: s + x·s·(1-s)·u'
			d[i] *= s + (y[i]-y[i]*s)*(a+3*a*b*v*v)
		}
		return
	}
	var density [256]float32
	const scale = 0.3989422804014327 // 1/√(2π)
	for lo := 0; lo < len(x); lo += len(density) {
		part := density[:min(len(density), len(x)-lo)]
		for i := range part {
			part[i] = -0.5 * x[lo+i] * x[lo+i]
		}
		mat.Exp(part, part)
		for i, e := range part {
			v, s := x[lo+i], float32(0.5)
			if v != 0 {
				s = y[lo+i] / v
			}
			d[lo+i] *= s + v*scale*e
		}
	}
}

// layerNormBackward adds to dx the gradient of the norm's input x, from dy of
// its output, and to dgamma and dbeta those of its vectors.
func layerNormBackward(dx, dy, x mat.Matrix, gamma, dgamma, dbeta []float32, eps float32) {
	n := float32(x.Cols)
	gamma, dgamma, dbeta = gamma[:x.Cols], dgamma[:x.Cols], dbeta[:x.Cols]
	for i := range x.Rows {
		in, g, out := x.Row(i)[:x.Cols], dy.Row(i)[:x.Cols], dx.Row(i)[:x.Cols]
		var mean, square float32
		for _, v := range in {
			mean += v
		}
		mean /= n
		for _, v := range in {
			square += (v - mean) * (v - mean)
		}
		f := float32(1 / math.Sqrt(float64(square/n)+float64(eps)))
		var sum, dot float32
		for j, v := range in {
			y, d := (v-mean)*f, g[j]
			dbeta[j] += d
			dgamma[j] += d * y
			d *= gamma[j]
			sum += d
			dot += d * y
		}
		sum, dot = sum/n, dot/n
		for j, v := range in {
			out[j] += f * (g[j]*gamma[j] - sum - (v-mean)*f*dot)
		}
	}
}

func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + (s2 + s3)
}
