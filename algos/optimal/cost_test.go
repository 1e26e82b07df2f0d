package optimal

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// No input makes the algorithms quadratic: with four times the points, the number of
// touched points grows at most like n log n, and the work for each of them (orientations,
// points looked at to find medians) stays below a constant.
func TestTouchedGrowsLikeNLogN(t *testing.T) {
	small := 4096
	if testing.Short() {
		small = 512
	}
	large := 4 * small
	var m Maxima[float64]
	var h Hull2D[float64]
	for _, g := range slices.Concat(geomtest.Generators2D[float64](), hard) {
		var touched [2][3]int64
		for k, n := range []int{small, large} {
			c := g.Make(n, seed)
			m.Append(nil, c)
			touched[k][0] = m.Trace.Touched
			h.AppendUpper(nil, c)
			touched[k][1] = h.Upper.Touched
			upper := h.half.tests
			h.AppendLower(nil, c)
			touched[k][2] = h.Lower.Touched
			if perPoint := float64(m.looked) / float64(m.Trace.Touched+1); perPoint > luckFactor {
				t.Errorf("%s, %d points, seed %d: selection looked at %.1f points a touched one",
					g.Name, n, seed, perPoint)
			}
			if perPoint := float64(upper+h.half.tests) / float64(h.Upper.Touched+h.Lower.Touched+1); perPoint > 8 {
				t.Errorf("%s, %d points, seed %d: %.1f sides of lines a touched point", g.Name, n, seed, perPoint)
			}
		}
		levels := func(n int) float64 { return math.Log2(float64(n)) + 2 }
		limit := 4 * levels(large) / levels(small)
		for k, name := range []string{"maxima", "upper hull", "lower hull"} {
			growth := float64(touched[1][k]) / float64(touched[0][k])
			if worst := int64(float64(large) * levels(large)); growth > 1.15*limit || touched[1][k] > worst {
				t.Errorf("%s, seed %d, %s: touched %d of %d points, %d of %d: growth %.2f, n log n is %.2f",
					g.Name, seed, name, touched[0][k], small, touched[1][k], large, growth, limit)
			}
		}
	}
}

// hard are clouds that break divide and conquer of other kinds.
var hard = []geomtest.Generator[float64]{
	{Name: "convex", Make: func(n int, _ uint64) geom.Cloud[float64] { // all are vertices, x in powers of two
		return cloud(n, func(i int) (x, y float64) { x = math.Ldexp(1, i%1000-500); return x, math.Sqrt(x) })
	}},
	// chords under chords: quickhull peels one a level
	{Name: "nested", Make: func(n int, _ uint64) geom.Cloud[float64] {
		return cloud(n, func(i int) (x, y float64) { s := math.Ldexp(1, -i%1000); return s, math.Sqrt(s) * (1 - s) })
	}},
	{Name: "columns", Make: func(n int, seed uint64) geom.Cloud[float64] { // medians full of ties
		r := rand.New(rand.NewPCG(seed, 3))
		return cloud(n, func(i int) (x, y float64) { return float64(r.IntN(3)), r.Float64() })
	}},
}

func cloud(n int, point func(i int) (x, y float64)) geom.Cloud[float64] {
	c := geom.Cloud[float64]{X: make([]float64, n), Y: make([]float64, n)}
	for i := range n {
		c.X[i], c.Y[i] = point(i)
	}
	return c
}

