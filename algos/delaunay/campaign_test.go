package delaunay_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"

	"entropipe/algos/delaunay"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

var campaign = flag.Int("campaign", 1300, "random sets of points to triangulate and compare with the oracle")

// families are kinds of small sets in which signs are hard. Each returns a
// function that draws a point.
var families = []struct {
	name string
	of   func(r *rand.Rand) func() (x, y float64)
}{
	{"grid", func(r *rand.Rand) func() (x, y float64) {
		side, unit := 1+r.IntN(8), math.Ldexp(1, r.IntN(40)-20)
		return func() (x, y float64) { return unit * float64(r.IntN(side)), unit * float64(r.IntN(side)) }
	}},
	{"cocircular", func(r *rand.Rand) func() (x, y float64) {
		// Whole numbers with x² + y² = 5² · 13² · 17².
		legs := [][2]float64{{0, 1105}, {47, 1104}, {105, 1100}, {169, 1092}, {264, 1073}, {272, 1071}, {425, 1020},
			{468, 1001}, {520, 975}, {561, 952}, {576, 943}, {663, 884}, {700, 855}, {744, 817}}
		cx, cy := float64(r.IntN(1<<20)), float64(r.IntN(1<<20))
		return func() (x, y float64) {
			leg := legs[r.IntN(len(legs))]
			x, y = leg[r.IntN(2)], 0
			y = leg[0] + leg[1] - x
			return cx + x*sign(r), cy + y*sign(r)
		}
	}},
	{"nearly cocircular", func(r *rand.Rand) func() (x, y float64) {
		return func() (x, y float64) {
			s, c := math.Sincos(float64(r.IntN(16)) * math.Pi / 8)
			return near(r, 3*c), near(r, 3*s)
		}
	}},
	{"nearly collinear", func(r *rand.Rand) func() (x, y float64) {
		slope, at := r.NormFloat64(), r.NormFloat64()
		return func() (x, y float64) {
			x = float64(r.IntN(40)) / 10
			return x, near(r, slope*x+at)
		}
	}},
	{"rounded line", func(r *rand.Rand) func() (x, y float64) {
		return func() (x, y float64) {
			x = float64(r.IntN(200)) / 10
			return x, 0.1*x + 0.3
		}
	}},
	{"two lines", func(r *rand.Rand) func() (x, y float64) {
		return func() (x, y float64) { return float64(r.IntN(30)), float64(r.IntN(2)) }
	}},
	{"duplicates", func(r *rand.Rand) func() (x, y float64) {
		few := geomtest.Gauss[float64](1+r.IntN(12), r.Uint64())
		return func() (x, y float64) {
			i := r.IntN(few.Len())
			return few.X[i], few.Y[i]
		}
	}},
	{"UTM", func(r *rand.Rand) func() (x, y float64) {
		unit := math.Ldexp(1, -r.IntN(28))
		return func() (x, y float64) { return 5e5 + unit*float64(r.IntN(20)), 1e7 + unit*float64(r.IntN(20)) }
	}},
	{"large", func(r *rand.Rand) func() (x, y float64) {
		return func() (x, y float64) { return 1e150 * r.NormFloat64(), 1e150 * float64(r.IntN(6)) }
	}},
	{"small", func(r *rand.Rand) func() (x, y float64) {
		return func() (x, y float64) { return 1e-150 * r.NormFloat64(), 1e-150 * float64(r.IntN(6)) }
	}},
	{"large and small", func(r *rand.Rand) func() (x, y float64) {
		return func() (x, y float64) {
			return r.NormFloat64() * math.Pow(10, 150*sign(r)), r.NormFloat64() * math.Pow(10, 150*sign(r))
		}
	}},
	{"subnormal float32", func(r *rand.Rand) func() (x, y float64) {
		return func() (x, y float64) {
			return math.SmallestNonzeroFloat32 * float64(r.IntN(50)-25),
				math.SmallestNonzeroFloat32 * float64(r.IntN(3000))
		}
	}},
	{"smooth", func(r *rand.Rand) func() (x, y float64) {
		return func() (x, y float64) { return r.NormFloat64(), r.NormFloat64() }
	}},
}

func sign(r *rand.Rand) float64 { return float64(2*r.IntN(2) - 1) }

// near returns v or one of the two floats beside it.
func near(r *rand.Rand, v float64) float64 {
	switch r.IntN(3) {
	case 0:
		return math.Nextafter(v, math.Inf(1))
	case 1:
		return math.Nextafter(v, math.Inf(-1))
	}
	return v
}

// The triangulations of random sets of every family, in both types, pass the oracle, and
// so do the updates after one of their points has moved.
// go test -run Campaign -v -campaign 100000
func TestCampaign(t *testing.T) {
	const seed = 11
	sets, points := *campaign, 0
	if testing.Short() {
		sets = min(sets, 650)
	}
	var warm delaunay.Triangulator[float64]
	var narrow delaunay.Triangulator[float32]
	updates := 0
	for round := range sets {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		family := families[round%len(families)]
		draw := family.of(r)
		n := r.IntN(32)
		if r.IntN(6) == 0 {
			n = 64 + r.IntN(100)
		}
		var c geom.Cloud[float64]
		var d geom.Cloud[float32]
		for range n {
			x, y := draw()
			c.X, c.Y = append(c.X, x), append(c.Y, y)
			if x, y := float32(x), float32(y); x-x == 0 && y-y == 0 {
				d.X, d.Y = append(d.X, x), append(d.Y, y)
			}
		}
		points += n
		agree(t, family.name, seed, round, c, warm.Triangulate(c))
		agree(t, family.name+" in float32", seed, round, d, narrow.Triangulate(d))
		if n > 0 {
			i := r.IntN(n)
			c.X[i], c.Y[i] = draw()
			m, report := warm.Update(c)
			agree(t, family.name+" after an update", seed, round, c, m)
			if !report.Rebuilt {
				updates++
			}
		}
	}
	t.Logf("%d sets of each type, %d points, %d warm updates, seed %d", sets, points, updates, seed)
}

func agree[T geom.Float](t *testing.T, name string, seed, round int, c geom.Cloud[T], m geom.Mesh) {
	t.Helper()
	if err := geomtest.CheckDelaunay(c, m); err != nil {
		t.Fatalf("%s, seed %d, round %d: %v\ncloud %#v\nmesh %v", name, seed, round, err, c, m)
	}
}
