package exact_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"entropipe/algos/exact"
)

// predicate is one function of the package on points that follow each other in
// p, and the determinant that defines it, in fractions.
type predicate struct {
	name         string
	dims, points int
	sign         func(p []float64) int
	rational     func(p []float64) int
}

func (q predicate) size() int { return q.dims * q.points }

var predicates = []predicate{
	{"Orient2D", 2, 3, orient, func(p []float64) int { return determinant(rows(p, 2, plain)).Sign() }},
	{"InCircle", 2, 4, inCircle, func(p []float64) int { return determinant(rows(p, 2, lifted)).Sign() }},
	// Rows are taken from the last point, but Orient3D looks from the first.
	{"Orient3D", 3, 4, orient3, func(p []float64) int { return -determinant(rows(p, 3, plain)).Sign() }},
	{"InSphere", 3, 5, inSphere, func(p []float64) int { return -determinant(rows(p, 3, lifted)).Sign() }},
}

func orient(p []float64) int { return exact.Orient2D(p[0], p[1], p[2], p[3], p[4], p[5]) }

func inCircle(p []float64) int {
	return exact.InCircle(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7])
}

func orient3(p []float64) int {
	return exact.Orient3D(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11])
}

func inSphere(p []float64) int {
	return exact.InSphere(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11], p[12], p[13], p[14])
}

// form is the kind of a determinant's rows.
type form int

const (
	plain  form = iota // differences of coordinates
	lifted             // differences and their squared length
)

// rows returns the points of p minus the last point, in the given form.
func rows(p []float64, dims int, f form) (m [][]*big.Rat) {
	last := len(p) - dims
	for i := 0; i < last; i += dims {
		var row []*big.Rat
		square := new(big.Rat)
		for k := range dims {
			d := new(big.Rat).Sub(rational(p[i+k]), rational(p[last+k]))
			square.Add(square, new(big.Rat).Mul(d, d))
			row = append(row, d)
		}
		if f == lifted {
			row = append(row, square)
		}
		m = append(m, row)
	}
	return m
}

func rational(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }

// determinant develops by the first row.
func determinant(m [][]*big.Rat) *big.Rat {
	if len(m) == 1 {
		return m[0][0]
	}
	sum := new(big.Rat)
	for k, v := range m[0] {
		if v.Sign() == 0 {
			continue
		}
		var rest [][]*big.Rat
		for _, row := range m[1:] {
			rest = append(rest, append(append([]*big.Rat(nil), row[:k]...), row[k+1:]...))
		}
		term := new(big.Rat).Mul(v, determinant(rest))
		if k%2 == 1 {
			term.Neg(term)
		}
		sum.Add(sum, term)
	}
	return sum
}

// coordinate draws what geometry is made of: small integers that tie, float32
// values, neighbours of a line, and the ends of the range.
var coordinate = rapid.Custom(func(t *rapid.T) float64 {
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0, 1:
		return float64(rapid.IntRange(-4, 4).Draw(t, "small"))
	case 2:
		return float64(rapid.Float32Range(-100, 100).Draw(t, "float32"))
	case 3: // 0.5 and the floats around it
		return step(.5, rapid.IntRange(0, 20).Draw(t, "steps"))
	case 4:
		return 1e7 + rapid.Float64Range(0, 1).Draw(t, "utm")
	case 5:
		return math.Ldexp(rapid.Float64Range(-1, 1).Draw(t, "mantissa"),
			rapid.IntRange(-1074, 1023).Draw(t, "exponent"))
	}
	return rapid.Float64Range(-10, 10).Draw(t, "v")
})

// step is the n-th float above v.
func step(v float64, n int) float64 {
	for range n {
		v = math.Nextafter(v, math.Inf(1))
	}
	return v
}

