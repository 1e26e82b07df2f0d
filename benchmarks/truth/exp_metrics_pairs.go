package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// embeddingSize is how many coordinates embeddings have; meaning is in the first
// few, with the least variance of noise.
const embeddingSize, meaningful = 16, 4

// pairsOf draws pairs whose similarity falls with the distance of their meaning.
// Noise grows tenfold from the first axis to the last, and axes are mixed by a
// rotation that all pairs share.
func pairsOf(n int, rotation [][]float64, r *rand.Rand) (difference [][]float64, similarity []float64) {
	for range n {
		size := 2 * r.Float64()
		v := make([]float64, embeddingSize)
		apart := normals(meaningful, size, r)
		square := 0.0
		for k := range v {
			v[k] = 0.3 * math.Pow(10, float64(k)/(embeddingSize-1)) * r.NormFloat64()
			if k < meaningful {
				v[k] += apart[k]
				square += apart[k] * apart[k]
			}
		}
		mixed := make([]float64, embeddingSize)
		for i, row := range rotation {
			for k, x := range row {
				mixed[i] += x * v[k]
			}
		}
		difference, similarity = append(difference, mixed), append(similarity, math.Exp(-math.Sqrt(square)))
	}
	return difference, similarity
}

// rotationOf is a random orthogonal matrix, by Gram and Schmidt.
func rotationOf(n int, r *rand.Rand) [][]float64 {
	var rows [][]float64
	for len(rows) < n {
		v := normals(n, 1, r)
		for _, u := range rows {
			dot := 0.0
			for k := range v {
				dot += u[k] * v[k]
			}
			for k := range v {
				v[k] -= dot * u[k]
			}
		}
		length := 0.0
		for _, x := range v {
			length = math.Hypot(length, x)
		}
		for k := range v {
			v[k] /= length
		}
		rows = append(rows, v)
	}
	return rows
}

func embeddingRun(ctx context.Context, pairs int, use []uint64) ([]record, error) {
	names := []string{euclidean, scaled, mahalanobis}
	score, gain := make([][]float64, len(names)), make([][]float64, len(names))
	for _, seed := range use {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r := rand.New(rand.NewPCG(seed, 3))
		rotation := rotationOf(embeddingSize, r)
		learn, similar := pairsOf(pairs, rotation, r)
		test, truth := pairsOf(pairs, rotation, r)
		for k, name := range names {
			w := metricOf(name, learn, similar, 0)
			var near []float64
			for _, v := range test {
				near = append(near, -quadratic(w, v))
			}
			s := 100 * rankCorrelation(near, truth)
			score[k] = append(score[k], s)
			gain[k] = append(gain[k], s-score[0][len(score[0])-1])
		}
	}
	out := make([]record, len(names))
	for k, name := range names {
		out[k].Text = map[string]string{"data": "embeddings", "distance": name}
		out[k].add("score", use, score[k])
		out[k].add("gain", use, gain[k])
	}
	return out, nil
}

// metricOf returns the matrix of a squared distance. The learned one is the
// inverse of the covariance of differences of pairs that are alike (the nearest
// tenth): relevant components analysis (Bar-Hillel and others 2003).
//
// Shrinkage adds so many times the mean variance to every axis of that covariance: with
// few pairs, or axes that hardly vary, its inverse is mostly noise.
func metricOf(name string, learn [][]float64, similar []float64, shrinkage float64) [][]float64 {
	size := len(learn[0])
	w := make([][]float64, size)
	for i := range w {
		w[i] = make([]float64, size)
		w[i][i] = 1
	}
	switch name {
	case scaled:
		for i := range w {
			sum := 0.0
			for _, v := range learn {
				sum += v[i] * v[i] / float64(len(learn))
			}
			w[i][i] = 1 / sum
		}
	case mahalanobis:
		limit := slices.Sorted(slices.Values(similar))[len(similar)*9/10]
		cov := make([][]float64, size)
		for i := range cov {
			cov[i] = make([]float64, size)
			cov[i][i] = 1e-6
		}
		for k, v := range learn {
			if similar[k] < limit {
				continue
			}
			for i := range v {
				for j := range v {
					cov[i][j] += v[i] * v[j]
				}
			}
		}
		mean := 0.0
		for i := range cov {
			mean += cov[i][i] / float64(size)
		}
		for i := range cov {
			cov[i][i] += shrinkage * mean
		}
		w = inverse(cov)
	}
	return w
}

// inverse inverts a positive definite matrix (Gauss and Jordan).
func inverse(a [][]float64) [][]float64 {
	n := len(a)
	inv := make([][]float64, n)
	for i := range inv {
		inv[i] = make([]float64, n)
		inv[i][i] = 1
	}
	for k := range n {
		p := a[k][k]
		for j := range n {
			a[k][j] /= p
			inv[k][j] /= p
		}
		for i := range n {
			if f := a[i][k]; i != k {
				for j := range n {
					a[i][j] -= f * a[k][j]
					inv[i][j] -= f * inv[k][j]
				}
			}
		}
	}
	return inv
}

func quadratic(w [][]float64, v []float64) (sum float64) {
	for i, row := range w {
		for j, x := range row {
			sum += x * v[i] * v[j]
		}
	}
	return sum
}
