package metrics

import (
	"math"
	"sync/atomic"
	"time"
)

// Quantiles counts durations in buckets that grow by 2 % from a microsecond to
// about 5.7 hours, so that At is right within 2 %. The zero value is ready. Any
// goroutine may call the methods. A Quantiles takes 10 kB, whatever it counts.
type Quantiles struct {
	buckets [1200]atomic.Int64
	n       atomic.Int64
}

const quantileGrowth = 1.02

// Add counts one duration; a negative one counts as zero.
func (q *Quantiles) Add(d time.Duration) {
	i := 0
	if us := float64(d) / 1e3; us > 1 {
		i = min(int(math.Log(us)/math.Log(quantileGrowth))+1, len(q.buckets)-1)
	}
	q.buckets[i].Add(1)
	q.n.Add(1)
}

// AddAll adds the counts of o.
func (q *Quantiles) AddAll(o *Quantiles) {
	for i := range o.buckets {
		if n := o.buckets[i].Load(); n != 0 {
			q.buckets[i].Add(n)
			q.n.Add(n)
		}
	}
}

// Since calls visit with the upper bound and the number of the durations that were counted since
// the last call with the same seen, and adds them to seen, which one goroutine owns.
func (q *Quantiles) Since(seen *Quantiles, visit func(d time.Duration, n int64)) {
	for i := range q.buckets {
		if n := q.buckets[i].Load() - seen.buckets[i].Load(); n > 0 {
			seen.buckets[i].Add(n)
			seen.n.Add(n)
			visit(bound(i), n)
		}
	}
}

// bound returns the upper bound of a bucket.
func bound(bucket int) time.Duration {
	return time.Duration(math.Pow(quantileGrowth, float64(bucket)) * 1e3)
}

// At returns an upper bound, at most 2 % too large, of the p-quantile for
// 0 <= p <= 1. It returns 0 if nothing was counted.
func (q *Quantiles) At(p float64) time.Duration {
	n := q.n.Load()
	if n == 0 {
		return 0
	}
	rank := int64(math.Ceil(p * float64(n)))
	var seen int64
	for i := range q.buckets {
		if seen += q.buckets[i].Load(); seen >= rank && seen > 0 {
			return bound(i)
		}
	}
	return bound(len(q.buckets) - 1)
}
