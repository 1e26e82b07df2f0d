package estimate

import "math"

// farther returns the probability that Student's t, or the normal variable for infinite
// degrees of freedom, lies farther from 0 than difference/deviation. Without deviation it
// is 0, or 1 for no difference.
func farther(difference, deviation, freedom float64) float64 {
	if deviation == 0 {
		if difference == 0 {
			return 1
		}
		return 0
	}
	t := math.Abs(difference / deviation)
	if math.IsInf(freedom, 1) {
		return math.Erfc(t / math.Sqrt2)
	}
	return beta(freedom/2, 0.5, freedom/(freedom+t*t))
}

// TwoSided returns the probability that Student's t lies farther from 0 than t.
func TwoSided(t, freedom float64) float64 { return farther(t, 1, freedom) }

// Quantile returns the value that Student's t stays below with probability p, from 0.5 to
// below 1, by bisection.
func Quantile(p, freedom float64) float64 {
	low, high := 0.0, 1.0
	for TwoSided(high, freedom) > 2*(1-p) {
		high *= 2
	}
	for range 200 {
		if middle := (low + high) / 2; TwoSided(middle, freedom) > 2*(1-p) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// beta is the regularised incomplete beta function, by its continued fraction (Lentz).
func beta(a, b, x float64) float64 {
	if x <= 0 || x >= 1 {
		return min(max(x, 0), 1)
	}
	if x > (a+1)/(a+b+2) {
		return 1 - beta(b, a, 1-x)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(a*math.Log(x)+b*math.Log1p(-x)+lab-la-lb) / a
	const tiny, near = 1e-300, 1e-15
	c, d, f := 1.0, 0.0, 1.0
	for i := range 400 {
		m, term := float64(i/2), 1.0
		switch {
		case i > 0 && i%2 == 0:
			term = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		case i > 0:
			term = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		d = 1 / nonZero(1+term*d, tiny)
		c = nonZero(1+term/c, tiny)
		f *= c * d
		if math.Abs(1-c*d) < near {
			break
		}
	}
	return front * (f - 1)
}

func nonZero(v, tiny float64) float64 {
	if math.Abs(v) < tiny {
		return tiny
	}
	return v
}
