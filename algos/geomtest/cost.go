package geomtest

import (
	"math"
	"time"
)

// Growth returns how many times more a point costs in a large cloud than in
// one of a 64th of its points, 64 runs of small against one of large, the best
// of several turns each: about 1.5 for an n log n algorithm and some more for
// what caches add, but 64 for a quadratic one. Both take about equally long,
// so that whatever else the machine does slows both.
func Growth(small, large func()) float64 {
	bestSmall, bestLarge := math.Inf(1), math.Inf(1)
	for range 4 {
		start := time.Now()
		for range 64 {
			small()
		}
		middle := time.Now()
		large()
		bestSmall = min(bestSmall, middle.Sub(start).Seconds())
		bestLarge = min(bestLarge, time.Since(middle).Seconds())
	}
	return bestLarge / bestSmall
}
