package hull

import (
	"math"
	"math/bits"

	"entropipe/algos/exact"
)

// polytope is a convex polyhedron that grows by one point at a time, until no
// candidate is outside.
//
// A point sees a face when it lies strictly on the outer side of the face's plane.
// A point in the plane does not see the face. So a facet may consist of several
// faces in exactly one plane, and vertices may end up inside a facet or an edge; the
// output drops such vertices. No face is ever degenerate: a point on the line
// through an edge of the horizon would lie in the plane of the visible face there,
// but it sees that face.
//
// Each candidate outside is on the list of one face that it sees. When a point is
// inserted, the candidates on the lists of the faces that vanish are tested against
// the new faces only. That is enough: let q see the vanished face f, and let o be a
// point inside f, hence inside the new polytope if that has grown. The segment from
// o to q stays above the plane of f, so it cannot leave through an old face, which
// lies below. If it leaves the polytope at all, it leaves strictly through a new
// face, and q sees that face.
type polytope struct {
	points  []corner
	faces   []face
	free    []int32 // vanished faces, to be used again
	pending []int32 // faces that had a list; some vanished or were used again since
	round   int32   // number of the insertion

	visible []int32
	horizon []border
	edge    []int32 // for each corner, the edge of the horizon that begins there
	fan     []int32 // the new faces, in order around the new vertex

	seed     [4]int32
	order    []int32
	patience int64

	touched   int64      // number of tests of a point against a plane
	low, high [3]float64 // the box of all candidates
	extent    [3]float64 // high - low
	surface
}

// corner is a candidate.
type corner struct {
	x, y, z float64
	index   int32 // index in the cloud; for a vertex, the lowest index at its place
	next    int32 // the next candidate on the same list, or none
	on      int32 // the face whose list has the candidate, or none
}

func (c *corner) coordinates() [3]float64 { return [3]float64{c.x, c.y, c.z} }

// face is a triangle with its plane. A point q sees the face if n·(q-a) > 0; a
// floating-point value above err proves that.
type face struct {
	nx, ny, nz float64
	ax, ay, az float64
	err        float64
	far        float64  // n·(q-a) of the first candidate on the list, the largest
	v          [3]int32 // corners, counter-clockwise seen from outside
	adj        [3]int32 // adj[i] is the face beyond the edge from v[i] to v[i+1]
	list       int32    // first candidate on the list, or none
	round      int32    // number of the last insertion that tested the face
	seen       bool     // whether that insertion's point sees the face
	alive      bool
}

// border is an edge of the horizon, from a to b as in the visible face, with the
// face beyond and the slot of the edge in that face.
type border struct{ a, b, face, slot int32 }

const none = -1

func (p *polytope) reset() {
	p.points, p.faces, p.free, p.pending = p.points[:0], p.faces[:0], p.free[:0], p.pending[:0]
	p.round, p.touched, p.patience = 0, 0, patience
}

// patience bounds the tests of points against planes: patience times the logarithm
// of the number of candidates, for each candidate. Ordinary clouds need at most a
// third of that.
const patience = 12

// grow inserts candidates until none is outside, the farthest candidate of a list
// first: nearly all inserted points are then vertices, and soon hide the others. A
// contrived cloud can make this order slow; a random order is fast for every cloud.
func (p *polytope) grow() {
	p.edge = resize(p.edge, len(p.points))
	limit := p.touched + p.patience*int64((len(p.points)+64)*bits.Len(uint(len(p.points))))
	for len(p.pending) > 0 {
		f := p.pending[len(p.pending)-1]
		p.pending = p.pending[:len(p.pending)-1]
		if p.faces[f].alive && p.faces[f].list != none {
			p.insert(p.faces[f].list, f)
		}
		if p.touched > limit {
			p.growShuffled()
		}
	}
}

