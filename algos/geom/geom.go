// Package geom holds the plain data that the operators share: a point cloud as
// separate coordinate slices, and a triangle mesh as indices into a cloud.
//
// It is not a geometry library: it has no predicates (see package exact) and no
// algorithms. A frame of the pipeline carries one Cloud.
package geom

import "entropipe/algos/internal/kernel"

// Float is the coordinate type of a cloud. Sensors send float32, surveys
// float64; a frame keeps the type it came in.
type Float interface{ float32 | float64 }

// Cloud is a view of n points, [n] coordinates a slice, in metres (in pixels for
// drawings). It owns no memory: the slices belong to the code that made them, and
// usually alias the bytes of a message. Z is nil for two-dimensional clouds;
// otherwise the three slices have equal lengths. The zero value has no points.
type Cloud[T Float] struct{ X, Y, Z []T }

// Len returns the number of points.
func (c Cloud[T]) Len() int { return len(c.X) }

// Finite reports whether all coordinates are finite, as the operators need. An empty
// cloud is finite. Cost: one read of the coordinates.
func (c Cloud[T]) Finite() bool {
	return kernel.Finite(c.X) && kernel.Finite(c.Y) && kernel.Finite(c.Z)
}

// Slice returns a view of points [i, j) of c, with the same memory.
func (c Cloud[T]) Slice(i, j int) Cloud[T] {
	s := Cloud[T]{X: c.X[i:j:j], Y: c.Y[i:j:j]}
	if c.Z != nil {
		s.Z = c.Z[i:j:j]
	}
	return s
}

// Mesh is a triangulation, as indices into the Cloud that it belongs to.
//
// Triangles holds three vertices a triangle, counter-clockwise. Halfedges has the
// same length: entry e belongs to the edge from Triangles[e] to the next vertex of
// the same triangle, and holds the index of the edge's twin in the neighbouring
// triangle, or -1 on the boundary. Hull holds the vertices on the boundary,
// counter-clockwise from the lexicographic minimum.
//
// Degenerate clouds have no triangles: Hull is then empty (no point), holds one
// index (one distinct point) or the two ends (all points collinear).
type Mesh struct{ Triangles, Halfedges, Hull []int32 }