// The number of touched points follows the structural entropy, computed by other means: a
// line fits it with R² of 0.9 and more.
func TestTouchedFollowsEntropy(t *testing.T) {
	if testing.Short() {
		t.Skip("two seconds of brute force, the same on every processor")
	}
	var m Maxima[float64]
	var h Hull2D[float64]
	for _, problem := range []struct {
		name     string
		families []family
		entropy  func(c geom.Cloud[float64]) float64
		run      func(c geom.Cloud[float64]) *Trace
		slack    float64 // by which the reference may be above the least
	}{
		{"maxima", staircases, maximaEntropy, func(c geom.Cloud[float64]) *Trace { m.Append(nil, c); return &m.Trace },
			0},
		{"upper hull", arcs, chordEntropy, func(c geom.Cloud[float64]) *Trace {
			h.AppendUpper(nil, c)
			return &h.Upper
		}, 1 + math.Ln2},
	} {
		t.Run(problem.name, func(t *testing.T) {
			const n = 600
			var entropies, touched []float64
			for _, f := range problem.families {
				for k := range 5 {
					r := rand.New(rand.NewPCG(seed, uint64(k)))
					c := f.make(r, n, k)
					e, trace := problem.entropy(c), problem.run(c)
					if own := trace.Entropy(); own < e-problem.slack-1e-9 {
						t.Errorf("%s %d, seed %d: entropy %.4f of the trace is below the least, %.4f",
							f.name, k, seed, own, e)
					}
					entropies = append(entropies, e)
					touched = append(touched, float64(trace.Touched)/n)
					t.Logf("%-10s %d: H %.3f, trace %.3f, touched/n %.3f", f.name, k, e, trace.Entropy(),
						touched[len(touched)-1])
				}
			}
			slope, base, fit := line(entropies, touched)
			t.Logf("touched/n = %.2f H + %.2f, R² %.3f, %d clouds", slope, base, fit, len(touched))
			if fit < 0.9 || slope < 0.7 || slope > 1.6 || base < 0 || base > 2 {
				t.Errorf("touched/n = %.2f H + %.2f with R² %.3f", slope, base, fit)
			}
		})
	}
}

// line fits y = slope·x + base by least squares.
func line(x, y []float64) (slope, base, fit float64) {
	n := float64(len(x))
	var sx, sy, sxx, sxy, syy float64
	for i := range x {
		sx, sy, sxx, sxy, syy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i], syy+y[i]*y[i]
	}
	cov, vx, vy := sxy-sx*sy/n, sxx-sx*sx/n, syy-sy*sy/n
	slope = cov / vx
	return slope, (sy - slope*sx) / n, cov * cov / (vx * vy)
}

// family makes clouds of rising entropy, k = 0 to 4.
type family struct {
	name string
	make func(r *rand.Rand, n, k int) geom.Cloud[float64]
}

// staircases are families for maxima.
var staircases = []family{
	{"uniform", func(r *rand.Rand, n, _ int) geom.Cloud[float64] {
		return cloud(n, func(int) (x, y float64) { return r.Float64(), r.Float64() })
	}},
	{"band", func(r *rand.Rand, n, k int) geom.Cloud[float64] { // below x + y = 1
		width := math.Pow(10, -float64(k))
		return cloud(n, func(int) (x, y float64) { x = r.Float64(); return x, 1 - x - width*r.Float64() })
	}},
	// 1, 4, 16, 64, 256 maximal points, as many points under each
	{"steps", func(r *rand.Rand, n, k int) geom.Cloud[float64] {
		steps := 1 << (2 * k)
		return cloud(n, func(i int) (x, y float64) {
			if i < steps {
				return corner(i, steps)
			}
			return under(r, i%steps, steps)
		})
	}},
	{"skewed", func(r *rand.Rand, n, k int) geom.Cloud[float64] { // 200 maximal points, most points under one
		return cloud(n, func(i int) (x, y float64) {
			if i < 200 {
				return corner(i, 200)
			}
			return under(r, int(200*math.Pow(r.Float64(), float64(9-2*k))), 200)
		})
	}},
	{"normal", func(r *rand.Rand, n, k int) geom.Cloud[float64] { // correlation towards -1
		s := math.Pow(10, -float64(k)/2)
		return cloud(n, func(int) (x, y float64) { u, v := r.NormFloat64(), r.NormFloat64(); return u + s*v, s*v - u })
	}},
}

