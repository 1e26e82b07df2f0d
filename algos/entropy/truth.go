package entropy

import (
	"math"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// Truth is a measured entropy.
type Truth struct {
	// Bracket holds H, for certain.
	Bracket
	// Estimate is a number to correlate with: H itself where the bracket is of kind
	// Exact; else a greedy cover, of all points or, where Sampled is less than the
	// cloud, of a sample of what is neither maximal nor a vertex, weighted. A greedy
	// cover is rarely 0.1 nat above the least.
	Estimate float64
	Sampled  int
}

// Budgets of GroundTruth.
const (
	coverMost   = 1 << 26 // members of ranges; for more a cloud is sampled,
	sampleInner = 10000   // so many of the points that are no output
)

// GroundTruth measures the entropy of a cloud as well as its size allows. Output
// holds all maximal points, or all vertices of the hull. Maxima in the plane are
// exact up to MaxSteps maximal points. Otherwise a greedy cover gives the estimate
// and, of all points, the bracket, too, together with what the size and a kd-tree
// say, and for hulls in the plane slabs and quickhull. Points are sampled where
// points times outputs are beyond some ten millions: a million points with 60
// vertices, a LiDAR frame with 500 maximal points. Takes up to seconds and a
// gigabyte; this is for experiments, not for streams.
func GroundTruth[T geom.Float](c geom.Cloud[T], output []int32, p Problem) Truth {
	if p == Hull2D {
		up, low := GroundTruth(c, output, UpperHull), GroundTruth(c, output, LowerHull)
		return Truth{up.Plus(low.Bracket), up.Estimate + low.Estimate, min(up.Sampled, low.Sampled)}
	}
	n := c.Len()
	if p == Maxima2D {
		if b, ok := ExactMaxima(c, output); ok {
			return Truth{b, b.Upper, n}
		}
	}
	h := len(output)
	known := FromTree(c, output, p)
	if p == UpperHull || p == LowerHull {
		chain, _ := chainOf(c, output, p)
		h = len(chain)
		known = known.And(FromSlabs(c, output, p)).And(FromQuickhull(c, output, p))
	}
	known = known.And(FromSize(p, n, h))
	var f Family
	var g Cover
	if members(n, h, p) <= coverMost && Ranges(&f, c, output, p) {
		b := g.Greedy(&f)
		return Truth{known.And(b), b.Upper, n}
	}
	part, numbers, weight := thin(c, output)
	if !Ranges(&f, part, numbers, p) {
		return Truth{known, known.Upper, n}
	}
	f.Weight = weight
	return Truth{known, min(g.Greedy(&f).Upper, math.Log(float64(n))), part.Len()}
}

// members is about how many members the ranges of a cloud may have, or, for
// Hull3D, how many have to be looked at.
func members(n, h int, p Problem) float64 {
	pairs := float64(h)
	switch {
	case p == Hull3D:
		pairs *= 4
	case p != Maxima2D && p != Maxima3D && h <= fullChords:
		pairs *= float64(h) / 6
	}
	return float64(n) * pairs
}

// thin returns the outputs of a cloud and a sample of its other points, with what
// each stands for, and the outputs' places.
func thin[T geom.Float](c geom.Cloud[T], output []int32) (part geom.Cloud[T], numbers []int32, weight []float64) {
	n := c.Len()
	taken := make([]bool, n)
	add := func(i int32, w float64) {
		part.X, part.Y = append(part.X, c.X[i]), append(part.Y, c.Y[i])
		if c.Z != nil {
			part.Z = append(part.Z, c.Z[i])
		}
		weight = append(weight, w)
	}
	for k, i := range output {
		taken[i] = true
		numbers = append(numbers, int32(k))
		add(i, 1)
	}
	var inner []int32
	for i := range int32(n) {
		if !taken[i] {
			inner = append(inner, i)
		}
	}
	m := min(len(inner), sampleInner)
	for j := range m {
		add(inner[kernel.SampleAt(j, m, len(inner))], float64(len(inner))/float64(m))
	}
	return part, numbers, weight
}
