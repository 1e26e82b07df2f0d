package kern

import (
	"math"
	"slices"
)

// summary describes the keys and values of one block.
type summary struct {
	column  int // the block of the layout's columns
	keys    []int32
	mean    []float64 // [Dim] the mean key
	radius  float64   // max |key-mean|
	half    []float64 // [Dim] max |key-mean| along each axis
	spread  float64   // an upper bound of the largest eigenvalue of the keys' covariance
	value   []float64 // [Dim] the mean value
	vRadius float64   // max |value-mean value|
	last    int32     // the largest of keys
}

func (j *Job) summarise(head int, keys []int32) summary {
	s := summary{keys: keys, mean: make([]float64, j.Dim), half: make([]float64, j.Dim), value: make([]float64, j.Dim)}
	n := float64(len(keys))
	if len(keys) > 0 {
		s.last = slices.Max(keys)
	}
	for _, k := range keys {
		for e := range j.Dim {
			s.mean[e] += float64(j.key(int(k), head)[e]) / n
			s.value[e] += float64(j.value(int(k), head)[e]) / n
		}
	}
	cov := make([]float64, j.Dim*j.Dim)
	for _, k := range keys {
		rho, rhoV := 0.0, 0.0
		d := make([]float64, j.Dim)
		for e := range d {
			d[e] = float64(j.key(int(k), head)[e]) - s.mean[e]
			v := float64(j.value(int(k), head)[e]) - s.value[e]
			rho, rhoV = rho+d[e]*d[e], rhoV+v*v
			s.half[e] = max(s.half[e], math.Abs(d[e]))
		}
		s.radius, s.vRadius = max(s.radius, math.Sqrt(rho)), max(s.vRadius, math.Sqrt(rhoV))
		for a, x := range d {
			for b, y := range d {
				cov[a*j.Dim+b] += x * y / n
			}
		}
	}
	s.spread = spread(cov, j.Dim)
	return s
}

// spread returns tr(M^16)^(1/16), an upper bound of the largest eigenvalue of the
// positive semidefinite matrix m [n][n], and for n = 64 at most 1.3 times that
// eigenvalue. It overwrites m.
func spread(m []float64, n int) float64 {
	log, power := 0.0, 1.0 // M^power is e^log·m
	square := make([]float64, len(m))
	for {
		trace := 0.0
		for i := range n {
			trace += m[i*n+i]
		}
		switch {
		case trace <= 0:
			return 0
		case !(trace < math.MaxFloat64):
			return math.Inf(1) // the matrix has overflowed: there is no finite bound
		}
		log += math.Log(trace)
		if power == 16 {
			return math.Exp(log/power) * (1 + 1e-9)
		}
		for i := range m {
			m[i] /= trace
		}
		clear(square)
		for a := range n {
			for k := range n {
				x := m[a*n+k]
				for b := range n {
					square[a*n+b] += x * m[k*n+b]
				}
			}
		}
		m, square = square, m
		log, power = 2*log, 2*power
	}
}
