package mat

import "math"

// Multiply sets dst[i] to a[i]·b[i]. All have the same length; dst may be a or b.
func Multiply(dst, a, b []float32) {
	lengths(len(dst), a, b)
	switch {
	case len(dst) == 0:
	case level == AVX512:
		multiplyAVX512(&dst[0], &a[0], &b[0], len(dst))
	case level == AVX2:
		multiplyAVX2(&dst[0], &a[0], &b[0], len(dst))
	default:
		for i, x := range a {
			dst[i] = x * b[i]
		}
	}
}

// The functions below multiply d[i], a gradient of f(x[i]), by f's derivative
// at x[i]: it becomes the gradient of x[i]. d and x have the same length. The
// derivative is within 2e-6 of the real one, for every finite x.

// GELUBackward is the backward of GELU: Φ(x)+x·φ(x).
func GELUBackward(d, x []float32) {
	lengths(len(d), x)
	switch {
	case len(d) == 0:
	case level == AVX512:
		geluGradAVX512(&d[0], &d[0], &x[0], len(d))
	case level == AVX2:
		geluGradAVX2(&d[0], &d[0], &x[0], len(d))
	default:
		for i, v := range x {
			d[i] = float32(float64(d[i]) * geluSlope(float64(v)))
		}
	}
}

func geluSlope(x float64) float64 {
	return 0.5*math.Erfc(-x/math.Sqrt2) + x*math.Exp(-0.5*x*x)/math.Sqrt(2*math.Pi)
}

// GELUTanhBackward is the backward of GELUTanh.
func GELUTanhBackward(d, x []float32) {
	lengths(len(d), x)
	switch {
	case len(d) == 0:
	case level == AVX512:
		geluTanhGradAVX512(&d[0], &d[0], &x[0], len(d))
	case level == AVX2:
		geluTanhGradAVX2(&d[0], &d[0], &x[0], len(d))
	default:
		for i, v := range x {
			d[i] = float32(float64(d[i]) * geluTanhSlope(float64(v)))
		}
	}
}

func geluTanhSlope(x float64) float64 {
	x = min(max(x, -20), 20) // beyond, it is 1 or 0
	s := 1 / (1 + math.Exp(-geluA*x*(1+geluB*x*x)))
	return s * (1 + x*(1-s)*geluA*(1+3*geluB*x*x))
}

// SiLUBackward is the backward of SiLU: s·(1+x·(1-s)), s = 1/(1+e^-x).
func SiLUBackward(d, x []float32) {
	lengths(len(d), x)
	switch {
	case len(d) == 0:
	case level == AVX512:
		siluGradAVX512(&d[0], &d[0], &x[0], len(d))
	case level == AVX2:
		siluGradAVX2(&d[0], &d[0], &x[0], len(d))
	default:
		for i, v := range x {
			d[i] = float32(float64(d[i]) * siluSlope(float64(v)))
		}
	}
}

func siluSlope(x float64) float64 {
	s := 1 / (1 + math.Exp(-x))
	return s * (1 + x*(1-s))
}
