// Package extreme finds points that lie far out in given directions. They show how
// far a cloud reaches, at a small part of the cost of a pass over the cloud.
//
// Its results are not exact: it searches a sample in single precision. But every
// result is an index of a point of the cloud, and operators that take such points
// as hints (hull.Hull3D's Seeds) are exact with any points.
package extreme

import (
	"slices"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// Finder finds extreme points in space. Look samples a cloud; Append then finds the
// points for any directions, as often as it is called. The zero value is ready and
// examines every point. A Finder keeps a copy of its sample, 12 bytes a point. It
// must not be used by two goroutines at a time: make one for each goroutine.
//
// Directions refer to the unit cube, to which the box of the sample is stretched;
// their lengths do not matter.
type Finder[T geom.Float] struct {
	// Every is the sampling stride: one point in Every is examined; 0 and 1 mean
	// all points. An odd stride meets all rings of a scanner that sends column
	// after column.
	Every int

	x, y, z []float32
	size    [3]float64
	every   int
	n       int // number of points of the cloud
	turned  []float32
	best    []float32
	at      []int32
	out     []int32
}

// Panics at mistakes of the caller.
const (
	badLengths    = "extreme: coordinate slices of unequal lengths"
	badDirections = "extreme: directions need three coordinates each"
)

// axes are the directions in which a box is measured.
var axes = []float32{1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 1, 0, 0, -1}

// Look copies a sample of c, keeps no other reference to c, and measures the box of
// the sample. It returns false, and Append then finds nothing, for a cloud without
// points, without z or without volume, and for a box that is too small or too large
// for float32. All coordinates must be finite. It panics when slices differ in
// length. Cost: one read of the sample.
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

// Size returns the lengths of the sample's box along x, y and z, in the unit of the
// coordinates. It means nothing unless Look returned true.
func (f *Finder[T]) Size() [3]float64 { return f.size }

// Append appends the indices of the points of the sample that are farthest out in
// the directions, ascending and each once, to dst and returns the extended slice.
// directions holds three coordinates each; other lengths panic. Cost: 0.1 ns for
// each point of the sample and each direction with vector units, 1.5 ns without.
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

// Boxes of other sizes would need care with overflow that they are not worth.
const (
	sizeLeast = 0x1p-60
	sizeMost  = 0x1p60
)

// find sets at to the highest point of the sample in each direction.
func (f *Finder[T]) find(directions []float32) {
	k := len(directions) / 3
	f.best, f.at = slices.Grow(f.best[:0], k)[:k], slices.Grow(f.at[:0], k)[:k]
	kernel.Highest(directions, f.x, f.y, f.z, f.best, f.at)
}

// place returns the index in a cloud of n points of point at of the sample. The last
// point stands several times in the sample, to make the last tile whole.
func place(at int32, every, n int) int { return min(int(at)*every, (n-1)/every*every) }

// sample copies one value in every, relative to the first value, and repeats the
// last until the length is a multiple of kernel.HighTile.
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
