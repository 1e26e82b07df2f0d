package entropy

import (
	"math"
)

// boxes are the ranges below maximal points. Near maximal points may be merged: the box
// of a group ends at the largest coordinate on each axis, and holds the boxes of all its
// points.
type boxes struct {
	dims  int
	tops  [][3]float64
	first []int32 // a point of every box
	exact bool    // every box is a range
	core  [3]float64
}

// build makes at most most boxes of the points in list.
func (f *boxes) build(p *points, list []int32, dims, most int) {
	f.dims, f.tops, f.first, f.exact = dims, f.tops[:0], f.first[:0], len(list) <= most
	f.divide(p, list, max((len(list)+most-1)/most, 1))
}

// divide halves list along the axis on which it is longest until at most per points are
// left, and makes a box of those. So boxes that stand side by side in the list are near.
func (f *boxes) divide(p *points, list []int32, per int) {
	lo, hi := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}, [3]float64{}
	for d := range f.dims {
		hi[d] = math.Inf(-1)
		for _, i := range list {
			lo[d], hi[d] = min(lo[d], p[d][i]), max(hi[d], p[d][i])
		}
	}
	if len(list) <= per {
		f.tops, f.first = append(f.tops, hi), append(f.first, list[0])
		return
	}
	axis := 0
	for d := range f.dims {
		if hi[d]/2-lo[d]/2 > hi[axis]/2-lo[axis]/2 {
			axis = d
		}
	}
	half := len(list) / 2
	split(list, p[axis], half)
	f.divide(p, list[:half], per)
	f.divide(p, list[half:], per)
}

// split leaves one point of every box. Their boxes are legal ranges.
func (f *boxes) split(p *points) {
	for k, i := range f.first {
		for d := range f.dims {
			f.tops[k][d] = p[d][i]
		}
	}
	f.exact = true
}

func (f *boxes) size() int { return len(f.tops) }

func (f *boxes) runsOf(dst []span, x, y, z float64) []span {
	open := false
	for r := range f.tops {
		t := &f.tops[r]
		in := x <= t[0] && y <= t[1] && z <= t[2]
		switch {
		case in && !open:
			dst = append(dst, span{int32(r), int32(r) + 1})
		case in:
			dst[len(dst)-1].to++
		}
		open = in
	}
	return dst
}

// shrink sets the core to what all boxes of list hold, empty for none, and returns its
// top.
func (f *boxes) shrink(list []int32) [3]float64 {
	f.core = [3]float64{math.Inf(-1), math.Inf(-1), math.Inf(-1)}
	for k, r := range list {
		if k == 0 {
			f.core = f.tops[r]
		}
		for d := range f.core {
			f.core[d] = min(f.core[d], f.tops[r][d])
		}
	}
	return f.core
}

func (f *boxes) holdsCore(r int32) bool {
	t := &f.tops[r]
	return !f.exact || f.core[0] <= t[0] && f.core[1] <= t[1] && f.core[2] <= t[2]
}

// runsOfCell appends the boxes that meet a cell.
func (f *boxes) runsOfCell(dst []span, c *cell) []span {
	return f.runsOf(dst, c.lo[0], c.lo[1], c.lo[2])
}
