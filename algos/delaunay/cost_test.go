package delaunay_test

import (
	"math"
	"slices"
	"testing"

	"entropipe/algos/delaunay"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// hostile are clouds that make naive orders, walks or insertions quadratic,
// besides the generators.
var hostile = []geomtest.Generator[float64]{
	{Name: "spiral", Make: shape(func(s float64, _ int) (x, y float64) {
		sin, cos := math.Sincos(200 * s)
		return s * cos, s * sin
	})},
	{Name: "log spiral", Make: shape(func(s float64, _ int) (x, y float64) {
		sin, cos := math.Sincos(40 * s)
		return math.Exp(20*s) * cos, math.Exp(20*s) * sin
	})},
	{Name: "moment curve", Make: shape(func(s float64, _ int) (x, y float64) { return s, s * s })},
	{Name: "two lines", Make: shape(func(s float64, i int) (x, y float64) { return s, float64(i % 2) })},
	{Name: "two lines in turn", Make: shape(func(s float64, i int) (x, y float64) {
		if i%2 == 0 {
			return s, 0
		}
		return 0, 1 + s
	})},
	{Name: "circle and centre", Make: shape(func(s float64, i int) (x, y float64) {
		if i == 0 {
			return 0, 0
		}
		return math.Cos(2 * math.Pi * s), math.Sin(2 * math.Pi * s)
	})},
	{Name: "half a circle, half a line", Make: shape(func(s float64, i int) (x, y float64) {
		if i%2 == 0 {
			return 0, s - 0.5
		}
		return -math.Sin(math.Pi * s), math.Cos(math.Pi * s)
	})},
	{Name: "squares in squares", Make: shape(func(s float64, i int) (x, y float64) {
		size := math.Pow(0.5, float64(i%50))
		return size * s, size * math.Mod(s*997, 1)
	})},
	{Name: "line and outliers", Make: shape(func(s float64, i int) (x, y float64) {
		if i%1000 == 0 {
			return 1e9 * s, -1e9 * s * s
		}
		return s, 1e-9 * s * s
	})},
}

// shape makes a generator of f's points, s running from 0 to 1.
func shape(f func(s float64, i int) (x, y float64)) func(n int, _ uint64) geom.Cloud[float64] {
	return func(n int, _ uint64) (c geom.Cloud[float64]) {
		for i := range n {
			x, y := f(float64(i)/float64(n), i)
			c.X, c.Y = append(c.X, x), append(c.Y, y)
		}
		return c
	}
}

// No cloud is quadratic: triangles walked through and dug out a point are
// bounded, and do not grow when points become four times as many. Two
// goroutines may waste two walks of bounded length on a point.
func TestNoCloudIsQuadratic(t *testing.T) {
	var one delaunay.Triangulator[float64]
	two := delaunay.Triangulator[float64]{Workers: 2}
	for _, g := range slices.Concat(geomtest.Generators2D[float64](), hostile) {
		n := 3000
		if g.Name == "spread" {
			n = 500 // exact arithmetic over the whole range
		}
		small, large := g.Make(n, 1), g.Make(4*n, 1)
		before, after := perPoint(&one, small), perPoint(&one, large)
		if after > 20 || after > 1.3*before+4 {
			t.Errorf("%s: %.1f triangles a point for %d points, %.1f for %d", g.Name, before, small.Len(), after,
				large.Len())
		}
		if g.Name == "spread" {
			continue
		}
		shared := g.Make(34_000, 1) // enough for two
		if steps := perPoint(&two, shared); steps > 60 {
			t.Errorf("%s, two workers: %.1f triangles a point for %d points", g.Name, steps, shared.Len())
		}
	}
}

func perPoint(tr *delaunay.Triangulator[float64], c geom.Cloud[float64]) float64 {
	return float64(tr.Steps(c)) / float64(c.Len())
}

func mostSteps(t *testing.T, tr *delaunay.Triangulator[float64], name string, c geom.Cloud[float64], limit int) {
	t.Helper()
	if steps := tr.Steps(c); steps > limit*c.Len() {
		t.Errorf("%s: %d triangles visited for %d points, want at most %d a point", name, steps, c.Len(), limit)
	}
}
