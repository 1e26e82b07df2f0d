package entropy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

const seed = 11

var problems = []Problem{Maxima2D, Maxima3D, UpperHull, LowerHull, Hull2D, Hull3D}

// random is a cloud that every problem can be asked of.
func random(n int, seed uint64) geom.Cloud[float64] { return geomtest.Cube[float64](n, seed) }

// slope is the derivative of f by *v: central differences, one extrapolation.
func slope(v *float64, step float64, f func() float64) float64 {
	was := *v
	diff := func(h float64) float64 {
		*v = was + h
		up := f()
		*v = was - h
		down := f()
		*v = was
		return (up - down) / (2 * h)
	}
	return (4*diff(step/2) - diff(step)) / 3
}

// axes returns the coordinates of point i.
func axes(c geom.Cloud[float64], i int) []*float64 {
	a := []*float64{&c.X[i], &c.Y[i]}
	if c.Z != nil {
		a = append(a, &c.Z[i])
	}
	return a
}

// The gradient of F is that of F with the best weights found again, wherever F is
// smooth; it is 0 deep inside ranges.
func TestSurrogateGradientIsTheSlope(t *testing.T) {
	for _, p := range problems {
		for _, box := range []Box{UnitBox, {Lo: [3]float64{-.2, .1, 0}, Hi: [3]float64{1.3, .8, 2}}} {
			t.Run(fmt.Sprint(p, box), func(t *testing.T) {
				c := random(24, seed)
				s := Surrogate[float64]{Problem: p, Tau: 0.05, Steps: 600, Box: box}
				k := 5
				if p == Maxima2D || p == Maxima3D {
					k = 2
				}
				w := s.Witnesses(nil, c, k)
				grad := random(24, 0)
				s.Gradient(grad, c, w)
				pinned := map[int]bool{}
				for _, i := range w {
					pinned[int(i)] = true
				}
				moved, kinks := 0, 0
				for i := range c.X {
					if pinned[i] {
						continue
					}
					for d, v := range axes(c, i) {
						want := slope(v, 1e-4, func() float64 { return s.Value(c, w) })
						if got := *axes(grad, i)[d]; math.Abs(got-want) > 1e-4 {
							if other := slope(v, 3e-5, func() float64 {
								return s.Value(c, w)
							}); math.Abs(other-want) > 1e-7 {
								kinks++ // a maximum changes sides here
								continue
							}
							t.Errorf("seed %d, point %d axis %d: gradient %.9f, slope %.9f", seed, i, d, got, want)
						} else if want != 0 {
							moved++
						}
					}
				}
				if moved < 8 || kinks > 12 {
					t.Errorf("%d slopes that are not 0, %d kinks", moved, kinks)
				}
			})
		}
	}
}

// Float32 clouds get the gradient of the same cloud in float64, rounded.
func TestSurrogateOfFloat32(t *testing.T) {
	for _, p := range problems {
		small := geomtest.Cube[float32](300, seed)
		wide := geom.Cloud[float64]{X: widen(nil, small.X, 1), Y: widen(nil, small.Y, 1), Z: widen(nil, small.Z, 1)}
		a := Surrogate[float32]{Problem: p, Tau: 1e-2}
		b := Surrogate[float64]{Problem: p, Tau: 1e-2}
		w := a.Witnesses(nil, small, 16)
		ga, gb := geomtest.Cube[float32](300, 0), random(300, 0)
		if fa, fb := a.Gradient(ga, small, w), b.Gradient(gb, wide, w); fa != fb {
			t.Errorf("%v: F %v of float32, %v of float64", p, fa, fb)
		}
		for i := range ga.X {
			if ga.X[i] != float32(gb.X[i]) || ga.Y[i] != float32(gb.Y[i]) {
				t.Fatalf("%v: point %d: %v %v, in float64 %v %v", p, i, ga.X[i], ga.Y[i], gb.X[i], gb.Y[i])
			}
		}
	}
}

