package maxima

import (
	"math"
	"slices"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

const (
	radixFrom = 512 // values; below, a comparison sort is faster
	runMax    = 24  // equal keys in a row; up to here insertion sorts them
)

// sorter sorts survivors in descending order of their coordinates: in linear time
// by a key of the first axis, then by comparison within each run of equal keys.
type sorter[T geom.Float] struct {
	// order is the result; the lower half of each element is a position.
	order, tmp []uint64

	axes    [MaxDims][]T // the first criterion first
	dims    int
	compare func(a, b uint64) int // sorter.less, made once
}

// sort sets s.order to the positions of the points by descending axes[0], then
// axes[1], …, then ascending position. Cost: O(n log n) for any values.
func (s *sorter[T]) sort(axes ...[]T) {
	n := len(axes[0])
	s.order, s.tmp = slices.Grow(s.order[:0], n)[:n], slices.Grow(s.tmp[:0], n)[:n]
	s.dims = copy(s.axes[:], axes)
	if s.compare == nil {
		s.compare = s.descending
	}
	passes := 2
	switch {
	case n < 1<<11:
		passes = 1 // a pass costs as much as sorting a thousand values
	case n > 1<<22:
		passes = 3
	}
	if n < radixFrom {
		for i := range s.order {
			s.order[i] = uint64(i)
		}
		slices.SortFunc(s.order, s.compare)
		return
	}
	// Linear keys spread most clouds well. Where magnitudes differ, nearly all
	// linear keys are equal, and keys from bit patterns spread better.
	if linearKeys(s.order, axes[0], passes) {
		s.order, s.tmp = kernel.SortByKey(s.order, s.tmp, passes)
		if s.finishRuns(n / 4) {
			return
		}
	}
	patternKeys(s.order, axes[0])
	s.order, s.tmp = kernel.SortByKey(s.order, s.tmp, kernel.MaxPasses)
	s.finishRuns(n)
}

// finishRuns sorts each run of equal keys. It stops, and returns false, when more
// than most elements lie in runs that are too long for insertion.
func (s *sorter[T]) finishRuns(most int) bool {
	order := s.order
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && order[j]>>32 == order[i]>>32 {
			j++
		}
		switch {
		case j-i == 1:
		case j-i <= runMax:
			s.insertionSort(order[i:j])
		default:
			if most -= j - i; most < 0 {
				return false
			}
			slices.SortFunc(order[i:j], s.compare)
		}
		i = j
	}
	return true
}

func (s *sorter[T]) insertionSort(run []uint64) {
	for i := 1; i < len(run); i++ {
		e := run[i]
		j := i
		for j > 0 && s.descending(run[j-1], e) > 0 {
			run[j] = run[j-1]
			j--
		}
		run[j] = e
	}
}

// descending compares two elements of order.
func (s *sorter[T]) descending(a, b uint64) int {
	i, j := uint32(a), uint32(b)
	for _, v := range s.axes[:s.dims] {
		if x, y := v[i], v[j]; x != y {
			if x > y {
				return -1
			}
			return 1
		}
	}
	return int(i) - int(j)
}

// linearKeys sets the upper halves of order to a non-decreasing function of (largest
// value - value) with 11 bits a pass, at most 32 bits, and the lower halves to the
// positions. It returns false, and sets nothing, where the range is too small or too
// large.
func linearKeys[T geom.Float](order []uint64, v []T, passes int) bool {
	lo, hi := slices.Min(v), slices.Max(v)
	levels := float64(uint64(1)<<min(32, 11*passes) - 1)
	top := float64(hi)
	width := top - float64(lo)
	scale := levels / width
	if !(width > 0) || width-width != 0 || scale-scale != 0 {
		return false
	}
	for i, x := range v {
		order[i] = uint64(min((top-float64(x))*scale, levels))<<32 | uint64(i)
	}
	return true
}

// patternKeys sets the upper halves of order to the highest 32 bits in which the
// values differ, as numbers that fall as the values rise.
func patternKeys[T geom.Float](order []uint64, v []T) {
	lo, hi := falling(slices.Max(v)), falling(slices.Min(v))
	shift := 0
	for (hi-lo)>>shift > math.MaxUint32 {
		shift++
	}
	for i, x := range v {
		order[i] = (falling(x)-lo)>>shift<<32 | uint64(i)
	}
}

// falling returns a number that falls as v rises. Both zeros give the same number.
func falling[T geom.Float](v T) uint64 {
	b := math.Float64bits(float64(v) + 0)
	if b>>63 == 0 {
		return ^b &^ (1 << 63) // positive: 2^63-1 for zero
	}
	return b
}
