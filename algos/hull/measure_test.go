package hull

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// mostUlps is how far a measure may be off, in units in the last place.
const mostUlps = 4

func TestMeasure(t *testing.T) {
	square := geomtest.Points([2]float64{0, 0}, [2]float64{3, 0}, [2]float64{3, 4}, [2]float64{0, 4})
	if a, p := Measure(square, []int32{0, 1, 2, 3}); a != 12 || p != 14 {
		t.Errorf("3 x 4: area %v, perimeter %v", a, p)
	}
	if a, p := Measure(square, []int32{0, 1, 2}); a != 6 || p != 12 {
		t.Errorf("3-4-5 triangle: area %v, perimeter %v", a, p)
	}
	if a, p := Measure(square, []int32{3, 2, 1, 0}); a != 0 || p != 14 {
		t.Errorf("3 x 4, clockwise: area %v, perimeter %v", a, p)
	}
	zeros := geom.Cloud[float64]{X: make([]float64, 4), Y: make([]float64, 4), Z: make([]float64, 4)}
	if a, p := Measure(zeros, []int32{0, 1, 2}); a != 0 || p != 0 {
		t.Errorf("equal points: area %v, perimeter %v", a, p)
	}
	if a, v := Measure3D(zeros, []int32{0, 1, 2, 0, 2, 3}); a != 0 || v != 0 {
		t.Errorf("equal points in space: area %v, volume %v", a, v)
	}
	for _, idx := range [][]int32{nil, {2}, {0, 2}} {
		if a, p := Measure(square, idx); a != 0 || p != 0 {
			t.Errorf("%v: area %v, perimeter %v", idx, a, p)
		}
	}
	if a, v := Measure3D(geom.Cloud[float32]{}, nil); a != 0 || v != 0 {
		t.Errorf("no faces: area %v, volume %v", a, v)
	}
}

// counts are how often measures were proven in doubles, and how often not.
type counts struct{ proven, exact int }

func (n *counts) add(proven bool) {
	if proven {
		n.proven++
	} else {
		n.exact++
	}
}

// checkPlane compares the measures of the hull of c with the oracle, both as
// Measure gives them and from integers.
func checkPlane[T geom.Float](c geom.Cloud[T], n *counts) error {
	var h Hull2D[T]
	idx := h.Append(nil, c)
	area, perimeter := Measure(c, idx)
	if len(idx) < 3 {
		if area != 0 || perimeter != 0 {
			return fmt.Errorf("hull of %#v has %d vertices, area %g, perimeter %g", c, len(idx), area, perimeter)
		}
		return nil
	}
	_, _, proven := polygonInDoubles(c, idx)
	n.add(proven)
	wantArea, wantPerimeter := geomtest.MeasureExact(c, idx)
	return firstOf(fmt.Sprintf("hull %v of %#v (proven in doubles: %v)", idx, few(c, idx), proven),
		measured{"area", area, wantArea}, measured{"perimeter", perimeter, wantPerimeter},
		measured{"area in integers", exactArea(c, idx), wantArea})
}

// checkSpace is checkPlane in space.
func checkSpace[T geom.Float](c geom.Cloud[T], n *counts) error {
	var h Hull3D[T]
	v, faces, dim := h.Append(nil, nil, c)
	area, volume := Measure3D(c, faces)
	if dim < 3 {
		if area != 0 || volume != 0 {
			return fmt.Errorf("hull of %#v has dimension %d, area %g, volume %g", c, dim, area, volume)
		}
		return nil
	}
	_, _, proven := surfaceInDoubles(c, faces)
	n.add(proven)
	wantArea, wantVolume := geomtest.MeasureExact3(c, faces)
	areaInIntegers, volumeInIntegers := exactSurface(c, faces)
	return firstOf(fmt.Sprintf("faces %v of %#v (proven in doubles: %v)", faces, few(c, v), proven),
		measured{"area", area, wantArea}, measured{"volume", volume, wantVolume},
		measured{"area in integers", areaInIntegers, wantArea},
		measured{"volume in integers", volumeInIntegers, wantVolume})
}

// few returns c where it is short enough to be printed, otherwise its vertices.
func few[T geom.Float](c geom.Cloud[T], idx []int32) geom.Cloud[T] {
	if c.Len() <= 50 {
		return c
	}
	return geomtest.Gather(c, idx[:min(len(idx), 50)])
}

type measured struct {
	name string
	got  float64
	want any
}

