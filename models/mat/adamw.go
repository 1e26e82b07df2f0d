package mat

import "math"

// AdamW holds the settings of Adam with decoupled weight decay (Loshchilov and
// Hutter 2019), as PyTorch computes it. The caller owns the moments, so that it can
// store them.
type AdamW struct {
	Rate, Beta1, Beta2, Eps, Decay float64
}

// Update moves the weights p against their gradients g, which it multiplies by
// scale (1, or less to clip their norm). m and v are the moments, zeros before
// step 1, and Update advances them. step counts from 1. All slices have the same
// length. The bits of a weight depend on its own numbers alone. The error of a step
// is a few ulp of the weight's change.
func (o AdamW) Update(p, g, m, v []float32, step int, scale float32) {
	lengths(len(p), g, m, v)
	c := o.constants(step, scale)
	switch {
	case len(p) == 0:
		return
	case level == AVX512:
		adamWAVX512(&p[0], &g[0], &m[0], &v[0], len(p), &c.scale)
		return
	case level == AVX2:
		adamWAVX2(&p[0], &g[0], &m[0], &v[0], len(p), &c.scale)
		return
	}
	for i := range p {
		d := float32(g[i] * c.scale)
		m[i] = float32(c.beta1*m[i]) + float32(c.rest1*d)
		v[i] = float32(c.beta2*v[i]) + float32(c.rest2*float32(d*d))
		root := float32(math.Sqrt(float64(v[i]))) * c.root
		p[i] = float32(p[i]*c.keep) - float32(c.rate*m[i])/(root+c.eps)
	}
}

// adamConstants holds the factors that are equal for all weights of a step, in the
// order in which the kernels read them.
type adamConstants struct {
	scale, beta1, rest1, beta2, rest2 float32
	root                              float32 // 1/√(1-beta2^step)
	eps                               float32
	rate                              float32 // rate/(1-beta1^step)
	keep                              float32 // 1-rate·decay
}

func (o AdamW) constants(step int, scale float32) adamConstants {
	return adamConstants{
		scale: scale,
		beta1: float32(o.Beta1), rest1: float32(1 - o.Beta1),
		beta2: float32(o.Beta2), rest2: float32(1 - o.Beta2),
		root: float32(1 / math.Sqrt(1-math.Pow(o.Beta2, float64(step)))),
		eps:  float32(o.Eps),
		rate: float32(o.Rate / (1 - math.Pow(o.Beta1, float64(step)))),
		keep: float32(1 - o.Rate*o.Decay),
	}
}
