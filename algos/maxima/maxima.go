// Package maxima finds the maximal points of a cloud in two and three
// dimensions: those that no other point beats on every axis at once. The
// result is also called the Pareto front or the skyline.
//
// It is not multi-objective ranking: one front, no layers, no tolerance. Every
// answer is exact, since only comparisons decide.
//
// Point q "dominates" p when q >= p on every axis and differs from it. An axis
// that is minimised is negated on the way in; after that larger is better. The
// "filter" drops most dominated points in one pass over the cloud; the
// "survivors" it leaves are "swept" from the best first coordinate down, along
// a "staircase" of the points that can still dominate others.
package maxima

import (
	"math"
	"math/bits"

	"entropipe/algos/geom"
)

// Maxima finds maximal points. The zero value maximises every axis. It keeps
// its scratch memory between calls, at most some 70 bytes a point where nearly all
// points are maximal: use one a goroutine, never two calls at a time.
type Maxima[T geom.Float] struct {
	// Min says which axes are minimised instead: x, y, z.
	Min [3]bool

	filter filter[T]
	ids    []int32 // survivors: index in the cloud, ascending
	x, y   []T     // their coordinates, larger is better
	z      []T
	order  []uint64 // survivors in sweep order; the lower half is the position in ids
	tmp    []uint64
	rank   []int32 // of a survivor's x, 0 the largest
	steps  []step[T]
	stair  staircase[T]
	kept   []uint64 // bit k: survivor k is maximal

}

// step is what the sweep of a space needs of a survivor, in sweep order.
type step[T geom.Float] struct {
	y              T
	rank, survivor int32
}

// Caller's mistakes.
const (
	badLengths   = "maxima: coordinate slices of unequal lengths"
	badSize      = "maxima: more than 2^31-1 points"
	badDimension = "maxima: three dimensions asked of a cloud without z"
	badFinite    = "maxima: non-finite coordinate"
)

// Append2D appends to dst the indices of the points of c that are maximal in x
// and y, ascending, and returns it; z is not looked at. Of equal points
// (-0 equals 0) the lowest index stays. An empty cloud gives nothing, any
// other at least one index.
//
// Cost: O(n log n) in the worst case, one pass over the coordinates where few
// points are maximal. It panics when slices differ in length, when a
// coordinate is not finite, or beyond 2^31-1 points.
func (m *Maxima[T]) Append2D(dst []int32, c geom.Cloud[T]) []int32 {
	check(c)
	m.ids = m.filter.plane(m.ids[:0], c.X, c.Y, m.Min)
	m.x = take(m.x[:0], c.X, m.ids, m.Min[0])
	m.y = take(m.y[:0], c.Y, m.ids, m.Min[1])
	m.sweepPlane()
	return m.appendKept(dst)
}

// Append3D is Append2D in x, y and z. A cloud without z panics, unless it is
// empty.
//
// Source of the sweep: Kung, Luccio, Preparata, "On finding the maxima of a set
// of vectors" (1975).
func (m *Maxima[T]) Append3D(dst []int32, c geom.Cloud[T]) []int32 {
	check(c)
	if c.Z == nil && c.Len() > 0 {
		panic(badDimension)
	}
	m.ids = m.filter.space(m.ids[:0], c, m.Min)
	m.x = take(m.x[:0], c.X, m.ids, m.Min[0])
	m.y = take(m.y[:0], c.Y, m.ids, m.Min[1])
	m.z = take(m.z[:0], c.Z, m.ids, m.Min[2])
	m.sweepSpace()
	return m.appendKept(dst)
}

func check[T geom.Float](c geom.Cloud[T]) {
	n := c.Len()
	if len(c.Y) != n || c.Z != nil && len(c.Z) != n {
		panic(badLengths)
	}
	if n > math.MaxInt32 {
		panic(badSize)
	}
}

// take appends the values of v named by ids, negated where low. The filter
// lets every NaN and +Inf through to here, so this is where they are found; it
// finds -Inf itself.
func take[T geom.Float](dst, v []T, ids []int32, low bool) []T {
	s := sign[T](low)
	for _, i := range ids {
		if v[i]-v[i] != 0 {
			panic(badFinite)
		}
		dst = append(dst, s*v[i])
	}
	return dst
}

// sign is the factor that turns an axis so that larger is better. It changes
// no magnitude, not even a denormal one.
func sign[T geom.Float](low bool) T {
	if low {
		return -1
	}
	return 1
}

// keep marks survivor k as maximal.
func (m *Maxima[T]) keep(k int32) { m.kept[k>>6] |= 1 << (k & 63) }

// clearKept makes room for n marks.
func (m *Maxima[T]) clearKept(n int) {
	words := (n + 63) / 64
	if cap(m.kept) < words {
		m.kept = make([]uint64, words)
	}
	m.kept = m.kept[:words]
	clear(m.kept)
}

func (m *Maxima[T]) appendKept(dst []int32) []int32 {
	for w, word := range m.kept {
		for ; word != 0; word &= word - 1 {
			dst = append(dst, m.ids[w<<6|bits.TrailingZeros64(word)])
		}
	}
	return dst
}
