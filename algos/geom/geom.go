// Package geom holds the plain data that the operators share: a point cloud as
// separate coordinate slices, and a triangle mesh as indices into one.
//
// It is not a geometry library: no predicates (package exact), no algorithms.
// A "frame" of the pipeline carries one Cloud.
package geom

import "entropipe/algos/internal/kernel"

// Float is the coordinate type of a cloud. Sensors send float32, surveys
// float64; a frame keeps the type it came in.
type Float interface{ float32 | float64 }

// Cloud is a view of n points, in metres (or pixels, for drawings). It owns
// nothing: the slices belong to whoever made them, usually the bytes of a
// message. Z is nil for two-dimensional clouds; otherwise the slices have
// equal lengths.
type Cloud[T Float] struct{ X, Y, Z []T }

// Len returns the number of points.
func (c Cloud[T]) Len() int { return len(c.X) }

// Finite tells whether no coordinate is NaN or infinite, which operators ask
// for. Cost: one read.
func (c Cloud[T]) Finite() bool {
	return kernel.Finite(c.X) && kernel.Finite(c.Y) && kernel.Finite(c.Z)
}

// Slice returns the view of points [i, j).
func (c Cloud[T]) Slice(i, j int) Cloud[T] {
	s := Cloud[T]{X: c.X[i:j:j], Y: c.Y[i:j:j]}
	if c.Z != nil {
		s.Z = c.Z[i:j:j]
	}
	return s
}

// Mesh is a triangulation, as indices into the Cloud it came from.
//
// Triangles holds three vertex indices a triangle, counter-clockwise.
// Halfedges has the same length: entry e belongs to the edge from
// Triangles[e] to the next vertex of the same triangle, and holds the index of
// its twin in the neighbouring triangle, or -1 on the boundary. Hull holds the
// boundary vertices, counter-clockwise, from the lexicographic minimum.
//
// Degenerate clouds have no triangles: Hull then holds nothing (no point), one
// index (one distinct point) or the two end points (all points collinear).
type Mesh struct{ Triangles, Halfedges, Hull []int32 }