// firstOf names the first value that is off too far.
func firstOf(what string, all ...measured) error {
	for _, m := range all {
		if e := geomtest.Ulps(m.got, m.want); !(e <= mostUlps) {
			return fmt.Errorf("%s: %s %g is %.3g ulps off", what, m.name, m.got, e)
		}
	}
	return nil
}

// Law: area, perimeter and volume are within 4 units in the last place of the
// exact values, for every distribution, near the origin and far from it, of
// ordinary size and near the ends of float64.
func TestMeasureOfEveryDistribution(t *testing.T) {
	measureDistributions[float32](t, []float64{0x1p-100, 1, 0x1p100})
	measureDistributions[float64](t, []float64{0x1p-700, 0x1p-340, 1, 0x1p340, 0x1p700})
}

func measureDistributions[T geom.Float](t *testing.T, sizes []float64) {
	var plane, space counts
	for _, size := range sizes {
		for _, move := range []float64{0, 0x1p10, 0x1p30} {
			for _, g := range geomtest.Generators2D[T]() {
				for _, n := range []int{3, 5, 40} {
					c := changed(g.Make(n, seed), move, size)
					if !c.Finite() {
						continue
					}
					if err := checkPlane(c, &plane); err != nil {
						t.Fatalf("%s[%T], %d points, seed %d, moved by %g, times %g: %v", g.Name, T(0), n,
							seed, move, size, err)
					}
				}
			}
			for _, g := range spaces[T]() {
				for _, n := range []int{4, 6, shorter(40, 20)} {
					c := changed(g.Make(n, seed), move, size)
					if !c.Finite() {
						continue
					}
					if err := checkSpace(c, &space); err != nil {
						t.Fatalf("%s[%T], %d points, seed %d, moved by %g, times %g: %v", g.Name, T(0), n,
							seed, move, size, err)
					}
				}
			}
		}
	}
	t.Logf("%T: in the plane %+v, in space %+v", T(0), plane, space)
	if plane.proven < 4*plane.exact || space.proven < 2*space.exact {
		t.Errorf("%T: doubles prove too little: in the plane %+v, in space %+v", T(0), plane, space)
	}
}

// changed returns (c + move)·size.
func changed[T geom.Float](c geom.Cloud[T], move, size float64) geom.Cloud[T] {
	change := func(v []T) []T {
		if v == nil {
			return nil
		}
		w := make([]T, len(v))
		for i := range v {
			w[i] = T((float64(v[i]) + move) * size)
		}
		return w
	}
	return geom.Cloud[T]{X: change(c.X), Y: change(c.Y), Z: change(c.Z)}
}

// nearFlat makes n points on a line and a plane through the origin that no axis
// is parallel to, of magnitude 10^0 to 10^8, each off it by a few roundings or
// by up to 2^45 of them.
func nearFlat(r *rand.Rand, n int) (line, plane geom.Cloud[float64]) {
	a, b, size := r.NormFloat64(), r.NormFloat64(), math.Pow(10, 8*r.Float64())
	rough := 0.0
	if r.IntN(2) == 0 {
		rough = size * math.Ldexp(1, -r.IntN(50))
	}
	for range n {
		x, y := size*(2*r.Float64()-1), size*(2*r.Float64()-1)
		line.X, line.Y = append(line.X, x), append(line.Y, nudge(r, a*x+rough*r.Float64()))
		plane.X, plane.Y, plane.Z = append(plane.X, x), append(plane.Y, y),
			append(plane.Z, nudge(r, a*x+b*y+rough*r.Float64()))
	}
	return line, plane
}

// The measures of flat hulls. At their flattest, area and volume are as small as the
// rounding errors of coordinates, some 2^-50 of those of their box.
func TestMeasureOfNearFlatHulls(t *testing.T) {
	var plane, space, narrow counts
	for round := range shorter(1000, 400) {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		l, p := nearFlat(r, 4+r.IntN(12))
		if err := checkPlane(l, &plane); err != nil {
			t.Fatalf("round %d, seed %d: %v", round, seed, err)
		}
		if err := checkSpace(p, &space); err != nil {
			t.Fatalf("round %d, seed %d: %v", round, seed, err)
		}
		if err := checkSpace(narrowed(p), &narrow); err != nil {
			t.Fatalf("float32, round %d, seed %d: %v", round, seed, err)
		}
	}
	t.Logf("in the plane %+v, in space %+v, in space in float32 %+v", plane, space, narrow)
	if min(plane.exact, plane.proven, space.exact, space.proven, narrow.proven) < 100 {
		t.Errorf("the sets do not reach both ways to measure: in the plane %+v, in space %+v, in float32 %+v",
			plane, space, narrow)
	}
}

