package entropy

import (
	"slices"

	"entropipe/algos/exact"
)

// cone is a tetrahedron: a triangle of three points and an apex, which is another
// point or, if apex is negative, the center.
type cone struct {
	a, b, c, apex int32
	center        [3]float64 // the center in coordinates of the cloud
	unit          [3]float64 // the center in the unit box
}

// corners returns the four corners in the unit box.
func (k *cone) corners(u *points) [4][3]float64 {
	o := k.unit
	if k.apex >= 0 {
		o = u.at(k.apex)
	}
	return [4][3]float64{u.at(k.a), u.at(k.b), u.at(k.c), o}
}

func (p *points) at(i int32) [3]float64 { return [3]float64{p[0][i], p[1][i], p[2][i]} }

// face is a triangle of a surface, counter-clockwise seen from outside.
type face [3]int32

// solid computes convex hulls of few points in space, one point after the other.
type solid struct {
	faces []face
	edges map[[2]int32]struct{} // the edges of the faces that the new point sees
}

// build computes the faces of the hull of the points in list. It returns false where
// the points are in one plane, and have no faces. It does not join faces in one plane,
// and points inside a facet may be corners of its faces. Cost: O(m²) for m points.
func (s *solid) build(p *points, list []int32) bool {
	s.faces = s.faces[:0]
	first, ok := simplex(p, list)
	if !ok {
		return false
	}
	if s.edges == nil {
		s.edges = map[[2]int32]struct{}{}
	}
	for k := range first {
		f := face{first[(k+1)%4], first[(k+2)%4], first[(k+3)%4]}
		if side(p, f, p.at(first[k])) > 0 {
			f[0], f[1] = f[1], f[0]
		}
		s.faces = append(s.faces, f)
	}
	for _, i := range list {
		s.insert(p, i)
	}
	return true
}

// insert replaces the faces that point i sees by faces from their border to i.
func (s *solid) insert(p *points, i int32) {
	clear(s.edges)
	at, kept := p.at(i), s.faces[:0]
	for _, f := range s.faces {
		if side(p, f, at) <= 0 {
			kept = append(kept, f)
			continue
		}
		for k := range f {
			s.edges[[2]int32{f[k], f[(k+1)%3]}] = struct{}{}
		}
	}
	s.faces = kept
	base := len(kept)
	for e := range s.edges {
		if _, inner := s.edges[[2]int32{e[1], e[0]}]; !inner {
			s.faces = append(s.faces, face{e[0], e[1], i})
		}
	}
	// A map has no order, but the order of faces decides ties among ranges.
	slices.SortFunc(s.faces[base:], func(f, g face) int { return slices.Compare(f[:], g[:]) })
}

// side returns the exact side of the face's plane on which a place lies: +1 outside.
func side(p *points, f face, at [3]float64) int {
	x, y, z := p[0], p[1], p[2]
	a, b, c := f[0], f[1], f[2]
	return exact.Orient3D(x[a], y[a], z[a], x[b], y[b], z[b], x[c], y[c], z[c], at[0], at[1], at[2])
}

// simplex returns four points of list that are not in one plane. ok is false where
// there are none.
func simplex(p *points, list []int32) (s [4]int32, ok bool) {
	found := 0
	for _, i := range list {
		switch {
		case found == 0,
			found == 1 && p.at(i) != p.at(s[0]),
			found == 2 && !straight(p, s[0], s[1], i),
			found == 3 && side(p, face{s[0], s[1], s[2]}, p.at(i)) != 0:
			s[found] = i
			found++
		}
		if found == 4 {
			return s, true
		}
	}
	return s, false
}

// straight reports whether three points are on one line, exactly: in all three
// projections.
func straight(p *points, a, b, c int32) bool {
	for k := range 3 {
		x, y := p[k], p[(k+1)%3]
		if exact.Orient2D(x[a], y[a], x[b], y[b], x[c], y[c]) != 0 {
			return false
		}
	}
	return true
}

// fans makes the ranges of a hull in space: for nested sets of vertices, each half of
// the last set, the tetrahedra from a center to the faces of the set's hull.
type fans struct {
	solid solid
	order []int32
	far   []float64 // for each vertex, its squared distance to the vertices before it in the order
	cones []cone
}

// build sets cones to the ranges for the vertices in list. It orders the vertices so
// that each is as far as possible from the vertices before it, and halves them from
// the back.
func (s *fans) build(p, u *points, b *Box, list []int32) {
	s.cones = s.cones[:0]
	s.spread(u, list)
	for m := len(s.order); m >= 4; m /= 2 {
		s.level(p, u, b, s.order[:m])
	}
}

// level appends the tetrahedra of one set of vertices. Their common corner is the
// rounded mean of the vertices if that is strictly inside the hull, else a vertex.
func (s *fans) level(p, u *points, b *Box, list []int32) {
	if !s.solid.build(p, list) {
		return
	}
	o := cone{apex: -1}
	for k := range o.center {
		for _, i := range list {
			o.center[k] += p[k][i] / float64(len(list))
		}
		lo, size, half := b.scale(k)
		if size > 0 {
			o.unit[k] = (o.center[k]*half - lo) / size
		}
	}
	if !s.solid.holds(p, o.center) {
		o.apex = s.solid.faces[0][0]
	}
	for _, f := range s.solid.faces {
		if o.apex < 0 || f[0] != o.apex && f[1] != o.apex && f[2] != o.apex {
			s.cones = append(s.cones, cone{f[0], f[1], f[2], o.apex, o.center, o.unit})
		}
	}
}

// holds reports whether a place is strictly inside the surface.
func (s *solid) holds(p *points, at [3]float64) bool {
	for _, f := range s.faces {
		if at[0]-at[0] != 0 || at[1]-at[1] != 0 || at[2]-at[2] != 0 || side(p, f, at) >= 0 {
			return false
		}
	}
	return true
}

// spread orders vertices: the first of list, then always the vertex farthest from the
// vertices before it.
func (s *fans) spread(u *points, list []int32) {
	s.order = append(s.order[:0], list...)
	s.far = s.far[:0]
	for range list {
		s.far = append(s.far, 8)
	}
	for done := range s.order {
		best := done
		for k := done; k < len(s.order); k++ {
			if done > 0 {
				d := minus(u.at(s.order[k]), u.at(s.order[done-1]))
				s.far[k] = min(s.far[k], dot(d, d))
			}
			if s.far[k] > s.far[best] {
				best = k
			}
		}
		s.order[done], s.order[best] = s.order[best], s.order[done]
		s.far[done], s.far[best] = s.far[best], s.far[done]
	}
}
