package entropy

import (
	"math"
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// FromSize returns bounds of the entropy of n points with h maximal points or hull
// vertices (for UpperHull and LowerHull the vertices of that side). A range holds at
// most one maximal point, two vertices in the plane, four vertices in space; the most
// uneven groups with this property have the least entropy, the lower bound. The
// maximal points, the edges or the tetrahedra on all faces are enough ranges, which
// gives the upper bound. No points give 0. The bounds are loose. Cost: O(h) for
// Hull2D, else O(1).
func FromSize(p Problem, n, h int) Bracket {
	if n == 0 || h == 0 {
		return Bracket{}
	}
	size := float64(n)
	switch p {
	case Maxima2D, Maxima3D:
		return bracket(crowded(n, h, 1), math.Log(float64(h)), size, Size)
	case UpperHull, LowerHull:
		return bracket(crowded(n, h, 2), math.Log(float64(max(h-1, 1))), size, Size)
	case Hull3D:
		return bracket(crowded(n, h, 4), math.Log(float64(max(2*h-4, 1))), size, Size)
	}
	// The sides have h vertices or, with their common ends, up to h+2 between them.
	lower := math.Inf(1)
	for k := 0; k <= h/2; k++ {
		lower = min(lower, crowded(n, k, 2)+crowded(n, h-k, 2))
	}
	return Bracket{lower, 2 * min(math.Log(max(float64(h)/2, 1)), math.Log(size)), Size}
}

// crowded returns the least entropy of n points when a group holds at most most of h
// special points: all other points are in one group, and no vector of sizes
// majorises that one.
func crowded(n, h, most int) float64 {
	if h <= most {
		return 0
	}
	rest := h - most
	sum := mlogm(float64(n-rest)) + float64(rest/most)*mlogm(float64(most)) + mlogm(float64(rest%most))
	return max(math.Log(float64(n))-sum/float64(n), 0)
}

// FromSlabs returns the vertical entropy as an upper bound for UpperHull or LowerHull:
// the points under one edge are a group. vertices are those of the side or of the
// whole hull. The bound can be some nats too large. It panics for other problems.
// Cost: O(n log h).
func FromSlabs[T geom.Float](c geom.Cloud[T], vertices []int32, p Problem) Bracket {
	chain, raw := chainOf(c, vertices, p)
	if len(chain) < 2 {
		return bracket(0, 0, float64(c.Len()), Vertical)
	}
	var at []float64
	for _, v := range chain[1:] {
		at = append(at, raw[0][v])
	}
	sizes := make([]int32, len(at))
	for _, x := range raw[0] {
		k, on := slices.BinarySearch(at, x)
		if on {
			k++
		}
		sizes[min(k, len(at)-1)]++
	}
	return bracket(0, OfSizes(sizes), float64(c.Len()), Vertical)
}

// chainOf returns the vertices of one side from left to right, and coordinates in
// which that side is the upper hull.
func chainOf[T geom.Float](c geom.Cloud[T], vertices []int32, p Problem) ([]int32, *points) {
	if p != UpperHull && p != LowerHull {
		panic(badProblem)
	}
	check(c, 2)
	checkIndices(vertices, c.Len())
	raw := &points{}
	load(raw, c, p)
	return upperChain(slices.Clone(vertices), raw), raw
}

// FromQuickhull returns the entropy of quickhull's partition as an upper bound for
// UpperHull or LowerHull: quickhull divides the points at the vertex farthest above
// the chord, and drops the points under the two new chords. vertices are those of the
// side or of the whole hull. Where quickhull would go too deep, the middle vertex
// divides. It panics for other problems. Cost: O((n + h) log n) orientations.
func FromQuickhull[T geom.Float](c geom.Cloud[T], vertices []int32, p Problem) Bracket {
	chain, raw := chainOf(c, vertices, p)
	n := c.Len()
	if len(chain) < 2 {
		return bracket(0, 0, float64(n), Trace)
	}
	q := quick{p: raw, chain: chain, deep: 2 * bitsOf(n)}
	box := BoxOf(c)
	for k, v := range raw[:2] {
		if k == 1 && p == LowerHull {
			box.Lo[1], box.Hi[1] = -box.Hi[1], -box.Lo[1]
		}
		q.unit[k] = unit(nil, v, &box, k)
	}
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i)
	}
	ids = q.drop(0, len(chain)-1, ids)
	q.divide(0, len(chain)-1, ids, 0)
	return bracket(0, OfSizes(q.sizes), float64(n), Trace)
}

func bitsOf(n int) int { return int(math.Log2(float64(n))) + 1 }

// quick is a run of quickhull whose result is known.
type quick struct {
	p     *points
	unit  points
	chain []int32
	sizes []int32
	deep  int
}

// divide divides the points ids, which lie above the chord of vertices a and b of the
// chain.
func (q *quick) divide(a, b int, ids []int32, level int) {
	if len(ids) == 0 {
		return
	}
	m := (a + b) / 2
	if level < q.deep {
		far := math.Inf(-1)
		for k := a + 1; k < b; k++ {
			if d := above(&q.unit, q.chain[a], q.chain[b], q.chain[k]); d > far {
				far, m = d, k
			}
		}
	}
	at, left := q.p[0][q.chain[m]], 0
	for k, i := range ids {
		if q.p[0][i] <= at {
			ids[k], ids[left] = ids[left], i
			left++
		}
	}
	q.divide(a, m, q.drop(a, m, ids[:left]), level+1)
	q.divide(m, b, q.drop(m, b, ids[left:]), level+1)
}

// drop makes a group of the points on or under a chord, and returns the other points.
func (q *quick) drop(a, b int, ids []int32) []int32 {
	x, y := q.p[0], q.p[1]
	i, j, kept := q.chain[a], q.chain[b], 0
	for _, k := range ids {
		if exact.Orient2D(x[i], y[i], x[j], y[j], x[k], y[k]) > 0 {
			ids[kept] = k
			kept++
		}
	}
	q.sizes = append(q.sizes, int32(len(ids)-kept))
	return ids[:kept]
}
