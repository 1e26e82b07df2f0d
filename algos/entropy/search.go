package entropy

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// search finds bounds of the largest Σ m log m over all ways to assign each point to
// one of its ranges, by branch and bound.
//
// In a best assignment the largest group holds all points of its range: moving a point
// from a smaller group to it would gain, because m log m is convex. The same is true of
// the second largest group and the points that the first has left, and so on. So a best
// assignment is a sequence of ranges, each taking all its points that are left, with
// sizes that never rise. A node of the search is the beginning of such a sequence.
//
// What is left of w points, all in the same ranges, adds at most w log t, where t is
// the size of the largest group that they can still be in: the largest number of
// points left in one of their ranges, and no more than the last group. This sum bounds
// a node. For many similar ranges in turn, branches are bounded together: a group of any
// of them is taken to hold all points of all of them, which can only raise the sum.
type search struct {
	classes
	// legal[r] tells whether the groups of a sequence that begins with range r are
	// legal. Empty means all.
	legal []bool
	best  float64 // the largest Σ m log m of a legal sequence so far; 0: all points are single
	ended float64 // the same of all sequences, legal or not

	open   []branch // a heap, the largest bound first
	counts []float64
	table  [][]int32 // table[l][r]: the range with most points left among r ... r+2^l-1
	share  []float64 // for each range, the points whose largest range it is
	alive  []int32
	diff   []float64
	work   int
}

// node is the beginning of a sequence.
type node struct {
	value  float64 // Σ m log m of the groups so far
	first  int32   // the first range; -1 before it
	depth  int
	size   float64   // of the last group
	rest   []int32   // the classes left
	counts []float64 // the points left in every range
	steps  []step    // the ranges with at least two points left, the largest first
}

// step is the size of a range, and a bound of all sequences whose next group is as
// large.
type step struct{ size, bound float64 }

// branch is the continuations of a node by one of the ranges from, ..., to-1.
type branch struct {
	bound    float64
	at       *node
	from, to int32
}

// greedyDeep is the depth to which nodes are completed greedily.
const greedyDeep = 1

// solve returns bounds of the largest Σ m log m. It stops when they differ by at most
// apart, or when it has looked at limit runs and ranges, about. The lower bound belongs to
// a legal partition.
func (s *search) solve(apart float64, limit int) (least, most float64) {
	s.open, s.best, s.ended, s.work = s.open[:0], 0, 0, 0
	root := &node{first: -1, size: math.Inf(1)}
	for k := range s.weight {
		root.rest = append(root.rest, int32(k))
	}
	s.visit(root)
	for len(s.open) > 0 && s.open[0].bound > s.best+apart && s.work < limit {
		b := s.pop()
		if b.to-b.from == 1 {
			s.visit(s.child(b.at, b.from))
			continue
		}
		middle := (b.from + b.to) / 2
		s.split(&b, b.from, middle)
		s.split(&b, middle, b.to)
	}
	most = max(s.best, s.ended)
	if len(s.open) > 0 {
		most = max(most, s.open[0].bound)
	}
	return s.best, most
}

// child returns the continuation of n by range r.
func (s *search) child(n *node, r int32) *node {
	size := n.counts[r]
	c := &node{value: n.value + mlogm(size), first: n.first, depth: n.depth + 1, size: size}
	if c.first < 0 {
		c.first = r
	}
	for _, k := range n.rest {
		if !s.holds(r, k) {
			c.rest = append(c.rest, k)
		}
	}
	return c
}

// visit counts the points left in every range, and adds the branches of n. Near the root
// it completes n greedily.
func (s *search) visit(n *node) {
	s.count(n.rest)
	n.counts = slices.Clone(s.counts)
	s.ended = max(s.ended, n.value)
	if n.first < 0 || len(s.legal) == 0 || s.legal[n.first] {
		s.best = max(s.best, n.value)
		if n.depth <= greedyDeep {
			s.greedy(n)
			copy(s.counts, n.counts)
		}
	}
	s.rank(n.rest)
	for r, c := range n.counts {
		if c >= 2 {
			n.steps = append(n.steps, step{c, s.share[r]})
		}
	}
	slices.SortFunc(n.steps, func(a, b step) int { return cmp.Compare(b.size, a.size) })
	low := 0.0
	for _, t := range n.steps {
		low += t.bound * math.Log(t.size)
	}
	// Groups of the ranges before a step have at most its size, those behind it their own.
	larger := 0.0
	for k := range n.steps {
		t := &n.steps[k]
		share := t.bound
		t.bound = n.value + larger*math.Log(t.size) + low
		larger += share
		low -= share * math.Log(t.size)
	}
	s.push(branch{at: n, from: 0, to: int32(s.ranges), bound: math.Inf(1)})
}

// split adds a part of branch b.
func (s *search) split(b *branch, from, to int32) {
	n := b.at
	part := branch{at: n, from: from, to: to, bound: b.bound}
	if to-from > 1 && s.simple(&part) > s.best {
		part.bound = min(part.bound, s.together(n, from, to))
	}
	s.push(part)
}