// corner returns the corner of a step of a staircase with the given number of steps.
func corner(step, steps int) (x, y float64) {
	return (float64(step) + .5) / float64(steps), 1 - (float64(step)+.5)/float64(steps)
}

// under returns a point just under the corner of a step.
func under(r *rand.Rand, step, steps int) (x, y float64) {
	x, y = corner(step, steps)
	return x - r.Float64()/float64(2*steps), y - r.Float64()/float64(2*steps)
}

// arcs are families for upper hulls.
var arcs = []family{
	{"uniform", staircases[0].make},
	{"ring", func(r *rand.Rand, n, k int) geom.Cloud[float64] { // outer band of a disk
		width := math.Pow(10, -float64(k))
		return cloud(n, func(int) (x, y float64) {
			s, c := math.Sincos(math.Pi * r.Float64())
			d := 1 - width*r.Float64()
			return d * c, d * s
		})
	}},
	{"polygon", func(r *rand.Rand, n, k int) geom.Cloud[float64] { // 4 to 256 corners, points on chords of neighbours
		corners := 4 << (3 * k / 2)
		corner := func(j int) (x, y float64) {
			s, c := math.Sincos(math.Pi * (float64(j) + .5) / float64(corners))
			return c, s
		}
		return cloud(n, func(i int) (x, y float64) {
			if i < corners {
				return corner(i)
			}
			j := r.IntN(corners - 1)
			ax, ay := corner(j)
			bx, by := corner(j + 1)
			u, depth := r.Float64(), 1-1e-3*r.Float64()/float64(corners)
			return (ax + u*(bx-ax)) * depth, (ay + u*(by-ay)) * depth
		})
	}},
	{"parabola", func(r *rand.Rand, n, k int) geom.Cloud[float64] {
		noise := math.Pow(10, -float64(k))
		return cloud(n, func(int) (x, y float64) { x = 2*r.Float64() - 1; return x, -x*x + noise*r.NormFloat64() })
	}},
	{"mixed", func(r *rand.Rand, n, k int) geom.Cloud[float64] { // a share on the circle, the others deep inside
		return cloud(n, func(i int) (x, y float64) {
			s, c := math.Sincos(math.Pi * r.Float64())
			if i*4 > k*n {
				return .3 * c, .3 * s
			}
			return c, s
		})
	}},
}

// maximaEntropy is the structural entropy for maxima, exactly: the least of all
// assignments of every point to a maximal point that dominates it. The points
// that can go to step j of the staircase between a and b are those whose
// choices, an interval of steps, lie in [a, b] and contain j; the largest group
// takes all it can, and what remains falls into two parts. O(n + h³).
func maximaEntropy(c geom.Cloud[float64]) float64 {
	top := geomtest.Maxima(c, 2, [3]bool{})
	slices.SortFunc(top, func(a, b int32) int { return int(math.Copysign(1, c.X[a]-c.X[b])) })
	h := len(top)
	inside := make([][]int, h+2) // inside[a][b]: points whose choices lie in [a, b], steps from 1
	for a := range inside {
		inside[a] = make([]int, h+2)
	}
	for i := range c.X {
		first, last := 1, h
		for c.X[top[first-1]] < c.X[i] {
			first++
		}
		for c.Y[top[last-1]] < c.Y[i] {
			last--
		}
		inside[first][last]++
	}
	for a := h; a >= 1; a-- {
		for b := a; b <= h; b++ {
			inside[a][b] += inside[a+1][b] + inside[a][b-1] - inside[a+1][b-1]
		}
	}
	f := func(m int) float64 {
		if m == 0 {
			return 0
		}
		return float64(m) * math.Log(float64(m))
	}
	logs := make([]float64, c.Len()+1)
	for m := range logs {
		logs[m] = f(m)
	}
	best := make([][]float64, h+2)
	for a := range best {
		best[a] = make([]float64, h+2)
	}
	for a := h; a >= 1; a-- {
		for b := a; b <= h; b++ {
			for j := a; j <= b; j++ {
				group := inside[a][b]
				if j > a {
					group -= inside[a][j-1]
				}
				if j < b {
					group -= inside[j+1][b]
				}
				best[a][b] = max(best[a][b], logs[group]+best[a][j-1]+best[j+1][b])
			}
		}
	}
	n := c.Len()
	return math.Log(float64(n)) - best[1][h]/float64(n)
}

