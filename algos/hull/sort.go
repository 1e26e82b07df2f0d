package hull

import (
	"slices"

	"entropipe/algos/geom"
)

const (
	bucketFrom  = 24      // points; below, insertion is the fastest sort
	bucketMost  = 2048    // buckets of one distribution that fits into the cache,
	bucketFits  = 1 << 14 // as this many points do;
	bucketLarge = 256     // of a larger one, each bucket being written somewhere else in memory
	crowd       = 16      // points in one bucket that are distributed again
	deepest     = 4       // distributions of one point, then comparisons take over
)

// counters are the buckets' sizes, one array a depth.
type counters [deepest][bucketMost + 1]uint32

// extent is what is known of points before they are sorted: the range of x.
type extent[T geom.Float] struct{ low, high T }

func extentOf[T geom.Float](p []vertex[T]) extent[T] {
	e := extent[T]{p[0].x, p[0].x}
	for i := range p {
		e.low, e.high = min(e.low, p[i].x), max(e.high, p[i].x)
	}
	return e
}

// order sorts p by x, points of equal x in any order, and leaves the result in
// spare, of the same length, or in p. Points are distributed into as many
// buckets of x as there are points, full buckets again; insertion does the rest.
// Linear for all but contrived clouds, O(n log n) for those: after a few
// distributions a comparison sort takes over.
func (l *lane[T]) order(p, spare []vertex[T], x extent[T], depth int, inSpare bool) {
	n := len(p)
	out := p
	if inSpare {
		out = spare
	}
	l.touched += n
	if n < bucketFrom || x.low == x.high {
		if inSpare {
			copy(out, p)
		}
		if x.low != x.high {
			l.insert(out)
		}
		return
	}
	k := min(bucketMost, 1<<logarithm(n-1))
	if n > bucketFits {
		k = bucketLarge
	}
	left := float64(x.low) / 2 // half of all numbers: a difference of them cannot overflow
	scale := float64(k-1) / (float64(x.high)/2 - left)
	if depth == deepest || scale-scale != 0 { // or too narrow to divide
		if inSpare {
			copy(out, p)
		}
		l.touched += n * logarithm(n)
		slices.SortFunc(out, byX[T])
		return
	}
	start := l.count[depth][:k+1]
	clear(start)
	for i := range p {
		start[int((float64(p[i].x)/2-left)*scale)+1]++
	}
	for b := range k {
		start[b+1] += start[b]
	}
	for i := range p {
		b := int((float64(p[i].x)/2 - left) * scale)
		spare[start[b]] = p[i]
		start[b]++
	}
	l.touched += 2 * n
	from, done := 0, 0 // starts of the bucket, and of what is not sorted yet
	for b := range k {
		to := int(start[b]) // every head has moved to the next bucket's start
		if to-from > crowd {
			l.finish(p[done:from], spare[done:from], inSpare)
			l.order(spare[from:to], p[from:to], extentOf(spare[from:to]), depth+1, !inSpare)
			done = to
		}
		from = to
	}
	l.finish(p[done:], spare[done:], inSpare)
}

// finish sorts points that lie in spare, where insertion is quick.
func (l *lane[T]) finish(p, spare []vertex[T], inSpare bool) {
	if !inSpare {
		copy(p, spare)
		spare = p
	}
	l.insert(spare)
}

// insert sorts p by insertion, which is linear if p is nearly sorted.
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
