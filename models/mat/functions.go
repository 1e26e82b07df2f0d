package mat

import "math"

//go:generate go run -C gen ./function -out ../function_amd64.s -stubs ../function_amd64.go -pkg mat

// The functions below set dst[i] to f(src[i]). dst and src have the same length,
// and are the same memory or do not overlap. The bits of a number depend on its
// argument alone. Errors are relative to the real function, in units of the last
// place (ulp) of a float32, for every finite argument including denormals, unless
// the comment gives another form.

// unary holds the bodies of a function of single numbers, one for each level.
type unary struct {
	portable     func(dst, src []float32)
	avx2, avx512 func(dst, src *float32, n int)
}

func (f *unary) apply(dst, src []float32) {
	lengths(len(src), dst)
	switch {
	case len(src) == 0:
	case level == AVX512:
		f.avx512(&dst[0], &src[0], len(src))
	case level == AVX2:
		f.avx2(&dst[0], &src[0], len(src))
	default:
		f.portable(dst, src)
	}
}

var (
	expFunction      = unary{expPortable, expAVX2, expAVX512}
	tanhFunction     = unary{tanhPortable, tanhAVX2, tanhAVX512}
	geluFunction     = unary{geluPortable, geluAVX2, geluAVX512}
	geluTanhFunction = unary{geluTanhPortable, geluTanhAVX2, geluTanhAVX512}
	siluFunction     = unary{siluPortable, siluAVX2, siluAVX512}
)

// Exp sets dst to e^x, within 1.02 ulp. Results above 3.4e38 are infinite.
func Exp(dst, src []float32) { expFunction.apply(dst, src) }

func expPortable(dst, src []float32) {
	for i, x := range src {
		dst[i] = float32(math.Exp(float64(x)))
	}
}

// Tanh sets dst to the hyperbolic tangent of x, within 3 ulp.
func Tanh(dst, src []float32) { tanhFunction.apply(dst, src) }

func tanhPortable(dst, src []float32) {
	for i, x := range src {
		dst[i] = float32(math.Tanh(float64(x)))
	}
}

// GELU sets dst to x·Φ(x), where Φ is the distribution function of the normal
// distribution (Hendrycks and Gimpel 2016), within 4e-7·max(|x|, 2^-126).
func GELU(dst, src []float32) { geluFunction.apply(dst, src) }

func geluPortable(dst, src []float32) {
	for i, v := range src {
		x := float64(v)
		dst[i] = float32(0.5 * x * math.Erfc(-x/math.Sqrt2))
	}
}

// GELUTanh sets dst to x·(1+tanh(√(2/π)(x+0.044715x³)))/2, the approximation of
// GELU in GPT-2, within 4e-7·max(|x|, 2^-126).
func GELUTanh(dst, src []float32) { geluTanhFunction.apply(dst, src) }

func geluTanhPortable(dst, src []float32) {
	for i, v := range src {
		x := float64(v)
		dst[i] = float32(x / (1 + math.Exp(-geluA*x*(1+geluB*x*x))))
	}
}

const (
	geluA = 2 * 0.7978845608028654 // 2√(2/π): (1+tanh(u))/2 = 1/(1+exp(-2u))
	geluB = 0.044715
)

// SiLU sets dst to x/(1+e^-x), within 3 ulp. Below -88.7, where the real result
// lies between -4e-37 and 0, dst may be 0.
func SiLU(dst, src []float32) { siluFunction.apply(dst, src) }

func siluPortable(dst, src []float32) {
	for i, v := range src {
		x := float64(v)
		dst[i] = float32(x / (1 + math.Exp(-x)))
	}
}