// drawn draws the points of a predicate, often with one on top of another.
func (q predicate) drawn(t *rapid.T) []float64 {
	p := rapid.SliceOfN(coordinate, q.size(), q.size()).Draw(t, "points")
	if rapid.IntRange(0, 9).Draw(t, "twin") == 0 {
		copy(p[:q.dims], p[q.dims:2*q.dims])
	}
	return p
}

// check runs a law for every predicate, as subtests.
func check(t *testing.T, law func(t *rapid.T, q predicate, p []float64)) {
	for _, q := range predicates {
		t.Run(q.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { law(t, q, q.drawn(t)) })
		})
	}
}

func TestSignsAgreeWithRationals(t *testing.T) {
	check(t, func(t *rapid.T, q predicate, p []float64) {
		if got, want := q.sign(p), q.rational(p); got != want {
			t.Fatalf("%s(%v) = %d, want %d", q.name, p, got, want)
		}
	})
}

// Swapping two points changes the sign, so an even permutation keeps it, and so
// does every rotation of an odd number of points.
func TestSwappingTwoPointsChangesTheSign(t *testing.T) {
	check(t, func(t *rapid.T, q predicate, p []float64) {
		s := q.sign(p)
		for j := range q.points {
			for i := range j {
				swapped := append([]float64(nil), p...)
				for k := range q.dims {
					a, b := i*q.dims+k, j*q.dims+k
					swapped[a], swapped[b] = swapped[b], swapped[a]
				}
				if got := q.sign(swapped); got != -s {
					t.Fatalf("%s(%v) = %d, and with points %d and %d swapped %d", q.name, p, s, i, j, got)
				}
			}
		}
		rotated := append(append([]float64(nil), p[q.dims:]...), p[:q.dims]...)
		want := s
		if q.points%2 == 0 {
			want = -s
		}
		if got := q.sign(rotated); got != want {
			t.Fatalf("%s(%v) = %d, rotated %d", q.name, p, s, got)
		}
	})
}

// A mirror changes the sign: one axis negated, or two exchanged.
func TestMirrorsChangeTheSign(t *testing.T) {
	check(t, func(t *rapid.T, q predicate, p []float64) {
		s := q.sign(p)
		for axis := range q.dims {
			negated, exchanged := append([]float64(nil), p...), append([]float64(nil), p...)
			for i := 0; i < len(p); i += q.dims {
				a, b := i+axis, i+(axis+1)%q.dims
				negated[a] = -p[a]
				exchanged[a], exchanged[b] = p[b], p[a]
			}
			if n, e := q.sign(negated), q.sign(exchanged); n != -s || e != -s {
				t.Fatalf("%s(%v) = %d; axis %d negated %d, exchanged with the next %d", q.name, p, s, axis, n, e)
			}
		}
	})
}

// Scaling by a power of two changes nothing, as far as coordinates stay what
// they were; nor does moving all points, where no coordinate is rounded.
func TestScalingAndMovingKeepTheSign(t *testing.T) {
	for _, q := range predicates {
		t.Run(q.name, func(t *testing.T) {
			scaled, moved := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				p := q.drawn(t)
				if rapid.Bool().Draw(t, "whole") { // few of the others can move
					for i, v := range p {
						p[i] = math.Floor(math.Mod(v, 8))
					}
				}
				s := q.sign(p)
				exp := rapid.IntRange(-1100, 1100).Draw(t, "exp")
				offset := rapid.SliceOfN(rapid.OneOf(coordinate, rapid.Just(0x1p20)), q.dims, q.dims).Draw(t, "offset")
				large, far := append([]float64(nil), p...), append([]float64(nil), p...)
				largeExact, farExact := true, true
				for i, v := range p {
					large[i] = math.Ldexp(v, exp)
					largeExact = largeExact && math.Ldexp(large[i], -exp) == v
					d := offset[i%q.dims]
					far[i] = v + d
					farExact = farExact && far[i]-d == v && far[i]-v == d
				}
				if largeExact {
					scaled++
					if got := q.sign(large); got != s {
						t.Fatalf("%s(%v) = %d, times 2^%d %d", q.name, p, s, exp, got)
					}
				}
				if farExact {
					moved++
					if got := q.sign(far); got != s {
						t.Fatalf("%s(%v) = %d, moved by %v %d", q.name, p, s, offset, got)
					}
				}
			})
			if scaled == 0 || moved == 0 {
				t.Errorf("%d of the clouds scaled and %d moved without rounding: the test shows nothing", scaled, moved)
			}
		})
	}
}

