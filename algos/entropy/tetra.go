package entropy

import (
	"math"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// packer covers a cloud by tetrahedra with corners at vertices of its hull, one after the
// other, each with as many of the points left as an exchange of corners finds in a
// sample. Every group is legal, so the cover is an upper bound.
type packer struct {
	p        points  // the points left
	vertices points  // corners to choose from
	seen     points  // the sample
	volume   float64 // of the box, which scales rounding
	state    uint64
}

// Limits of a packer.
const (
	packMost    = 24  // tetrahedra
	packCorners = 64  // vertices to choose from
	packSample  = 256 // points by which tetrahedra are compared
	packStarts  = 6   // searches for the first tetrahedron; two for each other
)

// packed returns the entropy of a cover by tetrahedra. vertices are those of a hull in
// space. It is log n where they are in one plane.
func packed[T geom.Float](k *packer, c geom.Cloud[T], vertices []int32) float64 {
	n := c.Len()
	for d, axis := range [][]T{c.X, c.Y, c.Z} {
		k.p[d] = widen(k.p[d], axis, 1)
		k.vertices[d] = k.vertices[d][:0]
		most := min(len(vertices), packCorners)
		for j := range most {
			k.vertices[d] = append(k.vertices[d], k.p[d][vertices[kernel.SampleAt(j, most, len(vertices))]])
		}
	}
	box := BoxOf(c)
	k.volume, k.state = 1, 1
	for d := range 3 {
		k.volume *= box.Hi[d] - box.Lo[d]
	}
	sum := 0.0
	if len(k.vertices[0]) >= 4 {
		for g := range packMost {
			starts := 2
			if g == 0 {
				starts = packStarts
			}
			if q, found := k.choose(starts); found >= 2 {
				sum += mlogm(float64(k.take(&q)))
			}
			if len(k.p[0]) < 2 {
				break
			}
		}
	}
	return math.Log(float64(n)) - sum/float64(n)
}

// next returns the next of a sequence of pseudo-random numbers below n.
func (k *packer) next(n int) int {
	k.state = k.state*6364136223846793005 + 1442695040888963407
	return int((k.state >> 33) % uint64(n))
}

// choose returns the corners of a tetrahedron with many points of a sample, and their
// number. From some corners it exchanges one at a time while that gains.
func (k *packer) choose(starts int) (best [4]int32, most int) {
	n := len(k.p[0])
	size := min(n, packSample)
	for d := range k.seen {
		k.seen[d] = k.seen[d][:0]
		for j := range size {
			k.seen[d] = append(k.seen[d], k.p[d][kernel.SampleAt(j, size, n)])
		}
	}
	h := len(k.vertices[0])
	for range starts {
		var q [4]int32
		for c := range q {
			q[c] = int32(k.next(h))
		}
		held := k.held(&q)
		for again := true; again; {
			again = false
			for c := range q {
				stays := q[c]
				for v := range int32(h) {
					if q[c] = v; v == stays {
						continue
					}
					if now := k.held(&q); now > held {
						held, stays, again = now, v, true
					}
				}
				q[c] = stays
			}
		}
		if held > most {
			best, most = q, held
		}
	}
	return best, most
}

// sides are the planes of a tetrahedron: n·x + c is the volume of a point and a face, in
// sixths, positive inside.
type sides [4]plane

// sidesOf returns the planes for four corners, and false where these are in one plane.
func (k *packer) sidesOf(q *[4]int32) (s sides, ok bool) {
	var v [4][3]float64
	for c, i := range q {
		v[c] = k.vertices.at(i)
	}
	for f := range s {
		a := v[(f+1)%4]
		e, g := minus(v[(f+2)%4], a), minus(v[(f+3)%4], a)
		n := [3]float64{e[1]*g[2] - e[2]*g[1], e[2]*g[0] - e[0]*g[2], e[0]*g[1] - e[1]*g[0]}
		inner := dot(n, minus(v[f], a))
		if !(math.Abs(inner) > 1e-13*k.volume) {
			return s, false
		}
		if inner < 0 {
			n = [3]float64{-n[0], -n[1], -n[2]}
		}
		s[f] = plane{n, -dot(n, a)}
	}
	return s, true
}

// held returns how many points of the sample a tetrahedron holds, but for rounding.
func (k *packer) held(q *[4]int32) (count int) {
	s, ok := k.sidesOf(q)
	if !ok {
		return 0
	}
	x, y, z := k.seen[0], k.seen[1], k.seen[2]
	for i := range x {
		if s[0].n[0]*x[i]+s[0].n[1]*y[i]+s[0].n[2]*z[i]+s[0].c >= 0 &&
			s[1].n[0]*x[i]+s[1].n[1]*y[i]+s[1].n[2]*z[i]+s[1].c >= 0 &&
			s[2].n[0]*x[i]+s[2].n[1]*y[i]+s[2].n[2]*z[i]+s[2].c >= 0 &&
			s[3].n[0]*x[i]+s[3].n[1]*y[i]+s[3].n[2]*z[i]+s[3].c >= 0 {
			count++
		}
	}
	return count
}

// take removes the points in a tetrahedron from those left, and returns their number. A
// point near a side stays unless it is inside exactly.
func (k *packer) take(q *[4]int32) int {
	var v [4][3]float64
	for c, i := range q {
		v[c] = k.vertices.at(i)
	}
	s, ok := k.sidesOf(q)
	if !ok {
		return 0
	}
	// Differences of coordinates are within the box, so a determinant is off by less than
	// 6·2^-50 of its volume.
	unsure := 1e-14 * k.volume
	x, y, z := k.p[0], k.p[1], k.p[2]
	kept := 0
	for i := range x {
		least := math.Inf(1)
		for f := range s {
			a := &v[(f+1)%4]
			n := &s[f].n
			least = min(least, n[0]*(x[i]-a[0])+n[1]*(y[i]-a[1])+n[2]*(z[i]-a[2]))
		}
		if least > unsure || !(least < -unsure) &&
			inTetrahedron(&k.vertices, face{q[0], q[1], q[2]}, v[3], [3]float64{x[i], y[i], z[i]}) {
			continue
		}
		x[kept], y[kept], z[kept] = x[i], y[i], z[i]
		kept++
	}
	for d := range k.p {
		k.p[d] = k.p[d][:kept]
	}
	return len(x) - kept
}