// Sets that break floating-point geometry: ties, slivers, both ends of the
// range and magnitudes that have nothing in common.
func TestMeasureOfHostileSets(t *testing.T) {
	var plane, plane32, space, space32 counts
	for round := range shorter(1200, 400) {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		family := families[round%len(families)]
		c := make2[float64](r.IntN(12), family.set(r))
		if err := checkPlane(c, &plane); err != nil {
			t.Fatalf("%s, round %d, seed %d: %v", family.name, round, seed, err)
		}
		if err := checkPlane(flattened(narrowed(c)), &plane32); err != nil {
			t.Fatalf("%s in float32, round %d, seed %d: %v", family.name, round, seed, err)
		}
		kind, s := smallSet(r)
		if err := checkSpace(s, &space); err != nil {
			t.Fatalf("%s in space, round %d, seed %d: %v", kind, round, seed, err)
		}
		if err := checkSpace(narrowed(s), &space32); err != nil {
			t.Fatalf("%s in space in float32, round %d, seed %d: %v", kind, round, seed, err)
		}
	}
	t.Logf("in the plane %+v, float32 %+v, in space %+v, float32 %+v", plane, plane32, space, space32)
	if plane.exact == 0 || space.exact == 0 || plane.proven == 0 || space.proven == 0 {
		t.Error("a way to measure was never taken")
	}
}

// flattened returns c without its z.
func flattened[T geom.Float](c geom.Cloud[T]) geom.Cloud[T] { return geom.Cloud[T]{X: c.X, Y: c.Y} }

// Law: the measures of any finite points are right: of any bits, and of any
// bits near a plane.
func TestMeasureOfAnyPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 9).Draw(t, "n")
		exponents := rapid.IntRange(0, 2000).Draw(t, "exponents")
		low := rapid.IntRange(-1074, 1023-min(exponents, 2000)).Draw(t, "low")
		value := rapid.Custom(func(t *rapid.T) float64 {
			e := low + rapid.IntRange(0, exponents).Draw(t, "e")
			return math.Ldexp(1-2*rapid.Float64Range(0, 1).Draw(t, "m"), min(e, 1023))
		})
		draw := func(name string) []float64 { return rapid.SliceOfN(value, n, n).Draw(t, name) }
		c := geom.Cloud[float64]{X: draw("x"), Y: draw("y"), Z: draw("z")}
		if a, b := value.Draw(t, "a"), value.Draw(t, "b"); rapid.Bool().Draw(t, "flat") {
			for i := range c.Z {
				if z := a*c.X[i] + b*c.Y[i] + c.Z[i]*0x1p-52; z-z == 0 {
					c.Z[i] = z
				}
			}
		}
		var n2, n3 counts
		if err := checkPlane(c, &n2); err != nil {
			t.Fatal(err)
		}
		if err := checkSpace(c, &n3); err != nil {
			t.Fatal(err)
		}
	})
}

// Four points of magnitude 1e4 whose tetrahedron is so flat that products of
// differences in float64 say nothing of its volume: they gave -4.07e-5.
func TestMeasureOfTheFlatTetrahedron(t *testing.T) {
	c := geomtest.Points3(
		[3]float64{5060.398, -1723.443, -5627.530889927057}, [3]float64{-8610.71, 5979.228, 9875.558738515163},
		[3]float64{4024.078, -1510.146, -4488.810436786282}, [3]float64{3470.444, 4562.827, -3294.0380905516877})
	var n counts
	if err := checkSpace(c, &n); err != nil {
		t.Error(err)
	}
	var h Hull3D[float64]
	_, faces, _ := h.Append(nil, nil, c)
	if _, v := Measure3D(c, faces); v != 1.961036756686275e-07 || n.exact != 1 {
		t.Errorf("volume %v; %+v", v, n)
	}
}

