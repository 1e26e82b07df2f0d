package entropy

import "entropipe/algos/geom"

// Box is an axis-parallel box. Losses take coordinates as fractions of a box, and
// temperatures are lengths in that unit.
type Box struct{ Lo, Hi [3]float64 }

// UnitBox leaves coordinates as they are.
var UnitBox = Box{Hi: [3]float64{1, 1, 1}}

// BoxOf returns the bounding box of c, the zero Box for no points. Coordinates must be
// finite. Cost: one read of the coordinates.
func BoxOf[T geom.Float](c geom.Cloud[T]) (b Box) {
	for k, v := range [][]T{c.X, c.Y, c.Z} {
		if len(v) == 0 {
			continue
		}
		lo, hi := v[0], v[0]
		for _, w := range v { // coordinates are finite: min and max would look for NaN
			if w < lo {
				lo = w
			} else if w > hi {
				hi = w
			}
		}
		b.Lo[k], b.Hi[k] = float64(lo), float64(hi)
	}
	return b
}

// unit appends v as fractions of the box along an axis to dst[:0]. Where the box is
// flat, all fractions are 0.
func unit[T geom.Float](dst []float64, v []T, b *Box, axis int) []float64 {
	dst = dst[:0]
	lo, size, half := b.scale(axis)
	if size == 0 {
		for range v {
			dst = append(dst, 0)
		}
		return dst
	}
	for _, w := range v {
		dst = append(dst, (float64(w)*half-lo)/size)
	}
	return dst
}

// scale returns origin and size of an axis for coordinates times half, which is 1, or
// 1/2 where the size would overflow.
func (b *Box) scale(axis int) (lo, size, half float64) {
	lo, half = b.Lo[axis], 1
	size = b.Hi[axis] - lo
	if size-size != 0 {
		lo, half = lo/2, 0.5
		size = b.Hi[axis]/2 - lo
	}
	return lo, size, half
}
