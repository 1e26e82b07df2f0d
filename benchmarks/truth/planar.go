package main

import (
	"cmp"
	"math"
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// Planar hulls as the literature has them, in plain Go: what hull.Hull2D is
// measured against. Each keeps its memory from frame to frame, as ours does, and
// decides sides exactly; the peers in other languages are those of the command
// benchmarks/peers.

// hullOf finds the vertices of a hull, counter-clockwise from the lexicographic
// minimum, and appends their indices.
type hullOf func(dst []int32, c geom.Cloud[float32]) []int32

// place is a point and its index.
type place struct {
	x, y float32
	i    int32
}

func places(dst []place, c geom.Cloud[float32]) []place {
	dst = slices.Grow(dst[:0], c.Len())
	y := c.Y[:len(c.X)]
	for i, x := range c.X {
		dst = append(dst, place{x, y[i], int32(i)})
	}
	return dst
}

func turn(a, b, c place) int {
	return exact.Orient2D(float64(a.x), float64(a.y), float64(b.x), float64(b.y), float64(c.x), float64(c.y))
}

// chain is the monotone chain (Andrew 1979) over points in any order, which it
// sorts.
type chain struct{ points, hull []place }

func (h *chain) find(dst []int32, c geom.Cloud[float32]) []int32 {
	h.points = places(h.points, c)
	for _, p := range h.of(h.points) {
		dst = append(dst, p.i)
	}
	return dst
}

// of returns the hull of points, valid until the next call; it sorts them.
func (h *chain) of(points []place) []place {
	slices.SortFunc(points, func(a, b place) int {
		switch {
		case a.x < b.x:
			return -1
		case a.x > b.x:
			return 1
		}
		return cmp.Or(cmp.Compare(a.y, b.y), cmp.Compare(a.i, b.i))
	})
	points = slices.CompactFunc(points, func(a, b place) bool { return a.x == b.x && a.y == b.y })
	h.hull = h.hull[:0]
	if len(points) < 3 {
		h.hull = append(h.hull, points...)
		return h.hull
	}
	for k := range points {
		h.push(points[k], 0)
	}
	lower := len(h.hull) - 1
	for k := len(points) - 2; k >= 0; k-- {
		h.push(points[k], lower)
	}
	h.hull = h.hull[:len(h.hull)-1] // the first again
	return h.hull
}

// push adds p and drops what then lies on no corner, down to h.hull[base].
func (h *chain) push(p place, base int) {
	n := len(h.hull)
	for n >= base+2 && turn(h.hull[n-2], h.hull[n-1], p) <= 0 {
		n--
	}
	h.hull = append(h.hull[:n], p)
}

// quickhull divides at the point farthest from the chord (Eddy 1977, Bykat 1978).
type quickhull struct {
	points, found []place
	last          chain
}

func (h *quickhull) find(dst []int32, c geom.Cloud[float32]) []int32 {
	h.points = places(h.points, c)
	if len(h.points) == 0 {
		return dst
	}
	byPlace := func(a, b place) int { return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y)) }
	left, right := slices.MinFunc(h.points, byPlace), slices.MaxFunc(h.points, byPlace)
	h.found = append(h.found[:0], left, right)
	above, rest := beyond(h.points, left, right)
	h.divide(above, left, right)
	below, _ := beyond(rest, right, left)
	h.divide(below, right, left)
	for _, p := range h.last.of(h.found) { // rounded distances may have let a point on an edge in
		dst = append(dst, p.i)
	}
	return dst
}

// beyond divides points, in place, into those on the left of a to b and the others.
func beyond(points []place, a, b place) (left, rest []place) {
	ux, uy := float64(b.x)-float64(a.x), float64(b.y)-float64(a.y)
	n := 0
	for k, p := range points {
		d := ux*(float64(p.y)-float64(a.y)) - uy*(float64(p.x)-float64(a.x))
		if d > 0 || d > -1e-12*(ux*ux+uy*uy) && turn(a, b, p) > 0 {
			points[n], points[k] = points[k], points[n]
			n++
		}
	}
	return points[:n], points[n:]
}