// growShuffled begins again with the simplex, and inserts the candidates in
// pseudo-random order. A candidate then changes its list only when it sees new
// faces, an expected O(log n) times (Clarkson and Shor 1989), and assign takes
// logarithmic time.
func (p *polytope) growShuffled() {
	p.faces, p.free = p.faces[:0], p.free[:0]
	p.start(p.seed)
	p.order = resize(p.order, len(p.points))
	state := uint64(1)
	for i := range p.order {
		state = state*6364136223846793005 + 1442695040888963407 // Knuth's generator
		k := int(state >> 33 * uint64(i+1) >> 31)
		p.order[i] = p.order[k]
		p.order[k] = int32(i)
	}
	for _, q := range p.order {
		if f := p.points[q].on; f != none {
			p.insert(q, f)
		}
	}
	p.pending = p.pending[:0]
}

// start makes the faces of simplex s, and puts all candidates on their lists.
func (p *polytope) start(s [4]int32) {
	p.seed = s
	if p.orient(s[0], s[1], s[2], s[3]) > 0 {
		s[1], s[2] = s[2], s[1]
	}
	// The fourth point is now below the first three.
	for _, v := range [4][3]int32{{s[0], s[1], s[2]}, {s[1], s[0], s[3]}, {s[2], s[1], s[3]}, {s[0], s[2], s[3]}} {
		p.addFace(v[0], v[1], v[2])
	}
	for f, adj := range [4][3]int32{{1, 2, 3}, {0, 3, 2}, {0, 1, 3}, {0, 2, 1}} {
		p.faces[f].adj = adj
	}
	p.fan = append(p.fan[:0], 0, 1, 2, 3)
	for q := range p.points {
		p.points[q].on = none
		p.assign(int32(q))
	}
	p.pend()
}

// extend raises the error bounds of all faces to the differences of the candidates
// from base on.
func (p *polytope) extend(base int) {
	p.measure(base)
	for i := range p.faces {
		if p.faces[i].alive {
			p.fit(&p.faces[i])
		}
	}
}

// pendAll adds all faces with a list to the pending faces.
func (p *polytope) pendAll() {
	for i := range p.faces {
		if p.faces[i].alive && p.faces[i].list != none {
			p.pending = append(p.pending, int32(i))
		}
	}
}

// orient returns the sign of the volume of four candidates.
func (p *polytope) orient(a, b, c, d int32) int {
	A, B, C, D := &p.points[a], &p.points[b], &p.points[c], &p.points[d]
	return exact.Orient3D(A.x, A.y, A.z, B.x, B.y, B.z, C.x, C.y, C.z, D.x, D.y, D.z)
}

// addFace makes a face without neighbours, and returns its number.
func (p *polytope) addFace(a, b, c int32) int32 {
	i := int32(len(p.faces))
	if n := len(p.free); n > 0 {
		i, p.free = p.free[n-1], p.free[:n-1]
	} else {
		p.faces = append(p.faces, face{})
	}
	p.faces[i] = face{v: [3]int32{a, b, c}, list: none, alive: true}
	p.fit(&p.faces[i])
	return i
}

// fit computes the plane of a face, and its error bound: that of the filter of
// exact.Orient3D for the largest differences of candidates.
func (p *polytope) fit(f *face) {
	a, b, c := &p.points[f.v[0]], &p.points[f.v[1]], &p.points[f.v[2]]
	bx, by, bz := b.x-a.x, b.y-a.y, b.z-a.z
	cx, cy, cz := c.x-a.x, c.y-a.y, c.z-a.z
	yz, zy := float64(by*cz), float64(bz*cy)
	zx, xz := float64(bz*cx), float64(bx*cz)
	xy, yx := float64(bx*cy), float64(by*cx)
	permanent := float64(p.extent[0]*(math.Abs(yz)+math.Abs(zy))) +
		float64(p.extent[1]*(math.Abs(zx)+math.Abs(xz))) +
		float64(p.extent[2]*(math.Abs(xy)+math.Abs(yx)))
	f.nx, f.ny, f.nz = yz-zy, zx-xz, xy-yx
	f.ax, f.ay, f.az = a.x, a.y, a.z
	f.err = float64(exact.Orient3DError*permanent) + exact.Orient3DLost
	if !(p.extent[0]+p.extent[1]+p.extent[2] < exact.Orient3DLimit) {
		f.err = math.Inf(1)
	}
}

