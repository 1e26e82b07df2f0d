package delaunay

import (
	"slices"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// orderer computes the order of insertion. Along a Hilbert curve the next point is
// near the last point, so walks are short. Rounds grow by a factor of eight and are
// chosen by a hash of the points' numbers, so the expected size of a hole is
// constant for every cloud.
type orderer[T geom.Float] struct {
	entries, spare []uint64 // place on the curve << 32 | index of the point
	rounds         []uint8

	// parts is the number of parts of the curve, which have equal numbers of
	// points. Part p of round r is [cuts[p][r], cuts[p+1][r]) of the order.
	parts int
	cuts  [][lastRound + 1]int
}

const (
	fewPoints = 64  // points; up to here one round is enough: the worst case is small
	fewKeys   = 256 // points; below, sorting by comparison is cheaper than clearing counters
	crowd     = 32  // points; more of them in one cell get a curve of their own
	lastRound = 10
)

// sort writes the order of insertion: the indices of the points of c to orig, and
// their coordinates to pts. all is the bounding box of c.
func (o *orderer[T]) sort(c geom.Cloud[T], all box, orig []int32, pts []point) {
	n := c.Len()
	o.entries, o.spare = resize(o.entries, n), resize(o.spare, n)
	for i := range o.entries {
		o.entries[i] = uint64(i)
	}
	o.along(c, o.entries, all, 0)
	if n <= fewPoints {
		for k, e := range o.entries {
			i := int32(uint32(e))
			orig[k], pts[k] = i, point{float64(c.X[i]), float64(c.Y[i])}
		}
		return
	}
	o.rounds = resize(o.rounds, n)
	o.cuts = resize(o.cuts, o.parts+1)
	if o.parts == 1 {
		o.count(0)
	} else {
		kernel.Parallel(o.parts, o.count)
	}
	at := 0
	for r := range o.cuts[0] {
		for p := range o.parts {
			o.cuts[p][r], at = at, at+o.cuts[p][r]
		}
		o.cuts[o.parts][r] = at
	}
	if o.parts == 1 {
		o.byRound(c, orig, pts, 0)
	} else {
		kernel.Parallel(o.parts, func(part int) { o.byRound(c, orig, pts, part) })
	}
}

// count counts the points of each round in one part.
func (o *orderer[T]) count(part int) {
	lo, hi := kernel.Part(len(o.entries), part, o.parts)
	var n [lastRound + 1]int
	for k := lo; k < hi; k++ {
		r := round(uint32(o.entries[k]))
		o.rounds[k] = r
		n[r]++
	}
	o.cuts[part] = n
}

// byRound puts the points of one part in the order of their rounds.
func (o *orderer[T]) byRound(c geom.Cloud[T], orig []int32, pts []point, part int) {
	lo, hi := kernel.Part(len(o.entries), part, o.parts)
	next := o.cuts[part]
	for k := lo; k < hi; k++ {
		i := int32(uint32(o.entries[k]))
		at := &next[o.rounds[k]]
		orig[*at], pts[*at] = i, point{float64(c.X[i]), float64(c.Y[i])}
		*at++
	}
}

// round returns the round of point i. Seven of eight points are in the last round,
// seven of eight of the rest in the round before, and so on.
func round(i uint32) uint8 {
	h := i * 2654435761
	h ^= h >> 15
	h *= 2246822519
	h ^= h >> 13
	r := uint8(lastRound)
	for ; r > 0 && h&7 == 0; r-- {
		h >>= 3
	}
	return r
}

// along sorts entries along a Hilbert curve through b, the bounding box of
// their points. Points in one cell of the curve, most of all in a cloud with a
// far outlier, are sorted along a finer curve of their own.
func (o *orderer[T]) along(c geom.Cloud[T], entries []uint64, b box, depth int) {
	// A cell has less than 2^-10 of the size of its box, so deepest steps lead from
	// the largest float to the least.
	const deepest = 210
	grid := gridOf(b)
	if grid.scale == 0 || depth == deepest {
		return // all points equal
	}
	switch n := len(entries); {
	case n < fewKeys:
		keys(c, entries, grid)
		slices.Sort(entries)
	// An even number of passes leaves the result where it was.
	case depth > 0 || o.parts == 1:
		keys(c, entries, grid)
		kernel.SortByKey(entries, o.spare[:n], 2)
	default:
		kernel.Parallel(o.parts, func(part int) {
			lo, hi := kernel.Part(n, part, o.parts)
			keys(c, entries[lo:hi], grid)
		})
		kernel.SortByKeyParallel(entries, o.spare[:n], 2, o.parts)
	}
	for first := 0; first+crowd < len(entries); {
		key, end := entries[first]>>32, first+1
		if entries[first+crowd]>>32 != key {
			first++
			continue
		}
		for end < len(entries) && entries[end]>>32 == key {
			end++
		}
		o.along(c, entries[first:end], boxOfSome(c, entries[first:end]), depth+1)
		first = end
	}
}

// keys gives entries their places on the curve.
func keys[T geom.Float](c geom.Cloud[T], entries []uint64, g grid) {
	for k, e := range entries {
		i := uint32(e)
		key := hilbert(g.cell(float64(c.X[i]), g.x), g.cell(float64(c.Y[i]), g.y))
		entries[k] = uint64(key)<<32 | uint64(i)
	}
}

// box is the bounding box of some points.
type box struct{ x0, y0, x1, y1 float64 }

// boxOf returns the bounding box of c, the zero box for no point. It panics when a
// coordinate is not finite.
func boxOf[T geom.Float](c geom.Cloud[T]) box {
	if c.Len() == 0 {
		return box{}
	}
	x, y := c.X, c.Y[:len(c.X)]
	x0, y0 := x[0], y[0]
	x1, y1 := x0, y0
	var odd T // NaN from the first coordinate on that is not finite
	for i, px := range x {
		py := y[i]
		odd += (px - px) + (py - py)
		if px < x0 {
			x0 = px
		} else if px > x1 {
			x1 = px
		}
		if py < y0 {
			y0 = py
		} else if py > y1 {
			y1 = py
		}
	}
	if odd != 0 {
		panic(badFinite)
	}
	return box{float64(x0), float64(y0), float64(x1), float64(y1)}
}

func boxOfSome[T geom.Float](c geom.Cloud[T], entries []uint64) box {
	i := uint32(entries[0])
	x0, y0 := c.X[i], c.Y[i]
	x1, y1 := x0, y0
	for _, e := range entries {
		x, y := c.X[uint32(e)], c.Y[uint32(e)]
		x0, x1 = min(x0, x), max(x1, x)
		y0, y1 = min(y0, y), max(y1, y)
	}
	return box{float64(x0), float64(y0), float64(x1), float64(y1)}
}

// grid divides a square around a box into cells of a Hilbert curve. Factors
// that are powers of two keep its numbers within range: the difference of the
// largest floats, the inverse of the least.
type grid struct {
	half  float64 // 1/2, or 1 in a tiny box
	x, y  float64 // the least corner, times half
	boost float64 // 1, or large in a tiny box
	scale float64 // 0 where the box is a point
}

// side is the number of columns, and rows, of a grid.
const side = 1 << 11

func gridOf(b box) grid {
	g := grid{half: 0.5, boost: 1}
	size := max(b.x1/2-b.x0/2, b.y1/2-b.y0/2)
	if size < 0x1p-900 {
		g.half, g.boost = 1, 0x1p600
		size = max(b.x1-b.x0, b.y1-b.y0) * g.boost
	}
	if size > 0 {
		g.scale = (side - 1) / size
	}
	g.x, g.y = b.x0*g.half, b.y0*g.half
	return g
}

// cell returns the column, or row, of a coordinate in a grid that starts at low.
// Rounding can change the cell, and with it only the order of insertion.
func (g *grid) cell(v, low float64) uint32 {
	return uint32(int32((v*g.half-low)*g.boost*g.scale)) & (side - 1)
}

// curve tabulates three steps of a Hilbert curve. The index holds the state of the
// curve in its upper two bits, then three bits of x and three of y; the entry
// holds the next state and six bits of the place.
var curve = makeCurve()

// hilbert returns the place of a cell on the curve, a number of 22 bits.
func hilbert(x, y uint32) uint32 {
	a := uint32(curve[x>>9&7<<3|y>>9&7])
	b := uint32(curve[a&0xc0|x>>6&7<<3|y>>6&7])
	c := uint32(curve[b&0xc0|x>>3&7<<3|y>>3&7])
	d := uint32(curve[c&0xc0|x&7<<3|y&7])
	return a&63<<18 | b&63<<12 | c&63<<6 | d&63
}

// makeCurve makes the table step by step. The state says how the square is turned:
// with bit 0, x and y change places; with bit 1, both run backwards.
func makeCurve() (t [256]uint8) {
	for i := range t {
		state, place := i>>6, 0
		for bit := 2; bit >= 0; bit-- {
			x, y := i>>(3+bit)&1^state>>1, i>>bit&1^state>>1
			if state&1 != 0 {
				x, y = y, x
			}
			place = place<<2 | 3*x ^ y
			switch {
			case y == 0 && x == 0:
				state ^= 1
			case y == 0:
				state ^= 3
			}
		}
		t[i] = uint8(state<<6 | place)
	}
	return t
}
