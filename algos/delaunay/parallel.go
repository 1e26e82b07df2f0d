package delaunay

import "entropipe/algos/internal/kernel"

// pointsAWorker is the number of points that a goroutine is worth starting for.
const pointsAWorker = 8192

// seeds is the number of points for each worker that are inserted before the first
// parallel round, so that borders between zones are short.
const seeds = 256

// reach is the number of triangles that a guarded walk may cross. Most walks cross
// one or two; a walk around a border costs more than leaving its point for later.
const reach = 24

// zones insert points on several cores.
//
// A zone is the set of vertices of one part of the curve. In a parallel round each
// goroutine has a zone and changes only triangles with all vertices in that zone;
// a point whose walk or hole reaches another triangle is left for later. New
// triangles have all vertices in the zone again. A triangle with vertices in
// several zones, or at infinity, stays as it is until the round is over: other
// goroutines read its vertices and its circle. Of its links only a link to a
// triangle of a zone changes, and only that zone reads that link. So nothing needs
// a lock. After the round one goroutine inserts the points left, which lie along
// the borders.
//
// The result is the same for any number of zones, because a triangulation is a
// function of the points alone.
type zones struct {
	main inserter
	each []inserter
	of   []uint8 // the zone of each vertex inserted before the last round
	at   []int32 // for each of these vertices, a triangle of its zone around it, or -1
	left int     // number of points left in all rounds, for tests
}

// maxZones is the largest number of zones that zones.of can name.
const maxZones = 256

// insert inserts all points but the first three; cuts are those of orderer.
func (z *zones) insert(cuts [][lastRound + 1]int) {
	parts := len(cuts) - 1
	for len(z.each) < parts {
		z.each = append(z.each, inserter{})
	}
	for p := range z.each {
		w := &z.each[p]
		*w = w.over(z.main.pts, z.main.orig, z.main.tris, z.main.rounding)
		w.zone, w.guarded, w.reach = int32(p), true, reach
	}
	z.left, z.main.idle = 0, z.main.idle[:0]
	r := 0
	for r < lastRound && cuts[0][r] < seeds*parts {
		r++
	}
	z.main.insertAll(3, cuts[0][r])
	z.name(cuts)
	for ; r <= lastRound; r++ {
		z.round(cuts, r)
	}
}

// name sets z.of, the zone of each vertex.
func (z *zones) name(cuts [][lastRound + 1]int) {
	z.of, z.at = resize(z.of, cuts[0][lastRound]), resize(z.at, cuts[0][lastRound])
	for p := range len(cuts) - 1 {
		for r := range lastRound {
			for i := cuts[p][r]; i < cuts[p+1][r]; i++ {
				z.of[i] = uint8(p)
			}
		}
	}
}

// round inserts the points of one round.
func (z *zones) round(cuts [][lastRound + 1]int, r int) {
	parts := len(cuts) - 1
	z.divide(cuts[0][r])
	kernel.Parallel(parts, func(p int) {
		w := &z.each[p]
		w.left, w.last = w.left[:0], -1
		// A vertex of the round before lies beside each point, as far along the curve.
		var before []int32
		if r > 0 {
			before = z.at[cuts[p][r-1]:cuts[p+1][r-1]]
		}
		lo, hi := cuts[p][r], cuts[p+1][r]
		for i := lo; i < hi; i++ {
			if len(w.left) > pointsAWorker/8 && len(w.left) > 3*(i-lo)/4 {
				w.left = append(w.left, int32(i)) // nearly no point stays in its zone: do not try
				continue
			}
			if w.last >= 0 && w.insert(int32(i)) != refused {
				continue
			}
			// The walk from the last point may leave the zone where a shorter walk does not.
			if len(before) > 0 {
				if at := before[(i-lo)*len(before)/(hi-lo)]; at >= 0 {
					w.last = at
					if w.insert(int32(i)) != refused {
						continue
					}
				}
			}
			w.left = append(w.left, int32(i))
		}
	})
	for p := range parts {
		z.left += len(z.each[p].left)
		for _, i := range z.each[p].left {
			z.main.insert(i)
		}
	}
}

// divide sets the kind of each triangle of the first n points to its zone, or to
// shared, and z.at to a triangle of the own zone of each vertex.
func (z *zones) divide(n int) {
	at := z.at[:n]
	for i := range at {
		at[i] = -1
	}
	tris := z.main.tris[:2*max(n, 3)-2]
	for k := range tris {
		v := &tris[k].v
		if v[kind] < 0 {
			continue
		}
		zone := z.of[v[0]]
		if zone != z.of[v[1]] || zone != z.of[v[2]] {
			v[kind] = shared
			continue
		}
		v[kind] = int32(zone)
		at[v[0]], at[v[1]], at[v[2]] = int32(k), int32(k), int32(k)
	}
}
