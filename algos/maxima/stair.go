package maxima

import (
	"slices"

	"entropipe/algos/geom"
)

const (
	blockSize = 64   // corners of a block
	blockMost = 1024 // blocks; beyond, moving them would cost too much
)

// staircase is the union of the quadrants x <= q.x, y <= q.y below some points
// q. Its corners, those points that no other one covers, ascend in x and descend
// in y.
//
// They lie in blocks of at most blockSize, so that an insertion moves half a
// block: a sorted array moves its tail, which is quadratic when all points
// stay, and a balanced tree misses the cache at every level. Between one and
// blockMost blocks both levels are arrays that the caches hold.
type staircase[T geom.Float] struct {
	top    []T     // largest x of each block, ascending
	block  []int32 // its place in corners
	blocks []block[T]
	free   []int32 // places of blocks not in use
	moved  int     // blocks moved since reset
}

type block[T geom.Float] struct {
	n    int
	x, y [blockSize]T
}

// reset makes the staircase empty.
func (s *staircase[T]) reset() {
	s.top, s.block, s.free = s.top[:0], s.block[:0], s.free[:0]
	for k := range s.blocks {
		s.free = append(s.free, int32(k))
	}
	s.moved = 0
}

// add inserts a point, unless it is covered, and reports which. full means that
// it is neither: there are too many corners.
func (s *staircase[T]) add(x, y T) (added, full bool) {
	t := search(s.top, x)
	if t == len(s.top) { // right of all: nothing covers it
		if t == 0 {
			s.insertBlock(0, x)
		} else {
			t--
		}
	}
	b := &s.blocks[s.block[t]]
	at := search(b.x[:b.n], x)
	if at < b.n && b.y[at] >= y {
		return false, false
	}
	if len(s.top) == blockMost {
		return false, true
	}
	s.insert(t, at, x, y)
	return true, false
}

// search returns the number of values below x in ascending v.
func search[T geom.Float](v []T, x T) int {
	base := 0
	for n := len(v); n > 1; {
		half := n / 2
		if v[base+half-1] < x {
			base += half
		}
		n -= half
	}
	if base < len(v) && v[base] < x {
		base++
	}
	return base
}

// insert puts a corner before the at-th of block t, and removes those that it
// covers: some to its left, and one with the same x.
func (s *staircase[T]) insert(t, at int, x, y T) {
	b := &s.blocks[s.block[t]]
	lo, hi := at, at
	for lo > 0 && b.y[lo-1] <= y {
		lo--
	}
	if hi < b.n && b.x[hi] == x {
		hi++
	}
	if lo == 0 {
		t = s.removeBefore(t, y)
	}
	if lo == hi && b.n == blockSize {
		s.splitBlock(t)
		if lo > blockSize/2 {
			t, lo = t+1, lo-blockSize/2
		}
		b, hi = &s.blocks[s.block[t]], lo
	}
	copy(b.x[lo+1:], b.x[hi:b.n])
	copy(b.y[lo+1:], b.y[hi:b.n])
	b.x[lo], b.y[lo] = x, y
	b.n += 1 + lo - hi
	s.top[t] = b.x[b.n-1]
}

// removeBefore removes the corners of blocks before t that are at most y high,
// and returns the new place of block t.
func (s *staircase[T]) removeBefore(t int, y T) int {
	keep := t
	for keep > 0 && s.blocks[s.block[keep-1]].y[0] <= y {
		keep--
		s.free = append(s.free, s.block[keep])
	}
	if keep < t {
		s.top, s.block = slices.Delete(s.top, keep, t), slices.Delete(s.block, keep, t)
		s.moved += len(s.top) - keep
	}
	if keep > 0 {
		b := &s.blocks[s.block[keep-1]]
		for b.y[b.n-1] <= y {
			b.n--
		}
		s.top[keep-1] = b.x[b.n-1]
	}
	return keep
}

// splitBlock moves the upper half of block t to a new one behind it.
func (s *staircase[T]) splitBlock(t int) {
	const half = blockSize / 2
	s.insertBlock(t+1, s.top[t])
	b, upper := &s.blocks[s.block[t]], &s.blocks[s.block[t+1]]
	copy(upper.x[:half], b.x[half:])
	copy(upper.y[:half], b.y[half:])
	b.n, upper.n = half, half
	s.top[t] = b.x[half-1]
}

// insertBlock makes an empty block the t-th.
func (s *staircase[T]) insertBlock(t int, x T) {
	if len(s.free) == 0 {
		s.blocks = append(s.blocks, block[T]{})
		s.free = append(s.free, int32(len(s.blocks)-1))
	}
	last := len(s.free) - 1
	place := s.free[last]
	s.free = s.free[:last]
	s.blocks[place].n = 0
	s.top, s.block = slices.Insert(s.top, t, x), slices.Insert(s.block, t, place)
	s.moved += len(s.top) - t
}
