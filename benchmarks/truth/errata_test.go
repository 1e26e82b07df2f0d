package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"entropipe/algos/entropy"
	"entropipe/algos/geomtest"
)

// Each erratum has a test, in the package that it names.
func TestEveryErratumHasItsTest(t *testing.T) {
	tests := map[string]bool{}
	for _, e := range errata {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(e.folder), "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no tests (%v)", e.folder, err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
					tests[e.folder+"."+f.Name.Name] = true
				}
			}
		}
		if !tests[e.folder+"."+e.test] {
			t.Errorf("%s: %s has no test %s", e.title, e.folder, e.test)
		}
		if !regexp.MustCompile(`^\d[\d, -]*$`).MatchString(e.lines) || e.says == "" || e.right == "" {
			t.Errorf("%s is not whole: %+v", e.title, e)
		}
	}
	if len(errata) < 20 {
		t.Errorf("%d errata", len(errata))
	}
}

// plane is a set of points in the plane.
type plane [][2]float64

// square draws points uniformly.
func square(n int, r *rand.Rand) plane {
	p := make(plane, n)
	for i := range p {
		p[i] = [2]float64{r.Float64(), r.Float64()}
	}
	return p
}

func far2(a, b [2]float64) float64 { return (a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) }

// soften returns the shares of each point in each anchor, and the masses.
func soften(points, anchors plane, alpha float64) (p [][]float64, masses []float64) {
	p, masses = make([][]float64, len(points)), make([]float64, len(anchors))
	for i, x := range points {
		p[i] = make([]float64, len(anchors))
		least, sum := math.Inf(1), 0.0
		for _, c := range anchors {
			least = min(least, far2(x, c))
		}
		for j, c := range anchors {
			p[i][j] = math.Exp(-alpha * (far2(x, c) - least))
			sum += p[i][j]
		}
		for j := range anchors {
			p[i][j] /= sum
			masses[j] += p[i][j] / float64(len(points))
		}
	}
	return p, masses
}

func hDiff(points, anchors plane, alpha float64) float64 {
	_, masses := soften(points, anchors, alpha)
	return entropy.OfSizes(masses)
}

// slope is the gradient of H_diff with respect to the anchors, by central differences.
func slope(points, anchors plane, alpha float64) plane {
	g := make(plane, len(anchors))
	for j := range anchors {
		for d := range 2 {
			const step = 1e-5
			moved := append(plane{}, anchors...)
			moved[j][d] += step
			up := hDiff(points, moved, alpha)
			moved[j][d] -= 2 * step
			g[j][d] = (up - hDiff(points, moved, alpha)) / (2 * step)
		}
	}
	return g
}

func inner(a, b plane) (sum float64) {
	for j := range a {
		sum += a[j][0]*b[j][0] + a[j][1]*b[j][1]
	}
	return sum
}

func TestOneCellHasNoEntropy(t *testing.T) {
	if h := entropy.OfSizes([]int{1000}); h != 0 {
		t.Errorf("one cell of a thousand points: %g", h)
	}
}

func TestUniformPointsHaveLittleEntropy(t *testing.T) {
	c := geomtest.Square[float64](10000, 1)
	truth := entropy.GroundTruth(c, answerOf(c, entropy.Maxima2D), entropy.Maxima2D)
	if truth.Upper > .3 || math.Log(10000) < 9 {
		t.Errorf("maxima of 10,000 uniform points: at most %g nats", truth.Upper)
	}
}

// A point's tangent plane lies below all others by the squared distance.
func TestLiftedPointsAreExtreme(t *testing.T) {
	points := square(300, rand.New(rand.NewPCG(1, 1)))
	for i, x := range points {
		for j, y := range points {
			tangent := 2*(x[0]*y[0]+x[1]*y[1]) - x[0]*x[0] - x[1]*x[1]
			if above := y[0]*y[0] + y[1]*y[1] - tangent; i != j && (above <= 0 || math.Abs(above-far2(x, y)) > 1e-12) {
				t.Fatalf("point %d is %g above the plane of point %d", j, above, i)
			}
		}
	}
}

