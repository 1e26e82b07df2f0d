// Package maxima finds the maximal points of a cloud in two to eight
// dimensions: the points that no other point beats on every axis at once. The
// set of maximal points is also called the Pareto front or the skyline.
//
//	m := maxima.Maxima[float64]{Min: [maxima.MaxDims]bool{0: true}} // low x, high y
//	price, rating := []float64{80, 120, 95, 200}, []float64{7, 9, 6, 9}
//	front := m.Append2D(nil, geom.Cloud[float64]{X: price, Y: rating})
//	fmt.Println(front) // indices, ascending: 0 1
//
// It finds one front: no layers, no ranking, no tolerance. Only comparisons
// decide, so every result is exact.
//
// # Words
//
//   - dominate: point q dominates p when q >= p on every axis and q differs from p.
//     A minimised axis is negated on the way in; after that larger is better.
//   - pivots: a few points of a sample that dominate most other points.
//   - survivor: a point that no pivot dominates.
//   - list: the survivors found maximal so far.
//   - staircase: the points of a sweep that can still dominate later points.
//
// # How the front is computed
//
// One pass over the cloud compares every point with the pivots. The survivors are
// compared with the list. When the list grows long, a sweep from the best last
// coordinate downwards replaces it: in the plane against the best value so far,
// in space along a staircase; with more axes, divide and conquer.
package maxima

import (
	"math"
	"math/bits"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// MaxDims is the largest number of axes.
const MaxDims = kernel.MaxAxes

// Maxima finds maximal points. The zero value maximises every axis in one
// goroutine. It keeps its scratch memory between calls, where nearly all points
// are maximal at most some 60 bytes a point of float64 in space and 150 with
// eight axes: use one a goroutine, never two calls at a time, and do not copy it
// after the first. It keeps no pointer to a cloud.
type Maxima[T geom.Float] struct {
	// Min says which axes are minimised instead: x, y, z, …
	Min [MaxDims]bool
	// Workers is the number of goroutines that filter a large cloud; below 2 it
	// is the caller's alone. The result is the same for any number.
	Workers int

	filter  filter[T]
	ids     []int32      // survivors: index in the cloud, ascending
	room    [MaxDims][]T // memory of v
	v       [][]T        // coordinates of the survivors, larger is better
	list    kernel.Front[T]
	back    kernel.Front[T]
	turned  [MaxDims][]T // the list backwards
	sorter  sorter[T]
	stair   kernel.Stair[T]
	steps   [256]kernel.Step[T]
	climbed []int32 // survivors of the steps just taken that stay
	rank    []int32 // of a survivor's x, 0 the largest
	divide  divide[T]
	kept    []uint64 // bit k: survivor k is maximal

	crowded float64 // part of the last sample that is maximal in it, 0 without one
	touched int     // points and list vectors looked at in this call
}

// Caller's mistakes.
const (
	badLengths   = "maxima: coordinate slices of unequal lengths"
	badSize      = "maxima: more than 2^31-1 points"
	badDimension = "maxima: three dimensions asked of a cloud without z"
	badAxes      = "maxima: not 1 to 8 axes"
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
	if c.Z != nil && len(c.Z) != c.Len() {
		panic(badLengths)
	}
	axes := [...][]T{c.X, c.Y}
	return m.AppendD(dst, axes[:])
}

// Append3D is Append2D in x, y and z. A cloud without z panics, unless it is
// empty.
//
// Source of the sweep: Kung, Luccio, Preparata, "On finding the maxima of a set
// of vectors" (1975).
func (m *Maxima[T]) Append3D(dst []int32, c geom.Cloud[T]) []int32 {
	if c.Z == nil && c.Len() > 0 {
		panic(badDimension)
	}
	axes := [...][]T{c.X, c.Y, c.Z}
	return m.AppendD(dst, axes[:])
}

// AppendD is Append2D for any number of axes from 1 to MaxDims: axes[k][i] is
// coordinate k of point i.
//
// Cost: with d axes O(n log^max(1,d-2) n) in the worst case, which from d = 4 on
// means that nearly all points are maximal, as most random points are when d is
// large; one pass over the coordinates where few are.
func (m *Maxima[T]) AppendD(dst []int32, axes [][]T) []int32 {
	if len(axes) < 1 || len(axes) > MaxDims {
		panic(badAxes)
	}
	n := len(axes[0])
	for _, v := range axes {
		if len(v) != n {
			panic(badLengths)
		}
	}
	if n > math.MaxInt32 {
		panic(badSize)
	}
	if n == 0 {
		return dst
	}
	m.touched, m.crowded = 0, 0
	if len(axes) == 1 {
		return append(dst, best(axes[0], sign[T](m.Min[0])))
	}
	m.survivors(axes)
	if m.findInList() {
		return m.appendList(dst)
	}
	m.clearKept(len(m.ids))
	switch len(axes) {
	case 2:
		m.sweepPlane()
	case 3:
		m.sweepSpace()
	default:
		m.divideAxes()
	}
	return m.appendKept(dst)
}

// best returns the first position of the largest value.
func best[T geom.Float](v []T, s T) int32 {
	if !kernel.Finite(v) {
		panic(badFinite)
	}
	at := 0
	for i := range v {
		if s*v[i] > s*v[at] {
			at = i
		}
	}
	return int32(at)
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
