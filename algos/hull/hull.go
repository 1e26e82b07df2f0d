// Package hull finds the convex hull of a cloud in the plane, exactly.
//
// It is not a polygon library and knows no third dimension: the z of a cloud is
// not looked at. It returns indices of points, never new points.
//
// A "vertex" is a corner of the hull: a point that lies on no segment between
// two others. The "sample" is a few hundred points whose hull makes a first
// "filter": a table of chords, 256 above and 256 below, that lie inside the
// hull. Points strictly between their two chords cannot be vertices; the
// "survivors" can, and their "chain" is the hull.
package hull

import (
	"math"
	"sync"

	"entropipe/algos/geom"
)

// Hull2D finds convex hulls. The zero value is ready. It keeps its scratch
// memory between calls: some kilobytes for most clouds, some 60 bytes a point
// for those whose points are nearly all vertices. Use one a goroutine, never
// two calls at a time.
type Hull2D[T geom.Float] struct {
	// Workers is the number of goroutines that share one large cloud; 0 and 1
	// mean the caller's alone. The result does not depend on it.
	Workers int

	lanes []*lane[T]
	wait  sync.WaitGroup
}

// vertex is a point of the cloud with its index, a candidate.
type vertex[T geom.Float] struct {
	x, y T
	i    int32
}

// Caller's mistakes.
const (
	badLengths = "hull: coordinate slices of unequal lengths"
	badSize    = "hull: more than 2^31-1 points"
	badFinite  = "hull: non-finite coordinate"
)

const (
	filterFrom  = 128     // points; below, sorting all of them is cheaper
	sampleLeast = 64      // points sampled,
	sampleMost  = 512     // at most,
	sampleRate  = 64      // and of how many points one is
	laneFrom    = 1 << 16 // points a goroutine is worth starting for
)

// Append appends to dst the indices of the vertices of the hull of c and
// returns it: counter-clockwise from the lexicographic minimum (x, then y);
// points on an edge are no vertices; of equal points (-0 equals 0) the lowest
// index stands. No point gives nothing, equal points give one index, collinear
// points their two ends.
//
// It is exact for all finite coordinates. Cost: O(n log n) in the worst case,
// one pass over the coordinates where few points are vertices. It panics when
// slices differ in length, when x or y is not finite, or beyond 2^31-1 points.
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
	workers := max(1, min(h.Workers, n/laneFrom))
	h.prepare(workers)
	first := h.lanes[0]
	first.touched = 0
	if n < filterFrom {
		first.points = first.points[:0]
		first.take(c, 0, n)
	} else {
		h.takeFiltered(c, workers)
	}
	if !first.chain() {
		panic(badFinite)
	}
	for _, v := range first.points {
		dst = append(dst, v.i)
	}
	return dst
}

// prepare makes lanes. What a lane's goroutine runs is made once, so that
// starting it allocates nothing.
func (h *Hull2D[T]) prepare(workers int) {
	for len(h.lanes) < workers {
		l := new(lane[T])
		l.work = func() {
			defer h.wait.Done()
			l.takeSurvivors(l.cloud, l.from, l.to)
			l.cloud = geom.Cloud[T]{}
		}
		h.lanes = append(h.lanes, l)
	}
}

// takeFiltered leaves in the first lane candidates among which are all
// vertices, hardly more than these for a friendly cloud.
func (h *Hull2D[T]) takeFiltered(c geom.Cloud[T], workers int) {
	first, n := h.lanes[0], c.Len()
	if !first.takeSample(c) {
		panic(badFinite)
	}
	if 2*len(first.points) > min(sampleMost, max(sampleLeast, n/sampleRate)) {
		first.points = first.points[:0]
		first.take(c, 0, n)
		return
	}
	h.wait.Add(workers - 1)
	for k, l := range h.lanes[1:workers] {
		l.touched = 0
		l.filter.scales, l.column.first, l.column.width = first.filter.scales, first.column.first, first.column.width
		l.points = append(l.points[:0], first.points...) // a part's own hull could be a small filter
		l.cloud, l.from, l.to = c, n*(k+1)/workers, n*(k+2)/workers
		go l.work()
	}
	first.takeSurvivors(c, 0, n/workers)
	h.wait.Wait()
	for _, l := range h.lanes[1:workers] {
		first.points = append(first.points, l.points...)
		first.touched += l.touched
	}
}

// Measure returns the area and the perimeter of the polygon of c's points
// named by idx, counter-clockwise, in the units of the coordinates: square
// metres and metres. Fewer than three vertices have neither: 0, 0.
//
// Coordinates are taken relative to the first vertex, so that a small polygon
// far from the origin keeps its digits. The operations and their order are
// fixed and never fused: equal input gives equal bits on every processor.
func Measure[T geom.Float](c geom.Cloud[T], idx []int32) (area, perimeter float64) {
	if len(idx) < 3 {
		return 0, 0
	}
	x0, y0 := float64(c.X[idx[0]]), float64(c.Y[idx[0]])
	var px, py, twice float64
	for k := 1; k <= len(idx); k++ {
		i := idx[k%len(idx)]
		x, y := float64(c.X[i])-x0, float64(c.Y[i])-y0
		twice += float64(px*y) - float64(x*py)
		dx, dy := x-px, y-py
		perimeter += math.Sqrt(float64(dx*dx) + float64(dy*dy))
		px, py = x, y
	}
	return twice / 2, perimeter
}