func TestPrintedGradientIsNotTheSlope(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	points, anchors := square(200, r), square(8, r)
	const alpha = 10
	p, masses := soften(points, anchors, alpha)
	printed, right := make(plane, len(anchors)), make(plane, len(anchors))
	for i, x := range points {
		s := 0.0
		for l := range anchors {
			s += p[i][l] * math.Log(masses[l])
		}
		for j, c := range anchors {
			for d := range 2 {
				printed[j][d] += alpha * p[i][j] * (p[i][j] - masses[j]) * (x[d] - c[d])
				right[j][d] += 2 * alpha / float64(len(points)) * p[i][j] * (s - math.Log(masses[j])) * (x[d] - c[d])
			}
		}
	}
	is := slope(points, anchors, alpha)
	cosine := func(a plane) float64 { return inner(a, is) / math.Sqrt(inner(a, a)*inner(is, is)) }
	if c := cosine(right); c < 1-1e-6 {
		t.Errorf("the correct gradient has cosine %g with the slope", c)
	}
	if c := cosine(printed); c > .5 {
		t.Errorf("the printed gradient has cosine %g with the slope", c)
	}
	if long := math.Sqrt(inner(printed, printed) / inner(is, is)); long < 10 {
		t.Errorf("the printed gradient is %g times as long as the slope", long)
	}
}

func TestPrintedFixedPointIsNotStationary(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	points := append(square(150, r), plane{{3, 3}, {3.1, 3}, {3, 3.1}, {3.1, 3.1}}...)
	anchors := square(5, r)
	const alpha = 5
	moved := 1.0
	for round := 0; round < 20000 && moved > 1e-13; round++ {
		p, _ := soften(points, anchors, alpha)
		moved = 0
		for j := range anchors {
			var sum, x, y float64
			for i, at := range points {
				w := p[i][j] * p[i][j]
				sum, x, y = sum+w, x+w*at[0], y+w*at[1]
			}
			to := [2]float64{x / sum, y / sum}
			moved = max(moved, far2(to, anchors[j]))
			anchors[j] = to
		}
	}
	if g := slope(points, anchors, alpha); moved > 1e-13 || math.Sqrt(inner(g, g)) < 1e-3 {
		t.Errorf("at a fixed point (last move %g) the gradient is %g", moved, math.Sqrt(inner(g, g)))
	}
}

func TestUniformAssignmentsAreTheMaximum(t *testing.T) {
	points := square(100, rand.New(rand.NewPCG(4, 4)))
	same := plane{{.5, .5}, {.5, .5}, {.5, .5}, {.5, .5}}
	h, g := hDiff(points, same, 10), slope(points, same, 10)
	if math.Abs(h-math.Log(4)) > 1e-12 || inner(g, g) > 1e-12 {
		t.Errorf("equal anchors: %g nats of at most %g, gradient %g", h, math.Log(4), math.Sqrt(inner(g, g)))
	}
}

// One anchor among the points and the others far away: H_diff is 0, whatever the points.
func TestAnchorsAloneLowerTheMeasure(t *testing.T) {
	points := square(100, rand.New(rand.NewPCG(5, 5)))
	spread := hDiff(points, plane{{.2, .2}, {.8, .2}, {.2, .8}, {.8, .8}}, 10)
	gone := hDiff(points, plane{{.5, .5}, {9, 9}, {-9, 9}, {9, -9}}, 10)
	if spread < 1 || gone > 1e-9 {
		t.Errorf("H_diff %g with anchors among the points, %g with three of four far away", spread, gone)
	}
}

func TestPrintedTemperaturesTellNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	circle, clusters := make(plane, 400), make(plane, 400)
	for i := range circle {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / 400)
		circle[i] = [2]float64{.5 + .5*cos, .5 + .5*sin}
		clusters[i] = [2]float64{(float64(i%4) + .5 + .05*r.NormFloat64()) / 4, (float64(i/4%4) + .5) / 4}
	}
	for name, points := range map[string]plane{"uniform": square(400, r), "circle": circle, "clusters": clusters} {
		anchors := make(plane, 16)
		for j := range anchors {
			anchors[j] = points[j*len(points)/16]
		}
		if h := hDiff(points, anchors, 10) / math.Log(16); h < .93 {
			t.Errorf("%s: H_diff is %.3f of its maximum", name, h)
		}
	}
}

