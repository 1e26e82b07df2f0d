package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// randomHead is one head of attention in float64: n queries and keys of d
// numbers, n values, and the dense weights.
type randomHead struct {
	n, d     int
	q, k, v  [][]float64
	w        [][]float64 // softmax(q·k/√d), a row a query
	cluster  []int       // cluster of each key
	clusters int
	soft     [][]float64 // membership of every key in every cluster
	radius   float64     // B, the largest norm of a value
}

// newHead draws keys around centers, some of them more popular than others, and
// queries that look for one center each, more or less firmly.
func newHead(n, d, clusters int, r *rand.Rand) *randomHead {
	h := &randomHead{n: n, d: d, clusters: clusters}
	centers := gaussians(clusters, d, 1, r)
	width, firm, skew := math.Exp(r.Float64()*2.3-2.3), math.Exp(r.Float64()*3.2-1.2), r.Float64()*1.5
	popular := make([]float64, clusters)
	for c := range popular {
		popular[c] = math.Pow(float64(c+1), -skew)
	}
	h.q, h.k, h.v = gaussians(n, d, width, r), gaussians(n, d, width, r), gaussians(n, d, 1, r)
	for i := range n {
		to, from := centers[pick(popular, r)], centers[r.IntN(clusters)]
		for x := range d {
			h.k[i][x] += to[x]
			h.q[i][x] = firm * (h.q[i][x] + from[x])
		}
		h.radius = max(h.radius, math.Sqrt(dot(h.v[i], h.v[i])))
	}
	h.attend()
	h.partition(r)
	return h
}

func gaussians(n, d int, deviation float64, r *rand.Rand) [][]float64 {
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, d)
		for x := range rows[i] {
			rows[i][x] = deviation * r.NormFloat64()
		}
	}
	return rows
}

// pick draws an index with probability in proportion to weight.
func pick(weight []float64, r *rand.Rand) int {
	sum := 0.0
	for _, w := range weight {
		sum += w
	}
	left := sum * r.Float64()
	for i, w := range weight {
		if left -= w; left < 0 {
			return i
		}
	}
	return len(weight) - 1
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func distance2(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return sum
}

// attend computes the dense weights.
func (h *randomHead) attend() {
	h.w = make([][]float64, h.n)
	for t := range h.w {
		row := make([]float64, h.n)
		for j := range row {
			row[j] = dot(h.q[t], h.k[j]) / math.Sqrt(float64(h.d))
		}
		top, sum := slices.Max(row), 0.0
		for j := range row {
			row[j] = math.Exp(row[j] - top)
			sum += row[j]
		}
		for j := range row {
			row[j] /= sum
		}
		h.w[t] = row
	}
}

// partition finds clusters of keys: k-means++, ten steps of Lloyd, and the soft
// memberships of §2.2 with α from the mean squared distance to the own center.
func (h *randomHead) partition(r *rand.Rand) {
	centers := [][]float64{slices.Clone(h.k[r.IntN(h.n)])}
	near := make([]float64, h.n)
	for len(centers) < h.clusters {
		for j, key := range h.k {
			near[j] = math.Inf(1)
			for _, c := range centers {
				near[j] = min(near[j], distance2(key, c))
			}
		}
		centers = append(centers, slices.Clone(h.k[pick(near, r)]))
	}
	h.cluster = make([]int, h.n)
	for range 10 {
		sizes := make([]float64, h.clusters)
		for j, key := range h.k {
			best := math.Inf(1)
			for c := range centers {
				if d := distance2(key, centers[c]); d < best {
					best, h.cluster[j] = d, c
				}
			}
			sizes[h.cluster[j]]++
		}
		for c := range centers {
			if sizes[c] > 0 {
				clear(centers[c])
			}
		}
		for j, key := range h.k {
			for x := range key {
				centers[h.cluster[j]][x] += key[x] / sizes[h.cluster[j]]
			}
		}
	}
	within := 0.0
	for j, key := range h.k {
		within += distance2(key, centers[h.cluster[j]]) / float64(h.n)
	}
	alpha := 1 / max(2*within/float64(h.d), 1e-12)
	h.soft = make([][]float64, h.n)
	for j, key := range h.k {
		h.soft[j] = softest(key, centers, alpha)
	}
}

// softest is softmax(-alpha·‖key-c‖²) over centers.
func softest(key []float64, centers [][]float64, alpha float64) []float64 {
	p := make([]float64, len(centers))
	for c := range centers {
		p[c] = -alpha * distance2(key, centers[c])
	}
	top, sum := slices.Max(p), 0.0
	for c := range p {
		p[c] = math.Exp(p[c] - top)
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// masses is a_t: the attention of query t on every cluster.
func (h *randomHead) masses(t int) []float64 {
	a := make([]float64, h.clusters)
	for j, w := range h.w[t] {
		a[h.cluster[j]] += w
	}
	return a
}

// shannon is the entropy of a distribution, in nats.
func shannon(p []float64) float64 {
	sum := 0.0
	for _, x := range p {
		if x > 0 {
			sum -= x * math.Log(x)
		}
	}
	return sum
}

// heaviest is the order of a distribution, largest first, and how many of it
// have at least the share 1-tail.
func heaviest(p []float64, tail float64) (order []int, count int) {
	order = make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case p[a] > p[b]:
			return -1
		case p[a] < p[b]:
			return 1
		}
		return 0
	})
	sum := 0.0
	for count < len(p) && sum < 1-tail {
		sum += p[order[count]]
		count++
	}
	return order, count
}
