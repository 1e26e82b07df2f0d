package main

import (
	"math"
	"math/rand/v2"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/hull"
	"entropipe/algos/maxima"
)

// What the experiments on measures of entropy share: the measures beside one
// another, on clouds in double precision.

// answerOf is the operator's answer: hull vertices or maximal points.
func answerOf[T geom.Float](c geom.Cloud[T], p entropy.Problem) []int32 {
	if p == entropy.Maxima2D {
		return (&maxima.Maxima[T]{}).Append2D(nil, c)
	}
	return (&hull.Hull2D[T]{}).Append(nil, c)
}

// guesses names what is compared with the entropy, in the order of tables.
var guesses = []struct{ name, title string }{
	{"f64", "F, 64 witnesses, τ 2e-4"}, {"f32", "F, 32 witnesses, τ 5e-4"}, {"g64", "G, 64 witnesses"},
	{"f512", "F of 512 points"}, {"logh", "log h"}, {"hdiff10", "H_diff, 16 anchors, α 10"},
	{"hdiff1000", "H_diff, 16 anchors, α 1000"}, {"hsoft", "H_soft, 8 random lines"},
	{"hsoftp", "H_soft, 8 principal lines"},
}

// guess computes them all. answer is the operator's, h how much of it is the
// problem's.
func guess(c geom.Cloud[float64], p entropy.Problem, h int, seed uint64) map[string]float64 {
	s := entropy.Surrogate[float64]{Problem: p, Tau: 2e-4}
	w := s.Witnesses(nil, c, 64)
	v := map[string]float64{"f64": s.Value(c, w), "g64": s.Hard(c, w).Upper, "f512": s.Estimate(c, 512, 64).F,
		"logh": math.Log(float64(h))}
	s.Tau = 5e-4
	v["f32"] = s.Value(c, s.Witnesses(nil, c, 32))
	r := rand.New(rand.NewPCG(seed, 5))
	anchors := anchorsOf(c, 16, r)
	v["hdiff10"] = (&entropy.BallEntropy[float64]{Alpha: 10}).Value(c, anchors)
	v["hdiff1000"] = (&entropy.BallEntropy[float64]{Alpha: 1000}).Value(c, anchors)
	v["hsoft"] = softCells(c, randomHalves(c, 8, r))
	v["hsoftp"] = softCells(c, entropy.PrincipalHalves(c, 8))
	return v
}

// softCells is H_soft over the cells that the cloud's points realise.
func softCells(c geom.Cloud[float64], halves []entropy.HalfSpace) float64 {
	s := entropy.CellEntropy[float64]{Tau: .05}
	return s.Value(c, halves, s.Cells(nil, c, halves))
}

// randomHalves are lines through random points in random directions.
func randomHalves(c geom.Cloud[float64], m int, r *rand.Rand) []entropy.HalfSpace {
	halves := make([]entropy.HalfSpace, m)
	for k := range halves {
		sin, cos := math.Sincos(2 * math.Pi * r.Float64())
		i := r.IntN(c.Len())
		halves[k] = entropy.HalfSpace{W: [3]float64{cos, sin}, B: cos*c.X[i] + sin*c.Y[i]}
	}
	return halves
}

// anchorsOf finds k anchors in the plane by spreadMeans.
func anchorsOf(c geom.Cloud[float64], k int, r *rand.Rand) [][3]float64 {
	points := make([][]float64, c.Len())
	for i := range points {
		points[i] = []float64{c.X[i], c.Y[i]}
	}
	anchors := make([][3]float64, k)
	for j, a := range spreadMeans(points, k, r) {
		copy(anchors[j][:], a)
	}
	return anchors
}

// spreadMeans finds anchors among points of any dimension: some far from each other, as
// k-means++ draws them (Arthur and Vassilvitskii, 2007), and eight rounds of Lloyd's
// algorithm.
func spreadMeans(points [][]float64, k int, r *rand.Rand) [][]float64 {
	n, dims := len(points), len(points[0])
	anchors := [][]float64{points[r.IntN(n)]}
	far, nearest := make([]float64, n), make([]int, n)
	reset := func() {
		for i := range far {
			far[i] = math.Inf(1)
		}
	}
	update := func(j int) (sum float64) {
		for i, x := range points {
			if d := squaredDistance(x, anchors[j]); d < far[i] {
				far[i], nearest[i] = d, j
			}
			sum += far[i]
		}
		return sum
	}
	reset()
	for j := range k - 1 {
		u, i := update(j)*r.Float64(), 0
		for ; i < n-1 && u > far[i]; i++ {
			u -= far[i]
		}
		anchors = append(anchors, points[i])
	}
	for range 8 {
		reset()
		for j := range anchors {
			update(j)
		}
		counts := make([]float64, k)
		for j := range anchors {
			anchors[j] = make([]float64, dims)
		}
		for i, j := range nearest {
			for d, v := range points[i] {
				anchors[j][d] += v
			}
			counts[j]++
		}
		for j := range anchors {
			for d := range anchors[j] {
				anchors[j][d] /= max(counts[j], 1)
			}
		}
	}
	return anchors
}

func squaredDistance(a, b []float64) (sum float64) {
	for d := range a {
		sum += (a[d] - b[d]) * (a[d] - b[d])
	}
	return sum
}
