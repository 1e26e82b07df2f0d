package net

import (
	"math"

	"entropipe/algos/geom"
)

// Mover moves the points of clouds. Net must be set; other fields may be zero. A
// Mover owns the memory of the clouds that it returns, and is not safe for
// concurrent use.
type Mover[T geom.Float] struct {
	Net    *Net
	Runner Runner

	points, moves []float32
	moved         [3][]T
}

// Move returns a cloud with every point of c moved, valid until the next call. A
// network for the plane leaves z unchanged. A coordinate that would leave the range
// of T stays unchanged. An empty cloud is returned as it is. Move panics if the
// network is for space and c has points without z.
func (m *Mover[T]) Move(c geom.Cloud[T]) geom.Cloud[T] {
	n, dims := c.Len(), m.Net.dims
	if n == 0 {
		return c
	}
	if dims == 3 && c.Z == nil {
		panic(badFlat)
	}
	m.points, m.moves = grown(m.points, n*dims), grown(m.moves, n*dims)
	axes := [3][]T{c.X, c.Y, c.Z}
	for d, axis := range axes[:dims] {
		Normalise(m.points[d:], dims, axis)
	}
	m.Runner.Displace(m.moves, m.points, m.Net)
	for d, axis := range axes[:dims] {
		m.moved[d] = grown(m.moved[d], n)
		m.shift(m.moved[d], axis, d)
		axes[d] = m.moved[d]
	}
	return geom.Cloud[T]{X: axes[0], Y: axes[1], Z: axes[2]}
}

// shift sets dst to the coordinates of one axis plus their displacements.
func (m *Mover[T]) shift(dst, axis []T, d int) {
	for i, v := range axis {
		w := T(float64(v) + float64(m.moves[i*m.Net.dims+d])*m.Net.sigma)
		if w-w != 0 {
			w = v
		}
		dst[i] = w
	}
}

// Normalise maps the values of an axis to [0, 1], the least to 0 and the largest to
// 1, and writes them to dst[0], dst[stride], dst[2·stride] and so on. Equal values
// become 0. Networks are trained in these coordinates.
func Normalise[T geom.Float](dst []float32, stride int, axis []T) {
	lo, hi := Extent(axis)
	width := hi/2 - lo/2 // halves, lest the difference overflow
	for i, v := range axis {
		u := 0.0
		if width > 0 {
			u = (float64(v)/2 - lo/2) / width
		}
		dst[i*stride] = float32(u)
	}
}

// Extent returns the least and the largest value, +Inf and -Inf for no values.
func Extent[T geom.Float](axis []T) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range axis {
		lo, hi = min(lo, float64(v)), max(hi, float64(v))
	}
	return lo, hi
}

// grown returns a slice of length n, in s's memory if that is large enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