func TestSmallerAlphaIsSofter(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	points, anchors := square(50, r), square(6, r)
	sharp := func(alpha float64) (sum float64) {
		p, _ := soften(points, anchors, alpha)
		for i := range p {
			sum += entropy.OfSizes(p[i])
		}
		return sum
	}
	if !(sharp(1) > sharp(5) && sharp(5) > sharp(10)) {
		t.Errorf("entropy of assignments at 1, 5, 10: %g, %g, %g", sharp(1), sharp(5), sharp(10))
	}
}

// Minus the squared distance is an affine function of the point, but for a term that all
// anchors share.
func TestBallsAreHalfPlanes(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	points, anchors := square(50, r), square(6, r)
	p, _ := soften(points, anchors, 7)
	for i, x := range points {
		sum := 0.0
		affine := make([]float64, len(anchors))
		for j, c := range anchors {
			affine[j] = math.Exp(7 * (2*(c[0]*x[0]+c[1]*x[1]) - c[0]*c[0] - c[1]*c[1]))
			sum += affine[j]
		}
		for j := range anchors {
			if math.Abs(affine[j]/sum-p[i][j]) > 1e-12 {
				t.Fatalf("point %d, anchor %d: %g and %g", i, j, affine[j]/sum, p[i][j])
			}
		}
	}
}

// logistic is σ.
func logistic(u float64) float64 { return 1 / (1 + math.Exp(-u)) }

func TestConsistencyHasACounterexample(t *testing.T) {
	const tau, n, delta = .05, 1000, .05
	var masses [2]float64
	for i := range n {
		x := -5. // clusters at -5 and 5, the line at 0
		if i%2 == 1 {
			x = 5
		}
		h := logistic(x / tau)
		masses[0], masses[1] = masses[0]+h/n, masses[1]+(1-h)/n
	}
	printed := math.Exp(-5/(4*tau)) + math.Sqrt(math.Log(2/delta)/(2*n)) // one line has no Rademacher term
	if soft, bound := entropy.OfSizes(masses[:]), printed*math.Log(2/printed); soft < .69 || bound > .2 {
		t.Errorf("H_soft %g, entropy 0, printed bound %g", soft, bound)
	}
}

func TestErrorGrowsWithTheHalfSpaces(t *testing.T) {
	for _, m := range []float64{16, 32, 64} {
		if is, printed := 2*(1-math.Pow(1-logistic(-4), m)), math.Exp(-1); is <= printed {
			t.Errorf("%g half-planes: error %g, printed bound %g", m, is, printed)
		}
	}
}

func TestPrintedContinuityFails(t *testing.T) {
	r, broken := rand.New(rand.NewPCG(9, 9)), 0
	for range 20000 {
		p, q := shares(r, 3), shares(r, 3)
		x := 0.0
		for i := range p {
			x += math.Abs(p[i] - q[i])
		}
		d := math.Abs(entropy.OfSizes(p) - entropy.OfSizes(q))
		if d > continuity(x, 3)+1e-9 {
			t.Fatalf("Fannes and Audenaert's bound fails for %v and %v", p, q)
		}
		if d > x*math.Log(3/x) {
			broken++
		}
	}
	if broken == 0 {
		t.Error("the printed bound holds for all pairs")
	}
}

func TestTruncationIsAnIdentity(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	for range 200 {
		w, v := shares(r, 12), make([]float64, 12)
		var y, kept, mass, tail float64
		for j := range v {
			v[j] = 2*r.Float64() - 1
			y += w[j] * v[j]
			if j < 5 {
				kept, mass = kept+w[j]*v[j], mass+w[j]
			} else {
				tail += w[j] * v[j]
			}
		}
		delta := 1 - mass
		if delta < 1e-6 || mass < 1e-6 {
			continue
		}
		is, want := y-kept/mass, delta*(tail/delta-kept/mass)
		if math.Abs(is-want) > 1e-9 || math.Abs(is) > 2*delta+1e-9 {
			t.Fatalf("error %g, identity %g, bound %g", is, want, 2*delta)
		}
	}
}

