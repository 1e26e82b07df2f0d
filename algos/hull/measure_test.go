package hull

import (
	"math"
	"math/big"
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