// sees reports whether candidate q sees face f, and returns n·(q-a), which grows
// with the distance of q from the plane of f.
func (p *polytope) sees(f *face, q int32) (far float64, yes bool) {
	p.touched++
	c := &p.points[q]
	far = float64(f.nx*(c.x-f.ax)) + float64(f.ny*(c.y-f.ay)) + float64(f.nz*(c.z-f.az))
	if far > f.err {
		return far, true
	}
	if far < -f.err {
		return far, false
	}
	return far, p.seesExactly(f, q)
}

// seesExactly is sees in exact arithmetic, a function of its own so that sees stays
// small. seesExactly or insert drops every candidate at the place of a vertex.
func (p *polytope) seesExactly(f *face, q int32) bool {
	return !p.touches(f, q) && p.orient(f.v[0], f.v[1], f.v[2], q) > 0
}

// touches reports whether q equals a corner of f, and then gives the corner the
// lower index of the two.
func (p *polytope) touches(f *face, q int32) bool {
	for _, v := range f.v {
		if p.merge(v, q) {
			return true
		}
	}
	return false
}

// merge reports whether candidate q equals vertex v, and then gives v the lower
// index of the two.
func (p *polytope) merge(v, q int32) bool {
	a, b := &p.points[v], &p.points[q]
	if !samePlace(a, b) {
		return false
	}
	a.index = min(a.index, b.index)
	return true
}

// insert makes a vertex of q, which sees face f.
func (p *polytope) insert(q, f int32) {
	p.look(q, f)
	p.cone(q)
	for _, f := range p.visible {
		for r := p.faces[f].list; r != none; {
			next := p.points[r].next
			p.points[r].on = none
			if !p.merge(q, r) {
				p.assign(r)
			}
			r = next
		}
		p.faces[f].alive = false
	}
	p.free = append(p.free, p.visible...)
	p.pend()
}

// look finds the faces that q sees, beginning with f, and the horizon around them.
// Because the polytope is convex, these faces are connected, and the horizon passes
// each of its vertices once.
func (p *polytope) look(q, f int32) {
	p.round++
	p.horizon = p.horizon[:0]
	p.visible = append(p.visible[:0], f)
	p.faces[f].round, p.faces[f].seen = p.round, true
	for k := 0; k < len(p.visible); k++ {
		at := p.visible[k]
		for i := range 3 {
			beyond := p.faces[at].adj[i]
			g := &p.faces[beyond]
			if g.round != p.round {
				g.round = p.round
				if _, g.seen = p.sees(g, q); g.seen {
					p.visible = append(p.visible, beyond)
				}
			}
			if g.seen {
				continue
			}
			a, b := p.faces[at].v[i], p.faces[at].v[(i+1)%3]
			slot := int32(0)
			for g.v[slot] != b {
				slot++
			}
			p.edge[a] = int32(len(p.horizon))
			p.horizon = append(p.horizon, border{a, b, beyond, slot})
		}
	}
}

// cone makes the faces between q and the edges of the horizon, in order around q.
func (p *polytope) cone(q int32) {
	p.fan = p.fan[:0]
	at := p.horizon[0]
	for range p.horizon {
		f := p.addFace(at.a, at.b, q)
		p.fan = append(p.fan, f)
		p.faces[f].adj[0] = at.face
		p.faces[at.face].adj[at.slot] = f
		at = p.horizon[p.edge[at.b]]
	}
	last := p.fan[len(p.fan)-1]
	for _, f := range p.fan {
		p.faces[f].adj[2] = last
		p.faces[last].adj[1] = f
		last = f
	}
}

// resize returns a slice of length n, in the memory of s if that is enough. Its
// contents are undefined.
func resize[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	return s[:n]
}
