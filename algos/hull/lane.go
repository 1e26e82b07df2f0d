package hull

import (
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

const (
	bufferMin = 1024 // candidates before the first look at what they amount to
	radixFrom = 1024 // points; below, a comparison sort is faster
)

// lane is the scratch of one goroutine.
type lane[T geom.Float] struct {
	filter filter[T]
	points []vertex[T] // candidates; after chain, the vertices
	spare  []vertex[T]
	order  []uint64
	tmp    []uint64
}

// take adds points from to to as candidates.
func (l *lane[T]) take(c geom.Cloud[T], from, to int) {
	l.points = slices.Grow(l.points, to-from)
	for i := from; i < to; i++ {
		l.points = append(l.points, vertex[T]{c.X[i], c.Y[i], int32(i)})
	}
}

// takeSmall makes candidates of a small cloud's points.
func (l *lane[T]) takeSmall(c geom.Cloud[T]) {
	l.points = l.points[:0]
	l.take(c, 0, c.Len())
}

// takeSample makes candidates of a sample.
func (l *lane[T]) takeSample(c geom.Cloud[T]) {
	n := c.Len()
	total := min(sampleMax, max(sampleMin, n/sampleRate))
	l.points = l.points[:0]
	for k := range total {
		i := kernel.SampleAt(k, total, n)
		l.points = append(l.points, vertex[T]{c.X[i], c.Y[i], int32(i)})
	}
}

// takeSurvivors adds those of the points from to to that the filter lets
// through. Whenever candidates have piled up it keeps only their hull and makes
// a sharper filter of that. If they are nearly all vertices it gives up and
// takes the rest as it is: sorting once is cheaper than filtering in vain.
func (l *lane[T]) takeSurvivors(c geom.Cloud[T], from, to int) {
	limit := max(bufferMin, 2*len(l.points))
	for from < to {
		from = l.scan(c, from, to, limit)
		if len(l.points) < limit {
			return
		}
		if !l.chain() {
			return // a non-finite coordinate: still there for the caller to find
		}
		if 2*len(l.points) > limit {
			limit *= 2
		}
		if len(l.points) > max(bufferMin, (to-from)/16) || !l.filter.build(l.points) {
			l.take(c, from, to)
			return
		}
	}
}

// scan adds surviving points from from on until there are limit candidates,
// and returns where it stopped.
func (l *lane[T]) scan(c geom.Cloud[T], from, to, limit int) int {
	f, points := &l.filter, l.points
	xs, ys := c.X[from:to], c.Y[from:to]
	ys = ys[:len(xs)]
	for i, x := range xs {
		y := ys[i]
		if f.inside(x, y) {
			continue
		}
		points = append(points, vertex[T]{x, y, int32(from + i)})
		if len(points) >= limit {
			l.points = points
			return from + i + 1
		}
	}
	l.points = points
	return to
}

// chain replaces the candidates by the vertices of their hull, as Append
// returns them. It reports false, and changes nothing but the order, when a
// coordinate is not finite.
func (l *lane[T]) chain() bool {
	for _, p := range l.points {
		if p.x-p.x != 0 || p.y-p.y != 0 {
			return false
		}
	}
	l.sort()
	p := slices.CompactFunc(l.points, func(a, b vertex[T]) bool { return a.x == b.x && a.y == b.y })
	if len(p) < 3 {
		l.points = p
		return true
	}
	h := l.spare[:0]
	for _, v := range p {
		h = push(h, v, 2)
	}
	upper := len(h) + 1
	for k := len(p) - 2; k >= 0; k-- {
		h = push(h, p[k], upper)
	}
	l.points, l.spare = h[:len(h)-1], l.points
	return true
}

// push extends a chain that turns left at every vertex, taking back those
// where it no longer does; the vertices before floor-1 stay.
func push[T geom.Float](h []vertex[T], v vertex[T], floor int) []vertex[T] {
	for len(h) >= floor {
		a, b := h[len(h)-2], h[len(h)-1]
		if exact.Orient2D(float64(a.x), float64(a.y), float64(b.x), float64(b.y), float64(v.x), float64(v.y)) > 0 {
			break
		}
		h = h[:len(h)-1]
	}
	return append(h, v)
}

// compare is the lexicographic order, of equal points the lowest index first.
func compare[T geom.Float](a, b vertex[T]) int {
	switch {
	case a.x < b.x:
		return -1
	case a.x > b.x:
		return 1
	case a.y < b.y:
		return -1
	case a.y > b.y:
		return 1
	}
	return int(a.i) - int(b.i)
}

// sort orders the candidates. Large sets are first sorted by x rounded to one
// of 2^22 steps, in linear time, then each run of equal steps by compare:
// O(n log n) however the points are spread.
func (l *lane[T]) sort() {
	n := len(l.points)
	if n < radixFrom || !l.quantise() {
		slices.SortFunc(l.points, compare[T])
		return
	}
	l.order, l.tmp = kernel.SortByKey(l.order, l.tmp, sortPasses)
	l.spare = slices.Grow(l.spare[:0], n)[:n]
	for k, e := range l.order {
		l.spare[k] = l.points[uint32(e)]
	}
	l.points, l.spare = l.spare, l.points
	for i := 0; i < n; {
		j := i + 1
		for j < n && l.order[j]>>32 == l.order[i]>>32 {
			j++
		}
		if j > i+1 {
			slices.SortFunc(l.points[i:j], compare[T])
		}
		i = j
	}
}

const (
	sortPasses = 2
	sortSteps  = 1<<22 - 1
)

// quantise fills l.order with the rounded x in the upper half and the position
// in the lower. It reports false where the range of x is too small or too
// large for that.
func (l *lane[T]) quantise() bool {
	lo, hi := l.points[0].x, l.points[0].x
	for _, p := range l.points {
		lo, hi = min(lo, p.x), max(hi, p.x)
	}
	left := float64(lo)
	width := float64(hi) - left
	scale := sortSteps / width
	if !(width > 0) || width-width != 0 || scale-scale != 0 {
		return false
	}
	n := len(l.points)
	l.order, l.tmp = slices.Grow(l.order[:0], n)[:n], slices.Grow(l.tmp[:0], n)[:n]
	for k, p := range l.points {
		l.order[k] = uint64(min((float64(p.x)-left)*scale, sortSteps))<<32 | uint64(k)
	}
	return true
}
