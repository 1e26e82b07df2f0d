package maxima

import (
	"slices"

	"entropipe/algos/geom"
)

const bruteMost = 600 // largest number of pairs that are compared one by one

// divide finds maximal points by divide and conquer over the axes, as in Kung,
// Luccio and Preparata (1975). It halves the points along the last axis, finds the
// maximal points of the better half, and lets them filter the worse half on the
// other axes, in the same way, until two axes remain and one scan decides. Cost:
// O(n log^(d-2) n) for d > 2 axes.
//
// Coordinates become ranks, 0 for the largest value. On the last axis the rank is
// the position in lexicographic order, so no two ranks are equal, and every point
// that covers another one, an equal point of lower index included, has a lower
// rank. Points are numbered along the first axis, and every list of points ascends:
// lists are read in the order of memory, and no step sorts again.
type divide[T geom.Float] struct {
	rank    [MaxDims][]int32
	dims    int
	origin  []int32 // for each point, its survivor
	number  []int32 // for each survivor, its point
	dead    []bool  // dead[p]: another point covers point p
	arena   []int32 // the lists of the calls under way
	touched int
}

// divideAxes marks the maximal survivors.
func (m *Maxima[T]) divideAxes() {
	d, n, last := &m.divide, len(m.ids), len(m.v)-1
	d.dims = len(m.v)
	d.touched = 0
	d.origin, d.number = slices.Grow(d.origin[:0], n)[:n], slices.Grow(d.number[:0], n)[:n]
	d.dead = slices.Grow(d.dead[:0], n)[:n]
	clear(d.dead)
	for k := range m.v {
		d.rank[k] = slices.Grow(d.rank[k][:0], n)[:n]
	}
	var by [MaxDims][]T
	by[0], by[1] = m.v[0], m.v[last]
	copy(by[2:], m.v[1:last])
	m.sorter.sort(by[:last+1]...)
	for at, e := range m.sorter.order {
		d.origin[at], d.number[uint32(e)] = int32(uint32(e)), int32(at)
	}
	for k := range last {
		if k > 0 {
			m.sorter.sort(m.v[k])
		}
		m.rank = slices.Grow(m.rank[:0], n)[:n]
		rankAlong(m.rank, m.v[k], m.sorter.order)
		for i, at := range d.number {
			d.rank[k][at] = m.rank[i]
		}
	}
	by[0] = m.v[last]
	copy(by[1:], m.v[:last])
	m.sorter.sort(by[:last+1]...)
	for at, e := range m.sorter.order {
		d.rank[last][d.number[uint32(e)]] = int32(at)
	}
	d.arena = appendAll(d.arena[:0], n)
	d.maxima(d.arena, 0, int32(n))
	for at, dead := range d.dead {
		if !dead {
			m.keep(d.origin[at])
		}
	}
	m.touched += (len(m.v)+1)*n + d.touched
}

// maxima marks the points of list that other points of list cover. Their ranks on
// the last axis lie in [lo, hi).
func (d *divide[T]) maxima(list []int32, lo, hi int32) {
	d.touched += len(list)
	if len(list) <= 16 {
		d.compareAll(list)
		return
	}
	mid := lo + (hi-lo)/2
	mark := len(d.arena)
	better, worse := d.split(list, d.dims-1, mid)
	d.maxima(better, lo, mid)
	if len(worse) > 0 {
		better = d.alive(better)
		d.filter(better, worse, d.dims-1)
		d.maxima(d.alive(worse), mid, hi)
	}
	d.arena = d.arena[:mark]
}

// compareAll is maxima for short lists. Only an earlier point can cover a point.
func (d *divide[T]) compareAll(list []int32) {
	for k, p := range list {
		for _, q := range list[:k] {
			if !d.dead[q] && d.covers(q, p, d.dims) {
				d.dead[p] = true
				break
			}
		}
	}
	d.touched += len(list) * len(list) / 2
}

// covers reports whether q is as good as p on the axes from 1 to dims-1.
func (d *divide[T]) covers(q, p int32, dims int) bool {
	for k := 1; k < dims; k++ {
		if d.rank[k][q] > d.rank[k][p] {
			return false
		}
	}
	return true
}

// filter marks the points of worse that points of better cover on the first dims
// axes. On the other axes every point of better is as good as every point of worse.
func (d *divide[T]) filter(better, worse []int32, dims int) {
	if len(better) == 0 || len(worse) == 0 {
		return
	}
	d.touched += len(better) + len(worse)
	if dims == 2 {
		d.scan(better, worse)
		return
	}
	if len(better)*len(worse) <= bruteMost {
		d.comparePairs(better, worse, dims)
		return
	}
	axis := dims - 1
	first, last := d.span(better, axis)
	from, to := d.span(worse, axis)
	switch {
	case first > to:
		return
	case last <= from:
		d.filter(better, worse, dims-1)
		return
	}
	mid := min(first, from) + (max(last, to)-min(first, from)+1)/2
	mark := len(d.arena)
	better0, better1 := d.split(better, axis, mid)
	worse0, worse1 := d.split(worse, axis, mid)
	d.filter(better0, worse0, dims)
	d.filter(better0, worse1, dims-1)
	d.filter(better1, d.alive(worse1), dims)
	d.arena = d.arena[:mark]
}

// scan is filter on two axes. It walks along the first axis and keeps the best rank
// on the second.
func (d *divide[T]) scan(better, worse []int32) {
	rank, along := d.rank[1], d.rank[0]
	best, at := rank[better[0]], 0
	for _, p := range worse {
		for at < len(better) && along[better[at]] <= along[p] {
			best = min(best, rank[better[at]])
			at++
		}
		if at > 0 && best <= rank[p] {
			d.dead[p] = true
		}
	}
}

// comparePairs is filter for few pairs.
func (d *divide[T]) comparePairs(better, worse []int32, dims int) {
	for _, p := range worse {
		x := d.rank[0][p]
		for _, q := range better {
			if d.rank[0][q] > x {
				break
			}
			if d.covers(q, p, dims) {
				d.dead[p] = true
				break
			}
		}
	}
	d.touched += len(better) * len(worse)
}

// span returns the lowest and the highest rank of a list on an axis.
func (d *divide[T]) span(list []int32, axis int) (lo, hi int32) {
	rank := d.rank[axis]
	lo, hi = rank[list[0]], rank[list[0]]
	for _, p := range list {
		lo, hi = min(lo, rank[p]), max(hi, rank[p])
	}
	return lo, hi
}

// split copies a list to the arena in two parts: points with ranks below mid, and the
// rest.
func (d *divide[T]) split(list []int32, axis int, mid int32) (below, rest []int32) {
	start, n := len(d.arena), len(list)
	d.arena = slices.Grow(d.arena, 2*n)[:start+2*n]
	below, rest = d.arena[start:start+n], d.arena[start+n:]
	rank, i, j := d.rank[axis], 0, 0
	for _, p := range list {
		below[i], rest[j] = p, p
		if rank[p] < mid {
			i++
		} else {
			j++
		}
	}
	copy(d.arena[start+i:], rest[:j])
	d.arena = d.arena[:start+n]
	return d.arena[start : start+i : start+i], d.arena[start+i:]
}

// alive removes the dead points from a list.
func (d *divide[T]) alive(list []int32) []int32 {
	n := 0
	for _, p := range list {
		list[n] = p
		if !d.dead[p] {
			n++
		}
	}
	return list[:n]
}