func (h *quickhull) divide(points []place, a, b place) {
	if len(points) == 0 {
		return
	}
	ux, uy := float64(b.x)-float64(a.x), float64(b.y)-float64(a.y)
	far, most := points[0], math.Inf(-1)
	for _, p := range points {
		if d := ux*(float64(p.y)-float64(a.y)) - uy*(float64(p.x)-float64(a.x)); d > most {
			far, most = p, d
		}
	}
	h.found = append(h.found, far)
	first, rest := beyond(points, a, far)
	h.divide(first, a, far)
	second, _ := beyond(rest, far, b)
	h.divide(second, far, b)
}

// chan96 is Chan's algorithm ("Optimal output-sensitive convex hull algorithms in
// two and three dimensions", 1996): hulls of groups, wrapped; with his refinement
// that a round forgets the points that its groups' hulls have dropped.
type chan96 struct {
	points, corners, hull []place
	starts, at            []int32
	small                 chain
}

func (h *chan96) find(dst []int32, c geom.Cloud[float32]) []int32 {
	h.points = places(h.points, c)
	if len(h.points) == 0 {
		return dst
	}
	for size := 16; ; size = min(size*size, len(h.points)) {
		h.group(size)
		if h.wrap(size) || size >= len(h.points) {
			break
		}
		h.points = append(h.points[:0], h.corners...)
	}
	for _, p := range h.hull {
		dst = append(dst, p.i)
	}
	return dst
}

func (h *chan96) group(size int) {
	h.corners, h.starts = h.corners[:0], append(h.starts[:0], 0)
	for from := 0; from < len(h.points); from += size {
		h.corners = append(h.corners, h.small.of(h.points[from:min(from+size, len(h.points))])...)
		h.starts = append(h.starts, int32(len(h.corners)))
	}
	h.at = append(h.at[:0], h.starts[:len(h.starts)-1]...)
}

// wrap goes around the groups' hulls, at most steps far, and tells whether it
// came back. Tangents turn one way only, so each group keeps its place.
func (h *chan96) wrap(steps int) bool {
	p := h.corners[0]
	for _, q := range h.corners {
		if q.x < p.x || q.x == p.x && (q.y < p.y || q.y == p.y && q.i < p.i) {
			p = q
		}
	}
	h.hull = append(h.hull[:0], p)
	for range max(steps, len(h.starts)) {
		best, any := p, false
		for g := range h.at {
			if q, ok := h.tangent(g, p); ok && (!any || before(p, q, best)) {
				best, any = q, true
			}
		}
		if !any || best.x == h.hull[0].x && best.y == h.hull[0].y {
			return true
		}
		h.hull = append(h.hull, best)
		p = best
	}
	return false
}

// before tells whether a comes before b for who wraps counter-clockwise from p:
// to the right of it, or behind it on the same line.
func before(p, a, b place) bool {
	switch turn(p, b, a) {
	case -1:
		return true
	case 1:
		return false
	}
	da, db := farFrom(p, a), farFrom(p, b)
	return da > db || da == db && a.i < b.i
}

func farFrom(p, q place) float64 {
	return max(math.Abs(float64(q.x)-float64(p.x)), math.Abs(float64(q.y)-float64(p.y)))
}

// tangent moves group g's place on to its tangent from p.
func (h *chan96) tangent(g int, p place) (place, bool) {
	corners := h.corners[h.starts[g]:h.starts[g+1]]
	k := int(h.at[g] - h.starts[g])
	for range corners {
		q, next := corners[k], corners[(k+1)%len(corners)]
		same := q.x == p.x && q.y == p.y
		if !same && (next.x == p.x && next.y == p.y || !before(p, next, q)) {
			break
		}
		k = (k + 1) % len(corners)
	}
	h.at[g] = h.starts[g] + int32(k)
	q := corners[k]
	return q, q.x != p.x || q.y != p.y
}
