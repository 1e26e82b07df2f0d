package hull

import (
	"math"
	"slices"
	"sync/atomic"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

const (
	limitFirst = 256  // candidates that first make a sharper filter worth its cost
	limitLater = 1024 // candidates that do so when the filter is sharp
	passMost   = 1024 // largest number of survivors found at a time
	refineFrom = 256  // survivors of the coarse table that make a fine table worth its cost
	blockMost  = 4096 // largest number of points scaled at a time
	partSize   = 1 << 15
)

// lane is the working memory of one goroutine.
type lane[T geom.Float] struct {
	filter filter[T]
	points []vertex[T] // candidates; after chain, the vertices of their hull
	spare  []vertex[T]
	chains chains[T]
	count  counters
	passed [passMost + kernel.OutsideRoom]int32 // positions of survivors
	column columns[T]
	x, y   []T // a scaled block
	// touched counts the points that loops looked at, once for each look. Tests
	// tell a linear algorithm from a quadratic one by it.
	touched int

	// The present task of the lane, in a goroutine or not.
	number, tasks int // the lane's number, and the number of lanes with this task
	task          task
	cloud         geom.Cloud[T]
	next          atomic.Int64 // in the first lane, the first point that no lane has taken
	odd           bool         // a coordinate is not finite
	merged        chains[T]
	work          func()

	// The state of takePart between two parts of the points.
	filtered bool // there is a filter
	vertices int  // number of vertices of the present hull
	room     int  // candidates allowed, besides twice the vertices, before the next hull
	all      bool // all further points are candidates
}

// task is a kind of work that lanes share.
type task int

const (
	takeAll  task = iota // compute the chains of all points
	takeSome             // compute the chains of the points that pass the filter
	merge                // merge the chains of all lanes into the first lane
)

// do does the lane's part of its task.
func (l *lane[T]) do(lanes []*lane[T]) {
	if l.task == merge {
		for k := l.number; k < len(l.chains); k += l.tasks {
			lanes[0].merged[k] = l.merge(lanes[:l.tasks], k)
		}
		return
	}
	n := l.cloud.Len()
	l.all = l.task == takeAll
	if l.all {
		l.column.width = 0
		l.take(l.cloud, n*l.number/l.tasks, n*(l.number+1)/l.tasks)
	} else {
		l.takeParts(&lanes[0].next, n)
	}
	l.points = l.column.appendTo(l.points)
	l.odd = !l.sweep()
}

// takeParts takes parts of n points until no part is left. A lane whose core is
// busy otherwise takes fewer parts.
func (l *lane[T]) takeParts(next *atomic.Int64, n int) {
	l.column.reset()
	l.room = limitFirst
	l.sharpen()
	part := n
	if l.tasks > 1 {
		part = partSize
	}
	for {
		end := int(next.Add(int64(part)))
		if end-part >= n {
			return
		}
		l.takePart(l.cloud, end-part, min(end, n))
	}
}

// take makes candidates of the points [from, to).
func (l *lane[T]) take(c geom.Cloud[T], from, to int) {
	l.touched += to - from
	at := len(l.points)
	l.points = slices.Grow(l.points, to-from)[:at+to-from]
	p, xs, ys := l.points[at:], c.X[from:to], c.Y[from:to]
	for i := range p {
		p[i] = vertex[T]{xs[i], ys[i], int32(from + i)}
	}
}

// takeSample makes candidates of the hull of a sample of total points, and computes
// scales and columns from the sample. It returns false when a coordinate is not
// finite.
func (l *lane[T]) takeSample(c geom.Cloud[T], total int) bool {
	n := c.Len()
	for k := range total {
		i := kernel.SampleAt(k, total, n)
		l.points = append(l.points, vertex[T]{c.X[i], c.Y[i], int32(i)})
	}
	l.touched += total
	if !l.sweep() {
		return false
	}
	l.filter.scales = scalesOf(l.points)
	l.column.plan(l.points, n)
	l.points = l.chains.join(l.points[:0])
	return true
}

// scalesOf computes the scales from a sample sorted by x. The interval holds nine
// in ten points, and twice its width more on either side.
func scalesOf[T geom.Float](p []vertex[T]) scales {
	top := 0.0
	for _, v := range p {
		top = max(top, math.Abs(float64(v.y)))
	}
	s := scales{1, 1, math.Inf(-1), math.Inf(1)}
	tail := len(p) / 20
	low, high := float64(p[tail].x), float64(p[len(p)-1-tail].x)
	if half := high/2 - low/2; half > 0 {
		s.x = intoRange[T](half)
		low, high = low*s.x, high*s.x
		s.from, s.to = low-2*(high-low), high+2*(high-low)
	}
	s.y = intoRange[T](top)
	return s
}

// intoRange returns 1 if v is neither so small nor so large that products with
// it could leave the range of T, otherwise a power of two that makes it so.
func intoRange[T geom.Float](v float64) float64 {
	limit := 0x1p300
	if is32[T]() {
		limit = 0x1p40
	}
	if v == 0 || v > 1/limit && v < limit {
		return 1
	}
	_, e := math.Frexp(v)
	return math.Ldexp(1, min(-e, 1000))
}

// takePart makes candidates of those of the points [from, to) that pass the filter.
// Whenever candidates have piled up, it keeps only their hull, which makes a sharper
// filter. If nearly all candidates are vertices, it makes candidates of all further
// points: sorting once is cheaper than filtering in vain. Where there is no filter,
// all points pass.
func (l *lane[T]) takePart(c geom.Cloud[T], from, to int) {
	for from < to && !l.all {
		if l.filtered {
			from = l.pass(c, from, to)
		} else {
			from = l.passLine(c, from, to)
		}
		if len(l.points) < l.room+2*l.vertices {
			continue
		}
		if !l.chain() {
			l.all = true // a coordinate is not finite: the last sweep will find it again
			break
		}
		l.sharpen()
		l.room = min(2*l.room, limitLater)
		l.all = l.vertices > max(limitLater, (c.Len()-from)/16)
	}
	l.take(c, from, to)
}

// sharpen makes a filter of the candidates, which are the vertices of their hull.
func (l *lane[T]) sharpen() {
	l.filtered, l.vertices = l.filter.build(l.points), len(l.points)
}

// pass makes candidates of the points [from, to) that survive the filter, until
// survivors fill their buffer, and returns the first point not read. The first
// l.vertices candidates are the filter's polygon.
func (l *lane[T]) pass(c geom.Cloud[T], from, to int) int {
	x, y := c.X[from:to], c.Y[from:to]
	if l.filter.x != 1 || l.filter.y != 1 {
		x, y = l.scaled(x, y)
	}
	f := &l.filter
	fast := f.coarse.Fast()
	var read, passed int
	if fast {
		read, passed = f.coarse.Outside(x, y, 0, l.passed[:])
	}
	if !f.made && (!fast || passed >= refineFrom && l.column.width == 0) {
		f.refine(l.points[:l.vertices])
		l.touched += l.vertices
	}
	switch {
	case !fast:
		read, passed = f.fine.outside(x, y, l.passed[:])
	case f.made:
		passed = f.fine.sift(x, y, l.passed[:passed])
		l.touched += passed
	}
	l.touched += read + passed
	l.addSurvivors(c, from, l.passed[:passed])
	return from + read
}

// addSurvivors makes candidates of the points at positions from + survivors[k].
func (l *lane[T]) addSurvivors(c geom.Cloud[T], from int, survivors []int32) {
	if l.column.width > 0 {
		survivors = l.column.take(c, from, survivors)
	}
	for _, i := range survivors {
		i += int32(from)
		l.points = append(l.points, vertex[T]{c.X[i], c.Y[i], i})
	}
}

// passLine is pass without a filter. It drops points on the present hull where that
// is a point or a segment.
func (l *lane[T]) passLine(c geom.Cloud[T], from, to int) int {
	to = min(to, from+passMost)
	passed := 0
	flat := l.vertices == 1 || l.vertices == 2
	for i := from; i < to; i++ {
		if flat && onSegment(l.points[0], l.points[l.vertices-1], vertex[T]{c.X[i], c.Y[i], int32(i)}) {
			continue
		}
		l.passed[passed] = int32(i - from)
		passed++
	}
	l.touched += to - from + passed
	l.addSurvivors(c, from, l.passed[:passed])
	return to
}

// onSegment reports whether v cannot be a vertex beside a and b: it lies between
// them, or equals one of them and has a higher index. a is left of b, straight below
// it, or equal to it.
func onSegment[T geom.Float](a, b, v vertex[T]) bool {
	switch {
	case v.x == a.x && v.y == a.y:
		return v.i > a.i
	case v.x == b.x && v.y == b.y:
		return v.i > b.i
	case v.x < a.x || v.x > b.x || a.x == b.x && (v.y < a.y || v.y > b.y):
		return false
	case a.x == b.x || a.y == b.y && a.y == v.y:
		return true
	}
	return exact.Orient2D(float64(a.x), float64(a.y), float64(b.x), float64(b.y), float64(v.x), float64(v.y)) == 0
}

// scaled returns a block of the points in scaled coordinates.
func (l *lane[T]) scaled(x, y []T) (sx, sy []T) {
	n := min(len(x), blockMost)
	l.x, l.y = slices.Grow(l.x[:0], n)[:n], slices.Grow(l.y[:0], n)[:n]
	for i := range n {
		l.x[i], l.y[i] = T(float64(x[i])*l.filter.x), T(float64(y[i])*l.filter.y)
	}
	l.touched += n
	return l.x, l.y
}

// outside writes the positions of points that are not inside, until passed is full.
// It returns the number of points read and the number of positions written.
func (f *fine[T]) outside(x, y []T, passed []int32) (read, written int) {
	y = y[:len(x)]
	for i, v := range x {
		if f.inside(v, y[i]) {
			continue
		}
		if written == len(passed) {
			return i, written
		}
		passed[written] = int32(i)
		written++
	}
	return len(x), written
}

// sift keeps the positions of points that are not inside, and returns their number.
func (f *fine[T]) sift(x, y []T, passed []int32) int {
	kept := 0
	for _, i := range passed {
		passed[kept] = i
		if !f.inside(x[i], y[i]) {
			kept++
		}
	}
	return kept
}
