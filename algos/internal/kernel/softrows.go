package kernel

import "slices"

// rowTable finds rows by their hashes: open addressing, linear probing.
type rowTable struct {
	slots []int32 // row + 1; 0 is free
	used  []rowHash
}

type rowHash struct {
	hash uint64
	row  int32
}

const rowSlots = 1 << 10 // number of slots of a new table

func (t *rowTable) reset() {
	if len(t.slots) == 0 {
		t.slots = make([]int32, rowSlots)
	} else {
		clear(t.slots)
	}
	t.used = t.used[:0]
}

// add remembers a row.
func (t *rowTable) add(hash uint64, row int32) {
	t.used = append(t.used, rowHash{hash, row})
	if 2*len(t.used) > len(t.slots) {
		t.slots = slices.Grow(t.slots[:0], 2*len(t.slots))[:2*len(t.slots)]
		clear(t.slots)
		for k, u := range t.used {
			t.place(u.hash, int32(k))
		}
		return
	}
	t.place(hash, int32(len(t.used)-1))
}

func (t *rowTable) place(hash uint64, k int32) {
	at := t.first(hash)
	for t.slots[at] != 0 {
		at = (at + 1) & (len(t.slots) - 1)
	}
	t.slots[at] = k + 1
}

// first returns the place where the search for a hash begins. It takes the high bits of
// the hash, which are mixed.
func (t *rowTable) first(hash uint64) int { return int(hash>>32) & (len(t.slots) - 1) }

// find returns a row with the given hash for which same is true, or -1.
func (t *rowTable) find(hash uint64, same func(row int32) bool) int32 {
	for at := t.first(hash); t.slots[at] != 0; at = (at + 1) & (len(t.slots) - 1) {
		if u := t.used[t.slots[at]-1]; u.hash == hash && same(u.row) {
			return u.row
		}
	}
	return -1
}

// merge gives the last n points their rows. A point with a hash shares the equal row of
// an earlier point, if there is one, and its own blocks are dropped.
func (s *Soft) merge(n int) {
	old := s.bounds[len(s.bounds)-n:]
	first := len(s.bounds) - n - 1
	from := s.bounds[first]
	s.bounds = s.bounds[:first+1]
	stored := int(from)
	for j, to := range old { // bounds are written behind the place where they are read
		length := int(to - from)
		row := int32(-1)
		if hash := s.hashes[j]; hash != 0 {
			row = s.known.find(hash, func(r int32) bool { return s.same(r, int(from), length) })
			if row < 0 {
				s.known.add(hash, int32(len(s.weights)))
			}
		}
		if row >= 0 {
			s.weights[row]++
		} else {
			row = int32(len(s.weights))
			s.weights = append(s.weights, 1)
			copy(s.index[stored:], s.index[from:to])
			copy(s.values[stored*SoftLanes:], s.values[int(from)*SoftLanes:int(to)*SoftLanes])
			stored += length
			s.bounds = append(s.bounds, int32(stored))
		}
		s.rows = append(s.rows, row)
		from = to
	}
	s.index, s.values = s.index[:stored], s.values[:stored*SoftLanes]
}

// same reports whether row r equals the blocks from e on.
func (s *Soft) same(r int32, e, length int) bool {
	a, b := int(s.bounds[r]), int(s.bounds[r+1])
	return b-a == length && slices.Equal(s.index[a:b], s.index[e:e+length]) &&
		slices.Equal(s.values[a*SoftLanes:b*SoftLanes], s.values[e*SoftLanes:(e+length)*SoftLanes])
}
