package freeze

import (
	"math"
	"math/rand/v2"
	"slices"

	"entropipe/models/mat"
)

// kMeans places k anchors: by lot, far keys first (k-means++, Arthur and
// Vassilvitskii 2007), then steps of Lloyd with soft assignments that sharpen
// (deterministic annealing, Rose 1998). An anchor that loses all keys stays.
func kMeans(keys mat.Matrix, k int, r *rand.Rand) mat.Matrix {
	dim := keys.Cols
	a := mat.Of(k, dim, make([]float32, k*dim))
	far := make([]float64, keys.Rows)
	copy(a.Row(0), keys.Row(r.IntN(keys.Rows)))
	for i := range far {
		far[i] = math.Inf(1)
	}
	for i := 1; i < k; i++ {
		sum := 0.0
		for x := range far {
			far[x] = min(far[x], distance(keys.Row(x), a.Row(i-1)))
			sum += far[x]
		}
		pick, at := r.Float64()*sum, 0
		for at < len(far)-1 && pick >= far[at] {
			pick -= far[at]
			at++
		}
		copy(a.Row(i), keys.Row(at))
	}
	p := make([]float64, k)
	for step := range lloyd {
		alpha := sharpness / max(gap(keys, a), 1e-12) * math.Pow(2, float64(step-lloyd/2))
		sums, mass := make([]float64, k*dim), make([]float64, k)
		for x := range keys.Rows {
			soft(p, keys.Row(x), a, alpha)
			for i, w := range p {
				mass[i] += w
				for c, v := range keys.Row(x) {
					sums[i*dim+c] += w * float64(v)
				}
			}
		}
		for i := range k {
			for c := range dim {
				if mass[i] > 1e-9 {
					a.Row(i)[c] = float32(sums[i*dim+c] / mass[i])
				}
			}
		}
	}
	return a
}

// gap is the median over keys of the difference of the squared distances to the
// second and to the nearest anchor.
func gap(keys, anchors mat.Matrix) float64 {
	gaps := make([]float64, keys.Rows)
	for x := range gaps {
		first, second := math.Inf(1), math.Inf(1)
		for i := range anchors.Rows {
			switch d := distance(keys.Row(x), anchors.Row(i)); {
			case d < first:
				first, second = d, first
			case d < second:
				second = d
			}
		}
		gaps[x] = second - first
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

// soft sets p to the soft assignment of x to anchors, and returns the nearest.
func soft(p []float64, x []float32, anchors mat.Matrix, alpha float64) int {
	best := 0
	for i := range p {
		p[i] = distance(x, anchors.Row(i))
		if p[i] < p[best] {
			best = i
		}
	}
	least, sum := p[best], 0.0
	for i := range p {
		p[i] = math.Exp(-alpha * (p[i] - least))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return best
}

func distance(a, b []float32) float64 {
	d := 0.0
	for i := range a {
		e := float64(a[i]) - float64(b[i])
		d += e * e
	}
	return d
}
