package entropy

import "math"

// fractional returns a lower bound of the entropy of the classes: the least, over
// weights of the ranges and of single points with sum 1, of -(1/n) Σ_i log(weight of
// the ranges that hold i, and of i). With weights |group|/n the entropy of any
// partition is at least the sum, as every point's own group is among its ranges. The
// sum is convex in the weights. Expectation and maximisation from even weights comes
// near its least value; the logarithm of the largest (1/n) Σ_{i in r} 1/a_i bounds the
// distance and is subtracted, so any number of steps gives a true bound. The idea is
// that of Körner's graph entropy (1973). steps rounds are made, fewer where the
// distance falls below near, in nats.
func (s *classes) fractional(steps int, near float64) float64 {
	var (
		w      = make([]float64, s.ranges)
		single = make([]float64, len(s.weight))
		before = make([]float64, s.ranges+1) // weight of the ranges before each
		diff   = make([]float64, s.ranges+1)
		best   float64
	)
	alone := s.total // points in no range
	for _, v := range s.weight {
		alone -= v
	}
	for r := range w {
		w[r] = .5 / float64(s.ranges)
	}
	for k := range single {
		single[k] = .5 / s.total
	}
	aloneWeight := .5 / s.total
	for range steps {
		for r, v := range w {
			before[r+1] = before[r] + v
		}
		clear(diff)
		value, gap := 0.0, 0.0
		if alone > 0 {
			value -= alone / s.total * math.Log(aloneWeight)
			gap = 1 / aloneWeight / s.total
			aloneWeight = 1 / s.total
		}
		for k := range single {
			a := single[k]
			for _, v := range s.of(int32(k)) {
				a += before[v.to] - before[v.from]
			}
			value -= s.weight[k] / s.total * math.Log(a)
			part := s.weight[k] / s.total / a
			for _, v := range s.of(int32(k)) {
				diff[v.from] += part
				diff[v.to] -= part
			}
			gap = max(gap, 1/a/s.total)
			single[k] /= a * s.total
		}
		share := 0.0
		for r := range w {
			share += diff[r]
			gap = max(gap, share)
			w[r] *= share
		}
		best = max(best, value-math.Log(gap))
		if math.Log(gap) < near {
			break
		}
	}
	return best
}
