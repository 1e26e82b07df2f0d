package train

import (
	"math/rand/v2"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
)

// The paper's surrogates have parameters of their own: H_diff has anchors and H_soft
// half-spaces, in normalised coordinates, shared by all frames of the stream. Their
// first values come from the first frame, as in the paper: anchors by k-means++ and
// eight rounds of Lloyd, half-spaces along the principal directions.

func (t *Trainer) beginExtra(r *rand.Rand) {
	c := t.firstFrame()
	switch t.cfg.Regulariser {
	case HDiff:
		k := min(t.cfg.Anchors, max(1, c.Len()/4))
		for _, a := range clusterCentres(c, k, r) {
			t.extra = append(t.extra, float32(a[0]), float32(a[1]), float32(a[2]))
		}
	case HSoft:
		for _, h := range entropy.PrincipalHalves(c, t.cfg.HalfSpaces) {
			t.extra = append(t.extra, float32(h.W[0]), float32(h.W[1]), float32(h.W[2]), float32(h.B))
		}
	}
	n := len(t.extra)
	t.gExtra, t.mExtra, t.vExtra = make([]float32, n), make([]float32, n), make([]float32, n)
	t.extraViews()
}

// extraViews sets anchors or halves from extra.
func (t *Trainer) extraViews() {
	t.anchors, t.halves = t.anchors[:0], t.halves[:0]
	switch e := t.extra; t.cfg.Regulariser {
	case HDiff:
		for ; len(e) > 0; e = e[3:] {
			t.anchors = append(t.anchors, [3]float64{float64(e[0]), float64(e[1]), float64(e[2])})
		}
	case HSoft:
		for ; len(e) > 0; e = e[4:] {
			t.halves = append(t.halves, entropy.HalfSpace{W: [3]float64{float64(e[0]), float64(e[1]), float64(e[2])},
				B: float64(e[3])})
		}
	}
}

// extraGradient sets gExtra to weight times the batch's gradient of the extra
// parameters.
func (t *Trainer) extraGradient(weight float64) {
	sum := make([]float64, len(t.extra))
	for b := range t.net.ends {
		o := &t.objectives[b]
		switch t.cfg.Regulariser {
		case HDiff:
			for k, g := range o.dAnchors {
				for d, v := range g {
					sum[3*k+d] += v
				}
			}
		case HSoft:
			for k, g := range o.dHalves {
				for d, v := range g.W {
					sum[4*k+d] += v
				}
				sum[4*k+3] += g.B
			}
		}
	}
	for i, v := range sum {
		t.gExtra[i] = float32(weight * v)
	}
}

// clusterCentres returns k cluster centres by k-means++ (Arthur and Vassilvitskii
// 2007) and eight rounds of Lloyd.
func clusterCentres(c geom.Cloud[float32], k int, r *rand.Rand) [][3]float64 {
	at := func(i int) (p [3]float64) {
		for d, a := range [...][]float32{c.X, c.Y, c.Z} {
			if a != nil {
				p[d] = float64(a[i])
			}
		}
		return p
	}
	n := c.Len()
	centres := [][3]float64{at(r.IntN(n))}
	far := make([]float64, n)
	for len(centres) < k {
		sum := 0.0
		for i := range far {
			_, far[i] = closest(centres, at(i))
			sum += far[i]
		}
		left, i := r.Float64()*sum, 0
		for ; i < n-1 && left >= far[i]; i++ {
			left -= far[i]
		}
		centres = append(centres, at(i))
	}
	for range 8 {
		sums, counts := make([][3]float64, k), make([]float64, k)
		for i := range n {
			p := at(i)
			j, _ := closest(centres, p)
			counts[j]++
			for d, v := range p {
				sums[j][d] += v
			}
		}
		for j := range centres {
			if counts[j] > 0 {
				centres[j] = [3]float64{sums[j][0] / counts[j], sums[j][1] / counts[j], sums[j][2] / counts[j]}
			}
		}
	}
	return centres
}

// closest returns the centre nearest to p and its squared distance.
func closest(centres [][3]float64, p [3]float64) (at int, square float64) {
	for j, c := range centres {
		s := 0.0
		for d, v := range p {
			s += (v - c[d]) * (v - c[d])
		}
		if j == 0 || s < square {
			at, square = j, s
		}
	}
	return at, square
}
