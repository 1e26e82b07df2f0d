package hull

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/internal/kernel"
)

// Work, in tests of a point against a plane, grows hardly faster than the
// number of points on what is made to be slow.
func TestHull3DIsNotQuadratic(t *testing.T) {
	for _, g := range spaces[float64]() {
		var small, large Hull3D[float64]
		n := shorter(2000, 500)
		small.Append(nil, nil, g.Make(n, seed))
		large.Append(nil, nil, g.Make(4*n, seed))
		// A little work is a matter of chance; its growth says nothing.
		if a, b := small.body.touched, large.body.touched; b > int64(20*4*n) && float64(b) > 6*float64(a) {
			t.Errorf("%s, seed %d: %d tests for %d points, %d for %d", g.Name, seed, a, n, b, 4*n)
		}
		if most := int64(60 * 4 * n); large.body.touched > most {
			t.Errorf("%s, seed %d: %d tests for %d points, more than %d", g.Name, seed, large.body.touched, 4*n, most)
		}
	}
}

// The order for bad cases gives the same hull, and few tests too.
func TestHull3DInRandomOrder(t *testing.T) {
	for _, g := range spaces[float64]() {
		c := g.Make(shorter(sieveFrom-1, 400), seed)
		var h Hull3D[float64]
		v, f, dim := h.Append(nil, nil, c)
		if dim < 3 {
			continue
		}
		h.takeAll(c)
		s, _ := h.body.simplex()
		h.body.start(s)
		h.body.patience = -1
		h.body.grow()
		w, e := h.body.appendSurface(nil, nil)
		if !slices.Equal(v, w) || !slices.Equal(f, e) {
			t.Errorf("%s, seed %d: %d vertices, %d faces, want %d, %d", g.Name, seed, len(w), len(e), len(v), len(f))
		}
		if most := int64(150 * c.Len()); h.body.touched > most {
			t.Errorf("%s, seed %d: %d tests", g.Name, seed, h.body.touched)
		}
	}
}

// Among many new faces around a vertex, a search finds one that a point sees if
// and only if there is one: for points near the cone and behind its tip, on
// lines through the tip, in the planes of faces, and equal to corners.
func TestHull3DSearchesLargeFans(t *testing.T) {
	const tip = 16.0
	found := 0
	for round := range 60 {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		ring := squareRing(1 + r.IntN(16))
		if round%2 == 0 {
			ring = circleRing(uint64(round))
		}
		k := r.IntN(len(ring))
		ring = append(slices.Clone(ring[k:]), ring[:k]...) // from another corner, or from inside an edge
		b := new(polytope)
		add := func(x, y, z float64) {
			b.points = append(b.points, corner{x: x, y: y, z: z, index: int32(len(b.points)), on: none})
		}
		add(0, 0, tip)
		for _, p := range ring {
			add(p[0], p[1], 0)
		}
		for range 400 {
			p := ring[r.IntN(len(ring))]
			s := []float64{0.25, 0.5, 1.5, -0.25, -1, 1, 1.0625}[r.IntN(7)]
			u := []float64{0, 0, 0.0625, -0.0625}[r.IntN(4)]
			add(p[0]*s+u, p[1]*s, tip-tip*s)
		}
		b.measure(0)
		for i := range ring {
			b.fan = append(b.fan, b.addFace(int32(1+i), int32(1+(i+1)%len(ring)), 0))
		}
		for q := int32(len(ring) + 1); int(q) < len(b.points); q++ {
			sees := slices.ContainsFunc(b.fan, func(f int32) bool { _, yes := b.sees(&b.faces[f], q); return yes })
			if b.assignFar(q); sees != (b.points[q].on != none) {
				t.Fatalf("round %d, seed %d, %d corners: point %v sees a face: %v, on the list of %d", round, seed,
					len(ring), b.points[q], sees, b.points[q].on)
			}
			if sees {
				found++
			}
		}
	}
	if found < 3000 || found > 20000 {
		t.Errorf("%d of 24000 points see a face: nothing was tested", found)
	}
}