func TestPaperGradientsAreSlopes(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 1))
	for _, space := range []bool{false, true} {
		c, grad := random(25, seed), random(25, 0)
		if !space {
			c.Z, grad.Z = nil, nil
		}
		vec := func() (v [3]float64) {
			v[0], v[1] = r.NormFloat64(), r.NormFloat64()
			if space {
				v[2] = r.NormFloat64()
			}
			return v
		}
		anchors, gradAnchors := make([][3]float64, 5), make([][3]float64, 5)
		for j := range anchors {
			anchors[j] = vec()
		}
		b := BallEntropy[float64]{Alpha: 4}
		_, gradAlpha := b.Gradient(grad, gradAnchors, c, anchors)
		value := func() float64 { return b.Value(c, anchors) }
		same := func(name string, got float64, v *float64, value func() float64) {
			t.Helper()
			if want := slope(v, 1e-3, value); math.Abs(got-want) > 1e-9 {
				t.Errorf("seed %d, %s: gradient %.12f, slope %.12f", seed, name, got, want)
			}
		}
		same("alpha", gradAlpha, &b.Alpha, value)
		for j := range anchors {
			for d := range len(axes(c, 0)) {
				same("anchor", gradAnchors[j][d], &anchors[j][d], value)
			}
		}
		for i := range c.X {
			for d, v := range axes(c, i) {
				same("point", *axes(grad, i)[d], v, value)
			}
		}

		halves, gradHalves := make([]HalfSpace, 6), make([]HalfSpace, 6)
		for k := range halves {
			halves[k] = HalfSpace{vec(), r.Float64()}
		}
		s := CellEntropy[float64]{Tau: 0.3}
		cells := s.Cells(nil, c, halves)
		s.Gradient(grad, gradHalves, c, halves, cells)
		value = func() float64 { return s.Value(c, halves, cells) }
		for k := range halves {
			same("border", gradHalves[k].B, &halves[k].B, value)
			for d := range len(axes(c, 0)) {
				same("normal", gradHalves[k].W[d], &halves[k].W[d], value)
			}
		}
		for i := range c.X {
			for d, v := range axes(c, i) {
				same("point of cells", *axes(grad, i)[d], v, value)
			}
		}
	}
}

// The softmax form of H_soft is the product of the paper; all patterns together
// have mass 1, without a norm; and as planes sharpen it becomes the entropy of the
// hard cells.
func TestCellEntropyIsTheProductForm(t *testing.T) {
	c := geomtest.Square[float64](40, seed)
	halves := PrincipalHalves(c, 5)
	s := CellEntropy[float64]{Tau: .07}
	cells := s.Cells(nil, c, halves)
	s.Value(c, halves, cells)
	for i := range c.X {
		products, sum, every := make([]float64, len(cells)), 0.0, 0.0
		product := func(pattern uint64) float64 {
			v := 1.0
			for k, h := range halves {
				side := 1 / (1 + math.Exp(-(dot(h.W, at(c, i))-h.B)/s.Tau))
				if pattern>>k&1 == 0 {
					side = 1 - side
				}
				v *= side
			}
			return v
		}
		for j, pattern := range cells {
			products[j] = product(pattern)
			sum += products[j]
		}
		for pattern := range uint64(1) << len(halves) {
			every += product(pattern)
		}
		if math.Abs(every-1) > 1e-12 {
			t.Errorf("point %d: all patterns have mass %v", i, every)
		}
		for j := range cells {
			if got, want := s.g[i*len(cells)+j], products[j]/sum; math.Abs(got-want) > 1e-12 {
				t.Errorf("point %d, cell %b: %v, as a product %v", i, cells[j], got, want)
			}
		}
	}
	s.Tau = 1e-9
	count := map[uint64]int{}
	for i := range c.X {
		count[s.Cells(nil, c.Slice(i, i+1), halves)[0]]++
	}
	var sizes []int
	for _, n := range count {
		sizes = append(sizes, n)
	}
	if got, want := s.Value(c, halves, cells), OfSizes(sizes); math.Abs(got-want) > 1e-9 {
		t.Errorf("sharp: %v, entropy of the cells %v", got, want)
	}
}
