// Package extreme finds points that lie far out in given directions: good
// witnesses of how far a cloud reaches, at a small part of a pass's cost.
//
// It is not exact and does not have to be: it looks at a sample in single
// precision. Every index it gives is that of a point of the cloud; what
// operators make of them (hull.Hull3D's Seeds) is exact with any points.
package extreme

import (
	"slices"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// Finder finds extreme points in space: first it looks at a cloud, then it can
// be asked for directions, as often as one likes. The zero value is ready and
// looks at every point. It keeps a copy of its sample, 12 bytes a point. Use
// one a goroutine, never two calls at a time.
//
// Directions belong to the unit cube that the box of the sample is stretched
// to; their lengths do not matter.
type Finder[T geom.Float] struct {
	// Every is of how many points one is looked at; 0 and 1 mean all. An odd
	// number meets all rings of a scanner that sends column after column.
	Every int

	x, y, z []float32
	size    [3]float64
	every   int
	n       int // points of the cloud
	turned  []float32
	best    []float32
	at      []int32
	out     []int32
}

// Caller's mistakes.
const (
	badLengths    = "extreme: coordinate slices of unequal lengths"
	badDirections = "extreme: not three coordinates a direction"
)

// axes are the directions in which a box is measured.
var axes = []float32{1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1}

// Look takes the sample of a cloud, of which it keeps nothing else, and measures
// its box. It reports false, and Append then finds nothing, for a cloud without
// z, without volume, or with a box beyond what float32 holds. Coordinates are
// finite. Cost: one read of the sample.
func (f *Finder[T]) Look(c geom.Cloud[T]) bool {
	f.n, f.every = 0, max(1, f.Every)
	n := c.Len()
	if n == 0 || c.Z == nil {
		return false
	}
	if len(c.Y) != n || len(c.Z) != n {
		panic(badLengths)
	}
	f.x = sample(f.x, c.X, f.every)
	f.y = sample(f.y, c.Y, f.every)
	f.z = sample(f.z, c.Z, f.every)
	f.find(axes)
	for k, v := range [][]T{c.X, c.Y, c.Z} {
		f.size[k] = float64(v[place(f.at[2*k], f.every, n)]) - float64(v[place(f.at[2*k+1], f.every, n)])
		if !(f.size[k] > sizeLeast && f.size[k] < sizeMost) {
			return false
		}
	}
	f.n = n
	return true
}

// Size returns the lengths of the box along the axes.
func (f *Finder[T]) Size() [3]float64 { return f.size }

// Append appends to dst, ascending and without repetition, the indices of the
// points of the sample that are farthest out in the directions, three
// coordinates each, and returns it. Cost: 0.1 ns for each point of the sample
// and each direction with vector units, 1.5 without.
func (f *Finder[T]) Append(dst []int32, directions []float32) []int32 {
	if len(directions)%3 != 0 {
		panic(badDirections)
	}
	if f.n == 0 {
		return dst
	}
	f.turned = f.turned[:0]
	for i, u := range directions {
		f.turned = append(f.turned, u*float32(1/f.size[i%3]))
	}
	f.find(f.turned)
	f.out = f.out[:0]
	for _, at := range f.at {
		f.out = append(f.out, int32(place(at, f.every, f.n)))
	}
	slices.Sort(f.out)
	return append(dst, slices.Compact(f.out)...)
}

// A box of other sizes would need more care with overflow than it is worth.
const (
	sizeLeast = 0x1p-60
	sizeMost  = 0x1p60
)

// find looks for the highest point in each direction.
func (f *Finder[T]) find(directions []float32) {
	k := len(directions) / 3
	f.best, f.at = slices.Grow(f.best[:0], k)[:k], slices.Grow(f.at[:0], k)[:k]
	kernel.Highest(directions, f.x, f.y, f.z, f.best, f.at)
}

// place is the index in a cloud of n points of a point of the sample. The last of
// these stands several times, to make the last tile whole.
func place(at int32, every, n int) int { return min(int(at)*every, (n-1)/every*every) }

// sample copies one of every values, relative to the first, and repeats the
// last until the length suits the kernel.
func sample[T geom.Float](dst []float32, v []T, every int) []float32 {
	n := (len(v) + every - 1) / every
	whole := (n + kernel.HighTile - 1) &^ (kernel.HighTile - 1)
	dst = slices.Grow(dst[:0], whole)[:whole]
	origin := v[0]
	for i, k := 0, 0; k < n; i, k = i+every, k+1 {
		dst[k] = float32(v[i] - origin)
	}
	for k := n; k < whole; k++ {
		dst[k] = dst[n-1]
	}
	return dst
}
