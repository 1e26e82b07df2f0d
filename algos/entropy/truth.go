package entropy

import (
	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// Truth is a measured entropy.
type Truth struct {
	// Bracket holds certain bounds of H.
	Bracket
	// Estimate is one number for H, for correlations: Upper, the entropy of the best
	// cover found, or, where the cover by all ranges is of a sample, its entropy if the
	// bracket holds it, otherwise the nearer end. It is never outside the bracket. A
	// greedy cover is rarely 0.1 nat above the least.
	Estimate float64
	// Sampled is the number of points that Estimate was computed with. It is less
	// than the number of points of the cloud where the points other than output
	// were sampled, and weighted.
	Sampled int
}

// Budgets of GroundTruth.
const (
	coverMost   = 1 << 26 // largest number of members; for more, the cloud is sampled
	sampleInner = 10000   // number of sampled points other than output
)

// GroundTruth measures the entropy of a cloud as well as its size allows. output must
// hold all maximal points, or all vertices of the hull. Maxima in the plane are exact
// for up to MaxSteps maximal points. Otherwise the bracket is the intersection of a
// Meter's with generous limits, FromSize, FromTree, for hulls in the plane also of
// FromSlabs and FromQuickhull, for hulls in space of the ranges of 16 to 128 witnesses
// (Surrogate.Hard), and of the greedy cover by all ranges where that covers all points.
//
// Points are sampled for that cover where the number of points times that of output is
// above some ten millions: a million points with 60 vertices, a LiDAR frame with 500
// maximal points. Cost: up to seconds and a gigabyte; GroundTruth is for experiments, not
// for streams. It may be called concurrently.
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
	known := bestKnown(c, output, p)
	var f Family
	var g Cover
	if members(n, len(output), p) <= coverMost && Ranges(&f, c, output, p) {
		known = known.And(g.Greedy(&f))
		return Truth{known, known.Upper, n}
	}
	part, numbers, weight := thin(c, output)
	if !Ranges(&f, part, numbers, p) {
		return Truth{known, known.Upper, n}
	}
	f.Weight = weight
	return Truth{known, min(max(g.Greedy(&f).Upper, known.Lower), known.Upper), part.Len()}
}

// bestKnown returns the best bracket that needs no cover by all ranges.
func bestKnown[T geom.Float](c geom.Cloud[T], output []int32, p Problem) Bracket {
	h := len(output)
	known := FromTree(c, output, p)
	if p == UpperHull || p == LowerHull {
		chain, _ := chainOf(c, output, p)
		h = len(chain)
		known = known.And(FromSlabs(c, output, p)).And(FromQuickhull(c, output, p))
	}
	m, s := Meter[T]{limits: ofTruth}, Surrogate[T]{Problem: p}
	known = known.And(FromSize(p, c.Len(), h)).And(m.Measure(c, output, p))
	if p == Hull3D {
		for k := 16; k <= 128; k *= 2 {
			known = known.And(s.Hard(c, s.Witnesses(nil, c, k)))
		}
	}
	return known
}

// members returns an estimate of the number of members of the ranges of a cloud, or for
// Hull3D of the number of tests of points against ranges.
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

// thin returns the points of output and a sample of the other points as a cloud, the
// places of output in it, and the number of points that each point stands for.
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
