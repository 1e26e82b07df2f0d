package exact_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"pgregory.net/rapid"

	"entropipe/algos/exact"
	"entropipe/algos/geomtest"
)

// coordinate draws what geometry is made of: small integers that tie, float32
// values, neighbours of a line, and the ends of the range.
var coordinate = rapid.Custom(func(t *rapid.T) float64 {
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0, 1:
		return float64(rapid.IntRange(-4, 4).Draw(t, "small"))
	case 2:
		return float64(rapid.Float32Range(-100, 100).Draw(t, "float32"))
	case 3: // 0.5 and the floats around it
		v := 0.5
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			v = math.Nextafter(v, 1)
		}
		return v
	case 4:
		return 1e7 + rapid.Float64Range(0, 1).Draw(t, "utm")
	case 5:
		return math.Ldexp(rapid.Float64Range(-1, 1).Draw(t, "mantissa"), rapid.IntRange(-1074, 1023).Draw(t, "exponent"))
	}
	return rapid.Float64Range(-10, 10).Draw(t, "v")
})

func points(t *rapid.T, n int) []float64 {
	return rapid.SliceOfN(coordinate, 2*n, 2*n).Draw(t, "points")
}

func orient(p []float64, i, j, k int) int {
	return exact.Orient2D(p[2*i], p[2*i+1], p[2*j], p[2*j+1], p[2*k], p[2*k+1])
}

func inCircle(p []float64, i, j, k, l int) int {
	return exact.InCircle(p[2*i], p[2*i+1], p[2*j], p[2*j+1], p[2*k], p[2*k+1], p[2*l], p[2*l+1])
}

// rationalOrient and rationalInCircle are the determinants in fractions,
// without any shortcut.
func rationalOrient(p []float64) int {
	x, y := rationals(p)
	l := new(big.Rat).Mul(sub(x[0], x[2]), sub(y[1], y[2]))
	r := new(big.Rat).Mul(sub(y[0], y[2]), sub(x[1], x[2]))
	return l.Cmp(r)
}

func rationalInCircle(p []float64) int {
	x, y := rationals(p)
	det := new(big.Rat)
	for i := range 3 {
		j, k := (i+1)%3, (i+2)%3
		xi, yi := sub(x[i], x[3]), sub(y[i], y[3])
		lift := new(big.Rat).Add(new(big.Rat).Mul(xi, xi), new(big.Rat).Mul(yi, yi))
		minor := sub(new(big.Rat).Mul(sub(x[j], x[3]), sub(y[k], y[3])), new(big.Rat).Mul(sub(x[k], x[3]), sub(y[j], y[3])))
		det.Add(det, new(big.Rat).Mul(lift, minor))
	}
	return det.Sign()
}

func rationals(p []float64) (x, y []*big.Rat) {
	for i := 0; i < len(p); i += 2 {
		x = append(x, new(big.Rat).SetFloat64(p[i]))
		y = append(y, new(big.Rat).SetFloat64(p[i+1]))
	}
	return x, y
}

func sub(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }

func TestOrient2DAgreesWithRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := points(t, 3)
		if got, want := orient(p, 0, 1, 2), rationalOrient(p); got != want {
			t.Fatalf("Orient2D(%v) = %d, want %d", p, got, want)
		}
	})
}

func TestInCircleAgreesWithRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := points(t, 4)
		if got, want := inCircle(p, 0, 1, 2, 3), rationalInCircle(p); got != want {
			t.Fatalf("InCircle(%v) = %d, want %d", p, got, want)
		}
	})
}

// Rotating the arguments changes nothing, swapping two changes the sign, and
// so does the mirror; scaling by powers of two changes nothing.
func TestSignLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := points(t, 4)
		o, c := orient(p, 0, 1, 2), inCircle(p, 0, 1, 2, 3)
		if orient(p, 1, 2, 0) != o || orient(p, 2, 0, 1) != o || orient(p, 1, 0, 2) != -o || orient(p, 0, 2, 1) != -o {
			t.Fatalf("orientation of %v depends on the order of its points", p)
		}
		if inCircle(p, 1, 2, 0, 3) != c || inCircle(p, 1, 0, 2, 3) != -c || inCircle(p, 0, 2, 1, 3) != -c || inCircle(p, 0, 1, 3, 2) != -c {
			t.Fatalf("in-circle sign of %v depends on the order of its points", p)
		}
		mirror := append([]float64(nil), p...)
		for i := 0; i < len(mirror); i += 2 {
			mirror[i] = -mirror[i]
		}
		if orient(mirror, 0, 1, 2) != -o || inCircle(mirror, 0, 1, 2, 3) != -c {
			t.Fatalf("%v and its mirror have the same signs", p)
		}
	})
}

// Points a few ulps off a line and off a circle: what a filter alone gets wrong.
func TestNeighboursOfLineAndCircle(t *testing.T) {
	wrong := 0
	for i := range 64 {
		for j := range 64 {
			p := []float64{step(.5, i), step(.5, j), 12, 12, 24, 24}
			got, want := orient(p, 0, 1, 2), rationalOrient(p)
			if got != want {
				t.Fatalf("Orient2D(%v) = %d, want %d", p, got, want)
			}
			if det := (p[0]-24)*(12-24) - (p[1]-24)*(12-24); (det > 0) != (want > 0) || (det < 0) != (want < 0) {
				wrong++
			}
			q := []float64{1, 0, 0, 1, -1, 0, step(0, i), step(-1, j)}
			if got, want := inCircle(q, 0, 1, 2, 3), rationalInCircle(q); got != want {
				t.Fatalf("InCircle(%v) = %d, want %d", q, got, want)
			}
		}
	}
	if wrong == 0 {
		t.Error("the plain determinant is right for all of these: the test is too easy")
	}
}

