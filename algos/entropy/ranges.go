package entropy

import (
	"math"
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/internal/kernel"
)

// allChords is the largest number of hull vertices for which every pair of witnesses
// has a range. With more vertices, pairs 1, 2, 4, ... apart and the two ends have.
const allChords = 12

// pair names two vertices of a chain by their places, the left vertex first.
type pair struct{ a, b int32 }

// appendChords appends the pairs of a chain of h vertices that have ranges: all pairs
// for at most limit vertices. The only vertex of a cloud in a vertical line is paired
// with itself.
func appendChords(dst []pair, h, limit int) []pair {
	if h == 1 {
		return append(dst, pair{0, 0})
	}
	if h <= limit {
		for i := range h {
			for j := i + 1; j < h; j++ {
				dst = append(dst, pair{int32(i), int32(j)})
			}
		}
		return dst
	}
	whole := false
	for step := 1; step < h; step *= 2 {
		for i := 0; i+step < h; i++ {
			dst = append(dst, pair{int32(i), int32(i + step)})
		}
		whole = step == h-1
	}
	if !whole {
		dst = append(dst, pair{0, int32(h - 1)})
	}
	return dst
}

// upperChain reorders list, indices into p, to the vertices of their upper
// hull from left to right, and returns it.
func upperChain(list []int32, p *points) []int32 {
	x, y := p[0], p[1]
	slices.SortFunc(list, func(i, j int32) int {
		switch {
		case x[i] != x[j]:
			return sign(x[i] - x[j])
		case y[i] != y[j]:
			return sign(y[i] - y[j])
		}
		return int(i) - int(j)
	})
	top := 0
	for _, i := range list {
		if top > 0 && x[list[top-1]] == x[i] {
			if y[list[top-1]] == y[i] {
				continue // the equal point with the lower index stays
			}
			top--
		}
		for top >= 2 && turn(p, list[top-2], list[top-1], i) >= 0 {
			top--
		}
		list[top] = i
		top++
	}
	return list[:top]
}

// turn returns the exact sign of the turn a, b, c.
func turn(p *points, a, b, c int32) int {
	x, y := p[0], p[1]
	return exact.Orient2D(x[a], y[a], x[b], y[b], x[c], y[c])
}

func sign(v float64) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

// plane is the function n·point + c, positive outside of a range.
type plane struct {
	n [3]float64
	c float64
}

// table writes the planes of ranges in the layout of kernel.Soft.
type table struct {
	soft   *kernel.Soft
	ranges int
}

// reset prepares soft for ranges with the given number of planes each.
func (t *table) reset(dims, planes int) {
	t.ranges = 0
	t.soft.Dims, t.soft.Planes, t.soft.Table = dims, planes, t.soft.Table[:0]
}

// add appends a range.
func (t *table) add(planes ...plane) {
	const lanes = kernel.SoftLanes
	s := t.soft
	lane := t.ranges % lanes
	size := (s.Dims + 1) * lanes
	if lane == 0 {
		for range s.Planes {
			for range s.Dims * lanes {
				s.Table = append(s.Table, 0)
			}
			for range lanes {
				s.Table = append(s.Table, math.Inf(1))
			}
		}
	}
	block := s.Table[len(s.Table)-s.Planes*size:]
	for j, p := range planes {
		for d := range s.Dims {
			block[j*size+d*lanes+lane] = p.n[d]
		}
		block[j*size+s.Dims*lanes+lane] = p.c
	}
	t.ranges++
}

// boxes makes the ranges of maxima: the box below each witness. Boxes are ordered by
// x, so that ranges with many common points stand side by side.
func (t *table) boxes(u *points, dims int, witnesses []int32) {
	slices.SortFunc(witnesses, func(i, j int32) int {
		if u[0][i] != u[0][j] {
			return sign(u[0][i] - u[0][j])
		}
		return int(i) - int(j)
	})
	t.reset(dims, dims)
	var p [3]plane
	for k, w := range witnesses {
		if k > 0 && witnesses[k-1] == w {
			continue
		}
		for d := range dims {
			p[d] = plane{c: -u[d][w]}
			p[d].n[d] = 1
		}
		t.add(p[:dims]...)
	}
}

// chords makes the ranges of an upper hull below the chords of a chain.
func (t *table) chords(u *points, chain []int32, pairs []pair) {
	t.reset(2, 3)
	for _, c := range pairs {
		a, b := chain[c.a], chain[c.b]
		ax, ay, bx, by := u[0][a], u[1][a], u[0][b], u[1][b]
		nx, ny := -(by - ay), bx-ax
		if l := math.Hypot(nx, ny); l > 0 {
			nx, ny = nx/l, ny/l
		} else {
			nx, ny = 0, 1
		}
		t.add(plane{[3]float64{-1}, ax}, plane{[3]float64{1}, -bx}, plane{[3]float64{nx, ny}, -(nx*ax + ny*ay)})
	}
}

// cones makes the ranges of a hull in space.
func (t *table) cones(u *points, fans []cone) {
	t.reset(3, 4)
	for k := range fans {
		corners := fans[k].corners(u)
		var p [4]plane
		solid := true
		for f := range p {
			p[f] = facing(corners[(f+1)%4], corners[(f+2)%4], corners[(f+3)%4], corners[f])
			solid = solid && p[f].n != [3]float64{}
		}
		if solid {
			t.add(p[:]...)
		}
	}
}

// facing returns the plane through a, b and c that is negative at d. The normal is 0
// if the four points are in one plane as far as rounding shows.
func facing(a, b, c, d [3]float64) (p plane) {
	e, f := minus(b, a), minus(c, a)
	n := [3]float64{e[1]*f[2] - e[2]*f[1], e[2]*f[0] - e[0]*f[2], e[0]*f[1] - e[1]*f[0]}
	l := math.Sqrt(dot(n, n))
	side := dot(n, minus(d, a))
	if l == 0 || math.Abs(side) <= flat*l {
		return plane{}
	}
	if side > 0 {
		l = -l
	}
	for k := range n {
		p.n[k] = n[k] / l
	}
	p.c = -dot(p.n, a)
	return p
}

func minus(a, b [3]float64) [3]float64 { return [3]float64{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

func dot(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }
