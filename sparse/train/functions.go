package train

import "entropipe/models/mat"

// gelu applies the GELU of the class of models: with a hyperbolic tangent for
// GPT-2, exact for ViT.
func (f *form) gelu(dst, src []float32) {
	if f.causal() {
		mat.GELUTanh(dst, src)
	} else {
		mat.GELU(dst, src)
	}
}

// geluBackward multiplies d by the derivative of gelu at x.
func (f *form) geluBackward(d, x []float32) {
	if f.causal() {
		mat.GELUTanhBackward(d, x)
	} else {
		mat.GELUBackward(d, x)
	}
}