// simple returns the bound of a branch that follows from the size of its largest range.
// It is -Inf where no range has two points, and no more than the last group has.
func (s *search) simple(b *branch) float64 {
	most := 0.0
	for _, c := range b.at.counts[b.from:b.to] {
		if c <= b.at.size {
			most = max(most, c)
		}
	}
	if most < 2 {
		return math.Inf(-1)
	}
	k, _ := slices.BinarySearchFunc(b.at.steps, most, func(t step, v float64) int { return sign(v - t.size) })
	return b.at.steps[k].bound
}

// together returns a bound of the continuations of n by ranges from, ..., to-1: the
// next group holds all points of all of them.
func (s *search) together(n *node, from, to int32) float64 {
	s.alive = s.alive[:0]
	taken := 0.0
	for _, k := range n.rest {
		if s.meets(from, to, k) {
			taken += s.weight[k]
			continue
		}
		s.alive = append(s.alive, k)
	}
	most := 0.0
	for _, c := range n.counts[from:to] {
		if c <= n.size {
			most = max(most, c)
		}
	}
	s.count(s.alive)
	s.rank(s.alive)
	sum := n.value + mlogm(taken)
	for r, w := range s.share {
		if t := min(most, s.counts[r]); t >= 2 && w > 0 {
			sum += w * math.Log(t)
		}
	}
	return sum
}

// count sets counts to the number of points of the classes in each range.
func (s *search) count(rest []int32) {
	s.diff = zeros(s.diff, s.ranges+1)
	s.work += len(rest) + s.ranges
	for _, k := range rest {
		w, runs := s.weight[k], s.of(k)
		s.work += len(runs)
		for _, v := range runs {
			s.diff[v.from] += w
			s.diff[v.to] -= w
		}
	}
	s.sum()
}

// sum sets counts from diff.
func (s *search) sum() {
	s.counts = slices.Grow(s.counts[:0], s.ranges)[:s.ranges]
	sum := 0.0
	for r, d := range s.diff[:s.ranges] {
		sum += d
		s.counts[r] = sum
	}
}

// rank sets share, for the counts at hand.
func (s *search) rank(rest []int32) {
	level := 0
	for width := 1; width <= s.ranges; width *= 2 {
		if level == len(s.table) {
			s.table = append(s.table, nil)
		}
		row := slices.Grow(s.table[level][:0], s.ranges)[:s.ranges-width+1]
		for r := range row {
			if level == 0 {
				row[r] = int32(r)
				continue
			}
			half := s.table[level-1]
			row[r] = s.larger(half[r], half[r+width/2])
		}
		s.table[level] = row
		level++
		s.work += s.ranges
	}
	s.share = zeros(s.share, s.ranges)
	for _, k := range rest {
		best := int32(-1)
		for _, v := range s.of(k) {
			level := bits.Len32(uint32(v.to-v.from)) - 1
			row := s.table[level]
			r := s.larger(row[v.from], row[v.to-int32(1)<<level])
			if best < 0 || s.counts[r] > s.counts[best] {
				best = r
			}
		}
		s.share[best] += s.weight[k]
	}
}

func (s *search) larger(a, b int32) int32 {
	if s.counts[b] > s.counts[a] {
		return b
	}
	return a
}

// greedy completes n by always taking the range with most points left, and keeps the
// value if it is the best so far. At the root the first range is a legal one.
func (s *search) greedy(n *node) {
	s.alive = append(s.alive[:0], n.rest...)
	value, first := n.value, n.first < 0
	for {
		r, most := int32(-1), 1.0
		for k, c := range s.counts {
			if c > most && (!first || len(s.legal) == 0 || s.legal[k]) {
				r, most = int32(k), c
			}
		}
		if r < 0 {
			break
		}
		first = false
		value += mlogm(most)
		s.work += len(s.alive) + 2*s.ranges
		kept := s.alive[:0]
		for _, k := range s.alive {
			if !s.holds(r, k) {
				kept = append(kept, k)
				continue
			}
			for _, v := range s.of(k) {
				s.diff[v.from] -= s.weight[k]
				s.diff[v.to] += s.weight[k]
			}
		}
		s.alive = kept
		s.sum()
	}
	if !first || len(n.rest) == 0 {
		s.best = max(s.best, value)
	}
}

// push adds a branch with its simple bound, unless it is empty.
func (s *search) push(b branch) {
	b.bound = min(b.bound, s.simple(&b))
	if math.IsInf(b.bound, -1) {
		return
	}
	s.open = append(s.open, b)
	for k := len(s.open) - 1; k > 0; {
		up := (k - 1) / 2
		if s.open[k].bound <= s.open[up].bound {
			break
		}
		s.open[k], s.open[up] = s.open[up], s.open[k]
		k = up
	}
}

// pop removes and returns the branch with the largest bound.
func (s *search) pop() branch {
	top, last := s.open[0], len(s.open)-1
	s.open[0] = s.open[last]
	s.open[last] = branch{}
	s.open = s.open[:last]
	for k := 0; ; {
		down := 2*k + 1
		if down >= last {
			return top
		}
		if down+1 < last && s.open[down+1].bound > s.open[down].bound {
			down++
		}
		if s.open[down].bound <= s.open[k].bound {
			return top
		}
		s.open[k], s.open[down] = s.open[down], s.open[k]
		k = down
	}
}
