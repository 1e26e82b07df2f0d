package maxima

import (
	"math"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

const (
	filterFrom = 1024 // points; below, sorting all of them is cheaper
	sampleMax  = 4096 // points sampled,
	sampleRate = 64   // and of how many points one is
	columns    = 1024 // cells of the plane's table
	side       = 64   // cells along one axis of the space's table
)

// filter drops points that a sampled point dominates. It cuts an axis into
// cells and keeps, for every cell, the largest last coordinate among sampled
// points in strictly higher cells. A point's cell is a monotone function of
// its coordinate, whatever rounding does to it: a sampled point in a higher
// cell has a larger coordinate, so the table is never wrong. A few pivots do
// the same where every point has one ahead of it, but cost a comparison each
// and a mispredicted branch a point.
type filter[T geom.Float] struct {
	x, y  axis[T]
	table [side * side]T // plane: the first columns entries

	sx, sy, sz [sampleMax]T
}

// axis cuts the upper half of a coordinate's range into cells. Points of the
// lower half share cell 0: nearly everything dominates them, and the cells are
// better spent where the front is.
type axis[T geom.Float] struct {
	bottom, top T // outside, cell is not defined
	from, step  T // cell = (v - from) * step, or 0
}

// cell is monotone in v.
func (a *axis[T]) cell(v T) int32 {
	i := int32((v - a.from) * a.step)
	return i &^ (i >> 31)
}

// clamp moves a value below the axis to its bottom, where it has the same
// cell. It reports false for one above the axis, and for a non-finite one.
func (a *axis[T]) clamp(v T) (T, bool) {
	return max(v, a.bottom), v <= a.top && v-v == 0
}

// fit chooses the axis for a sample: cells from the mean to the largest value.
// It reports whether that makes sense; it does not where all values are equal,
// or the range is too small or too large to divide.
func (a *axis[T]) fit(sample []T, cells int) bool {
	sum := 0.0
	a.top = sample[0]
	for _, v := range sample {
		a.top = max(a.top, v)
		sum += float64(v)
	}
	a.from = T(sum / float64(len(sample)))
	width := a.top - a.from
	// A little less than cells/width, so that the top's cell is the last one.
	a.step = T(float64(cells) * (1 - 1e-6) / float64(width))
	a.bottom = a.from - 0x1p20/a.step // (v-from)*step stays far inside int32
	return width > 0 && width-width == 0 && a.step-a.step == 0 && a.bottom-a.bottom == 0
}

// plane appends the indices of the points that no sampled point shows to be
// dominated, with every non-finite one, and returns ids.
func (f *filter[T]) plane(ids []int32, xs, ys []T, low [3]bool) []int32 {
	if len(xs) < filterFrom || !f.fitPlane(xs, ys, low) {
		return appendAll(ids, len(xs))
	}
	sx, sy := sign[T](low[0]), sign[T](low[1])
	ys = ys[:len(xs)]
	ax, below := f.x, T(math.Inf(-1))
	for i, x := range xs {
		x, y, ok := sx*x, sy*ys[i], true
		if !(x >= ax.bottom && x <= ax.top) {
			x, ok = ax.clamp(x)
		}
		if ok && y <= f.table[ax.cell(x)&(columns-1)] && y > below {
			continue
		}
		ids = append(ids, int32(i))
	}
	return ids
}

func (f *filter[T]) fitPlane(xs, ys []T, low [3]bool) bool {
	n := f.draw(&f.sx, xs, low[0])
	f.draw(&f.sy, ys, low[1])
	if !f.x.fit(f.sx[:n], columns) {
		return false
	}
	table := f.table[:columns]
	fill(table, T(math.Inf(-1)))
	for k, x := range f.sx[:n] {
		i := f.x.cell(max(x, f.x.bottom)) & (columns - 1)
		table[i] = max(table[i], f.sy[k])
	}
	best := T(math.Inf(-1))
	for i := columns - 1; i >= 0; i-- {
		best, table[i] = max(best, table[i]), best
	}
	return true
}

// space is plane for clouds with z.
func (f *filter[T]) space(ids []int32, c geom.Cloud[T], low [3]bool) []int32 {
	if c.Len() < filterFrom || !f.fitSpace(c, low) {
		return appendAll(ids, c.Len())
	}
	sx, sy, sz := sign[T](low[0]), sign[T](low[1]), sign[T](low[2])
	xs := c.X
	ys, zs := c.Y[:len(xs)], c.Z[:len(xs)]
	ax, ay, below := f.x, f.y, T(math.Inf(-1))
	for i, x := range xs {
		x, y, z, ok := sx*x, sy*ys[i], sz*zs[i], true
		if !(x >= ax.bottom && x <= ax.top && y >= ay.bottom && y <= ay.top) {
			x, y, ok = f.clamp(x, y)
		}
		if ok && z <= f.table[(ax.cell(x)*side+ay.cell(y))&(side*side-1)] && z > below {
			continue
		}
		ids = append(ids, int32(i))
	}
	return ids
}

func (f *filter[T]) clamp(x, y T) (T, T, bool) {
	x, okX := f.x.clamp(x)
	y, okY := f.y.clamp(y)
	return x, y, okX && okY
}

func (f *filter[T]) fitSpace(c geom.Cloud[T], low [3]bool) bool {
	n := f.draw(&f.sx, c.X, low[0])
	f.draw(&f.sy, c.Y, low[1])
	f.draw(&f.sz, c.Z, low[2])
	if !f.x.fit(f.sx[:n], side) || !f.y.fit(f.sy[:n], side) {
		return false
	}
	table := f.table[:]
	fill(table, T(math.Inf(-1)))
	for k, x := range f.sx[:n] {
		cell := (f.x.cell(max(x, f.x.bottom))*side + f.y.cell(max(f.sy[k], f.y.bottom))) & (side*side - 1)
		table[cell] = max(table[cell], f.sz[k])
	}
	strictlyHigher(table)
	return true
}

// strictlyHigher replaces every cell of the side x side table by the largest
// value among cells that are higher in both directions.
func strictlyHigher[T geom.Float](table []T) {
	for i := side - 1; i >= 0; i-- { // first: higher or equal
		row := table[i*side:][:side]
		for j := side - 2; j >= 0; j-- {
			row[j] = max(row[j], row[j+1])
		}
		if i < side-1 {
			for j, v := range table[(i+1)*side:][:side] {
				row[j] = max(row[j], v)
			}
		}
	}
	copy(table, table[side+1:])
	for i := range side {
		table[i*side+side-1] = T(math.Inf(-1))
	}
	fill(table[side*(side-1):], T(math.Inf(-1)))
}

// draw fills dst with the sampled values of one axis, larger is better.
func (f *filter[T]) draw(dst *[sampleMax]T, v []T, low bool) int {
	n := min(sampleMax, len(v)/sampleRate)
	s := sign[T](low)
	for k := range n {
		dst[k] = s * v[kernel.SampleAt(k, n, len(v))]
	}
	return n
}

func appendAll(ids []int32, n int) []int32 {
	for i := range n {
		ids = append(ids, int32(i))
	}
	return ids
}

func fill[T geom.Float](v []T, value T) {
	for i := range v {
		v[i] = value
	}
}
