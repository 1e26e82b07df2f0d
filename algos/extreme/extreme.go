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

// Finder finds extreme points in space. The zero value is ready and looks at
// every point. It keeps a copy of its sample, 12 bytes a point. Use one a
// goroutine, never two calls at a time.
type Finder[T geom.Float] struct {
	// Every is of how many points one is looked at; 0 and 1 mean all. An odd
	// number meets all rings of a scanner that sends column after column.
	Every int
	// Raw keeps the cloud's own axes. Otherwise directions belong to the unit
	// cube that the cloud's box is stretched to.
	Raw bool

	x, y, z []float32
	turned  []float32 // directions, for unscaled coordinates
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

// Append appends to dst, ascending and without repetition, the indices of the
// points of the sample that are farthest out in the directions, three
// coordinates each, and returns it. It appends nothing for a cloud without z,
// without volume, or with a box beyond what float32 holds. Coordinates are
// finite. Cost: one read of the sample, and 0.1 ns for each of its points and
// each direction with vector units, 1.5 without.
func (f *Finder[T]) Append(dst []int32, c geom.Cloud[T], directions []float32) []int32 {
	n, every := c.Len(), max(1, f.Every)
	if len(directions)%3 != 0 {
		panic(badDirections)
	}
	if n == 0 || c.Z == nil || len(directions) == 0 {
		return dst
	}
	if len(c.Y) != n || len(c.Z) != n {
		panic(badLengths)
	}
	f.x = sample(f.x, c.X, every)
	f.y = sample(f.y, c.Y, every)
	f.z = sample(f.z, c.Z, every)
	var scale [3]float32
	f.find(axes)
	for k, v := range [][]T{c.X, c.Y, c.Z} {
		size := float64(v[f.place(2*k, every, n)]) - float64(v[f.place(2*k+1, every, n)])
		if !(size > sizeLeast && size < sizeMost) {
			return dst
		}
		scale[k] = float32(1 / size)
		if f.Raw {
			scale[k] = 1
		}
	}
	f.turned = f.turned[:0]
	for i, u := range directions {
		f.turned = append(f.turned, u*scale[i%3])
	}
	f.find(f.turned)
	f.out = f.out[:0]
	for k := range f.at {
		f.out = append(f.out, int32(f.place(k, every, n)))
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

// place is the index in the cloud of what direction k found. The last point of
// the sample stands several times, to make the last tile whole.
func (f *Finder[T]) place(k, every, n int) int { return min(int(f.at[k])*every, (n-1)/every*every) }

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