func TestMassIsTheShareOfKeys(t *testing.T) {
	sizes, n := []int{40, 30, 20, 10}, 100
	for _, chosen := range []int{1, 2, 3, 4} {
		mass, keys := 0.0, 0
		for _, size := range sizes[:chosen] {
			mass, keys = mass+float64(size)/float64(n), keys+size
		}
		if math.Abs(mass-float64(keys)/float64(n)) > 1e-12 {
			t.Errorf("%d clusters: mass %g, %d of %d keys", chosen, mass, keys, n)
		}
	}
	const k, most, delta = 16, 2., .25 // clusters of at most twice the mean
	if r := math.Exp(math.Log(k/most)) / delta; r < k {
		t.Errorf("balanced clusters: the printed bound is %g of %d clusters", r, k)
	}
}

func TestPrintedBreakEvens(t *testing.T) {
	for _, c := range []struct {
		name                    string
		train, speedup, batch   float64
		printed, computed, near float64
	}{
		{"EntropyNet", 180, 8.7 / 2.1, .0087, 1500, 27273, 1},
		{"EntropyNet, network counted", 180, 3, .0087, 1500, 31035, 1},
		{"LLaMA-2", 48 * 3600, 1.6, .85, 180000, 542118, 1},
	} {
		if n := c.train / ((1 - 1/c.speedup) * c.batch); math.Abs(n-c.computed) > c.near || n < 2*c.printed {
			t.Errorf("%s: %g batches, printed %g", c.name, n, c.printed)
		}
	}
}

func TestPrintedTimeExceedsTheProcessor(t *testing.T) {
	const layers = 2*(2*64+64*128+128*256) + 2*(512*128+128*2)
	if rate := layers * 1e4 / .8e-3; layers != 213760 || rate < 1.7e12 {
		t.Errorf("%d operations a point, %g a second", layers, rate)
	}
}

func TestHeadlineLeavesTheNetworkOut(t *testing.T) {
	if alone, whole := 8.7/2.1, 8.7/2.9; math.Abs(alone-4.14) > .01 || math.Abs(whole-3) > 1e-12 {
		t.Errorf("%g without the network, %g with it", alone, whole)
	}
}

func TestPrintedSpeedupsExceedAmdahl(t *testing.T) {
	shares := map[string]float64{"ViT-S": .079, "ViT-B": .041, "BERT": .100, "Mistral": .019, "Phi": .0625,
		"LLaMA": .142}
	for _, s := range shapes {
		for name, want := range shares {
			if strings.HasPrefix(s.name, name) && math.Abs(s.attention()-want) > .001 {
				t.Errorf("%s: attention is %.4f of the multiplications, want %.3f", s.name, s.attention(), want)
			}
		}
		if s.printed > 0 && s.most(.75) >= s.printed {
			t.Errorf("%s: %g is possible, %g printed", s.name, s.most(.75), s.printed)
		}
	}
}

func TestTokensOfSmallImages(t *testing.T) {
	if tokens := (32/16)*(32/16) + 1; tokens != 5 {
		t.Errorf("%d tokens", tokens)
	}
}

func TestUniformAttentionCountsAsSparse(t *testing.T) {
	for n, sparse := range map[int]bool{99: false, 101: true, 1000: true} {
		if is := 1/float64(n) < .01; is != sparse {
			t.Errorf("%d keys: below 0.01 is %v", n, is)
		}
	}
}

func TestL1OfWeightsIsConstant(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	for range 50 {
		sum := 0.0
		for _, w := range shares(r, 40) {
			sum += math.Abs(w)
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Fatalf("L1 of a row is %g", sum)
		}
	}
}

func TestNeuralSortWouldNeedTheMemory(t *testing.T) {
	if rate := 1e4 * 1e4 * 4 / 4.8e-3; rate < 80e9 {
		t.Errorf("%g bytes a second", rate)
	}
}

func TestCapOfDisplacements(t *testing.T) {
	if most := .1 * math.Sqrt2; math.Abs(most-.1414) > 1e-4 {
		t.Errorf("%g of the side", most)
	}
}

func TestPrintedFiguresDisagree(t *testing.T) {
	for _, c := range conflicts {
		if c.first == c.second {
			t.Errorf("%s: %g twice", c.what, c.first)
		}
	}
}
