package hull

import (
	"math"
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// A hull's boundary is four chains, between its leftmost, lowest, rightmost and
// highest points. Along each chain x and y both change in one direction only, so a
// point on the lower left chain, for example, is lower than all points left of it:
// a record. Among points in random order few are records, and one comparison finds
// them; only records need an orientation.
//
// Each chain is swept away from the leftmost or the rightmost points. The side of a
// chain is the sign of its turns in the direction of its sweep.
const (
	lowLeft   = iota // swept from the left, records are lower, turns go left
	lowRight         // swept from the right, records are lower, turns go right
	highRight        // swept from the right, records are higher, turns go left
	highLeft         // swept from the left, records are higher, turns go right
)

var side = [4]int{lowLeft: 1, lowRight: -1, highRight: 1, highLeft: -1}

// chains are the four chains, each in the direction of its sweep.
type chains[T geom.Float] [4][]vertex[T]

// chain replaces the candidates by the vertices of their hull, in the order of
// Append. It returns false when a coordinate is not finite.
func (l *lane[T]) chain() bool {
	if !l.sweep() {
		return false
	}
	l.points = l.chains.join(l.points[:0])
	return true
}

// sweep computes the four chains of the candidates, and changes the order of the
// candidates. It returns false when a coordinate is not finite.
func (l *lane[T]) sweep() bool {
	p := l.points
	if len(p) == 0 {
		for k := range l.chains {
			l.chains[k] = l.chains[k][:0]
		}
		return true
	}
	top, x, ok := survey(p)
	if !ok {
		return false
	}
	l.spare = slices.Grow(l.spare[:0], len(p))[:len(p)]
	to := inPlace // most points of a large cloud are distributed twice, there and back
	if len(p) <= bucketFits {
		to = intoSpare // most points are distributed once
	}
	l.order(p, l.spare, x, 0, to)
	if to == intoSpare {
		l.points, l.spare = l.spare, p
		p = l.points
	}
	factor := moderate(p, top)
	if factor != 1 {
		multiply(p, factor)
	}
	l.chains.reset(p[0], p[len(p)-1])
	l.chains.fromLeft(p)
	l.chains.fromRight(p)
	l.touched += 3 * len(p)
	if factor != 1 {
		for k := range l.chains {
			multiply(l.chains[k], 1/factor)
		}
		multiply(p, 1/factor)
	}
	return true
}

// survey returns the largest magnitude of a coordinate of p, the extent of p, and
// whether all coordinates are finite. p holds at least one point.
func survey[T geom.Float](p []vertex[T]) (top float64, e extent[T], finite bool) {
	var odd, low, high T // odd is NaN from the first coordinate on that is not finite
	e = extent[T]{p[0].x, p[0].x}
	for i := range p {
		x, y := p[i].x, p[i].y
		odd += (x - x) + (y - y)
		e.low, e.high = min(e.low, x), max(e.high, x)
		low, high = min(low, y), max(high, y)
	}
	return float64(max(-e.low, e.high, -low, high)), e, odd == 0
}

// reset begins every chain with the leftmost or the rightmost point.
func (c *chains[T]) reset(left, right vertex[T]) {
	for k, v := range [4]vertex[T]{lowLeft: left, lowRight: right, highRight: right, highLeft: left} {
		c[k] = append(c[k][:0], v)
	}
}

func (c *chains[T]) fromLeft(p []vertex[T]) {
	low, high := c[lowLeft], c[highLeft]
	lowest, highest := p[0].y, p[0].y
	for i := range p {
		if p[i].y <= lowest {
			low, lowest = push(low, p[i], side[lowLeft]), p[i].y
		}
		if p[i].y >= highest {
			high, highest = push(high, p[i], side[highLeft]), p[i].y
		}
	}
	c[lowLeft], c[highLeft] = low, high
}

func (c *chains[T]) fromRight(p []vertex[T]) {
	low, high := c[lowRight], c[highRight]
	last := len(p) - 1
	lowest, highest := p[last].y, p[last].y
	for i := last; i >= 0; i-- {
		if p[i].y <= lowest {
			low, lowest = push(low, p[i], side[lowRight]), p[i].y
		}
		if p[i].y >= highest {
			high, highest = push(high, p[i], side[highRight]), p[i].y
		}
	}
	c[lowRight], c[highRight] = low, high
}

// push appends a record v to chain h, and removes the points of h where the chain
// would no longer turn to its side. v is level with the end of h or farther from
// the middle in y, and not before it in the direction of the sweep.
func push[T geom.Float](h []vertex[T], v vertex[T], side int) []vertex[T] {
	top := &h[len(h)-1]
	if v.y == top.y {
		if v.x == top.x {
			top.i = min(top.i, v.i) // equal points
		}
		return h // a point level with the end of the chain is no record
	}
	if v.x == top.x {
		h = h[:len(h)-1] // v is straight below or above the end
	}
	for len(h) >= 2 {
		a, b := &h[len(h)-2], &h[len(h)-1]
		if side*exact.Orient2D(float64(a.x), float64(a.y), float64(b.x), float64(b.y), float64(v.x), float64(v.y)) > 0 {
			break
		}
		h = h[:len(h)-1]
	}
	return append(h, v)
}

func (c *chains[T]) len() (n int) {
	for _, h := range c {
		n += len(h)
	}
	return n
}

// merge returns chain k of the points of all lanes: each vertex of it is a vertex
// of some lane's chain k. The result is stored among the merged chains of lane 0.
func (l *lane[T]) merge(lanes []*lane[T], k int) []vertex[T] {
	done, out := lanes[0].chains[k], lanes[0].merged[k]
	for _, other := range lanes[1:] {
		a, b := done, other.chains[k]
		l.touched += len(a) + len(b)
		out = out[:0]
		for len(a) > 0 || len(b) > 0 {
			from := &a
			if len(a) == 0 || len(b) > 0 && sweptBefore(k, &b[0], &a[0]) {
				from = &b
			}
			v := &(*from)[0]
			if len(out) == 0 {
				out = append(out, *v)
			} else if top := &out[len(out)-1]; v.y == top.y || v.y < top.y == (k == lowLeft || k == lowRight) {
				out = push(out, *v, side[k])
			}
			*from = (*from)[1:]
		}
		done, out = out, done
	}
	lanes[0].chains[k] = out
	return done
}

// sweptBefore reports whether the sweep of chain k meets a before b.
func sweptBefore[T geom.Float](k int, a, b *vertex[T]) bool {
	if k == lowLeft || k == highLeft {
		return a.x < b.x
	}
	return a.x > b.x
}

// join appends the boundary, counter-clockwise from the lexicographic minimum, to
// dst, which is empty. Neighbouring chains share a vertex unless a vertical or
// horizontal edge of the hull lies between them.
func (c *chains[T]) join(dst []vertex[T]) []vertex[T] {
	for k := range c {
		if h := c.own(k); k == lowRight || k == highLeft { // swept against the direction of the hull
			for i := len(h) - 1; i >= 0; i-- {
				dst = append(dst, h[i])
			}
		} else {
			dst = append(dst, h...)
		}
	}
	if last := len(dst) - 1; last > 0 && dst[last].i == dst[0].i {
		dst = dst[:last]
	}
	return dst
}

// joinIndices appends the indices of the vertices that join appends.
func (c *chains[T]) joinIndices(dst []int32) []int32 {
	from := len(dst)
	for k := range c {
		h := c.own(k)
		at := len(dst)
		dst = slices.Grow(dst, len(h))[:at+len(h)]
		out := dst[at:]
		if k == lowRight || k == highLeft {
			for i := range h {
				out[len(h)-1-i] = h[i].i
			}
		} else {
			for i := range h {
				out[i] = h[i].i
			}
		}
	}
	if last := len(dst) - 1; last > from && dst[last] == dst[from] { // the whole boundary meets itself there
		dst = dst[:last]
	}
	return dst
}

// own returns chain k without its first vertex along the boundary, if that is also
// the last vertex of the chain before.
func (c *chains[T]) own(k int) []vertex[T] {
	h := c[k]
	switch k {
	case lowRight, highLeft: // both chains are swept towards that vertex
		if last := len(h) - 1; last >= 0 && h[last].i == c[k-1][len(c[k-1])-1].i {
			return h[:last]
		}
	case highRight: // both chains are swept away from that vertex
		if len(h) > 0 && h[0].i == c[k-1][0].i {
			return h[1:]
		}
	}
	return h
}

// moderate returns a power of two that brings p into the middle of the range of
// exponents without a rounding: there exact.Orient2D is a thousand times faster
// than at the ends. It returns 1 where p is in the middle already, and where
// magnitudes differ too much. top is the largest magnitude.
func moderate[T geom.Float](p []vertex[T], top float64) float64 {
	if top < 0x1p500 && top > 0x1p-400 || top == 0 || is32[T]() { // float32 is in the middle of float64
		return 1
	}
	least := math.Inf(1)
	for _, v := range p {
		for _, w := range [2]float64{math.Abs(float64(v.x)), math.Abs(float64(v.y))} {
			if w > 0 {
				least = min(least, w)
			}
		}
	}
	_, e := math.Frexp(top)
	factor := math.Ldexp(1, min(max(-e, -1000), 1000)) // its inverse is finite too
	if least*factor < 0x1p-900 {
		return 1
	}
	return factor
}

func multiply[T geom.Float](p []vertex[T], factor float64) {
	for i := range p {
		p[i].x, p[i].y = T(float64(p[i].x)*factor), T(float64(p[i].y)*factor)
	}
}
