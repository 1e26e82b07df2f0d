package main

import "math"

// probe is a logistic regression with two classes: weights of the numbers of an input, and an
// offset behind them.
type probe []float64

// probeSteps bounds the steps of a fit, whose convergence is linear.
const probeSteps = 1000

// fitProbe minimises Σ ln(1 + exp(-s·(w·x + b))) + penalty/2·|w|², where s is 1 for inputs whose
// label is true and -1 for the others; the offset b has no penalty. inputs are [n][d]. Every step
// solves with the same matrix, ¼XᵀX + penalty·I, which lies above all second derivatives
// (Böhning and Lindsay 1988), so that the loss falls at each step. It ends where no component
// of the gradient exceeds 1e-6·n. Without inputs all weights are 0. Cost: n·d² + d³ once, n·d
// + d² a step.
func fitProbe(inputs [][]float32, labels []bool, penalty float64) probe {
	if len(inputs) == 0 {
		return probe{0}
	}
	n, d := len(inputs), len(inputs[0])+1
	x := make([]float64, n*d)
	for i, in := range inputs {
		row := x[i*d : (i+1)*d]
		for c, v := range in {
			row[c] = float64(v)
		}
		row[d-1] = 1
	}
	above := make([]float64, d*d)
	for i := range n {
		row := x[i*d : (i+1)*d]
		for a, v := range row {
			to := above[a*d : a*d+a+1]
			for b := range to {
				to[b] += v * row[b] / 4
			}
		}
	}
	for a := range d - 1 {
		above[a*d+a] += penalty
	}
	above[d*d-1] += 1e-9 * float64(n)
	factor(above, d)
	w, slope := make(probe, d), make([]float64, d)
	for range probeSteps {
		w.slope(slope, x, labels, penalty)
		worst := 0.0
		for _, g := range slope {
			worst = max(worst, math.Abs(g))
		}
		if worst <= 1e-6*float64(n) {
			break
		}
		solveFactored(above, slope, d)
		for c, step := range slope {
			w[c] -= step
		}
	}
	return w
}

// slope sets dst to the gradient of the loss. x is [n][d], its last column 1.
func (w probe) slope(dst, x []float64, labels []bool, penalty float64) {
	d := len(w)
	for c := range d - 1 {
		dst[c] = penalty * w[c]
	}
	dst[d-1] = 0
	for i, label := range labels {
		row := x[i*d : (i+1)*d]
		sum := 0.0
		for c, v := range row {
			sum += w[c] * v
		}
		miss := 1 / (1 + math.Exp(-sum))
		if label {
			miss--
		}
		for c, v := range row {
			dst[c] += miss * v
		}
	}
}

// says returns the class of an input.
func (w probe) says(input []float32) bool {
	sum := w[len(w)-1]
	for c, v := range input {
		sum += w[c] * float64(v)
	}
	return sum > 0
}

// factor replaces the lower triangle of a positive definite matrix [d][d] by its Cholesky factor.
func factor(m []float64, d int) {
	for i := range d {
		for j := range i + 1 {
			sum := m[i*d+j]
			a, b := m[i*d:i*d+j], m[j*d:j*d+j]
			for k := range a {
				sum -= a[k] * b[k]
			}
			if i == j {
				m[i*d+i] = math.Sqrt(sum)
				continue
			}
			m[i*d+j] = sum / m[j*d+j]
		}
	}
}

// solveFactored replaces v by the solution of L·Lᵀ·x = v for a factor L.
func solveFactored(l, v []float64, d int) {
	for i := range d {
		sum := v[i]
		for k := range i {
			sum -= l[i*d+k] * v[k]
		}
		v[i] = sum / l[i*d+i]
	}
	for i := d - 1; i >= 0; i-- {
		v[i] /= l[i*d+i]
		for k := range i {
			v[k] -= l[i*d+k] * v[i]
		}
	}
}
