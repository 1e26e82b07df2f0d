package hull

import (
	"math"

	"entropipe/algos/exact"
)

// simplex returns the dimension of the candidates, -1 to 3, and dim+1 candidates that
// span it. The candidates are far apart as far as rounding shows.
func (p *polytope) simplex() (s [4]int32, dim int) {
	if len(p.points) == 0 {
		return s, -1
	}
	p.measure(0)
	s[0], s[1] = p.ends()
	a, b := &p.points[s[0]], &p.points[s[1]]
	if samePlace(a, b) {
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

// ends returns the lexicographically least and greatest candidates, the first where
// several are equal.
func (p *polytope) ends() (least, greatest int32) {
	for i := range p.points {
		c := &p.points[i]
		if precedes(c, &p.points[least]) {
			least = int32(i)
		}
		if precedes(&p.points[greatest], c) {
			greatest = int32(i)
		}
	}
	return least, greatest
}

// measure updates the box of all candidates; from is the first new candidate.
func (p *polytope) measure(from int) {
	if from == 0 {
		p.low, p.high = p.points[0].coordinates(), p.points[0].coordinates()
	}
	low, high := p.low, p.high
	for i := range p.points[from:] {
		c := &p.points[from+i]
		low[0], high[0] = min(low[0], c.x), max(high[0], c.x)
		low[1], high[1] = min(low[1], c.y), max(high[1], c.y)
		low[2], high[2] = min(low[2], c.z), max(high[2], c.z)
	}
	p.low, p.high = low, high
	for k := range low {
		p.extent[k] = high[k] - low[k]
	}
}

// farthest returns the candidate with the largest measure if that candidate is fit.
// Measures are rounded, so it returns the first fit candidate otherwise.
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

// precedes reports whether a comes before b in lexicographic order; -0 equals 0.
func precedes(a, b *corner) bool {
	if a.x != b.x {
		return a.x < b.x
	}
	if a.y != b.y {
		return a.y < b.y
	}
	return a.z < b.z
}

func samePlace(a, b *corner) bool { return a.x == b.x && a.y == b.y && a.z == b.z }

// collinear reports whether three points are on one line, exactly: in all three
// projections.
func collinear(a, b, c *corner) bool {
	return exact.Orient2D(a.x, a.y, b.x, b.y, c.x, c.y) == 0 &&
		exact.Orient2D(a.y, a.z, b.y, b.z, c.y, c.z) == 0 &&
		exact.Orient2D(a.z, a.x, b.z, b.x, c.z, c.x) == 0
}

func coplanar(a, b, c, d *corner) bool {
	return exact.Orient3D(a.x, a.y, a.z, b.x, b.y, b.z, c.x, c.y, c.z, d.x, d.y, d.z) == 0
}
