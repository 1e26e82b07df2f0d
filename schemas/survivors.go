package schemas

import (
	"entropipe/algos/geom"
	"entropipe/schemas/codec"
)

// Survivors gathers the surviving points of pruned frames. The zero value is ready.
// Survivors owns the memory of the clouds that it returns, and is not for concurrent
// use.
type Survivors struct {
	f32   [5][]float32
	f64   [3][]float64
	i32   [codec.Int32Columns][]int32
	i64   []int64
	index []int32
}

// Of returns the points of f at the positions keep. Index holds their numbers in the
// whole frame: keep, or, if f is pruned itself, f.Pruned.Index at keep. The result is
// valid until the next call.
func (s *Survivors) Of(f *Frame, keep []int32) PointCloud {
	var c PointCloud
	c.Double = f.Double
	if f.Double {
		c.Cloud64 = takeCloud((*[3][]float64)(s.f64[:]), f.Cloud64, keep)
	} else {
		c.Cloud32 = takeCloud((*[3][]float32)(s.f32[:3]), f.Cloud32, keep)
	}
	if f.Intensity != nil {
		s.f32[3] = take(s.f32[3], f.Intensity, keep)
		c.Intensity = s.f32[3]
	}
	s.takeExtra(&c.Extra, &f.Extra, keep)
	s.index = append(s.index[:0], keep...)
	if f.Pruned != nil {
		for i, k := range s.index {
			s.index[i] = f.Pruned.Index[k]
		}
	}
	c.Index = s.index
	if c.Index == nil {
		c.Index = []int32{} // a column without a row
	}
	return c
}

// takeExtra sets to to the values of from at the positions keep.
func (s *Survivors) takeExtra(to, from *codec.Extra, keep []int32) {
	columns := to.Int32s()
	for i, v := range from.Int32s() {
		if *v != nil {
			s.i32[i] = take(s.i32[i], *v, keep)
			*columns[i] = s.i32[i]
		}
	}
	if from.Elongation != nil {
		s.f32[4] = take(s.f32[4], from.Elongation, keep)
		to.Elongation = s.f32[4]
	}
	if from.TOffsetNs != nil {
		s.i64 = take(s.i64, from.TOffsetNs, keep)
		to.TOffsetNs = s.i64
	}
}

func takeCloud[T geom.Float](memory *[3][]T, from geom.Cloud[T], keep []int32) (c geom.Cloud[T]) {
	memory[0], memory[1] = take(memory[0], from.X, keep), take(memory[1], from.Y, keep)
	c.X, c.Y = memory[0], memory[1]
	if from.Z != nil {
		memory[2] = take(memory[2], from.Z, keep)
		c.Z = memory[2]
	}
	return c
}

// take returns the values at the positions keep, in the memory of dst; never nil.
func take[T geom.Float | int32 | int64](dst, from []T, keep []int32) []T {
	dst = resize(dst, len(keep))
	for i, k := range keep {
		dst[i] = from[k]
	}
	return dst
}
