package train

import "entropipe/models/mat"

// gelu is the form that the class of models uses: GPT-2's has a hyperbolic
// tangent, ViT's is exact.
func (f *form) gelu(dst, src []float32) {
	if f.causal() {
		mat.GELUTanh(dst, src)
	} else {
		mat.GELU(dst, src)
	}
}

// geluBackward multiplies d by gelu's derivative at x.
func (f *form) geluBackward(d, x []float32) {
	if f.causal() {
		mat.GELUTanhBackward(d, x)
	} else {
		mat.GELUBackward(d, x)
	}
}
