package kernel

import (
	"math"
	"slices"
	"unsafe"
)

//go:generate go run -C gen ./stair -out ../stair_amd64.s -stubs ../stair_amd64.go -pkg kernel

// Stair holds points, each a rank on one axis (0 is best) and a value on another axis. It
// answers whether it holds a point with a rank of at most r and a value of at least y.
//
// It is a tree with 32 children a node. An entry holds the largest value of its node and
// of the node's left siblings. So a query reads one entry a level, and no read waits for
// another; an insertion writes at most 32 entries a level. A balanced search tree and a
// Fenwick tree read three times as many cache lines. A sorted array moves its tail on
// every insertion, which is quadratic when all points stay, and a search among sorted
// corners waits for one comparison after the other. The zero value holds nothing; call
// Reset first.
type Stair[T float32 | float64] struct {
	// Written counts the entries that Climb raised since Reset. It is 0 where
	// vectors raise whole nodes.
	Written int

	levels [][]T // the entries of a level, behind stairBefore entries with the lowest value
	memory []T
	args   stairArgs
}

// Step is one point. ID is any number of the caller.
type Step[T float32 | float64] struct {
	Y        T
	Rank, ID int32
}

const (
	fanBits     = 5
	fan         = 1 << fanBits
	stairBefore = 8 // number of entries left of rank 0, and largest number of levels
)

// stairArgs holds the arguments of the generated code, which knows the offsets.
type stairArgs struct {
	levels [stairBefore]unsafe.Pointer
	count  int
	steps  unsafe.Pointer
	n      int
	out    unsafe.Pointer
	up     int
}

// Reset makes the staircase empty, for ranks below n.
func (s *Stair[T]) Reset(n int) {
	total := 0
	for w := n; ; w = (w + fan - 1) >> fanBits {
		total += stairBefore + (w+fan-1)&^(fan-1)
		if w <= fan {
			break
		}
	}
	s.memory = slices.Grow(s.memory[:0], total)[:total]
	lowest := T(math.Inf(-1))
	for i := range s.memory {
		s.memory[i] = lowest
	}
	s.levels, s.Written = s.levels[:0], 0
	for w, rest := n, s.memory; ; w = (w + fan - 1) >> fanBits {
		size := stairBefore + (w+fan-1)&^(fan-1)
		s.levels = append(s.levels, rest[stairBefore:size:size])
		rest = rest[size:]
		if w <= fan {
			break
		}
	}
}

// Covers returns true only if the stair holds a point with a rank of at most r and a
// value of at least y. It may return false although there is such a point. It brings the
// entries that Climb reads next into the cache.
func (s *Stair[T]) Covers(r int32, y T) bool { return s.levels[0][r] >= y }

// Climb takes points one after the other. It inserts each point that no point before it
// covers, and appends its ID to out.
func (s *Stair[T]) Climb(out []int32, steps []Step[T]) []int32 {
	out = slices.Grow(out, len(steps))
	if loop := stairLoop[T](); loop != nil && len(steps) > 0 {
		a := &s.args
		for k, l := range s.levels {
			a.levels[k] = unsafe.Pointer(&l[0])
		}
		a.count, a.steps, a.n, a.out = len(s.levels), unsafe.Pointer(&steps[0]), len(steps),
			unsafe.Pointer(&out[:len(out)+1][len(out)])
		loop((*byte)(unsafe.Pointer(a)))
		a.steps, a.out = nil, nil
		return out[:len(out)+a.up]
	}
	for _, p := range steps {
		if !s.covers(p.Rank, p.Y) {
			s.insert(p.Rank, p.Y)
			out = append(out, p.ID)
		}
	}
	return out
}

func (s *Stair[T]) covers(r int32, y T) bool {
	for _, level := range s.levels {
		if level[r] >= y {
			return true
		}
		if r = r>>fanBits - 1; r < 0 { // go on with the node just left of the parent
			break
		}
	}
	return false
}

func (s *Stair[T]) insert(r int32, y T) {
	for _, level := range s.levels {
		if level[r] >= y {
			break // the nodes above have such values, too
		}
		siblings := level[r : r|(fan-1)+1]
		i := 0
		for i < len(siblings) && siblings[i] < y {
			siblings[i] = y
			i++
		}
		s.Written += i
		r >>= fanBits
	}
}
