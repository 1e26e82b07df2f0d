package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"entropipe/algos/entropy"
)

// Sets of any dimension, for which no operator is built: the same measures of
// maxima by comparing every pair, for experiments.

// drawSet makes n points of a kind in the unit box. Every kind has a share or a
// correlation that its seed draws, so that the entropy varies.
func drawSet(kind string, n, dims int, r *rand.Rand) [][]float64 {
	points, level := make([][]float64, n), r.Float64()
	for i := range points {
		x := make([]float64, dims)
		switch kind {
		case "uniform":
			for d := range x {
				x[d] = r.Float64()
			}
		case "correlated": // the more, the fewer maximal points
			common := r.NormFloat64()
			for d := range x {
				x[d] = math.Sqrt(level)*common + math.Sqrt(1-level)*r.NormFloat64()
			}
		case "front": // a share of points none of which dominates another
			sum, depth := 0.0, 1.0
			if r.Float64() > level*level {
				depth = .5 * r.Float64()
			}
			for d := range x {
				x[d] = r.ExpFloat64()
				sum += x[d]
			}
			for d := range x {
				x[d] *= depth / sum
			}
		}
		points[i] = x
	}
	for d := range dims {
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, x := range points {
			lo, hi = min(lo, x[d]), max(hi, x[d])
		}
		for _, x := range points {
			x[d] = (x[d] - lo) / (hi - lo)
		}
	}
	return points
}

// dominates tells whether no coordinate of x is above w's.
func dominates(w, x []float64) bool {
	for d, v := range x {
		if v > w[d] {
			return false
		}
	}
	return true
}

// boxesBelow returns the boxes below maximal points, as the points that each
// holds: all legal ranges there are, up to parts of them. Points differ.
func boxesBelow(points [][]float64) (f entropy.Family, maximal []int) {
	f = entropy.Family{Points: len(points), Start: []int{0}}
	for i, w := range points {
		if slices.ContainsFunc(points[:i], func(x []float64) bool { return dominates(x, w) }) ||
			slices.ContainsFunc(points[i+1:], func(x []float64) bool { return dominates(x, w) }) {
			continue
		}
		maximal = append(maximal, i)
		for j, x := range points {
			if dominates(w, x) {
				f.Members = append(f.Members, int32(j))
			}
		}
		f.Start = append(f.Start, len(f.Members))
	}
	return f, maximal
}

// softBoxes is F for maxima of any dimension: the witnesses are the maximal points
// whose boxes hold most that no earlier one's holds, at most k.
func softBoxes(points [][]float64, f *entropy.Family, maximal []int, k int, tau float64) float64 {
	n := len(points)
	covered, witnesses := make([]bool, n), []int{}
	for range min(k, len(maximal)) {
		best, most := -1, 0
		for r := range maximal {
			fresh := 0
			for _, i := range f.Range(r) {
				if !covered[i] {
					fresh++
				}
			}
			if fresh > most {
				best, most = r, fresh
			}
		}
		if best < 0 {
			break
		}
		for _, i := range f.Range(best) {
			covered[i] = true
		}
		witnesses = append(witnesses, maximal[best])
	}
	member := make([]float64, n*len(witnesses))
	for i, x := range points {
		for j, w := range witnesses {
			out := 0.0
			for d, v := range x {
				out = max(out, v-points[w][d])
			}
			member[i*len(witnesses)+j] = math.Exp(-out / tau)
		}
	}
	return leastWeights(member, n, len(witnesses))
}

// leastWeights is F of memberships, row by row, after ten rounds from equal weights.
func leastWeights(member []float64, n, k int) (f float64) {
	q, next := make([]float64, k), make([]float64, k)
	for j := range q {
		q[j] = 1 / float64(k)
	}
	for round := range 11 {
		clear(next)
		f = 0
		for i := range n {
			row, a := member[i*k:][:k], 1/float64(n)
			for j, m := range row {
				a += q[j] * m
			}
			f -= math.Log(a) / float64(n)
			for j, m := range row {
				next[j] += q[j] * m / a
			}
		}
		if round == 10 {
			break
		}
		sum := 0.0
		for _, v := range next {
			sum += v
		}
		for j := range q {
			q[j] = next[j] / sum
		}
	}
	return f
}

// ballsIn is H_diff in any dimension, and how sure points are of their anchor: the
// mean of the largest p_ij.
func ballsIn(points, anchors [][]float64, alpha float64) (h, sure float64) {
	mass, p := make([]float64, len(anchors)), make([]float64, len(anchors))
	for _, x := range points {
		least := math.Inf(1)
		for j, a := range anchors {
			p[j] = alpha * squaredDistance(x, a)
			least = min(least, p[j])
		}
		sum := 0.0
		for j := range p {
			p[j] = math.Exp(least - p[j])
			sum += p[j]
		}
		for j := range p {
			mass[j] += p[j] / sum
		}
		sure += 1 / sum / float64(len(points))
	}
	return entropy.OfSizes(mass), sure
}
