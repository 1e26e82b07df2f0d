// Package entropy measures how hard a cloud is for maxima and convex hulls:
// its range-partition entropy, in nats a point, exactly where that is possible,
// otherwise as a bracket, and as a loss with gradients to learn from.
//
// It is not an operator: it takes the maximal points or hull vertices that the
// operators found, and never finds them itself.
//
// # What is measured
//
// A "range" is a shape that proves, with real points of the cloud, that what
// lies in it needs no further work: for maxima the box below one point; for an
// upper hull the region on or below the "chord" of two vertices, between the
// two (the lower hull likewise); for the hull in space a tetrahedron inside the
// hull. A set of points is a legal "group" when it lies in one range, or is a
// single point. The entropy of a partition into groups of s_1, s_2, ... of n
// points is Σ s_k/n log(n/s_k); the entropy H of the cloud is the least of all
// partitions into legal groups, from 0 (one range holds all) to log n (every
// point for itself). Afshani, Barbay and Chan ("Instance-Optimal Geometric
// Algorithms", 2009, 2017) call it structural entropy, and show that the best
// algorithm touches O(n(H+1)) points; Eppstein, Goodrich, Illickan and To
// ("Entropy-Bounded Computational Geometry Made Easier and Sensitive to
// Sortedness", 2025) call its like range-partition entropy. Package optimal has
// such algorithms, after Kirkpatrick and Seidel (1985, 1986).
//
// "Legal" carries all the meaning: over any partition at all, the least entropy
// is that of one group, 0. Uniform clouds are easy (H near 0.1); what is hard is
// many points near a long boundary.
//
// # What an answer is
//
// Measurements are Brackets: H is between Lower and Upper, and Kind says why.
// For maxima H is the definition above. For upper and lower hulls it is that of
// the chords of all pairs of vertices, within log 6 of the definition with
// triangles; Hull2D is the sum of both. For the hull in space it is that of
// tetrahedra: only upper bounds are known to this package, besides what the
// number of vertices says. The rounding of sums and logarithms, some 1e-14, is
// not part of the bounds; whether a point lies in a range is decided exactly.
// For Delaunay triangulations there is nothing to measure: every point is a
// vertex, and H is log n.
//
// Surrogate, BallEntropy and CellEntropy are not measurements but losses, plain
// numbers with gradients. Only the first, F, follows H (R² 0.99 over the families
// of the tests); the other two are those of a paper on
// differentiable entropy regularisation, with its formulas' gradients
// corrected, kept to compare with.
package entropy

import (
	"math"

	"entropipe/algos/geom"
)

// Problem is what the cloud's entropy is about.
type Problem uint8

// Problems. To minimise an axis of maxima, negate it first.
const (
	Maxima2D  Problem = iota // maximal in x and y
	Maxima3D                 // maximal in x, y and z
	UpperHull                // of the hull in the plane
	LowerHull
	Hull2D // both: the sum of the two
	Hull3D
)

func (p Problem) String() string {
	return [...]string{"maxima2d", "maxima3d", "upperhull", "lowerhull", "hull2d", "hull3d"}[p]
}

// dims is the number of coordinates that p looks at.
func (p Problem) dims() int {
	if p == Maxima3D || p == Hull3D {
		return 3
	}
	return 2
}

// Kind says how a bracket was found.
type Kind uint8

// Kinds.
const (
	Size          Kind = iota // from the number of maximal points or vertices alone
	Exact                     // the least of all legal partitions
	Greedy                    // a greedy cover by ranges, at most one nat from their best
	Fractional                // fractional cover: a lower bound
	Pointwise                 // the largest range of every point: a lower bound
	Tree                      // the cells of a kd-tree that ranges hold
	Trace                     // the groups in which an algorithm got rid of the points
	Vertical                  // slabs under single hull edges
	Triangulation             // least over triangulations of the hull polygon
	Witness                   // a greedy cover by the ranges of some witnesses
	Joint                     // the best bounds of several
)

func (k Kind) String() string {
	return [...]string{"size", "exact", "greedy", "fractional", "pointwise", "tree", "trace", "vertical", "triangulation", "witness", "joint"}[k]
}

// Bracket holds an entropy, in nats a point: it is at least Lower and at most
// Upper.
type Bracket struct {
	Lower, Upper float64
	Kind         Kind
}

// Gap is the width of the bracket.
func (b Bracket) Gap() float64 { return b.Upper - b.Lower }

// And returns the narrowest bracket that both allow: of kind Joint, unless one
// of the two says nothing that the other does not.
func (b Bracket) And(o Bracket) Bracket {
	switch {
	case b.Lower >= o.Lower && b.Upper <= o.Upper:
		return b
	case o.Lower >= b.Lower && o.Upper <= b.Upper:
		return o
	}
	upper := min(b.Upper, o.Upper)
	return Bracket{min(max(b.Lower, o.Lower), upper), upper, Joint} // rounding apart they meet
}

// Plus returns the bracket of a sum of entropies, such as those of the two
// hulls.
func (b Bracket) Plus(o Bracket) Bracket {
	sum := Bracket{b.Lower + o.Lower, b.Upper + o.Upper, Joint}
	if b.Kind == o.Kind {
		sum.Kind = b.Kind
	}
	return sum
}

// bracket clamps bounds to what any cloud of n points allows.
func bracket(lower, upper, n float64, k Kind) Bracket {
	most := math.Log(max(n, 1))
	upper = min(max(upper, 0), most)
	return Bracket{min(max(lower, 0), upper), upper, k}
}

// OfSizes returns the entropy of a partition into groups of the given sizes, in
// nats a point: Σ s/n log(n/s), n their sum. Empty groups count nothing, no
// points have entropy 0.
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

// mlogm is m log m, 0 at 0.
func mlogm(m float64) float64 {
	if m <= 0 {
		return 0
	}
	return m * math.Log(m)
}

// FromTrace turns the sizes of the groups in which an algorithm got rid of all
// the points, each by one range, into an upper bound. Algorithms of package
// optimal tell them.
func FromTrace[N int | int32 | float64](sizes []N) Bracket {
	n := 0.0
	for _, s := range sizes {
		n += float64(s)
	}
	return bracket(0, OfSizes(sizes), n, Trace)
}

// Caller's mistakes.
const (
	badLengths = "entropy: coordinate slices of unequal lengths"
	badSize    = "entropy: more than 2^31-1 points"
	badSpace   = "entropy: a problem in space asked of a cloud without z"
	badFinite  = "entropy: non-finite coordinate"
	badIndex   = "entropy: index out of range"
	badRoom    = "entropy: gradient slices shorter than the cloud"
)

// check refuses clouds that dims cannot be measured of.
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

// checkIndices refuses numbers that are none of a cloud's points.
func checkIndices(list []int32, n int) {
	for _, i := range list {
		if i < 0 || int(i) >= n {
			panic(badIndex)
		}
	}
}

// points holds coordinates as float64, one slice an axis.
type points [3][]float64

// widen copies v into dst as float64, with a sign.
func widen[T geom.Float](dst []float64, v []T, sign float64) []float64 {
	dst = dst[:0]
	for _, w := range v {
		dst = append(dst, sign*float64(w))
	}
	return dst
}

// load copies the coordinates of c that p looks at; the lower hull is the upper
// one of the negated y.
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