// chordEntropy is an upper bound of the structural entropy for the upper hull,
// at most a nat and log 2 above it: the chord with most points below it takes
// these, and again, among chords over 1, 2, 4, ... edges.
func chordEntropy(c geom.Cloud[float64]) float64 {
	var h Hull2D[float64]
	v := h.AppendUpper(nil, c)
	n := c.Len()
	var members [][]int
	for step := 1; step < len(v); step *= 2 {
		for j := 0; j+step < len(v); j++ {
			a, b := v[j], v[j+step]
			var below []int
			for i := range n {
				if c.X[a] <= c.X[i] && c.X[i] <= c.X[b] &&
					exact.Orient2D(c.X[a], c.Y[a], c.X[b], c.Y[b], c.X[i], c.Y[i]) <= 0 {
					below = append(below, i)
				}
			}
			members = append(members, below)
		}
	}
	done := make([]bool, n)
	entropy, rest := 0.0, n
	for rest > 0 {
		most := 0
		var largest []int
		for k, below := range members {
			members[k] = slices.DeleteFunc(below, func(i int) bool { return done[i] })
			if len(members[k]) > most {
				most, largest = len(members[k]), members[k]
			}
		}
		if most <= 1 {
			return entropy + float64(rest)/float64(n)*math.Log(float64(n))
		}
		for _, i := range largest {
			done[i] = true
		}
		share := float64(most) / float64(n)
		entropy -= share * math.Log(share)
		rest -= most
	}
	return entropy
}

// The reference against its definition: all assignments of few points.
func TestMaximaEntropyIsTheLeastOfAllAssignments(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 9))
	for range 60 {
		n := 1 + r.IntN(7)
		c := cloud(n, func(int) (x, y float64) { return r.Float64(), 1.2*r.Float64() - .2 })
		top := geomtest.Maxima(c, 2, [3]bool{})
		sizes := make([]int, len(top))
		least := math.Inf(1)
		var assign func(i int)
		assign = func(i int) {
			if i == n {
				e := 0.0
				for _, s := range sizes {
					if share := float64(s) / float64(n); s > 0 {
						e -= share * math.Log(share)
					}
				}
				least = min(least, e)
				return
			}
			for k, v := range top {
				if c.X[i] <= c.X[v] && c.Y[i] <= c.Y[v] {
					sizes[k]++
					assign(i + 1)
					sizes[k]--
				}
			}
		}
		assign(0)
		if got := maximaEntropy(c); math.Abs(got-least) > 1e-9 {
			t.Fatalf("seed %d: %v: %v, the least of all assignments is %v", seed, c, got, least)
		}
	}
}

func BenchmarkOptimal(b *testing.B) {
	const n = 100_000
	for _, g := range geomtest.Generators2D[float64]()[:5] {
		c := g.Make(n, seed)
		var m Maxima[float64]
		var h Hull2D[float64]
		var dst []int32
		for name, run := range map[string]func() int64{
			"maxima": func() int64 { dst = m.Append(dst[:0], c); return m.Trace.Touched },
			"hull":   func() int64 { dst = h.Append(dst[:0], c); return h.Upper.Touched + h.Lower.Touched },
		} {
			b.Run(name+"/"+g.Name, func(b *testing.B) {
				var touched int64
				for b.Loop() {
					touched = run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/point")
				b.ReportMetric(float64(touched)/n, "touched/point")
			})
		}
	}
}
