package maxima

import (
	"math"
	"slices"

	"entropipe/algos/geom"
)

const side = 64 // number of cells along one axis of the field

// field drops points in space that a sampled point dominates, where the front is
// too wide for the pivots. It cuts x and y into cells and keeps for every cell the
// largest z among sampled points in strictly higher cells. A point's cell is a
// monotone function of its coordinate, with rounding, too: a sampled point in a
// higher cell has a larger coordinate, so the table is never wrong.
type field[T geom.Float] struct {
	x, y  axis[T]
	table [side * side]T
}

// axis cuts the upper half of a coordinate's range into cells. Points of the lower
// half share cell 0: nearly every sampled point dominates them, and the front needs
// the cells more.
type axis[T geom.Float] struct {
	bottom, top T // cell is undefined outside of [bottom, top]
	from, step  T // cell = (v - from) * step, or 0
}

// cell returns the cell of v, a monotone function.
func (a *axis[T]) cell(v T) int32 {
	i := int32((v - a.from) * a.step)
	return i &^ (i >> 31)
}

// fit chooses the axis for a sample, with cells from the mean to the largest value.
// It returns false where all values are equal, and where the range is too small or
// too large to divide.
func (a *axis[T]) fit(sample []T) bool {
	sum := 0.0
	a.top = slices.Max(sample)
	for _, v := range sample {
		sum += float64(v)
	}
	a.from = T(sum / float64(len(sample)))
	width := a.top - a.from
	// A little less than side/width, so that the top's cell is the last one.
	a.step = T(side * (1 - 1e-6) / float64(width))
	a.bottom = a.from - 0x1p20/a.step // (v-from)*step stays far inside int32
	return width > 0 && width-width == 0 && a.step-a.step == 0 && a.bottom-a.bottom == 0
}

// fit makes the table from the three axes of a sample. It returns false where an
// axis cannot be cut.
func (f *field[T]) fit(sample [][]T) bool {
	xs, ys, zs := sample[0], sample[1], sample[2]
	if !f.x.fit(xs) || !f.y.fit(ys) {
		return false
	}
	lowest := T(math.Inf(-1))
	for i := range f.table {
		f.table[i] = lowest
	}
	for k, x := range xs {
		cell := (f.x.cell(max(x, f.x.bottom))*side + f.y.cell(max(ys[k], f.y.bottom))) & (side*side - 1)
		f.table[cell] = max(f.table[cell], zs[k])
	}
	f.raise()
	return true
}

// raise replaces every cell of the table by the largest value among the cells that
// are higher in both directions.
func (f *field[T]) raise() {
	for i := side - 1; i >= 0; i-- { // the largest value in higher or equal cells, at first
		row := f.table[i*side:][:side]
		for j := side - 2; j >= 0; j-- {
			row[j] = max(row[j], row[j+1])
		}
		if i < side-1 {
			for j, v := range f.table[(i+1)*side:][:side] {
				row[j] = max(row[j], v)
			}
		}
	}
	copy(f.table[:], f.table[side+1:])
	lowest := T(math.Inf(-1))
	for i := range side {
		f.table[i*side+side-1], f.table[side*(side-1)+i] = lowest, lowest
	}
}

// outside appends the positions of the points that the table does not cover.
func (f *field[T]) outside(at []int32, points [][]T) []int32 {
	xs := points[0]
	ys, zs := points[1][:len(xs)], points[2][:len(xs)]
	at = slices.Grow(at, len(xs))
	out, n := at[len(at):][:len(xs)], 0
	ax, ay := f.x, f.y
	for i, x := range xs {
		// A coordinate above the axis moves to the last cell. No sampled point lies
		// in a higher cell, so nothing covers the last cell.
		x, y := min(max(x, ax.bottom), ax.top), min(max(ys[i], ay.bottom), ay.top)
		out[n] = int32(i)
		if !(zs[i] <= f.table[(ax.cell(x)*side+ay.cell(y))&(side*side-1)]) {
			n++
		}
	}
	return at[:len(at)+n]
}
