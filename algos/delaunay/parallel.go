package delaunay

import "entropipe/algos/internal/kernel"

// pointsAWorker make it worth while to start a goroutine.
const pointsAWorker = 8192

// seeds are points that are inserted before the first parallel round, for each
// worker: borders between zones are then short.
const seeds = 256

// reach is how many triangles a guarded walk may cross: most cross one or two,
// and others had better be left than go around a border.
const reach = 24

// zones insert points on several cores.
//
// A zone is the set of vertices of one part of the curve. In a parallel round
// each goroutine has a zone and changes only triangles that have all their
// vertices in it; a point whose walk or hole reaches another triangle is left.
// What it adds has all vertices in its zone again. A triangle with vertices in
// several zones, or infinity, stays what it is until the round is over: others
// read its vertices and circle, and of its links only that to a neighbour in a
// zone changes, which only that zone reads. So there is nothing to lock. The
// points left, those along the borders, are then inserted by one goroutine.
//
// The triangulation is a function of the points alone, and so the same.
type zones struct {
	main inserter
	each []inserter
	of   []uint8 // the zone of each vertex before the last round
	at   []int32 // for each of these vertices, a triangle of its zone there, or -1
	left int     // points left in all rounds, for tests
}

// maxZones is what zones.of can hold.
const maxZones = 256

// insert inserts all points but the first three, cut as orderer says.
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

// name fills in z.of.
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
		// Beside the point, as far along the curve, is a vertex of the round before.
		var before []int32
		if r > 0 {
			before = z.at[cuts[p][r-1]:cuts[p+1][r-1]]
		}
		lo, hi := cuts[p][r], cuts[p+1][r]
		for i := lo; i < hi; i++ {
			if len(w.left) > pointsAWorker/8 && len(w.left) > 3*(i-lo)/4 {
				w.left = append(w.left, int32(i)) // a cloud without zones: do not try
				continue
			}
			if w.last >= 0 && w.insert(int32(i)) != refused {
				continue
			}
			// The way there may leave the zone, and not that from nearer by.
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

// divide says of which zone each triangle is when n points are in, and where
// it is.
func (z *zones) divide(n int) {
	at := z.at[:n]
	for i := range at {
		at[i] = -1
	}
	tris := z.main.tris[:2*max(n, 3)-2]
	for k := range tris {
		v := &tris[k].v
		if v[3] < 0 {
			continue
		}
		zone := z.of[v[0]]
		if zone != z.of[v[1]] || zone != z.of[v[2]] {
			v[3] = shared
			continue
		}
		v[3] = int32(zone)
		at[v[0]], at[v[1]], at[v[2]] = int32(k), int32(k), int32(k)
	}
}
