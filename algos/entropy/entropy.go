// Package entropy measures how hard a cloud is for maxima and convex hulls: its
// range-partition entropy in nats a point. Where the exact value is too costly, the
// measurement is a bracket. For learning, the package has losses with gradients that
// follow the entropy.
//
// It is not an operator: it takes the maximal points or hull vertices that the
// operators found, and never computes them.
//
// # What is measured
//
// A range is a shape that proves, with real points of the cloud, that the points in
// it need no further work: for maxima the box below one point; for an upper hull the
// region on or below the chord of two vertices, between the two (for a lower hull the
// mirrored region); for the hull in space a tetrahedron inside the hull. A legal
// group is a set of points that lies in one range, or a single point. The entropy of
// a partition of n points into groups of s_1, s_2, ... points is Σ s_k/n log(n/s_k).
// The entropy H of the cloud is the least entropy of all partitions into legal
// groups, from 0 (one range holds all points) to log n (all groups are single
// points). Afshani, Barbay and Chan ("Instance-Optimal Geometric Algorithms", 2009,
// 2017) call it structural entropy, and show that the best algorithm touches
// O(n(H+1)) points. Eppstein, Goodrich, Illickan and To ("Entropy-Bounded
// Computational Geometry Made Easier and Sensitive to Sortedness", 2025) call a
// similar quantity range-partition entropy. Package optimal has such algorithms,
// after Kirkpatrick and Seidel (1985, 1986).
//
// The restriction to legal groups gives the entropy its meaning: without it, one
// group with entropy 0 is always best. Uniform clouds are easy (H near 0.1); clouds
// with many points near a long boundary are hard.
//
// # Panics
//
// Every function that takes a cloud panics when its slices differ in length, when a
// coordinate that the problem needs is not finite, when a problem in space gets a
// cloud without z, for more than 2^31-1 points, and for an index that names no point.
//
// # What a result is
//
// Measurements are Brackets: H is between Lower and Upper, and Kind names the method.
// A Meter chooses the method and suits streams; GroundTruth takes its time.
// For maxima H is the definition above. For upper and lower hulls the ranges are the
// chords of all pairs of vertices, which changes H by at most log 6 against the
// definition with triangles; the H of Hull2D is the sum of both. For the hull in
// space the ranges are tetrahedra; this package has only upper bounds for it, and the
// lower bound of FromSize. The bounds do not include the rounding of sums and
// logarithms, some 1e-14; whether a point lies in a range is decided exactly. For
// Delaunay triangulations there is nothing to measure: every point is a vertex, and H
// is log n.
//
// Surrogate, BallEntropy and CellEntropy are not measurements but losses: numbers
// with gradients. Only the first, F, follows H (R² 0.99 over the families of the
// tests). The other two are kept for comparison: they are the losses of a paper on
// differentiable entropy regularisation, with its gradients corrected.
package entropy

import (
	"math"

	"entropipe/algos/geom"
)

// Problem is the problem whose entropy is measured.
type Problem uint8

// Problems. To minimise an axis of maxima, negate it first.
const (
	Maxima2D  Problem = iota // maximal points in x and y
	Maxima3D                 // maximal points in x, y and z
	UpperHull                // the upper half of the hull in the plane
	LowerHull                // the lower half of the hull in the plane
	Hull2D                   // both halves; the entropy is the sum of the two
	Hull3D                   // the hull in space
)

func (p Problem) String() string {
	return [...]string{"maxima2d", "maxima3d", "upperhull", "lowerhull", "hull2d", "hull3d"}[p]
}

// dims returns the number of coordinates of p, 2 or 3.
func (p Problem) dims() int {
	if p == Maxima3D || p == Hull3D {
		return 3
	}
	return 2
}

// Kind is the method by which a bracket was computed.
type Kind uint8

// Kinds.
const (
	Size     Kind = iota // the number of maximal points or vertices alone
	Exact                // the least entropy of all legal partitions
	Greedy               // a greedy cover by ranges, at most one nat from the best cover
	Tree                 // the cells of a kd-tree that lie in ranges
	Trace                // the groups in which an algorithm dropped the points
	Vertical             // slabs under single hull edges
	Witness              // a greedy cover by the ranges of some witnesses
	Joint                // the best bounds of several kinds
	Search               // branch and bound over the order of groups
)

func (k Kind) String() string {
	return [...]string{"size", "exact", "greedy", "tree", "trace", "vertical", "witness", "joint", "search"}[k]
}

