package hull

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/internal/kernel"
)

var campaign = flag.Int("campaign", 4000, "random sets of points in the plane to compare with the oracle")

// families are kinds of small sets that break floating-point geometry. A set
// is made of coordinates f(i), i counting the points.
var families = []struct {
	name string
	set  func(r *rand.Rand) func(i int) (x, y float64)
}{
	{"grid", func(r *rand.Rand) func(int) (float64, float64) {
		side, step := 1+r.IntN(9), math.Ldexp(1, r.IntN(20)-10)
		return func(int) (float64, float64) { return step * float64(r.IntN(side)), step * float64(r.IntN(side)) }
	}},
	{"cocircular", func(r *rand.Rand) func(int) (float64, float64) {
		on := [][2]float64{{65, 0}, {63, 16}, {60, 25}, {56, 33}, {52, 39}, {39, 52}, {33, 56},
			{25, 60}, {16, 63}, {0, 65}}
		return func(int) (float64, float64) {
			p := on[r.IntN(len(on))]
			return p[0] * float64(2*r.IntN(2)-1), p[1] * float64(2*r.IntN(2)-1)
		}
	}},
	{"nearly collinear", func(r *rand.Rand) func(int) (float64, float64) {
		slope, offset := r.NormFloat64(), r.NormFloat64()
		return func(int) (float64, float64) {
			x := float64(r.IntN(50)) / 7
			return x, nudge(r, slope*x+offset)
		}
	}},
	{"nearly collinear float32", func(r *rand.Rand) func(int) (float64, float64) {
		slope, offset := float32(r.NormFloat64()), float32(r.NormFloat64())
		return func(int) (float64, float64) {
			x := float32(r.IntN(50)) / 7
			return float64(x), float64(nudge(r, slope*x+offset))
		}
	}},
	{"duplicates", func(r *rand.Rand) func(int) (float64, float64) {
		few := make([][2]float64, 1+r.IntN(12))
		for i := range few {
			few[i] = [2]float64{r.NormFloat64(), r.NormFloat64()}
		}
		return func(int) (float64, float64) { p := few[r.IntN(len(few))]; return p[0], p[1] }
	}},
	{"far away", func(r *rand.Rand) func(int) (float64, float64) {
		x0, y0, ulp := 1e7*r.NormFloat64(), 1e15*r.NormFloat64(), math.Ldexp(1, -r.IntN(30))
		return func(int) (float64, float64) { return x0 + ulp*float64(r.IntN(9)), y0 + ulp*float64(r.IntN(9)) }
	}},
	{"large", func(r *rand.Rand) func(int) (float64, float64) {
		return func(int) (float64, float64) { return 1e150 * r.NormFloat64(), 1e150 * float64(r.IntN(5)) }
	}},
	{"tiny", func(r *rand.Rand) func(int) (float64, float64) {
		return func(int) (float64, float64) { return 1e-150 * r.NormFloat64(), 1e-150 * float64(r.IntN(5)) }
	}},
	{"large and tiny", func(r *rand.Rand) func(int) (float64, float64) {
		return func(int) (float64, float64) {
			return math.Pow(10, float64(150-300*r.IntN(2))) * r.NormFloat64(),
				math.Pow(10, float64(150-300*r.IntN(2))) * r.NormFloat64()
		}
	}},
	{"subnormal float32", func(r *rand.Rand) func(int) (float64, float64) {
		return func(int) (float64, float64) {
			return math.SmallestNonzeroFloat32 * float64(r.IntN(40)-20),
				math.SmallestNonzeroFloat32 * float64(r.IntN(4000)-2000)
		}
	}},
	{"ends of the range", func(r *rand.Rand) func(int) (float64, float64) {
		ends := []float64{-math.MaxFloat64, -1, math.Copysign(0, -1), 0, math.SmallestNonzeroFloat64,
			1, math.MaxFloat64}
		return func(int) (float64, float64) { return ends[r.IntN(len(ends))], ends[r.IntN(len(ends))] }
	}},
	{"round", func(r *rand.Rand) func(int) (float64, float64) {
		return func(int) (float64, float64) {
			s, c := math.Sincos(2 * math.Pi * r.Float64())
			d := math.Sqrt(r.Float64())
			return d * c, d * s
		}
	}},
	{"pixels", func(r *rand.Rand) func(int) (float64, float64) {
		return func(int) (float64, float64) {
			return math.Round(20 + 10*r.NormFloat64()), math.Round(20 + 10*r.NormFloat64())
		}
	}},
}

// Random sets of every family, small ones and some that meet the filter, at
// every level, are what the oracle says.
// go test -run Campaign -v -campaign 100000
func TestCampaign(t *testing.T) {
	sets := *campaign
	if testing.Short() {
		sets = min(sets, 1000)
	}
	levels := []kernel.Level{kernel.AVX512, kernel.AVX2, kernel.Portable}
	var h64 Hull2D[float64]
	var h32 Hull2D[float32]
	points := 0
	for round := range sets {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		family := families[round%len(families)]
		n := r.IntN(40)
		if r.IntN(8) == 0 {
			n = filterFrom + r.IntN(1000)
		}
		f := family.set(r)
		c := make2[float64](n, f)
		d := geom.Cloud[float32]{}
		for i := range c.X {
			if x, y := float32(c.X[i]), float32(c.Y[i]); x-x == 0 && y-y == 0 {
				d.X, d.Y = append(d.X, x), append(d.Y, y)
			}
		}
		points += n + d.Len()
		restore := kernel.Limit(levels[round/len(families)%3])
		got64, got32 := h64.Append(nil, c), h32.Append(nil, d)
		restore()
		if err := cmpHull(got64, c); err != nil {
			t.Fatalf("%s, seed %d, round %d: %v", family.name, seed, round, err)
		}
		if err := cmpHull(got32, d); err != nil {
			t.Fatalf("%s in float32, seed %d, round %d: %v", family.name, seed, round, err)
		}
	}
	t.Logf("%d sets of each type, %d points, seed %d", sets, points, seed)
}

func cmpHull[T geom.Float](got []int32, c geom.Cloud[T]) error {
	if want := geomtest.Hull2D(c); !slices.Equal(got, want) {
		if c.Len() > 50 {
			return fmt.Errorf("%d points: %s", c.Len(), difference(got, want))
		}
		return fmt.Errorf("hull of %#v: %v, want %v", c, got, want)
	}
	return nil
}

// A published cloud, at every level.
func TestPublishedCloud(t *testing.T) {
	f, err := os.Open(geomtest.TestData(t, "oracles", "pargeo", "2d_100.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var c geom.Cloud[float64]
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var x, y float64
		if _, err := fmt.Sscan(lines.Text(), &x, &y); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		c.X, c.Y = append(c.X, x), append(c.Y, y)
	}
	if c.Len() != 100 {
		t.Fatalf("%d points, want 100", c.Len())
	}
	var h Hull2D[float64]
	wantHull(t, &h, "2d_100", c)
}

// At every level, every distribution has the same hull, on both sides of every
// threshold.
func TestHullAtEveryLevel(t *testing.T) {
	levels := []kernel.Level{kernel.Portable, kernel.AVX2, kernel.AVX512}
	testDistributions[float32](t, levels...)
	testDistributions[float64](t, levels...)
}
