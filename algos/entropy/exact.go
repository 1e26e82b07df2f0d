package entropy

import (
	"math"
	"slices"

	"entropipe/algos/geom"
)

// MaxSteps is the largest number of maximal points for ExactMaxima, which then takes
// some seconds, and 24 bytes for every pair of them: 96 megabytes.
const MaxSteps = 2000

// ExactMaxima returns the exact entropy of maxima in the plane, and true. maxima must
// hold all maximal points of c. For more than MaxSteps of them it does nothing and
// returns false. An empty cloud has entropy 0.
//
// The maximal points that dominate a given point are an interval of the maximal
// points from left to right. Consider the intervals within [a, b]. In an optimal
// assignment, the maximal point j with the largest group takes all intervals that
// contain j: moving one more interval to a larger group always gains, as m log m is
// convex. The other intervals lie within [a, j-1] or within [j+1, b]. Cost:
// O(n log n + h³) for h maximal points.
func ExactMaxima[T geom.Float](c geom.Cloud[T], maxima []int32) (Bracket, bool) {
	check(c, 2)
	checkIndices(maxima, c.Len())
	if len(maxima) > MaxSteps {
		return Bracket{}, false
	}
	n := c.Len()
	if n == 0 {
		return Bracket{Kind: Exact}, true
	}
	var p points
	list := make([]int32, len(maxima))
	for k, i := range maxima {
		list[k] = int32(k)
		p[0], p[1] = append(p[0], float64(c.X[i])), append(p[1], float64(c.Y[i]))
	}
	s := newStaircase(&p, list)
	h := len(s.list)
	inside := make([]int32, (h+2)*(h+2)) // [a][b], from 1: number of points with intervals within [a, b]
	at := func(a, b int) *int32 { return &inside[a*(h+2)+b] }
	left, low := s.x[0], s.y[h-1] // a point below both is below all steps
	for i, v := range c.X {
		x, y := float64(v), float64(c.Y[i])
		if x <= left && y <= low {
			*at(1, h)++
			continue
		}
		a, b := s.interval(x, y)
		*at(a+1, b+1)++
	}
	for a := h; a >= 1; a-- {
		for b := 1; b <= h; b++ {
			*at(a, b) += *at(a+1, b) + *at(a, b-1) - *at(a+1, b-1)
		}
	}
	v := max(math.Log(float64(n))-bestSplit(inside, h, n)/float64(n), 0)
	return Bracket{v, v, Exact}, true
}

// bestSplit returns the largest sum of m log m over the groups of an assignment of
// intervals to h places.
func bestSplit(inside []int32, h, n int) float64 {
	size := h + 2
	logs := make([]float64, n+1)
	for m := range logs {
		logs[m] = mlogm(float64(m))
	}
	// Columns are kept as rows, too, so that the inner loop reads along rows.
	best, bestT := make([]float64, size*size), make([]float64, size*size)
	insideT := make([]int32, size*size)
	for a := 1; a <= h; a++ {
		for b := a; b <= h; b++ {
			insideT[b*size+a] = inside[a*size+b]
		}
	}
	for a := h; a >= 1; a-- {
		row, count := best[a*size:][:size], inside[a*size:][:size]
		for b := a; b <= h; b++ {
			right, countR := bestT[b*size:][:size], insideT[b*size:][:size]
			all, most := count[b], 0.0
			// Over all j in [a, b]. Entries of empty intervals are 0 in all four slices.
			left, counts := row[a-1:b], count[a-1:b]
			after, countsAfter := right[a+1:b+2], countR[a+1:b+2]
			for k, v := range left {
				v += after[k] + logs[all-counts[k]-countsAfter[k]]
				if v > most {
					most = v
				}
			}
			row[b], right[a] = most, most
		}
	}
	return best[size+h]
}

// staircase holds the maximal points of a cloud in the plane by rising x and falling y.
type staircase struct {
	list []int32
	x, y []float64
}

func newStaircase(p *points, maxima []int32) staircase {
	s := staircase{list: slices.Clone(maxima)}
	slices.SortFunc(s.list, func(i, j int32) int { return sign(p[0][i] - p[0][j]) })
	for _, i := range s.list {
		s.x, s.y = append(s.x, p[0][i]), append(s.y, p[1][i])
	}
	return s
}

// interval returns the first and the last step that are at least (x, y).
func (s *staircase) interval(x, y float64) (first, last int) {
	first, _ = slices.BinarySearch(s.x, x)
	last, _ = slices.BinarySearchFunc(s.y, y, func(step, y float64) int {
		if step >= y {
			return -1
		}
		return 1
	})
	return first, last - 1
}