func step(v float64, n int) float64 {
	for range n {
		v = math.Nextafter(v, math.Inf(1))
	}
	return v
}

// The published fixtures of 1000 hard cases each.
func TestPublishedFixtures(t *testing.T) {
	for name, test := range map[string]struct {
		n    int
		sign func(p []float64) int
	}{
		"orient2d": {3, func(p []float64) int { return orient(p, 0, 1, 2) }},
		"incircle": {4, func(p []float64) int { return inCircle(p, 0, 1, 2, 3) }},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(geomtest.TestData(t, "oracles", "robust_predicates", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			cases := 0
			for sc := bufio.NewScanner(f); sc.Scan(); cases++ {
				p := make([]float64, 2*test.n)
				var id, want int
				args := []any{&id}
				for i := range p {
					args = append(args, &p[i])
				}
				if _, err := fmt.Sscan(sc.Text(), append(args, &want)...); err != nil {
					t.Fatalf("%q: %v", sc.Text(), err)
				}
				// The fixtures count a point left of the line, and inside the circle,
				// of the opposite sign.
				exactSign := rationalOrient(p[:6])
				if test.n == 4 {
					exactSign = rationalInCircle(p)
				}
				if got := test.sign(p); got != exactSign || abs(got) != abs(want) {
					t.Errorf("case %d: %d, fixture %d, rational %d: %v", id, got, want, exactSign, p)
				}
			}
			if cases != 1000 {
				t.Errorf("%d cases, want 1000", cases)
			}
		})
	}
}

func abs(v int) int { return max(v, -v) }

func FuzzOrient2D(f *testing.F) {
	f.Add(encode(0, 0, 1, 1, 2, 2))
	f.Add(encode(1e308, -1e308, -1e308, 5e-324, 0.1, 0.3))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p := decode(b, 6); p != nil {
			if got, want := orient(p, 0, 1, 2), rationalOrient(p); got != want {
				t.Errorf("Orient2D(%v) = %d, want %d", p, got, want)
			}
		}
	})
}

func FuzzInCircle(f *testing.F) {
	f.Add(encode(0, 0, 1, 0, 1, 1, 0, 1))
	f.Add(encode(1e-160, 0, 1e160, 0.1, 3, -7, 5e-324, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p := decode(b, 8); p != nil {
			if got, want := inCircle(p, 0, 1, 2, 3), rationalInCircle(p); got != want {
				t.Errorf("InCircle(%v) = %d, want %d", p, got, want)
			}
		}
	})
}

func encode(v ...float64) (b []byte) {
	for _, w := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(w))
	}
	return b
}

// decode reads n finite numbers, nil if there are fewer.
func decode(b []byte, n int) []float64 {
	p := make([]float64, n)
	for i := range p {
		if len(b) < 8 {
			return nil
		}
		p[i], b = math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:]
		if p[i]-p[i] != 0 {
			return nil
		}
	}
	return p
}

func TestPredicatesDoNotAllocate(t *testing.T) {
	grid := []float64{0, 0, 1, 0, 1, 1, 0, 1}
	tails := []float64{0.1, 0.1, 1e7, 0.1, 1e7, 1e7, 0.1, 1e7}
	for _, p := range [][]float64{grid, tails} {
		if n := testing.AllocsPerRun(100, func() { orient(p, 0, 1, 2); inCircle(p, 0, 1, 2, 3) }); n != 0 {
			t.Errorf("%v: %v allocations", p, n)
		}
	}
}

func BenchmarkPredicates(b *testing.B) {
	const cases = 1024
	rng := rand.New(rand.NewPCG(1, 2))
	for _, cloud := range []struct {
		name string
		draw func() float64
	}{
		{"random", rng.Float64},
		{"pixels", func() float64 { return float64(rng.IntN(3)) }},
		{"lidar", func() float64 { return float64(float32(rng.IntN(3)) + 40.123) }}, // 24 bits and a common offset
		{"grid20", func() float64 { return float64(rng.IntN(3)*987654 + 1) }},
		{"tenth", func() float64 { return float64(rng.IntN(3)) / 10 }}, // differences are rounded
		{"utm", func() float64 { return 1e7 + float64(rng.IntN(3))*0.1 }},
		{"tails", func() float64 { return 0.1 + 1e7*float64(rng.IntN(3)) }}, // two limbs
		{"spread", func() float64 { return math.Ldexp(float64(rng.IntN(3)), 500*rng.IntN(3)-500) }},
	} {
		p := make([]float64, 15*cases)
		for i := range p {
			p[i] = cloud.draw()
		}
		for _, predicate := range []struct {
			name string
			call func(p []float64) int
		}{
			{"Orient2D", func(p []float64) int { return orient(p, 0, 1, 2) }},
			{"InCircle", func(p []float64) int { return inCircle(p, 0, 1, 2, 3) }},
			{"Orient3D", func(p []float64) int { return orient3(p, 0, 1, 2, 3) }},
			{"InSphere", func(p []float64) int { return inSphere(p, 0, 1, 2, 3, 4) }},
		} {
			b.Run(predicate.name+"/"+cloud.name, func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					predicate.call(p[i%cases*15:])
				}
			})
		}
	}
}

func ExampleOrient2D() {
	fmt.Println(exact.Orient2D(0, 0, 1, 0, 0, 1), exact.Orient2D(0.1, 0.1, 0.2, 0.2, 0.3, 0.30000000000000004))
	// Output: 1 1
}

func ExampleInCircle() {
	fmt.Println(exact.InCircle(0, 0, 1, 0, 1, 1, 0.5, 0.5), exact.InCircle(0, 0, 1, 0, 1, 1, 0, 1))
	// Output: 1 0
}
