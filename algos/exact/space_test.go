package exact_test

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"entropipe/algos/exact"
)

func orient3(p []float64, i, j, k, l int) int {
	a, b, c, d := p[3*i:], p[3*j:], p[3*k:], p[3*l:]
	return exact.Orient3D(a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2], d[0], d[1], d[2])
}

func inSphere(p []float64, i, j, k, l, m int) int {
	a, b, c, d, e := p[3*i:], p[3*j:], p[3*k:], p[3*l:], p[3*m:]
	return exact.InSphere(a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2], d[0], d[1], d[2], e[0], e[1], e[2])
}

// rationalOrient3 and rationalInSphere are the determinants in fractions, as
// Leibniz' sum over permutations of a matrix with a row a point.
func rationalOrient3(p []float64) int {
	rows := make([][]*big.Rat, 3)
	for i := range rows {
		for k := range 3 {
			rows[i] = append(rows[i], sub(rational(p[3*i+3+k]), rational(p[k])))
		}
	}
	return determinant(rows).Sign()
}

func rationalInSphere(p []float64) int {
	rows := make([][]*big.Rat, 4)
	for i := range rows {
		lift := new(big.Rat)
		for k := range 3 {
			d := sub(rational(p[3*i+k]), rational(p[12+k]))
			rows[i] = append(rows[i], d)
			lift.Add(lift, new(big.Rat).Mul(d, d))
		}
		rows[i] = append(rows[i], lift)
	}
	return -determinant(rows).Sign()
}

func rational(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }

// determinant develops by the first row.
func determinant(rows [][]*big.Rat) *big.Rat {
	if len(rows) == 0 {
		return big.NewRat(1, 1)
	}
	sum := new(big.Rat)
	for k, v := range rows[0] {
		var rest [][]*big.Rat
		for _, row := range rows[1:] {
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

func TestOrient3DAgreesWithRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(coordinate, 12, 12).Draw(t, "points")
		if got, want := orient3(p, 0, 1, 2, 3), rationalOrient3(p); got != want {
			t.Fatalf("Orient3D(%v) = %d, want %d", p, got, want)
		}
	})
}

func TestInSphereAgreesWithRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(coordinate, 15, 15).Draw(t, "points")
		if got, want := inSphere(p, 0, 1, 2, 3, 4), rationalInSphere(p); got != want {
			t.Fatalf("InSphere(%v) = %d, want %d", p, got, want)
		}
	})
}

// The conventions, by points anyone can see.
func TestSidesOfPlaneAndSphere(t *testing.T) {
	p := []float64{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, .25, .25, .25, 2, 2, 2, 1, 1, 1, .5, .5, 0}
	for _, c := range []struct {
		name      string
		got, want int
	}{
		{"above", orient3(p, 0, 1, 2, 3), 1}, {"below", orient3(p, 0, 2, 1, 3), -1}, {"on the plane", orient3(p, 0, 1, 2, 7), 0},
		{"inside", inSphere(p, 0, 1, 2, 3, 4), 1}, {"outside", inSphere(p, 0, 1, 2, 3, 5), -1}, {"on the sphere", inSphere(p, 0, 1, 2, 3, 6), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
}

func ExampleOrient3D() {
	// The floor, seen counter-clockwise from above, and a point over it.
	fmt.Println(exact.Orient3D(0, 0, 0, 1, 0, 0, 0, 1, 0, 0.3, 0.3, 2))
	// Output: 1
}

func ExampleInSphere() {
	fmt.Println(exact.InSphere(0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0.5, 0.5, 0.5))
	// Output: 1
}
