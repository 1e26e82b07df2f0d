package entropy

import (
	"math"
	"slices"
)

// MetricEntropy computes H_diff under a distance that the caller supplies, for points of
// any type: nodes of a graph, embeddings, drawings. It is the entropy of the masses
// p_j = 1/n Σ_i p_ij of anchors, where p_ij is the softmax over j of
// -Alpha·Distance(x_i, c_j). With the squared Euclidean distance the value is that of
// BallEntropy.
//
// Like BallEntropy it serves for comparison, and is no estimate of the entropy of maxima
// or hulls: those have no metric. It says how evenly the anchors share the points.
//
// A MetricEntropy keeps its working memory between calls. It must not be used by two
// goroutines at a time: make one for each goroutine.
type MetricEntropy[P any] struct {
	// Distance returns d(x, c) ≥ 0, which the softmax takes as it is: the square of a
	// metric, where H_diff is to be the paper's. +Inf means that c is out of reach of x; a
	// point that reaches no anchor counts for all of them equally.
	Distance func(x, anchor P) float64
	// Alpha is the inverse temperature. 0 means 3 divided by the median, over the points,
	// of the gap between the two least distances, so that half of the points prefer their
	// anchor to the second one by a factor of e³ or more; 1 where that gap is 0 or
	// infinite.
	Alpha float64

	p, mass, logs []float64
}

// contrast is Alpha times the median gap, where a MetricEntropy chooses Alpha.
const contrast = 3

// Value returns H_diff, from 0 to log k for k anchors. No points or no anchors give 0. It
// panics for a distance that is NaN or negative. Cost: n·k calls of Distance and as many
// exponentials.
func (m *MetricEntropy[P]) Value(points, anchors []P) float64 {
	n, k := len(points), len(anchors)
	if n == 0 || k == 0 {
		return 0
	}
	m.p, m.mass = slices.Grow(m.p[:0], n*k)[:n*k], zeros(m.mass, k)
	for i, x := range points {
		for j, c := range anchors {
			d := m.Distance(x, c)
			if !(d >= 0) {
				panic("entropy: a distance is negative or NaN")
			}
			m.p[i*k+j] = d
		}
	}
	alpha := m.Alpha
	if alpha == 0 {
		alpha = m.contrasting(k)
	}
	for i := range points {
		row := m.p[i*k:][:k]
		for j, d := range row {
			row[j] = -alpha * d
		}
		softmax(row)
		for j, p := range row {
			m.mass[j] += p / float64(n)
		}
	}
	m.logs = logarithms(m.logs, m.mass)
	return entropyOf(m.mass, m.logs)
}

// contrasting returns contrast divided by the median gap between the two least distances
// of a point.
func (m *MetricEntropy[P]) contrasting(k int) float64 {
	if k < 2 {
		return 1
	}
	var gaps []float64
	for row := range slices.Chunk(m.p, k) {
		first, second := math.Inf(1), math.Inf(1)
		for _, d := range row {
			if d < first {
				first, second = d, first
			} else if d < second {
				second = d
			}
		}
		if !math.IsInf(first, 1) {
			gaps = append(gaps, second-first)
		}
	}
	if len(gaps) == 0 {
		return 1
	}
	slices.Sort(gaps)
	if gap := gaps[len(gaps)/2]; gap > 0 && !math.IsInf(gap, 1) {
		return contrast / gap
	}
	return 1
}
