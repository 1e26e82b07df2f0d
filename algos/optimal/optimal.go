// Package optimal holds the instance-optimal algorithms for maxima and convex hulls
// in the plane, as references. Their results are those of packages maxima and hull.
// Up to a constant factor, they touch the least number of points that any algorithm
// of their kind can, for every single input.
//
// The package is not made for speed. It measures: it counts the touched points, and
// records a trace of the proofs by which points were dropped.
//
// The algorithms divide a cloud by the median of x again and again. They prune a
// point as soon as one other point (maxima) or one chord between two vertices
// (hull) proves that it cannot matter. The points pruned by the same proof are a
// group; the proof is the group's range. A partition into such groups is called
// respectful, and the least entropy H of a respectful partition is the structural
// entropy of the cloud. Both algorithms touch O(n(H+1)) points. No algorithm that
// compares coordinates or sides of lines, and does not know the order of its input,
// can do better (Afshani, Barbay and Chan, "Instance-Optimal Geometric Algorithms",
// 2009 and 2017).
package optimal

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"entropipe/algos/geom"
)

// Trace records the groups in which an algorithm dropped the points of one cloud. Its
// slices are valid until the next call that fills it.
type Trace struct {
	// Touched is the cost of the run in points: the sum of the sizes of all
	// subproblems, at least n (0 for no point) and at most n(log2 n + 2). It depends
	// on the set of points, not on their order.
	Touched int64
	// Group[i] is the group of point i, a number from 0 on.
	Group []int32
	// Ranges[g] is the range of group g.
	Ranges []Range

	sizes []int32
}

// Range is the proof that the points of a group need no more work. For maxima A = B
// is a maximal point of the group that is at least as good as every point of the
// group on every axis. For the upper hull A and B are the ends of a chord between
// two vertices, and the points of the group lie on or below it, between its ends;
// for the lower hull on or above it. A vertex is alone in its group, with A = B.
type Range struct{ A, B int32 }

// Entropy returns Σ s/n log(n/s) over the sizes s of the groups, in nats a point,
// from 0 to log n: an upper bound of the cloud's structural entropy. No points give
// 0. Cost: O(n). It must not be called concurrently.
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

// reset makes room for n points without groups.
func (t *Trace) reset(n int) {
	t.Touched, t.Ranges = 0, t.Ranges[:0]
	if cap(t.Group) < n {
		t.Group = make([]int32, n)
	}
	t.Group = t.Group[:n]
}

// open begins a group with range (a, b) and returns its number.
func (t *Trace) open(a, b int32) int32 {
	t.Ranges = append(t.Ranges, Range{a, b})
	return int32(len(t.Ranges) - 1)
}

// Panics at mistakes of the caller.
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

// before is a total order: by x, then y, then falling index. So among equal points
// the one with the lowest index comes last.
func (s site[T]) before(o site[T]) bool {
	switch {
	case s.x != o.x:
		return s.x < o.x
	case s.y != o.y:
		return s.y < o.y
	}
	return s.i > o.i
}

// load appends the points of c to dst, with coordinates times sx and sy. It panics
// at mistakes of the caller.
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

// sign returns the factor that turns an axis so that larger is better: -1 for a
// minimised axis, else 1.
func sign[T geom.Float](low bool) T {
	if low {
		return -1
	}
	return 1
}

// dice makes the random choices of one call. They are the same in every call, so
// that a call can be repeated.
type dice struct{ rng rand.PCG }

func (d *dice) reset() { d.rng.Seed(0x6f70, 0x7469) }

// below returns a number in [0, n).
func (d *dice) below(n int) int {
	hi, _ := bits.Mul64(d.rng.Uint64(), uint64(n))
	return int(hi)
}
