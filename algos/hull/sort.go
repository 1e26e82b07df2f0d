package hull

import (
	"slices"

	"entropipe/algos/geom"
)

const (
	bucketFrom  = 24      // points; below, insertion is the fastest sort
	bucketMost  = 2048    // largest number of buckets of a distribution that fits into the cache
	bucketFits  = 1 << 14 // largest number of points of such a distribution
	bucketLarge = 256     // buckets of a larger one: each is written somewhere else in memory
	crowd       = 16      // points; more of them in one bucket are distributed again
	deepest     = 4       // distributions of one point; after them, comparisons sort
)

// counters are the sizes of the buckets, one array for each depth.
type counters [deepest][bucketMost + 1]uint32

// extent is the range of x of some points.
type extent[T geom.Float] struct{ low, high T }

// extentOf returns the range of x of at least one point.
func extentOf[T geom.Float](p []vertex[T]) extent[T] {
	e := extent[T]{p[0].x, p[0].x}
	for i := range p {
		e.low, e.high = min(e.low, p[i].x), max(e.high, p[i].x)
	}
	return e
}

// target says which of its two slices a sort leaves its result in.
type target bool

const (
	inPlace   target = false
	intoSpare target = true
)

// order sorts points by x, points of equal x in any order, and leaves the result in
// points or in spare, which has the same length; the other slice is scratch. x is
// the extent of points.
//
// It distributes the points into as many buckets of x as there are points, from
// points to spare, and distributes crowded buckets again, from spare to points.
// Insertion sorts the rest. Cost: O(n) for all but contrived clouds; O(n log n) for
// these, since comparisons sort points after a few distributions.
func (l *lane[T]) order(points, spare []vertex[T], x extent[T], depth int, to target) {
	n := len(points)
	out := points
	if to == intoSpare {
		out = spare
	}
	l.touched += n
	if n < bucketFrom || x.low == x.high {
		if to == intoSpare {
			copy(out, points)
		}
		if x.low != x.high {
			l.insert(out)
		}
		return
	}
	buckets := min(bucketMost, 1<<logarithm(n-1))
	if n > bucketFits {
		buckets = bucketLarge
	}
	left := float64(x.low) / 2 // all numbers are halved: their differences cannot overflow
	scale := float64(buckets-1) / (float64(x.high)/2 - left)
	if depth == deepest || scale-scale != 0 { // scale is infinite where the extent is too narrow to divide
		if to == intoSpare {
			copy(out, points)
		}
		l.touched += n * logarithm(n)
		slices.SortFunc(out, byX[T])
		return
	}
	start := l.count[depth][:buckets+1]
	clear(start)
	for i := range points {
		start[int((float64(points[i].x)/2-left)*scale)+1]++
	}
	for b := range buckets {
		start[b+1] += start[b]
	}
	for i := range points {
		b := int((float64(points[i].x)/2 - left) * scale)
		spare[start[b]] = points[i]
		start[b]++
	}
	l.touched += 2 * n
	from, done := 0, 0 // the starts of the bucket, and of the points not sorted yet
	for b := range buckets {
		end := int(start[b]) // the distribution has moved every start to the next bucket's
		if end-from > crowd {
			l.finish(points[done:from], spare[done:from], to)
			l.order(spare[from:end], points[from:end], extentOf(spare[from:end]), depth+1, !to)
			done = end
		}
		from = end
	}
	l.finish(points[done:], spare[done:], to)
}

// finish sorts points that lie in spare, nearly sorted, by insertion.
func (l *lane[T]) finish(points, spare []vertex[T], to target) {
	if to == inPlace {
		copy(points, spare)
		spare = points
	}
	l.insert(spare)
}

// insert sorts p by insertion, in linear time if p is nearly sorted.
func (l *lane[T]) insert(p []vertex[T]) {
	moves := len(p)
	for i := 1; i < len(p); i++ {
		v := p[i]
		if !(v.x < p[i-1].x) {
			continue
		}
		j := i
		for ; j > 0 && v.x < p[j-1].x; j-- {
			p[j] = p[j-1]
		}
		p[j] = v
		moves += i - j
	}
	l.touched += moves
}

// logarithm returns the number of binary digits of n.
func logarithm(n int) (digits int) {
	for ; n > 0; n >>= 1 {
		digits++
	}
	return digits
}

func byX[T geom.Float](a, b vertex[T]) int {
	switch {
	case a.x < b.x:
		return -1
	case a.x > b.x:
		return 1
	}
	return 0
}
