package hull

import (
	"math"

	"entropipe/algos/geom"
)

// columnMost is the largest number of columns.
const columnMost = 1024

// columns hold the lowest and the highest point for every whole x of a range: no
// other point of that x can be a vertex. On a canvas of pixels two comparisons
// decide a point, and points on the hull's edges do not pile up as candidates.
type columns[T geom.Float] struct {
	first T   // x of the first column
	width int // number of columns, 0 when they are of no use
	ends  []ends[T]
}

// ends are the lowest and the highest point of a column. A negative i means that
// the column is empty.
type ends[T geom.Float] struct{ low, high vertex[T] }

// plan makes columns for a cloud of n points, if its sample, sorted by x, has only
// whole x, and if there are many points a column.
func (k *columns[T]) plan(sample []vertex[T], n int) {
	k.width = 0
	first, last := sample[0].x, sample[len(sample)-1].x
	if !(float64(last)-float64(first) < float64(min(columnMost, n/16))) || math.Abs(float64(first)) > 1<<24 {
		return
	}
	for i := range sample {
		if T(int32(sample[i].x)) != sample[i].x {
			return
		}
	}
	k.first, k.width = first, int(last-first)+1
}

// reset empties the columns.
func (k *columns[T]) reset() {
	if k.width > cap(k.ends) {
		k.ends = make([]ends[T], k.width)
	}
	k.ends = k.ends[:k.width]
	for i := range k.ends {
		k.ends[i] = ends[T]{vertex[T]{i: -1}, vertex[T]{i: -1}}
	}
}

// take puts the points at positions from + at[k] into their columns, and returns
// the entries of at without a column. Positions ascend from call to call.
func (k *columns[T]) take(c geom.Cloud[T], from int, at []int32) (rest []int32) {
	rest = at[:0]
	xs, ys := c.X[from:], c.Y[from:]
	for _, i := range at {
		x, y := xs[i], ys[i]
		d := x - k.first
		j := int(d)
		if !(d >= 0 && d < T(k.width)) || T(j) != d || y-y != 0 {
			rest = append(rest, i)
			continue
		}
		e := &k.ends[j]
		switch {
		case e.low.i < 0:
			e.low = vertex[T]{x, y, i + int32(from)}
			e.high = e.low
		case y < e.low.y:
			e.low = vertex[T]{x, y, i + int32(from)}
		case y > e.high.y:
			e.high = vertex[T]{x, y, i + int32(from)}
		}
	}
	return rest
}

// appendTo adds the ends of all columns as candidates.
func (k *columns[T]) appendTo(p []vertex[T]) []vertex[T] {
	for _, e := range k.ends[:k.width] {
		if e.low.i >= 0 {
			p = append(p, e.low, e.high)
		}
	}
	return p
}
