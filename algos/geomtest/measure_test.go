package geomtest

import (
	"math"
	"math/big"
	"testing"
)

func TestMeasureExactOfKnownShapes(t *testing.T) {
	// A box of 3 by 4 by 12, far from the origin; its base first.
	at := func(x, y, z float64) [3]float64 { return [3]float64{x + 0x1p40, y - 0x1p40, z + 0x1p-10} }
	c := Points3(at(0, 0, 0), at(3, 0, 0), at(3, 4, 0), at(0, 4, 0), at(0, 0, 12), at(3, 0, 12),
		at(3, 4, 12), at(0, 4, 12))
	area, perimeter := MeasureExact(c, []int32{0, 1, 2, 3})
	if p, _ := perimeter.Float64(); area.Cmp(big.NewRat(12, 1)) != 0 || p != 14 {
		t.Errorf("3 x 4: area %v, perimeter %v", area, p)
	}
	faces := []int32{0, 2, 1, 0, 3, 2, 4, 5, 6, 4, 6, 7, 0, 1, 5, 0, 5, 4, 1, 2, 6, 1, 6, 5, 2, 3, 7, 2, 7,
		6, 3, 0, 4, 3, 4, 7}
	surface, volume := MeasureExact3(c, faces)
	if s, _ := surface.Float64(); s != 2*(12+36+48) || volume.Cmp(big.NewRat(144, 1)) != 0 {
		t.Errorf("3 x 4 x 12: area %v, volume %v", s, volume)
	}
	corner := Points3([3]float64{}, [3]float64{1}, [3]float64{0, 1}, [3]float64{0, 0, 1})
	surface, volume = MeasureExact3(corner, []int32{0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3})
	if s, _ := surface.Float64(); math.Abs(s-1.5-math.Sqrt(3)/2) > 1e-15 || volume.Cmp(big.NewRat(1, 6)) != 0 {
		t.Errorf("a corner of a cube: area %v, volume %v", s, volume)
	}
}

func TestUlps(t *testing.T) {
	power := func(e int) *big.Float { return new(big.Float).SetMantExp(big.NewFloat(1), e) }
	inf := math.Inf(1)
	for _, c := range []struct {
		got  float64
		want any
		ulps float64
	}{
		{1, big.NewRat(1, 1), 0},
		{1 + 0x1p-52, big.NewRat(1, 1), 1},
		{1 - 0x1p-53, big.NewRat(1, 1), 0.5}, // the unit is that above 1
		{-2, new(big.Rat).SetFloat64(-2 - 0x1p-50), 2},
		{1. / 3, big.NewRat(1, 3), 1. / 3},
		{0, power(-1074), 1},
		{0, power(-1076), 0.25},
		{0, big.NewRat(0, 1), 0},
		{0x1p-1074, big.NewRat(0, 1), 1},
		{inf, power(1024), 0}, {inf, power(2000), 0}, {-inf, new(big.Float).Neg(power(1024)), 0},
		{inf, power(1023), inf}, {-inf, power(1024), inf}, {inf, big.NewFloat(math.MaxFloat64), 0},
		{math.MaxFloat64, power(1024), 1},
		{math.NaN(), power(0), inf},
	} {
		if got := Ulps(c.got, c.want); math.Abs(got-c.ulps) > 1e-15 && got != c.ulps {
			t.Errorf("%g for %v: %g ulps, want %g", c.got, c.want, got, c.ulps)
		}
	}
}