// Bracket holds bounds of an entropy in nats a point: the entropy is at least Lower
// and at most Upper.
type Bracket struct {
	Lower, Upper float64
	Kind         Kind
}

// Gap returns Upper - Lower, the width of the bracket.
func (b Bracket) Gap() float64 { return b.Upper - b.Lower }

// And returns the intersection of two brackets of one entropy. Its kind is that of
// the narrower bracket if the other contains that bracket, otherwise Joint.
func (b Bracket) And(o Bracket) Bracket {
	switch {
	case b.Lower >= o.Lower && b.Upper <= o.Upper:
		return b
	case o.Lower >= b.Lower && o.Upper <= b.Upper:
		return o
	}
	upper := min(b.Upper, o.Upper)
	return Bracket{min(max(b.Lower, o.Lower), upper), upper, Joint} // only rounding can part them
}

// Plus returns the bracket of the sum of two entropies, such as those of the upper
// and the lower hull.
func (b Bracket) Plus(o Bracket) Bracket {
	sum := Bracket{b.Lower + o.Lower, b.Upper + o.Upper, Joint}
	if b.Kind == o.Kind {
		sum.Kind = b.Kind
	}
	return sum
}

// bracket clamps bounds to [0, log n], the range of any cloud of n points.
func bracket(lower, upper, n float64, k Kind) Bracket {
	most := math.Log(max(n, 1))
	upper = min(max(upper, 0), most)
	return Bracket{min(max(lower, 0), upper), upper, k}
}

// OfSizes returns Σ s/n log(n/s) over the sizes s of groups, where n is their sum: the
// entropy of the partition in nats a point. Empty groups add nothing; no points have
// entropy 0. Cost: O(len(sizes)).
func OfSizes[N int | int32 | float64](sizes []N) float64 {
	n, sum := 0.0, 0.0
	for _, s := range sizes {
		n += float64(s)
		sum += mlogm(float64(s))
	}
	if n == 0 {
		return 0
	}
	return max(math.Log(n)-sum/n, 0)
}

// mlogm returns m log m, 0 for m = 0.
func mlogm(m float64) float64 {
	if m <= 0 {
		return 0
	}
	return m * math.Log(m)
}

// Panics at mistakes of the caller.
const (
	badLengths = "entropy: coordinate slices of unequal lengths"
	badSize    = "entropy: more than 2^31-1 points"
	badSpace   = "entropy: a problem in space needs a cloud with z"
	badFinite  = "entropy: non-finite coordinate"
	badIndex   = "entropy: an index names no point of the cloud"
	badRoom    = "entropy: the gradient slices are too short"
)

// check panics for a cloud that has no entropy in dims dimensions.
func check[T geom.Float](c geom.Cloud[T], dims int) {
	n := c.Len()
	if len(c.Y) != n || c.Z != nil && len(c.Z) != n {
		panic(badLengths)
	}
	if n > math.MaxInt32 {
		panic(badSize)
	}
	if dims == 3 && c.Z == nil && n > 0 {
		panic(badSpace)
	}
	plane := geom.Cloud[T]{X: c.X, Y: c.Y}
	if dims == 3 {
		plane.Z = c.Z
	}
	if !plane.Finite() {
		panic(badFinite)
	}
}

// checkIndices panics for an index that names no point of a cloud of n points.
func checkIndices(list []int32, n int) {
	for _, i := range list {
		if i < 0 || int(i) >= n {
			panic(badIndex)
		}
	}
}

// points holds coordinates as float64, one slice for each axis.
type points [3][]float64

// widen copies sign·v to dst as float64.
func widen[T geom.Float](dst []float64, v []T, sign float64) []float64 {
	dst = dst[:0]
	for _, w := range v {
		dst = append(dst, sign*float64(w))
	}
	return dst
}

// load copies the coordinates of c that p needs. For LowerHull it negates y, so that
// the lower hull becomes an upper hull.
func load[T geom.Float](dst *points, c geom.Cloud[T], p Problem) {
	sign := 1.0
	if p == LowerHull {
		sign = -1
	}
	dst[0] = widen(dst[0], c.X, 1)
	dst[1] = widen(dst[1], c.Y, sign)
	dst[2] = dst[2][:0]
	if p.dims() == 3 {
		dst[2] = widen(dst[2], c.Z, 1)
	}
}
