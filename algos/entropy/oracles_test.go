package entropy

import (
	"math"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// The bounds of this file check those of the package. Kinds name the methods of the
// package only, so most brackets here have kind Joint.

// pointwiseBound returns a lower bound: the group of a point is no larger than the
// largest range that holds the point. Cost: O(members).
func pointwiseBound(f *Family) Bracket {
	n := f.total()
	largest := make([]float64, f.Points)
	for r := range f.Len() {
		count := 0.0
		for _, i := range f.Range(r) {
			count += f.weight(i)
		}
		for _, i := range f.Range(r) {
			largest[i] = max(largest[i], count)
		}
	}
	lower := 0.0
	for i, m := range largest {
		lower += f.weight(int32(i)) / n * math.Log(n/max(m, 1))
	}
	return bracket(lower-f.Slack, math.Inf(1), n, Joint)
}

// fractionalBound returns a lower bound: the least of -1/n Σ_i log Σ_{r holds i} w_r
// over weights w of ranges and single points that add up to 1; the shares of a
// partition are such weights. Expectation and maximisation from even weights comes
// near the least value. The logarithm of the largest (1/n) Σ_{i in r} 1/a_i bounds the
// distance and is subtracted, so any number of steps gives a true bound. f has
// no Weight. Cost: O(members) a step.
func fractionalBound(f *Family, steps int) Bracket {
	n := f.Points
	if n == 0 {
		return Bracket{Kind: Joint}
	}
	size := float64(n)
	w, single, a := make([]float64, f.Len()), make([]float64, n), make([]float64, n)
	for r := range w {
		w[r] = .5 / float64(len(w))
	}
	for i := range single {
		single[i] = .5 / size
	}
	if len(w) == 0 {
		for i := range single {
			single[i] = 1 / size
		}
	}
	value, gap := 0.0, 0.0
	for step := 0; ; step++ {
		copy(a, single)
		for r := range w {
			for _, i := range f.Range(r) {
				a[i] += w[r]
			}
		}
		value, gap = 0, 0
		for _, v := range a {
			value -= math.Log(v) / size
			gap = max(gap, 1/v/size)
		}
		last := step >= steps
		for r := range w {
			share := 0.0
			for _, i := range f.Range(r) {
				share += 1 / a[i] / size
			}
			gap = max(gap, share)
			w[r] *= share
		}
		if last || gap < 1+1e-12 {
			break
		}
		for i := range single {
			single[i] *= 1 / a[i] / size
		}
	}
	return bracket(value-math.Log(gap)-f.Slack, math.Inf(1), size, Joint)
}

// bestTriangulation returns the least entropy over the triangulations of the hull
// polygon by its vertices. The points of a triangle are a group, and every
// vertex is a single point. It is an upper bound of the entropy of the whole hull
// with triangles inside the hull as ranges. (That entropy is at least the larger one
// of the upper and the lower hull, and at most their sum plus log 4.) vertices are
// those of the hull, counter-clockwise. Fewer than three vertices give entropy 0.
// Cost: O(n·h² + h³) for h vertices.
func bestTriangulation[T geom.Float](c geom.Cloud[T], vertices []int32) Bracket {
	n, h := c.Len(), len(vertices)
	if h < 3 {
		return bracket(0, 0, float64(n), Joint)
	}
	var p points
	load(&p, c, Hull2D)
	cut := caps(&p, vertices)
	best := make([]float64, h*h)
	for width := 2; width < h; width++ {
		for i := 0; i+width < h; i++ {
			j, most := i+width, 0.0
			for k := i + 1; k < j; k++ {
				m := float64(cut[i*h+j] - cut[i*h+k] - cut[k*h+j])
				most = max(most, best[i*h+k]+best[k*h+j]+mlogm(m))
			}
			best[i*h+j] = most
		}
	}
	return bracket(0, math.Log(float64(n))-best[h-1]/float64(n), float64(n), Joint)
}

// caps counts for vertices i < j of a polygon the points strictly right of the line
// from i to j, without vertices. The entry of the last edge, which has no points on
// its right, is the number of all points: points on that edge belong to some
// triangle, too.
func caps(p *points, vertices []int32) []int32 {
	x, y, h := p[0], p[1], len(vertices)
	cut := make([]int32, h*h)
	corner := make([]bool, len(x))
	for _, v := range vertices {
		corner[v] = true
	}
	for i := range h {
		for j := i + 2; j < h; j++ {
			a, b := vertices[i], vertices[j]
			for k := range x {
				if !corner[k] && exact.Orient2D(x[a], y[a], x[b], y[b], x[k], y[k]) < 0 {
					cut[i*h+j]++
				}
			}
		}
	}
	cut[h-1] = int32(len(x) - h)
	return cut
}

// fromTrace returns OfSizes as an upper bound, for the sizes of the groups in which an
// algorithm dropped all points, each group by one range: those of optimal.Trace.
func fromTrace[N int | int32 | float64](sizes []N) Bracket {
	n := 0.0
	for _, s := range sizes {
		n += float64(s)
	}
	return bracket(0, OfSizes(sizes), n, Trace)
}
