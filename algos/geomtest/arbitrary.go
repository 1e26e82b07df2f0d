package geomtest

import (
	"encoding/binary"
	"math"

	"pgregory.net/rapid"

	"entropipe/algos/geom"
)

// Tied is a rapid generator of clouds of up to 40 points with dims (2 or 3) small
// integer coordinates. Most draws hold equal, collinear, cocircular and dominating
// points.
func Tied[T geom.Float](dims int) *rapid.Generator[geom.Cloud[T]] {
	return rapid.Custom(func(t *rapid.T) geom.Cloud[T] {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		side := rapid.IntRange(0, 9).Draw(t, "side")
		value := rapid.Map(rapid.IntRange(0, side), func(v int) T { return T(v) })
		c := geom.Cloud[T]{X: rapid.SliceOfN(value, n, n).Draw(t, "x"), Y: rapid.SliceOfN(value, n, n).Draw(t, "y")}
		if dims == 3 {
			c.Z = rapid.SliceOfN(value, n, n).Draw(t, "z")
		}
		return c
	})
}

// FromBytes turns any bytes into a cloud of at most 4096 points with finite coordinates,
// for fuzz targets. The first byte chooses small integers, tiny steps beside large
// offsets, or raw bit patterns. The second byte chooses the number of copies of the
// points, each copy a little off; copies make clouds large enough for the filters.
func FromBytes[T geom.Float](b []byte, dims int) geom.Cloud[T] {
	c := geom.Cloud[T]{X: []T{}, Y: []T{}}
	if dims == 3 {
		c.Z = []T{}
	}
	if len(b) < 2 {
		return c
	}
	mode, copies, b := b[0], int(b[1]&63)+1, b[2:]
	size := 1
	if mode%3 == 2 {
		size = 8
	}
	n := min(len(b)/(size*dims), 4096/copies)
	for k := range copies {
		off := T(k * int(mode>>4))
		at := func(j int) T {
			if v := value[T](b[j*size:], mode%3) + off; v-v == 0 {
				return v
			}
			return off
		}
		for i := range n {
			c.X, c.Y = append(c.X, at(i*dims)), append(c.Y, at(i*dims+1))
			if dims == 3 {
				c.Z = append(c.Z, at(i*dims+2))
			}
		}
	}
	return c
}

func value[T geom.Float](b []byte, mode byte) T {
	switch mode {
	case 0:
		return T(int8(b[0]))
	case 1:
		return T(1 + float64(int8(b[0]))*0x1p-50)
	}
	if is32[T]() {
		return T(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return T(math.Float64frombits(binary.LittleEndian.Uint64(b)))
}