// A zero counts the same with either sign.
func TestSignedZeros(t *testing.T) {
	for _, q := range predicates {
		rapid.Check(t, func(t *rapid.T) {
			p := rapid.SliceOfN(rapid.SampledFrom([]float64{-1, 0, 1, 0.1, 5e-324}), q.size(),
				q.size()).Draw(t, "points")
			minus := append([]float64(nil), p...)
			for i, v := range p {
				if v == 0 && rapid.Bool().Draw(t, "minus") {
					minus[i] = math.Copysign(0, -1)
				}
			}
			if got, want := q.sign(minus), q.sign(p); got != want {
				t.Fatalf("%s(%v) = %d, with plain zeros %d", q.name, minus, got, want)
			}
		})
	}
}

// The conventions, by points anyone can see.
func TestConventions(t *testing.T) {
	corner := []float64{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}
	with := func(p []float64, last ...float64) []float64 { return append(append([]float64(nil), p...), last...) }
	for _, c := range []struct {
		name      string
		got, want int
	}{
		{"left turn", orient([]float64{0, 0, 1, 0, 0, 1}), 1},
		{"in the circle", inCircle([]float64{0, 0, 1, 0, 0, 1, .4, .4}), 1},
		{"above the plane", orient3(with(corner[:9], .3, .3, 2)), 1},
		{"below the plane", orient3(with(corner[:9], .3, .3, -2)), -1},
		{"on the plane", orient3(with(corner[:9], 7, 9, 0)), 0},
		{"in the sphere", inSphere(with(corner, .5, .5, .5)), 1},
		{"outside the sphere", inSphere(with(corner, 2, 2, 2)), -1},
		{"on the sphere", inSphere(with(corner, 1, 1, 1)), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
}

// Points a few floats off a line, circle, plane and sphere, whose signs a filter alone gets
// wrong.
func TestNeighboursOfLineAndCircle(t *testing.T) {
	side, wrong := 32, 0
	if testing.Short() {
		side = 8
	}
	for i := range side {
		for j := range side {
			u, v := step(.5, i), step(.5, j)
			for k, p := range [][]float64{
				{u, v, 12, 12, 24, 24},
				{1, 0, 0, 1, -1, 0, step(0, i), step(-1, j)},
				{u, v, .5, 12, 12, 12, 24, 24, 24, 12, 24, 18},
				{1, 0, 0, 0, 1, 0, -1, 0, 0, 0, 0, 1, step(0, i), step(-1, j), 0},
			} {
				got, want := predicates[k].sign(p), predicates[k].rational(p)
				if got != want {
					t.Fatalf("%s(%v) = %d, want %d", predicates[k].name, p, got, want)
				}
			}
			if det, want := (u-24)*(12-24)-(v-24)*(12-24), j-i; (det > 0) != (want > 0) || (det < 0) != (want < 0) {
				wrong++
			}
		}
	}
	if wrong == 0 {
		t.Error("the plain determinant is right for all of these: the test is too easy")
	}
}

func TestPredicatesDoNotAllocate(t *testing.T) {
	for _, unit := range []float64{1, 1e7, 0x1p400} {
		p := make([]float64, 15)
		for i := range p {
			p[i] = .1 + unit*float64(i*i*i%3) // coplanar and cospherical in many places
		}
		for _, q := range predicates {
			if n := testing.AllocsPerRun(100, func() { q.sign(p) }); n != 0 {
				t.Errorf("%s(%v): %v allocations", q.name, p, n)
			}
		}
	}
}
