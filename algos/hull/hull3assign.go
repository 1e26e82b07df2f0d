package hull

import "sort"

// assign puts candidate r on the list of a new face that it sees, if there is one.
func (p *polytope) assign(r int32) {
	if len(p.fan) > fanMost {
		p.assignFar(r)
		return
	}
	c := &p.points[r]
	for k, i := range p.fan {
		f := &p.faces[i]
		// The code of sees, which the compiler does not inline here.
		far := float64(f.nx*(c.x-f.ax)) + float64(f.ny*(c.y-f.ay)) + float64(f.nz*(c.z-f.az))
		if !(far > f.err) && (far < -f.err || !p.seesExactly(f, r)) {
			continue
		}
		p.put(i, r, far)
		p.touched += int64(k + 1)
		return
	}
	p.touched += int64(len(p.fan))
}

// fanMost is the largest number of new faces that assign tries one by one.
const fanMost = 24

// assignFar is assign for many new faces, in logarithmic time. Let the new faces be
// numbered 0 to k-1 around their common vertex p, face i between p and the corners
// u(i) and u(i+1) of the horizon. Seen from p, the u(i) are a convex polygon. Rays
// from u(0) through the other corners divide the region between the polygon's two
// sides at u(0) into wedges, and r sees a face only if it sees the face of its
// wedge. The polygon may have collinear corners, and r may lie in the plane of a
// ray: then r belongs to all wedges there, and if it sees one of their faces, it
// sees that of the first or of the last wedge.
func (p *polytope) assignFar(r int32) {
	k := len(p.fan)
	if p.try(0, r) || p.try(k-1, r) {
		return
	}
	apex, origin := p.faces[p.fan[0]].v[2], p.faces[p.fan[0]].v[0]
	side := func(i int) int { // ascends from <= 0 at i = 1 to >= 0 at i = k-1
		p.touched++
		return p.orient(apex, origin, p.faces[p.fan[i]].v[0], r)
	}
	first := 1 + sort.Search(k-2, func(i int) bool { return side(1+i) >= 0 })
	last := first + sort.Search(k-first, func(i int) bool { return side(first+i) > 0 })
	if first > 1 || last < k {
		_ = p.try(first-1, r) || last > first && p.try(last-1, r)
		return
	}
	// r lies on the line through p and u(0).
	for i := range p.fan {
		if p.try(i, r) {
			return
		}
	}
}

// try puts r on the list of new face i if r sees that face.
func (p *polytope) try(i int, r int32) bool {
	far, yes := p.sees(&p.faces[p.fan[i]], r)
	if yes {
		p.put(p.fan[i], r, far)
	}
	return yes
}

// put makes r the first candidate on the list of face i if it is the farthest,
// otherwise the second.
func (p *polytope) put(i, r int32, far float64) {
	f, c := &p.faces[i], &p.points[r]
	c.on = i
	if f.list == none || far > f.far {
		c.next = f.list
		f.list, f.far = r, far
		return
	}
	first := &p.points[f.list]
	c.next, first.next = first.next, r
}

// pend adds the new faces with a list to the pending faces.
func (p *polytope) pend() {
	for _, i := range p.fan {
		if p.faces[i].list != none {
			p.pending = append(p.pending, i)
		}
	}
}

// search puts q on the list of a face that it sees, if there is one: it tries all
// faces.
func (p *polytope) search(q int32) {
	for i := range p.faces {
		if f := &p.faces[i]; f.alive {
			if far, yes := p.sees(f, q); yes {
				p.put(int32(i), q, far)
				return
			}
		}
	}
}
