package hull

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

func TestMeasure(t *testing.T) {
	square := geomtest.Points([2]float64{0, 0}, [2]float64{3, 0}, [2]float64{3, 4}, [2]float64{0, 4})
	if a, p := Measure(square, []int32{0, 1, 2, 3}); a != 12 || p != 14 {
		t.Errorf("3 x 4: area %v, perimeter %v", a, p)
	}
	if a, p := Measure(square, []int32{0, 1, 2}); a != 6 || p != 12 {
		t.Errorf("3-4-5 triangle: area %v, perimeter %v", a, p)
	}
	for _, idx := range [][]int32{nil, {2}, {0, 2}} {
		if a, p := Measure(square, idx); a != 0 || p != 0 {
			t.Errorf("%v: area %v, perimeter %v", idx, a, p)
		}
	}
}

// A square metre stays one, ten thousand kilometres from the origin: the
// area's error is that of the coordinates, not of their products.
func TestMeasureKeepsItsDigitsFarAway(t *testing.T) {
	var h Hull2D[float64]
	for _, c := range []geom.Cloud[float64]{geomtest.UTM[float64](500, seed), geomtest.Square[float64](500, seed), geomtest.Gauss[float64](500, seed)} {
		idx := h.Append(nil, c)
		got, _ := Measure(c, idx)
		want := rationalArea(c, idx)
		if math.Abs(got-want) > 1e-13*want {
			t.Errorf("area %v, exactly %v", got, want)
		}
	}
}

// Coordinates at both ends of float64: a measure that a number can hold is
// right, a larger one infinite, a smaller one zero, none NaN or negative.
func TestMeasureAtTheEndsOfTheRange(t *testing.T) {
	for _, c := range []struct {
		side            float64
		area, perimeter float64
	}{
		{1e308, math.Inf(1), math.Inf(1)},
		{0x1p1022, math.Inf(1), math.Inf(1)},
		{0x1p1020, math.Inf(1), 0x1p1023},
		{0x1p510, 0x1p1022, 0x1p513},
		{0x1p-500, 0x1p-998, 0x1p-497},
		{0x1p-538, 0x1p-1074, 0x1p-535},
		{0x1p-1074, 0, 8 * 0x1p-1074},
	} {
		s := c.side // half of it, in fact: a square around the origin
		square := geomtest.Points([2]float64{-s, -s}, [2]float64{s, -s}, [2]float64{s, s}, [2]float64{-s, s})
		if a, p := Measure(square, []int32{0, 1, 2, 3}); a != c.area || p != c.perimeter {
			t.Errorf("square of ±%g: area %g, perimeter %g; want %g, %g", s, a, p, c.area, c.perimeter)
		}
	}
}

// Three points of which the exact predicates say that they turn left enclose no
// negative area, however flat they lie.
func TestMeasureOfSliversIsNotNegative(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 0))
	var h Hull2D[float64]
	for n := range 20000 {
		a, b := rng.Float64(), rng.Float64()
		var p [3][2]float64
		for k := range p {
			s := rng.Float64() * 1e3
			p[k] = [2]float64{a + s*b, b + s*a}
		}
		c := geomtest.Points(p[:]...)
		idx := h.Append(nil, c)
		got, _ := Measure(c, idx)
		if want := rationalArea(c, idx); got < 0 || len(idx) == 3 && math.Abs(got-want) > 1e-9 {
			t.Fatalf("seed %d, sliver %d, %v: area %g, exactly %g", seed, n, p, got, want)
		}
	}
}

func rationalArea(c geom.Cloud[float64], idx []int32) float64 {
	rat := func(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }
	sum := new(big.Rat)
	for k, i := range idx {
		j := idx[(k+1)%len(idx)]
		sum.Add(sum, new(big.Rat).Mul(rat(c.X[i]), rat(c.Y[j])))
		sum.Sub(sum, new(big.Rat).Mul(rat(c.X[j]), rat(c.Y[i])))
	}
	area, _ := sum.Quo(sum, rat(2)).Float64()
	return area
}
