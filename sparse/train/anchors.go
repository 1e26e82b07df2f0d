package train

import (
	"math"
	"math/rand/v2"
	"slices"

	"entropipe/models/mat"
)

// anchorEvery is the number of steps after which anchors follow the keys again.
const anchorEvery = 8

// anchors holds the centres of the clusters of keys: √n of them for every head of
// every layer.
type anchors struct {
	layers, heads, k, dim int

	c      []float32 // [layers][heads][k][dim]
	alpha  []float64 // [layers][heads] inverse temperature, for Entropy
	placed bool

	m, v []float32 // moments of the gradients, for Paper
}

func newAnchors(f *form) *anchors {
	a := &anchors{layers: f.layers, heads: f.heads, k: max(2, int(math.Sqrt(float64(f.n)))), dim: f.headDim()}
	size := a.layers * a.heads * a.k * a.dim
	a.c, a.m, a.v = make([]float32, size), make([]float32, size), make([]float32, size)
	a.alpha = make([]float64, a.layers*a.heads)
	return a
}

// view returns a head's part of data as [k][dim].
func (a *anchors) view(data []float32, l, h int) mat.Matrix {
	size := a.k * a.dim
	at := (l*a.heads + h) * size
	return mat.Of(a.k, a.dim, data[at:at+size])
}

func (a *anchors) of(l, h int) mat.Matrix { return a.view(a.c, l, h) }

// update moves learned anchors by AdamW. step counts from the training's
// beginning, but anchors move only after a tenth of the training. Their first
// steps are therefore short: the moments begin at zero, and AdamW's correction for
// that has faded.
func (a *anchors) update(grads []float32, rate float64, step int) {
	o := mat.AdamW{Rate: rate, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8}
	o.Update(a.c, grads, a.m, a.v, step+1, 1)
}

// follow moves every head's anchors towards the centroids of the keys of a
// forward pass. The first call places them among the keys by k-means++ (Arthur and
// Vassilvitskii 2007) and takes several rounds.
func (a *anchors) follow(p *pass, r *rand.Rand) {
	f := &p.net.form
	rounds, pace := 1, 0.2
	if !a.placed {
		rounds, pace = 6, 1
	}
	for l := range a.layers {
		qkv := p.of(3*f.dim, p.layers[l].qkv)
		for h := range a.heads {
			keys := qkv.Columns(f.dim+h*a.dim, f.dim+(h+1)*a.dim)
			c := a.of(l, h)
			if !a.placed {
				place(c, keys, r)
			}
			for range rounds {
				a.alpha[l*a.heads+h] = centre(c, keys, pace)
			}
		}
	}
	a.placed = true
}

func distance(a, b []float32) float64 {
	sum := 0.0
	for i, v := range a {
		d := float64(v - b[i])
		sum += d * d
	}
	return sum
}

// place sets the anchors c to keys drawn at random. A key's weight in each draw is
// its squared distance to the nearest anchor drawn before.
func place(c, keys mat.Matrix, r *rand.Rand) {
	near := make([]float64, keys.Rows)
	for j := range near {
		near[j] = math.Inf(1)
	}
	at := r.IntN(keys.Rows)
	for i := range c.Rows {
		copy(c.Row(i), keys.Row(at))
		total := 0.0
		for j := range near {
			near[j] = min(near[j], distance(keys.Row(j), c.Row(i)))
			total += near[j]
		}
		left := r.Float64() * total
		at = r.IntN(keys.Rows)
		for j, d := range near {
			if left -= d; left < 0 {
				at = j
				break
			}
		}
	}
}

// centre takes one round of soft k-means: each anchor moves by the share pace of
// its way to the centroid of its keys. centre returns the inverse temperature of
// the round, 3/median(d₂-d₁), where d₁ and d₂ are the squared distances of a key
// from its nearest and second anchor: half of the keys then belong to one anchor
// by more than 95 %.
func centre(anchors, keys mat.Matrix, pace float64) (alpha float64) {
	n, k := keys.Rows, anchors.Rows
	weights, margins := make([]float64, n*k), make([]float64, n)
	for j := range n {
		row := weights[j*k : (j+1)*k]
		first, second := math.Inf(1), math.Inf(1)
		for i := range row {
			row[i] = distance(keys.Row(j), anchors.Row(i))
			if row[i] < first {
				first, second = row[i], first
			} else {
				second = min(second, row[i])
			}
		}
		margins[j] = second - first
		for i := range row {
			row[i] -= first
		}
	}
	slices.Sort(margins)
	alpha = 3 / max(margins[n/2], 1e-6)
	sums, mass := make([]float64, k*keys.Cols), make([]float64, k)
	for j := range n {
		row, total := weights[j*k:(j+1)*k], 0.0
		for i := range row {
			row[i] = math.Exp(-alpha * row[i])
			total += row[i]
		}
		for i, w := range row {
			w /= total
			mass[i] += w
			for x, v := range keys.Row(j) {
				sums[i*keys.Cols+x] += w * float64(v)
			}
		}
	}
	for i := range k {
		if mass[i] < 1e-9 {
			continue
		}
		row := anchors.Row(i)
		for x := range row {
			row[x] += float32(pace * (sums[i*keys.Cols+x]/mass[i] - float64(row[x])))
		}
	}
	return alpha
}
