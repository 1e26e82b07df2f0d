package maxima

import (
	"math"

	"entropipe/algos/geom"
)

// staircase answers, for points given as a rank on the first axis (0 is best)
// and a value on the second: does a point seen before have a rank at most r
// and a value of at least y?
//
// It is a tree with 32 children a node. An entry holds the largest value of its
// node and of the node's left siblings, so that a query reads one entry a
// level; an insertion writes at most 32 a level. A balanced search tree or a
// Fenwick tree read three times as many cache lines, a sorted array moves its
// tail on every insertion, which is quadratic when all points stay, and any
// search among sorted corners waits for one comparison after the other.
type staircase[T geom.Float] struct {
	levels [][]T
	memory []T

	written int // entries since reset
}

const (
	fanBits = 5
	fan     = 1 << fanBits
)

// reset makes the staircase empty, for ranks below n.
func (s *staircase[T]) reset(n int) {
	total := 0
	for w := n; ; w = (w + fan - 1) >> fanBits {
		total += w
		if w <= fan {
			break
		}
	}
	if cap(s.memory) < total {
		s.memory = make([]T, total)
	}
	s.memory = s.memory[:total]
	lowest := T(math.Inf(-1))
	for i := range s.memory {
		s.memory[i] = lowest
	}
	s.levels, s.written = s.levels[:0], 0
	for w, rest := n, s.memory; ; w = (w + fan - 1) >> fanBits {
		s.levels = append(s.levels, rest[:w])
		rest = rest[w:]
		if w <= fan {
			break
		}
	}
}

// covers reports whether a point with rank <= r and value >= y was inserted.
func (s *staircase[T]) covers(r int32, y T) bool {
	for _, level := range s.levels {
		if level[r] >= y {
			return true
		}
		if r = r>>fanBits - 1; r < 0 { // the node just left of the parent
			break
		}
	}
	return false
}

// coversAt is covers for points whose rank has the same parent only.
func (s *staircase[T]) coversAt(r int32, y T) bool { return s.levels[0][r] >= y }

// insert adds a point.
func (s *staircase[T]) insert(r int32, y T) {
	for _, level := range s.levels {
		if level[r] >= y {
			break // so are the nodes above
		}
		siblings := level[r:min(r|(fan-1)+1, int32(len(level)))]
		i := 0
		for i < len(siblings) && siblings[i] < y {
			siblings[i] = y
			i++
		}
		s.written += i
		r >>= fanBits
	}
}
