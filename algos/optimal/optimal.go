// Package optimal holds the instance-optimal algorithms for maxima and convex
// hulls in the plane, as references: their results are those of packages maxima
// and hull, and what they touch is the least that any algorithm of their kind
// can, up to a constant, for every single input.
//
// It is not for speed. It is the yardstick of the work on entropy: a count of
// touched points, and a "trace" of how they were done with.
//
// A cloud is divided by the median of x again and again, and points that can
// no longer matter are "pruned" as early as one other point (maxima) or one
// "chord" between two vertices (hull) proves it. Points pruned by the same proof
// are one "group"; the proof is the group's "range". A partition into such
// groups is called respectful, and the least entropy H of a respectful
// partition is the structural entropy of the cloud: both algorithms touch
// O(n(H+1)) points, and no algorithm that compares coordinates or sides of
// lines, and does not know the order of its input, can do better (Afshani,
// Barbay and Chan, "Instance-Optimal Geometric Algorithms", 2009 and 2017).
package optimal

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"entropipe/algos/geom"
)

// Trace tells how an algorithm got rid of the points of one cloud. Its slices
// are reused: they are valid until the next call that fills it.
type Trace struct {
	// Touched is the sum of the sizes of all subproblems: the cost of the run,
	// in points. At least n (0 for no point), at most n(log2 n + 2). It depends
	// on the set of points only, not on their order.
	Touched int64
	// Group holds the number of every point's group, from 0 on.
	Group []int32
	// Ranges holds the range of every group.
	Ranges []Range

	sizes []int32
}

// Range is what proves that the points of a group need no more work: for maxima
// the maximal point A = B, which is at least as good as each of them on every
// axis (and one of them); for hulls the chord from vertex A to vertex B, on or
// below which they lie (above, for the lower hull), between the two. A vertex is
// alone in a group of its own, A = B.
type Range struct{ A, B int32 }

// Entropy returns the entropy of the sizes of the groups, in nats a point, from
// 0 to log n: an upper bound of the cloud's structural entropy. O(n).
func (t *Trace) Entropy() float64 {
	t.sizes = append(t.sizes[:0], make([]int32, len(t.Ranges))...)
	for _, g := range t.Group {
		t.sizes[g]++
	}
	n, sum := float64(len(t.Group)), 0.0
	for _, s := range t.sizes {
		if share := float64(s) / n; s > 0 {
			sum -= share * math.Log(share)
		}
	}
	return max(sum, 0)
}

// reset makes room for n points, all of them in no group.
func (t *Trace) reset(n int) {
	t.Touched, t.Ranges = 0, t.Ranges[:0]
	if cap(t.Group) < n {
		t.Group = make([]int32, n)
	}
	t.Group = t.Group[:n]
}

// open begins a group and returns its number.
func (t *Trace) open(a, b int32) int32 {
	t.Ranges = append(t.Ranges, Range{a, b})
	return int32(len(t.Ranges) - 1)
}

// Caller's mistakes.
const (
	badLengths = "optimal: coordinate slices of unequal lengths"
	badSize    = "optimal: more than 2^31-1 points"
	badFinite  = "optimal: non-finite coordinate"
)

// site is a point of the cloud with its index.
type site[T geom.Float] struct {
	x, y T
	i    int32
}

// before is a total order: by x, then y, then falling index, so that of equal
// points the lowest index is the greatest.
func (s site[T]) before(o site[T]) bool {
	switch {
	case s.x != o.x:
		return s.x < o.x
	case s.y != o.y:
		return s.y < o.y
	}
	return s.i > o.i
}

// load appends the points of c to dst, coordinates times sx and sy.
func load[T geom.Float](dst []site[T], c geom.Cloud[T], sx, sy T) []site[T] {
	if len(c.Y) != len(c.X) || c.Z != nil && len(c.Z) != len(c.X) {
		panic(badLengths)
	}
	if c.Len() > math.MaxInt32 {
		panic(badSize)
	}
	for i, x := range c.X {
		y := c.Y[i]
		if x-x != 0 || y-y != 0 {
			panic(badFinite)
		}
		dst = append(dst, site[T]{sx * x, sy * y, int32(i)})
	}
	return dst
}

// sign is the factor that turns an axis so that larger is better.
func sign[T geom.Float](low bool) T {
	if low {
		return -1
	}
	return 1
}

// dice are the random choices of one call: always the same, so that a call can
// be repeated.
type dice struct{ rng rand.PCG }

func (d *dice) reset() { d.rng.Seed(0x6f70, 0x7469) }

// below returns a number in [0, n).
func (d *dice) below(n int) int {
	hi, _ := bits.Mul64(d.rng.Uint64(), uint64(n))
	return int(hi)
}
