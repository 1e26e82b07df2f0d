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
// goroutine. A Maxima keeps its working memory between calls: where nearly all
// points are maximal, at most some 60 bytes a point of float64 in space and 150
// bytes with eight axes. It keeps no reference to a cloud. It must not be copied
// after its first call, nor used by two goroutines at a time: make one for each
// goroutine.
type Maxima[T geom.Float] struct {
	// Min[k] says that axis k (x, y, z, …) is minimised.
	Min [MaxDims]bool
	// Workers is the number of goroutines that filter a large cloud. With 0 or 1
	// the caller's goroutine does all the work. The result is the same for any
	// number.
	Workers int

	filter  filter[T]
	ids     []int32      // the survivors' indices in the cloud, ascending
	room    [MaxDims][]T // memory of v
	v       [][]T        // coordinates of the survivors; larger is better
	list    kernel.Front[T]
	back    kernel.Front[T]
	turned  [MaxDims][]T // the list backwards
	sorter  sorter[T]
	stair   kernel.Stair[T]
	steps   [256]kernel.Step[T]
	climbed []int32 // the maximal survivors among the last steps
	rank    []int32 // the rank of each survivor's x, 0 for the largest
	divide  divide[T]
	kept    []uint64 // bit k: survivor k is maximal

	crowded float64 // the fraction of the last sample that is maximal in it; 0 without a sample
	touched int     // number of points and list vectors that this call looked at
}

// Panics at mistakes of the caller.
const (
	badLengths   = "maxima: coordinate slices of unequal lengths"
	badSize      = "maxima: more than 2^31-1 points"
	badDimension = "maxima: Append3D needs a cloud with z"
	badAxes      = "maxima: AppendD needs 1 to 8 axes"
	badFinite    = "maxima: non-finite coordinate"
)

// Append2D appends the indices of the points of c that are maximal in x and y,
// ascending, to dst and returns the extended slice; it ignores z. Equal points (-0
// equals 0) count as the one with the lowest index. An empty cloud adds nothing,
// any other cloud at least one index.
//
// The result is exact. Append2D only reads c, and keeps no reference to c or dst.
// Cost: O(n log n) in the worst case, one pass over the coordinates where few
// points are maximal. It panics when slices differ in length, when x or y is not
// finite, and for more than 2^31-1 points.
func (m *Maxima[T]) Append2D(dst []int32, c geom.Cloud[T]) []int32 {
	if c.Z != nil && len(c.Z) != c.Len() {
		panic(badLengths)
	}
	axes := [...][]T{c.X, c.Y}
	return m.AppendD(dst, axes[:])
}

// Append3D is Append2D in x, y and z. It panics for a cloud without z, unless the
// cloud is empty.
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

// AppendD is Append2D for 1 to MaxDims axes: axes[k][i] is coordinate k of point i.
// Other numbers of axes panic.
//
// Cost: with d axes O(n log^max(1,d-2) n) in the worst case, one pass over the
// coordinates where few points are maximal. From d = 4 on, the worst case is a
// cloud whose points are nearly all maximal; with many axes most random clouds are
// such clouds.
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

// best returns the first position of the largest s*v[i].
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

// sign returns the factor that turns an axis so that larger is better: -1 for a
// minimised axis, else 1. It changes no magnitude, not even a denormal one.
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
