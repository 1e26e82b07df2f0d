package mat

import "math"

//go:generate go run -C gen ./function -out ../function_amd64.s -stubs ../function_amd64.go -pkg mat

// The functions below set dst[i] to f(src[i]); dst and src have the same
// length, and are the same memory or do not overlap. A number's bits depend on
// its argument only. Errors are against the real function, in units of the
// last place (ulp) of a float32, for every finite argument, denormals
// included, unless another form is given.

// Exp is e^x, within 1.02 ulp; what is more than 3.4e38 is infinite.
func Exp(dst, src []float32) {
	lengths(len(src), dst)
	switch {
	case len(src) == 0:
		return
	case level == AVX512:
		expAVX512(&dst[0], &src[0], len(src))
		return
	case level == AVX2:
		expAVX2(&dst[0], &src[0], len(src))
		return
	}
	for i, x := range src {
		dst[i] = float32(math.Exp(float64(x)))
	}
}

// Tanh is the hyperbolic tangent, within 3 ulp.
func Tanh(dst, src []float32) {
	lengths(len(src), dst)
	switch {
	case len(src) == 0:
		return
	case level == AVX512:
		tanhAVX512(&dst[0], &src[0], len(src))
		return
	case level == AVX2:
		tanhAVX2(&dst[0], &src[0], len(src))
		return
	}
	for i, x := range src {
		dst[i] = float32(math.Tanh(float64(x)))
	}
}

// GELU is x·Φ(x) with the normal distribution Φ (Hendrycks and Gimpel), within
// 4e-7·max(|x|, 2^-126).
func GELU(dst, src []float32) {
	lengths(len(src), dst)
	switch {
	case len(src) == 0:
		return
	case level == AVX512:
		geluAVX512(&dst[0], &src[0], len(src))
		return
	case level == AVX2:
		geluAVX2(&dst[0], &src[0], len(src))
		return
	}
	for i, v := range src {
		x := float64(v)
		dst[i] = float32(0.5 * x * math.Erfc(-x/math.Sqrt2))
	}
}

// GELUTanh is the form with a hyperbolic tangent that some models were trained
// with: x·(1+tanh(√(2/π)(x+0.044715x³)))/2, within 4e-7·max(|x|, 2^-126).
func GELUTanh(dst, src []float32) {
	lengths(len(src), dst)
	switch {
	case len(src) == 0:
		return
	case level == AVX512:
		geluTanhAVX512(&dst[0], &src[0], len(src))
		return
	case level == AVX2:
		geluTanhAVX2(&dst[0], &src[0], len(src))
		return
	}
	for i, v := range src {
		x := float64(v)
		dst[i] = float32(x / (1 + math.Exp(-geluA*x*(1+geluB*x*x))))
	}
}

const (
	geluA = 2 * 0.7978845608028654 // 2√(2/π): (1+tanh(u))/2 = 1/(1+exp(-2u))
	geluB = 0.044715
)

// SiLU is x/(1+e^-x), within 3 ulp; below -88.7, where it is above -4e-37, it
// may be 0.
func SiLU(dst, src []float32) {
	lengths(len(src), dst)
	switch {
	case len(src) == 0:
		return
	case level == AVX512:
		siluAVX512(&dst[0], &src[0], len(src))
		return
	case level == AVX2:
		siluAVX2(&dst[0], &src[0], len(src))
		return
	}
	for i, v := range src {
		x := float64(v)
		dst[i] = float32(x / (1 + math.Exp(-x)))
	}
}