// squareRing is a square of lattice points, 2m to a side.
func squareRing(m int) (ring [][2]float64) {
	side := float64(m)
	for i := range 8 * m {
		at := float64(i%(2*m)) - side
		ring = append(ring, [][2]float64{{at, -side}, {side, at}, {-at, side}, {-side, -at}}[i/(2*m)])
	}
	return ring
}

// circleRing is strictly convex.
func circleRing(seed uint64) (ring [][2]float64) {
	c := geomtest.Circle[float64](100, seed)
	for _, i := range geomtest.Hull2D(c) {
		ring = append(ring, [2]float64{c.X[i], c.Y[i]})
	}
	return ring
}

// Every point that the sieve drops is strictly inside, by exact arithmetic. Points are in
// the middle of faces, on edges and corners, moved by some units in
// the last place and by small fractions.
func TestSieveNeverDropsAVertex(t *testing.T) {
	testSieve[float32](t)
	testSieve[float64](t)
}

func testSieve[T geom.Float](t *testing.T) {
	var h Hull3D[T]
	built, dropped := 0, 0
	for round := range shorter(6, 2) {
		for _, g := range spaces[T]() {
			r := rand.New(rand.NewPCG(seed, uint64(round)))
			c := g.Make(10+r.IntN(100), uint64(round))
			v, f, dim := h.Append(nil, nil, c)
			h.takeAll(c)
			if dim < 3 {
				continue
			}
			s, _ := h.body.simplex()
			h.body.start(s)
			h.body.grow()
			if !h.sieve.build(&h.body) {
				continue
			}
			built++
			p := geom.Cloud[T]{}
			for range 500 {
				k := 3 * r.IntN(len(f)/3)
				x, y, z := onTriangle(r, c, f[k:k+3])
				p.X, p.Y, p.Z = append(p.X, nudge(r, x)), append(p.Y, nudge(r, y)), append(p.Z, nudge(r, z))
			}
			for _, i := range v {
				p.X, p.Y, p.Z = append(p.X, c.X[i]), append(p.Y, c.Y[i]), append(p.Z, c.Z[i])
			}
			mask := make([]uint64, (p.Len()+63)/64)
			kernel.Beyond(&h.sieve.planes, p.X, p.Y, p.Z, mask)
			for i := range p.X {
				if mask[i/64]>>(i%64)&1 == 1 {
					continue
				}
				dropped++
				all := geom.Cloud[T]{X: append(slices.Clone(c.X), p.X[i]), Y: append(slices.Clone(c.Y), p.Y[i]),
					Z: append(slices.Clone(c.Z), p.Z[i])}
				if !geomtest.InsideHull3D(all, f, c.Len()) {
					t.Fatalf("%s, round %d, seed %d: (%v, %v, %v), outside, is dropped", g.Name, round, seed,
						p.X[i], p.Y[i], p.Z[i])
				}
			}
		}
	}
	if built < 20 || dropped < 30 {
		t.Errorf("%d sieves were built, %d points dropped", built, dropped)
	}
}

// onTriangle is a corner, a point of an edge or of the inside, drawn towards
// the origin by a small fraction or none.
func onTriangle[T geom.Float](r *rand.Rand, c geom.Cloud[T], f []int32) (x, y, z T) {
	w := [3]T{T(r.Float64()), T(r.Float64()) * T(r.IntN(2)), T(r.Float64()) * T(r.IntN(2))}
	sum := (w[0] + w[1] + w[2]) * (1 + T(math.Ldexp(float64(r.IntN(2)), -3-r.IntN(20))))
	for k, i := range f {
		x, y, z = x+w[k]/sum*c.X[i], y+w[k]/sum*c.Y[i], z+w[k]/sum*c.Z[i]
	}
	return x, y, z
}

// A sieve that everything passes would be right and useless.
func TestSieveLeavesFewCandidates(t *testing.T) {
	const n = 100_000
	for _, g := range spaces[float64]() {
		most, known := map[string]int{"lidar": n / 10, "ball": n / 7, "cube": n / 12, "gauss3": n / 20}[g.Name]
		if !known {
			continue
		}
		var h Hull3D[float64]
		h.Append(nil, nil, g.Make(n, seed))
		if got := len(h.body.points); got > most {
			t.Errorf("%s: %d of %d points are candidates", g.Name, got, n)
		}
	}
}
