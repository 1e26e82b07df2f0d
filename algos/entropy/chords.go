package entropy

import (
	"math"
	"slices"

	"entropipe/algos/exact"
)

// chords are the ranges below the chords of an upper chain. Neighbouring vertices may be
// merged to groups. Then the region of groups a and b holds the ranges of all chords
// from a vertex of a to a vertex of b: what is between the last vertex of a and the
// first of b on or below their chord, and everything above or below the groups
// themselves. Between those vertices that chord is the highest, as the chain is concave.
type chords struct {
	first, last []vertex // of every group, from left to right
	row         []int32  // the region of groups a <= b has the number row[a] + b
	core        trapezoid
	exact       bool // every region of two groups is a range

	some, more, union []span
}

type vertex struct{ x, y float64 }

// trapezoid is the region below a line, for from <= x <= to: y at from, and the slope.
type trapezoid struct{ from, to, y, slope float64 }

// at returns the height of the line, the same with and without fused operations.
func (t *trapezoid) at(x float64) float64 { return t.y + float64(t.slope*(x-t.from)) }

// single makes every vertex of a chain a group.
func (f *chords) single(p *points, chain []int32) {
	f.first, f.last = f.first[:0], f.last[:0]
	for _, v := range chain {
		f.first = append(f.first, vertex{p[0][v], p[1][v]})
	}
	f.last = append(f.last, f.first...)
	f.exact = true
	f.number()
}

// split leaves the first vertex of every group, and the last of all. Their chords are
// legal ranges.
func (f *chords) split() {
	var all []vertex
	for k, v := range f.first {
		all = append(all, v)
		if k == len(f.first)-1 && f.last[k] != v {
			all = append(all, f.last[k])
		}
	}
	f.first, f.last, f.exact = all, slices.Clone(all), true
	f.number()
}

// find returns the place of x among the first vertices of all groups.
func (f *chords) find(x float64) (at int, on bool) {
	return slices.BinarySearchFunc(f.first, x, func(v vertex, x float64) int { return sign(v.x - x) })
}

func (f *chords) number() {
	f.row = f.row[:0]
	at := int32(0)
	for a := range f.first {
		f.row = append(f.row, at-int32(a))
		at += int32(len(f.first) - a)
	}
}

// merge leaves at most most groups: it joins the groups with fewest points between them.
func (f *chords) merge(gaps []float64, most int) {
	order := sorted(gaps)
	join := make([]bool, len(gaps))
	for _, k := range order[:len(gaps)-most+1] {
		join[k] = true
	}
	f.exact = false
	kept := 0
	for k := range f.first {
		if k > 0 && join[k-1] {
			f.last[kept-1] = f.last[k]
			continue
		}
		f.first[kept], f.last[kept] = f.first[k], f.last[k]
		kept++
	}
	f.first, f.last = f.first[:kept], f.last[:kept]
	f.number()
}

func (f *chords) size() int {
	g := len(f.first)
	return g * (g + 1) / 2
}

// pairOf returns the groups of a region.
func (f *chords) pairOf(r int32) (a, b int) {
	for a = len(f.row) - 1; f.row[a]+int32(a) > r; a-- {
	}
	return a, int(r - f.row[a])
}

// under reports whether a place is on or below the chord from the last vertex of group a
// to the first of group b.
func (f *chords) under(a, b int, x, y float64) bool {
	v, w := f.last[a], f.first[b]
	return exact.Orient2D(v.x, v.y, w.x, w.y, x, y) <= 0
}

func (f *chords) runsOf(dst []span, x, y, _ float64) []span {
	g := len(f.first)
	lo, on := f.find(x)
	if !on {
		lo--
	}
	if lo < 0 {
		return dst
	}
	hi, j := lo+1, lo+1
	if x <= f.last[lo].x { // above or below a group, which is in all its regions
		hi = lo
	}
	// A chord that begins farther right, and ends at the same group, is higher.
	for a := range lo {
		for j < g && f.under(a, j, x, y) {
			j++
		}
		if j > hi {
			dst = append(dst, span{f.row[a] + int32(hi), f.row[a] + int32(j)})
		}
	}
	if hi == lo {
		return append(dst, span{f.row[lo] + int32(lo), f.row[lo] + int32(g)})
	}
	for j < g && f.under(lo, j, x, y) {
		j++
	}
	if j > hi {
		dst = append(dst, span{f.row[lo] + int32(hi), f.row[lo] + int32(j)})
	}
	return dst
}

// runsOfCell appends the regions that meet a cell, and further ones.
func (f *chords) runsOfCell(dst []span, c *cell) []span {
	f.some = f.runsOf(f.some[:0], c.lo[0], c.lo[1], 0)
	at, _ := f.find(c.lo[0])
	for ; at < len(f.first) && f.first[at].x <= c.right; at++ { // a region that ends in the cell
		f.more = f.runsOf(f.more[:0], f.first[at].x, c.lo[1], 0)
		f.union = appendUnion(f.union[:0], f.some, f.more)
		f.some, f.union = f.union, f.some
		f.more = f.runsOf(f.more[:0], min(f.last[at].x, c.right), c.lo[1], 0)
		f.union = appendUnion(f.union[:0], f.some, f.more)
		f.some, f.union = f.union, f.some
	}
	f.more = f.runsOf(f.more[:0], c.right, c.lo[1], 0)
	return appendUnion(dst, f.some, f.more)
}

// shrink sets the core to a trapezoid that the regions in list hold, empty where it
// finds none, and returns it.
func (f *chords) shrink(list []int32) trapezoid {
	f.core = trapezoid{math.Inf(1), math.Inf(-1), 0, 0}
	if len(list) == 0 {
		return f.core
	}
	from, to := math.Inf(-1), math.Inf(1)
	for _, r := range list {
		a, b := f.pairOf(r)
		from, to = max(from, f.last[a].x), min(to, f.first[b].x)
	}
	if !(from < to) {
		return f.core
	}
	left, right := math.Inf(1), math.Inf(1)
	for _, r := range list {
		a, b := f.pairOf(r)
		left, right = min(left, f.height(a, b, from)), min(right, f.height(a, b, to))
	}
	margin := 0.0 // for the rounding of height
	for _, v := range f.first {
		margin = max(margin, 1e-14*math.Abs(v.y))
	}
	core := trapezoid{from, to, left - margin, (right - left) / (to - from)}
	if end := core.at(to); core.slope-core.slope == 0 && end-end == 0 {
		f.core = core
	}
	return f.core
}

// height returns the height of a chord at x.
func (f *chords) height(a, b int, x float64) float64 {
	v, w := f.last[a], f.first[b]
	t := (x - v.x) / (w.x - v.x)
	return float64(v.y*(1-t)) + float64(w.y*t) // the same with and without fused operations
}

// holdsCore reports whether both upper corners of the core, raised by the rounding of
// the test of a point, are in range r.
func (f *chords) holdsCore(r int32) bool {
	if !f.exact {
		return true
	}
	a, b := f.pairOf(r)
	if a == b || f.first[a].x > f.core.from || f.first[b].x < f.core.to {
		return false
	}
	end := f.core.at(f.core.to)
	rounding := 1e-15*(math.Abs(f.core.y)+math.Abs(end)+math.Abs(end-f.core.y)) + 1e-320
	return f.under(a, b, f.core.from, f.core.y+rounding) && f.under(a, b, f.core.to, end+rounding)
}
