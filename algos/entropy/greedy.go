package entropy

import (
	"math"
	"slices"
)

// Cover covers clouds by ranges of a family. The zero value is ready. A Cover keeps
// its working memory between calls, some 8 bytes a member. It must not be used by two
// goroutines at a time.
type Cover struct {
	// Sizes holds the sizes of the groups of the last Greedy, the largest first. A
	// size of 1 is a single point without a range. Greedy overwrites it.
	Sizes []float64

	start  []int   // for every point, the place of its first range in ranges
	ranges []int32 // the ranges of point 0, then those of point 1, ...
	count  []float64
	heap   []candidate
	gone   []bool
}

// candidate is a range with the number of points it held when last looked at.
type candidate struct {
	count float64
	index int32
}

// Greedy returns the entropy of a greedy cover as an upper bound, with a lower bound.
// The next group is always the range with most points that are in no group yet, the
// first such range where several have as many. The cover ends when no range has more
// than one such point; the other points are single. The least entropy of the family
// is at most one nat (log e) below, and no algorithm in polynomial time does better
// for all families (Cardinal, Fiorini and Joret, "Tight results on minimum entropy
// set cover", 2006). No points give 0. Cost: O(members log ranges).
func (g *Cover) Greedy(f *Family) Bracket {
	g.transpose(f)
	g.Sizes = g.Sizes[:0]
	g.gone = slices.Grow(g.gone[:0], f.Points)[:f.Points]
	clear(g.gone)
	n := f.total()
	left, sum := n, 0.0
	for len(g.heap) > 0 {
		r := g.top()
		if r.count <= 1 {
			break
		}
		for _, i := range f.Range(int(r.index)) {
			if g.gone[i] {
				continue
			}
			g.gone[i] = true
			for _, o := range g.ranges[g.start[i]:g.start[i+1]] {
				g.count[o] -= f.weight(i)
			}
		}
		g.Sizes = append(g.Sizes, r.count)
		sum += mlogm(r.count)
		left -= r.count
	}
	for range int(math.Round(left)) {
		g.Sizes = append(g.Sizes, 1)
	}
	if n == 0 {
		return Bracket{Kind: Greedy}
	}
	upper := max(math.Log(n)-sum/n, 0)
	return bracket(upper-1-f.Slack, upper, n, Greedy)
}

// transpose lists the ranges of every point, and makes the heap of all ranges.
func (g *Cover) transpose(f *Family) {
	g.start = append(g.start[:0], make([]int, f.Points+2)...)
	for _, i := range f.Members {
		g.start[i+2]++
	}
	for i := 2; i < len(g.start); i++ {
		g.start[i] += g.start[i-1]
	}
	g.ranges = slices.Grow(g.ranges[:0], len(f.Members))[:len(f.Members)]
	g.count, g.heap = g.count[:0], g.heap[:0]
	for r := range f.Len() {
		count := 0.0
		for _, i := range f.Range(r) {
			g.ranges[g.start[i+1]] = int32(r)
			g.start[i+1]++
			count += f.weight(i)
		}
		g.count = append(g.count, count)
		g.heap = append(g.heap, candidate{count, int32(r)})
	}
	for k := len(g.heap)/2 - 1; k >= 0; k-- {
		g.sink(k)
	}
}

// top returns the range with most points left, from the top of the heap. Counts only
// fall, so a count at the top that is up to date is the largest.
func (g *Cover) top() candidate {
	for {
		r := &g.heap[0]
		now := g.count[r.index]
		if now == r.count {
			return *r
		}
		r.count = now
		g.sink(0)
	}
}

// sink moves candidate k down to its place.
func (g *Cover) sink(k int) {
	for {
		down := 2*k + 1
		if down >= len(g.heap) {
			return
		}
		if down+1 < len(g.heap) && g.heap[down+1].before(g.heap[down]) {
			down++
		}
		if !g.heap[down].before(g.heap[k]) {
			return
		}
		g.heap[k], g.heap[down] = g.heap[down], g.heap[k]
		k = down
	}
}

func (c candidate) before(o candidate) bool {
	return c.count > o.count || c.count == o.count && c.index < o.index
}
