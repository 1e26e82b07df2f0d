// Package hull computes exact convex hulls: Hull2D of the x and y of a cloud,
// Hull3D in space.
//
//	var h hull.Hull2D[float32] // ready as it is; keep it for the next cloud
//	cloud := geom.Cloud[float32]{X: []float32{1, 0, 2, 2, 0}, Y: []float32{1, 0, 0, 2, 2}}
//	vertices := h.Append(nil, cloud) // indices into cloud, counter-clockwise: 1 2 3 4
//	area, perimeter := hull.Measure(cloud, vertices)
//
// A hull is a list of indices of points of the cloud: the package makes no new
// points, and is not a library of polygons or solids.
//
// # Words
//
//   - vertex: a corner of the hull, a point on no segment between two other points.
//   - sample: some hundred points of the cloud.
//   - filter: chords inside the sample's hull, sixteen above and sixteen below at
//     first. A kernel holds the chords in registers. A point strictly between its
//     two chords cannot be a vertex.
//   - survivor, candidate: a point that passes the filter, and may be a vertex.
//   - record: a point lower, or higher, than all points before it in a sweep.
//   - chain: one of the four parts of the hull between its leftmost, lowest,
//     rightmost and highest points. Records make up a chain.
//   - lane: the working memory of one goroutine.
//
// # How a planar hull is computed
//
// The filter drops most points in one pass. When candidates pile up, their hull
// makes a sharper filter. The candidates that remain at the end are sorted by x
// and swept into the four chains; the chains joined are the hull.
package hull

import (
	"math"
	"sync"

	"entropipe/algos/geom"
)

// Hull2D computes convex hulls in the plane. The zero value is ready. A Hull2D
// keeps its working memory between calls: some 100 kilobytes a worker for most
// clouds, some 100 bytes a point where nearly all points are vertices. It must not
// be copied, nor used by two goroutines at a time: make one for each goroutine.
type Hull2D[T geom.Float] struct {
	// Workers is the number of goroutines that share one large cloud. With 0 or 1
	// the caller's goroutine does all the work. The result is the same for any
	// number.
	Workers int

	lanes []*lane[T]
	wait  sync.WaitGroup
}

// vertex is a candidate: a point of the cloud with its index.
type vertex[T geom.Float] struct {
	x, y T
	i    int32
}

// Panics at mistakes of the caller.
const (
	badLengths = "hull: coordinate slices of unequal lengths"
	badSize    = "hull: more than 2^31-1 points"
	badFinite  = "hull: non-finite coordinate"
)

const (
	filterFrom  = 256     // points; below, sorting all of them is cheaper
	sampleLeast = 64      // least number of points in a sample
	sampleMost  = 256     // largest number of points in a sample
	sampleRate  = 64      // sampling stride: one point in sampleRate, between these limits
	laneFrom    = 1 << 16 // number of points that a goroutine is worth starting for
)

// Append appends the indices of the vertices of the hull of c to dst and returns
// the extended slice. The vertices go counter-clockwise from the lexicographic
// minimum (x, then y). Points on an edge are no vertices; equal points (-0 equals
// 0) count as the one with the lowest index. An empty cloud adds nothing, equal
// points add one index, collinear points add their two ends.
//
// The result is exact for all finite coordinates. Append only reads c, and keeps no
// reference to c or dst. Cost: O(n log n) in the worst case, one pass over the
// coordinates where few points are vertices. It panics when slices differ in
// length, when x or y is not finite, and for more than 2^31-1 points.
//
// Sources: Akl and Toussaint, "A fast convex hull algorithm" (1978), for the
// filter's idea; Andrew, "Another efficient algorithm for convex hulls in two
// dimensions" (1979), for the chain.
func (h *Hull2D[T]) Append(dst []int32, c geom.Cloud[T]) []int32 {
	n := c.Len()
	if len(c.Y) != n || c.Z != nil && len(c.Z) != n {
		panic(badLengths)
	}
	if n > math.MaxInt32 {
		panic(badSize)
	}
	if n == 0 {
		return dst
	}
	workers := max(1, min(h.Workers, n/laneFrom))
	h.prepare(workers)
	first := h.lanes[0]
	if n < filterFrom {
		h.run(c, takeAll, 1)
	} else {
		h.share(c, workers)
	}
	return first.chains.joinIndices(dst)
}

// prepare makes lanes, each with the function that its goroutine runs, so that
// starting a goroutine allocates nothing.
func (h *Hull2D[T]) prepare(workers int) {
	for len(h.lanes) < workers {
		l := &lane[T]{number: len(h.lanes)}
		l.work = func() {
			defer h.wait.Done()
			l.do(h.lanes)
		}
		h.lanes = append(h.lanes, l)
	}
	for _, l := range h.lanes {
		l.touched, l.points = 0, l.points[:0]
	}
}

// share gives every lane a part of the points, and leaves the chains of all points
// in the first lane.
func (h *Hull2D[T]) share(c geom.Cloud[T], workers int) {
	first, n, what := h.lanes[0], c.Len(), takeSome
	sample := min(sampleMost, max(sampleLeast, n/sampleRate))
	if !first.takeSample(c, sample) {
		panic(badFinite)
	}
	if 2*len(first.points) > sample { // nearly all are vertices, so a filter would pass them
		what, first.points = takeAll, first.points[:0]
	}
	for _, l := range h.lanes[1:workers] {
		l.filter.scales, l.column.first, l.column.width = first.filter.scales, first.column.first, first.column.width
		l.points = append(l.points, first.points...) // a part's own hull could be a small filter
	}
	h.run(c, what, workers)
	if workers > 1 {
		h.run(c, merge, workers)
	}
}

// run lets all lanes do their parts of a task, and waits for them.
func (h *Hull2D[T]) run(c geom.Cloud[T], what task, workers int) {
	lanes := h.lanes[:workers]
	points := 0 // number of points that the task reads
	lanes[0].next.Store(0)
	for _, l := range lanes {
		l.task, l.tasks, l.cloud = what, workers, c
		points += l.chains.len()
	}
	if what != merge {
		points = c.Len()
	}
	if workers == 1 || points < laneFrom { // not worth a goroutine
		for _, l := range lanes {
			l.do(h.lanes)
		}
	} else {
		h.wait.Add(workers - 1)
		for _, l := range lanes[1:] {
			go l.work()
		}
		lanes[0].do(h.lanes)
		h.wait.Wait()
	}
	for _, l := range lanes {
		l.cloud = geom.Cloud[T]{} // the memory belongs to the caller
		if l.odd {
			panic(badFinite)
		}
	}
	if what == merge {
		lanes[0].chains, lanes[0].merged = lanes[0].merged, lanes[0].chains
	}
}
