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

// order sorts p by x, points of equal x in any order. spare has the length of
// p. Points are distributed into as many buckets of x as there are points, full
// buckets again; insertion does the rest. Linear for all but contrived clouds,
// O(n log n) for those: after a few distributions a comparison sort takes over.
func (l *lane[T]) order(p, spare []vertex[T], depth int) {
	n := len(p)
	if n < bucketFrom {
		l.insert(p)
		return
	}
	if depth == deepest {
		l.touched += n * logarithm(n)
		slices.SortFunc(p, byX[T])
		return
	}
	lo, hi := p[0].x, p[0].x
	for i := range p {
		lo, hi = min(lo, p[i].x), max(hi, p[i].x)
	}
	l.touched += n
	if lo == hi {
		return
	}
	k := min(bucketMost, 1<<logarithm(n-1))
	if n > bucketFits {
		k = bucketLarge
	}
	left := float64(lo) / 2 // half of all numbers: a difference of them cannot overflow
	scale := float64(k-1) / (float64(hi)/2 - left)
	if scale-scale != 0 { // too narrow to divide
		l.order(p, spare, deepest)
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
	copy(p, spare)
	l.touched += 2 * n
	from := 0
	for _, to := range start[:k] { // every head has moved to the next bucket's start
		if to := int(to); to-from > crowd {
			l.order(p[from:to], spare[from:to], depth+1)
		}
		from = int(to)
	}
	l.insert(p)
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
