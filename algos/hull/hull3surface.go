package hull

import (
	"slices"

	"entropipe/algos/internal/kernel"
)

const radix3From = 1024 // vertices; below, a comparison sort is faster

// surface is the working memory of the output.
type surface struct {
	facet   []int32 // for each face, the number of its facet, or none
	members []int32 // the faces of one facet
	ring    []int32 // the corners of one facet, in order
	corners []int32 // all triangles, three candidates each
	rank    []int32 // for each candidate, its place among the vertices, or none
	first   []int32 // for each vertex, the end of the triangles that begin with it
	keys    []uint64
	spare   []uint64
}

// appendSurface appends the vertices and the triangles of a finished polytope.
func (p *polytope) appendSurface(vertices, faces []int32) (v, f []int32) {
	p.triangulate()
	return p.appendCanonical(vertices, faces)
}

// triangulate fills corners with the triangles of all facets.
func (p *polytope) triangulate() {
	p.corners = p.corners[:0]
	p.facet = resize(p.facet, len(p.faces))
	for f := range p.facet {
		p.facet[f] = none
	}
	for f := range p.faces {
		if !p.faces[f].alive || p.facet[f] != none {
			continue
		}
		if p.flood(int32(f)) == 1 {
			p.corners = append(p.corners, p.faces[f].v[:]...)
			continue
		}
		p.walkRing(int32(f))
		for k := 2; k < len(p.ring); k++ {
			p.corners = append(p.corners, p.ring[0], p.ring[k-1], p.ring[k])
		}
	}
}

// flood gives the faces in one plane with f their facet, f, and returns their number.
func (p *polytope) flood(f int32) (count int) {
	p.facet[f] = f
	p.members = append(p.members[:0], f)
	for ; count < len(p.members); count++ {
		at := p.members[count]
		for i, g := range p.faces[at].adj {
			if p.facet[g] == none && p.level(&p.faces[at], i, &p.faces[g]) {
				p.facet[g] = f
				p.members = append(p.members, g)
			}
		}
	}
	return count
}

// level reports whether g, the face beyond edge i of f, lies in the plane of f.
func (p *polytope) level(f *face, i int, g *face) bool {
	opposite := g.v[0]
	for k := range g.v {
		if g.v[k] != f.v[i] && g.v[k] != f.v[(i+1)%3] {
			opposite = g.v[k]
		}
	}
	c := &p.points[opposite]
	far := float64(f.nx*(c.x-f.ax)) + float64(f.ny*(c.y-f.ay)) + float64(f.nz*(c.z-f.az))
	if far < -f.err {
		return false
	}
	return p.orient(f.v[0], f.v[1], f.v[2], opposite) == 0
}

// walkRing sets ring to the corners of the facet of f, counter-clockwise from the
// lexicographically least corner.
func (p *polytope) walkRing(f int32) {
	first, i := p.boundary(f)
	at := first
	p.ring = p.ring[:0]
	for from := i; ; {
		p.ring = append(p.ring, p.faces[at].v[i])
		// The next edge of the boundary begins where this one ends: turn around that end.
		i = (i + 1) % 3
		for g := p.faces[at].adj[i]; p.facet[g] == f; g = p.faces[at].adj[i] {
			turn := p.faces[at].v[i]
			at, i = g, 0
			for p.faces[at].v[i] != turn {
				i++
			}
		}
		if at == first && i == from {
			break
		}
	}
	p.straighten()
}

// boundary returns an edge on the boundary of the facet of f.
func (p *polytope) boundary(f int32) (at int32, i int) {
	for _, g := range p.members {
		for i, beyond := range p.faces[g].adj {
			if p.facet[beyond] != f {
				return g, i
			}
		}
	}
	panic("hull: a facet without boundary")
}

// straighten drops the corners of the ring on a line with their neighbours, and
// rotates the ring so that its least corner comes first.
func (p *polytope) straighten() {
	n := len(p.ring)
	kept := p.members[:0]
	for k, v := range p.ring {
		a, c := p.ring[(k+n-1)%n], p.ring[(k+1)%n]
		if !collinear(&p.points[a], &p.points[v], &p.points[c]) {
			kept = append(kept, v)
		}
	}
	least := 0
	for k, v := range kept {
		if precedes(&p.points[v], &p.points[kept[least]]) {
			least = k
		}
	}
	p.ring = append(append(p.ring[:0], kept[least:]...), kept[:least]...)
	p.members = kept
}

// appendCanonical appends the vertices, ascending, and the triangles in the order of
// Append.
func (p *polytope) appendCanonical(vertices, faces []int32) (v, f []int32) {
	base := len(vertices)
	vertices = p.appendVertices(vertices)
	local := vertices[base:]
	// Triangles are counted by their first vertex; those with the same first vertex
	// are sorted by the second. A pair of first and second vertex is unique.
	p.first = resize(p.first, len(local)+1)
	clear(p.first)
	t := p.corners
	for k := 0; k < len(t); k += 3 {
		a, b, c := p.rank[t[k]], p.rank[t[k+1]], p.rank[t[k+2]]
		if b < a && b < c {
			a, b, c = b, c, a
		} else if c < a && c < b {
			a, b, c = c, a, b
		}
		t[k], t[k+1], t[k+2] = a, b, c
		p.first[a+1]++
	}
	for i := range local {
		p.first[i+1] += p.first[i]
	}
	p.keys = resize(p.keys, len(t)/3)
	for k := 0; k < len(t); k += 3 {
		at := &p.first[t[k]]
		p.keys[*at] = uint64(t[k+1])<<32 | uint64(t[k+2])
		*at++
	}
	from := int32(0)
	for a := range local {
		run := p.keys[from:p.first[a]]
		from = p.first[a]
		slices.Sort(run)
		for _, e := range run {
			faces = append(faces, local[a], local[e>>32], local[uint32(e)])
		}
	}
	return vertices, faces
}

// appendVertices appends the vertices of the triangles, ascending, and sets their
// ranks.
func (p *polytope) appendVertices(vertices []int32) []int32 {
	p.rank = resize(p.rank, len(p.points))
	for i := range p.rank {
		p.rank[i] = none
	}
	p.keys = p.keys[:0]
	for _, v := range p.corners {
		if p.rank[v] == none {
			p.rank[v] = 0
			p.keys = append(p.keys, uint64(p.points[v].index)<<32|uint64(v))
		}
	}
	if len(p.keys) < radix3From {
		slices.Sort(p.keys)
	} else {
		p.spare = resize(p.spare, len(p.keys))
		p.keys, p.spare = kernel.SortByKey(p.keys, p.spare, kernel.MaxPasses)
	}
	for k, e := range p.keys {
		p.rank[uint32(e)] = int32(k)
		vertices = append(vertices, int32(e>>32))
	}
	return vertices
}
