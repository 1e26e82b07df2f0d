package entropy

import "slices"

// span is a row of neighbouring ranges: from <= r < to.
type span struct{ from, to int32 }

// classes is a cloud as a search sees it: points that lie in the same ranges are one
// class with a weight. The ranges of a class are a few runs.
type classes struct {
	ranges int       // number of ranges
	total  float64   // number of points, those in no range included
	start  []int32   // class k lies in runs[start[k]:start[k+1]]
	runs   []span    // ascending, not empty, disjoint
	weight []float64 // number of points of each class
	seen   map[uint64]int32
}

func (s *classes) reset(ranges int) {
	s.ranges, s.total = ranges, 0
	s.start, s.runs, s.weight = append(s.start[:0], 0), s.runs[:0], s.weight[:0]
	if s.seen == nil {
		s.seen = map[uint64]int32{}
	}
	clear(s.seen)
}

// of returns the runs of class k, in memory of s.
func (s *classes) of(k int32) []span { return s.runs[s.start[k]:s.start[k+1]] }

// add adds weight points that lie in the ranges of the runs.
func (s *classes) add(runs []span, weight float64) {
	s.total += weight
	if len(runs) == 0 {
		return
	}
	hash := uint64(len(runs))
	for _, r := range runs {
		hash = (hash ^ uint64(r.from)<<32 ^ uint64(r.to)) * 0x9e3779b97f4a7c15
		hash ^= hash >> 29
	}
	k, known := s.seen[hash]
	if known && slices.Equal(s.of(k), runs) {
		s.weight[k] += weight
		return
	}
	if !known {
		s.seen[hash] = int32(len(s.weight))
	}
	s.weight = append(s.weight, weight)
	s.runs = append(s.runs, runs...)
	s.start = append(s.start, int32(len(s.runs)))
}

// holds reports whether range r holds class k.
func (s *classes) holds(r, k int32) bool {
	v := s.of(k)
	if len(v) > 8 {
		at, _ := slices.BinarySearchFunc(v, r, func(v span, r int32) int {
			if v.to <= r {
				return -1
			}
			return 1
		})
		return at < len(v) && v[at].from <= r
	}
	for _, v := range v {
		if r < v.to {
			return r >= v.from
		}
	}
	return false
}

// meets reports whether one of the ranges from, ..., to-1 holds class k.
func (s *classes) meets(from, to, k int32) bool {
	for _, v := range s.of(k) {
		if v.to > from {
			return v.from < to
		}
	}
	return false
}

// appendUnion appends the union of two lists of runs, which are ascending each.
func appendUnion(dst, a, b []span) []span {
	base := len(dst)
	for len(a) > 0 || len(b) > 0 {
		var next span
		if len(b) == 0 || len(a) > 0 && a[0].from <= b[0].from {
			next, a = a[0], a[1:]
		} else {
			next, b = b[0], b[1:]
		}
		if last := len(dst) - 1; last >= base && dst[last].to >= next.from {
			dst[last].to = max(dst[last].to, next.to)
			continue
		}
		dst = append(dst, next)
	}
	return dst
}