// Coordinates at both ends of float64: a measure that a number can hold is
// right, a larger one infinite, a smaller one zero, none NaN or negative.
func TestMeasureAtTheEndsOfTheRange(t *testing.T) {
	for _, c := range []struct {
		side            float64
		area, perimeter float64
		surface, volume float64
	}{
		{1e308, math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)},
		{0x1p1022, math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)},
		{0x1p1020, math.Inf(1), 0x1p1023, math.Inf(1), math.Inf(1)},
		{0x1p510, 0x1p1022, 0x1p513, math.Inf(1), math.Inf(1)},
		{0x1p340, 0x1p682, 0x1p343, 0x1.8p684, 0x1p1023},
		{0x1p-357, 0x1p-712, 0x1p-354, 0x1.8p-710, 0x1p-1068},
		{0x1p-500, 0x1p-998, 0x1p-497, 0x1.8p-996, 0},
		{0x1p-538, 0x1p-1074, 0x1p-535, 0x1.8p-1072, 0},
		{0x1p-1074, 0, 8 * 0x1p-1074, 0, 0},
	} {
		s := c.side // half of it, in fact: a square, and a cube, around the origin
		square := geomtest.Points([2]float64{-s, -s}, [2]float64{s, -s}, [2]float64{s, s}, [2]float64{-s, s})
		if a, p := Measure(square, []int32{0, 1, 2, 3}); a != c.area || p != c.perimeter {
			t.Errorf("square of ±%g: area %g, perimeter %g; want %g, %g", s, a, p, c.area, c.perimeter)
		}
		var cube geom.Cloud[float64]
		for i := range 8 {
			at := func(bit int) float64 { return s * float64(2*(i>>bit&1)-1) }
			cube.X, cube.Y, cube.Z = append(cube.X, at(0)), append(cube.Y, at(1)), append(cube.Z, at(2))
		}
		var h Hull3D[float64]
		_, faces, _ := h.Append(nil, nil, cube)
		if a, v := Measure3D(cube, faces); a != c.surface || v != c.volume {
			t.Errorf("cube of ±%g: area %g, volume %g; want %g, %g", s, a, v, c.surface, c.volume)
		}
	}
	// A box of 1e300 · 1 · 1e-300 is flatter than any bound of doubles can tell.
	plank := geomtest.Points([2]float64{0, 0}, [2]float64{1e300, 0}, [2]float64{1e300, 1e-300}, [2]float64{0, 1e-300})
	area := new(big.Rat).Mul(new(big.Rat).SetFloat64(1e300), new(big.Rat).SetFloat64(1e-300))
	if a, _ := Measure(plank, []int32{0, 1, 2, 3}); geomtest.Ulps(a, area) > mostUlps {
		t.Errorf("a plank of 1e300 by 1e-300 has area %g", a)
	}
}

// The bits are the same on every processor, whether or not it fuses products:
// this sum of all bits was found on amd64 without fused products.
func TestMeasureBitsAreFixed(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 7))
	sum := fnv.New64a()
	var n2, n3 counts
	for round := range 300 {
		// Whole numbers and shifts of them alone: no function whose last bits could
		// differ between processors.
		flat, n := round%3, 4+r.IntN(40)
		c := geom.Cloud[float64]{}
		for range n {
			x, y, z := float64(r.Int64N(1<<50)), float64(r.Int64N(1<<50)), float64(r.Int64N(1<<50))
			if flat > 0 {
				z = 3*x + 5*y + float64(r.Int64N(1<<(8*flat)))
			}
			c.X, c.Y, c.Z = append(c.X, x*0x1p-30), append(c.Y, y*0x1p-41), append(c.Z, z*0x1p-29)
		}
		var h Hull2D[float64]
		shadow := geom.Cloud[float64]{X: c.X, Y: c.Z}
		idx := h.Append(nil, shadow)
		var h3 Hull3D[float64]
		_, faces, _ := h3.Append(nil, nil, c)
		area, perimeter := Measure(shadow, idx)
		surface, volume := Measure3D(c, faces)
		_, _, proven := polygonInDoubles(shadow, idx)
		n2.add(proven)
		_, _, proven = surfaceInDoubles(c, faces)
		n3.add(proven)
		for _, v := range []float64{area, perimeter, surface, volume} {
			fmt.Fprintf(sum, "%016x", math.Float64bits(v))
		}
	}
	if n2.proven == 0 || n3.proven == 0 || n3.exact == 0 {
		t.Errorf("a way to measure was never taken: %+v, %+v", n2, n3)
	}
	if got, want := sum.Sum64(), uint64(0x6a222b7444e7118f); got != want {
		t.Errorf("the bits are %#x, want %#x, seed %d", got, want, seed)
	}
}

// The measures of real clouds, as the pipeline computes them.
func TestMeasureOfRealFrames(t *testing.T) {
	var plane, space counts
	for i, f := range geomtest.RealFrames(t) {
		if testing.Short() && i%8 > 0 {
			continue
		}
		if err := checkPlane(f.Cloud, &plane); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if err := checkSpace(f.Cloud, &space); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	if plane.exact+space.exact > 0 {
		t.Errorf("doubles did not prove the measures of all frames: %+v, %+v", plane, space)
	}
}
