package solids

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Law: every class has a maker, its longest side is near 1 around the origin, and the
// same source draws the same solid.
func TestSolids(t *testing.T) {
	if len(makers) != len(Classes) {
		t.Fatalf("%d makers of %d classes", len(makers), len(Classes))
	}
	for class, name := range Classes {
		for seed := range uint64(20) {
			draw := func() []float32 {
				r := rand.New(rand.NewPCG(seed, uint64(class)))
				return New(class, r).Append(nil, 3000, 0, r)
			}
			points := draw()
			if again := draw(); !slices.Equal(points, again) {
				t.Fatalf("%s, seed %d: two drawings differ", name, seed)
			}
			longest := 0.0
			for d := range 3 {
				lo, hi := math.Inf(1), math.Inf(-1)
				for i := d; i < len(points); i += 3 {
					lo, hi = min(lo, float64(points[i])), max(hi, float64(points[i]))
				}
				longest = max(longest, hi-lo)
				if math.Abs(lo+hi) > .3 {
					t.Errorf("%s, seed %d: axis %d from %v to %v is not centred", name, seed, d, lo, hi)
				}
			}
			if longest < .9 || longest > 1.2 {
				t.Errorf("%s, seed %d: the longest side is %v", name, seed, longest)
			}
		}
	}
}

// Law: points of a torus lie on it, and as many on its outer half as its area says.
func TestTorusIsEven(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	s := &Solid{scale: 1, cos: 1}
	s.torus(1, .5)
	outer, all := 0, 20000
	for range all {
		p := s.point(r)
		ring := math.Hypot(p[0], p[1])
		if d := math.Hypot(ring-1, p[2]); math.Abs(d-.5) > 1e-9 {
			t.Fatalf("%v is %v from the ring", p, d)
		}
		if ring > 1 {
			outer++
		}
	}
	want := .5 + .5/math.Pi // ∫ (1 + cos/2) over the outer half
	if got := float64(outer) / float64(all); math.Abs(got-want) > .015 {
		t.Errorf("share of the outer half %v, want %v", got, want)
	}
}
