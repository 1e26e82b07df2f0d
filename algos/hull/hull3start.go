package hull

import (
	"math"

	"entropipe/algos/exact"
)

// simplex returns the dimension of the candidates, and as many of them, plus
// one, as span it: far apart, if rounding does not hide how far.
func (p *polytope) simplex() (s [4]int32, dim int) {
	if len(p.points) == 0 {
		return s, -1
	}
	s[0], s[1] = p.ends()
	a, b := &p.points[s[0]], &p.points[s[1]]
	if equal(a, b) {
		return s, 0
	}
	var off func(c *corner) float64
	ux, uy, uz := b.x-a.x, b.y-a.y, b.z-a.z
	off = func(c *corner) float64 {
		vx, vy, vz := c.x-a.x, c.y-a.y, c.z-a.z
		return math.Abs(uy*vz-uz*vy) + math.Abs(uz*vx-ux*vz) + math.Abs(ux*vy-uy*vx)
	}
	var found bool
	if s[2], found = p.farthest(off, func(c *corner) bool { return !collinear(a, b, c) }); !found {
		return s, 1
	}
	c := &p.points[s[2]]
	wx, wy, wz := c.x-a.x, c.y-a.y, c.z-a.z
	nx, ny, nz := uy*wz-uz*wy, uz*wx-ux*wz, ux*wy-uy*wx
	off = func(d *corner) float64 {
		return math.Abs(nx*(d.x-a.x) + ny*(d.y-a.y) + nz*(d.z-a.z))
	}
	if s[3], found = p.farthest(off, func(d *corner) bool { return !coplanar(a, b, c, d) }); !found {
		return s, 2
	}
	return s, 3
}

// ends returns the lexicographically least and greatest candidates, of equal
// ones the first, and measures the extent on the way.
func (p *polytope) ends() (least, greatest int32) {
	low := p.points[0]
	high := low
	for i := range p.points {
		c := &p.points[i]
		if before(c, &p.points[least]) {
			least = int32(i)
		}
		if before(&p.points[greatest], c) {
			greatest = int32(i)
		}
		low.x, low.y, low.z = min(low.x, c.x), min(low.y, c.y), min(low.z, c.z)
		high.x, high.y, high.z = max(high.x, c.x), max(high.y, c.y), max(high.z, c.z)
	}
	p.extent = [3]float64{high.x - low.x, high.y - low.y, high.z - low.z}
	return least, greatest
}

// farthest returns the candidate with the largest measure, if that is fit, or
// else, since measures are rounded, the first fit one.
func (p *polytope) farthest(measure func(*corner) float64, fit func(*corner) bool) (at int32, found bool) {
	best := 0.0
	for i := range p.points {
		if m := measure(&p.points[i]); m > best {
			at, best = int32(i), m
		}
	}
	if best > 0 && fit(&p.points[at]) {
		return at, true
	}
	for i := range p.points {
		if fit(&p.points[i]) {
			return int32(i), true
		}
	}
	return 0, false
}

// before is the lexicographic order of places; -0 equals 0.
func before(a, b *corner) bool {
	if a.x != b.x {
		return a.x < b.x
	}
	if a.y != b.y {
		return a.y < b.y
	}
	return a.z < b.z
}

func equal(a, b *corner) bool { return a.x == b.x && a.y == b.y && a.z == b.z }

// collinear holds for three points on one line: in all three projections.
func collinear(a, b, c *corner) bool {
	return exact.Orient2D(a.x, a.y, b.x, b.y, c.x, c.y) == 0 &&
		exact.Orient2D(a.y, a.z, b.y, b.z, c.y, c.z) == 0 &&
		exact.Orient2D(a.z, a.x, b.z, b.x, c.z, c.x) == 0
}

func coplanar(a, b, c, d *corner) bool {
	return exact.Orient3D(a.x, a.y, a.z, b.x, b.y, b.z, c.x, c.y, c.z, d.x, d.y, d.z) == 0
}
