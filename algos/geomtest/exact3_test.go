package geomtest

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// ratVolume is the volume of four points in fractions.
func ratVolume(v []float64) int {
	at := func(k, axis int) *big.Rat {
		return new(big.Rat).Sub(new(big.Rat).SetFloat64(v[3*k+axis]), new(big.Rat).SetFloat64(v[axis]))
	}
	sum := new(big.Rat)
	for axis, j := range []int{1, 2, 0} {
		k := 3 - axis - j
		cross := new(big.Rat).Sub(new(big.Rat).Mul(at(2, j), at(3, k)), new(big.Rat).Mul(at(2, k), at(3, j)))
		sum.Add(sum, cross.Mul(cross, at(1, axis)))
	}
	return sum.Sign()
}

// spaceCase draws five points: small integers, a plane of decimal fractions,
// neighbouring floats, and the whole range.
func spaceCase(r *rand.Rand) (v [15]float64) {
	kind := r.IntN(4)
	for i := range v {
		switch kind {
		case 0:
			v[i] = float64(r.IntN(4))
		case 1:
			v[i] = float64(r.IntN(40)) / 10
			if i%3 == 2 {
				v[i] = 0.1*v[i-1] + 0.3*v[i-2]
			}
		case 2:
			v[i] = 1e7 + float64(r.IntN(3))
			for range r.IntN(3) {
				v[i] = math.Nextafter(v[i], 0)
			}
		default:
			v[i] = math.Ldexp(2*r.Float64()-1, r.IntN(2097)-1073)
		}
	}
	return v
}

func TestOrientExact3IsTheVolumeInFractions(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	var seen [3]int
	for range 2000 {
		v := spaceCase(r)
		got := OrientExact3(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11])
		if want := ratVolume(v[:12]); got != want {
			t.Fatalf("seed %d: OrientExact3(%v) = %d, want %d", seed, v[:12], got, want)
		}
		seen[got+1]++
	}
	if min(seen[0], seen[1], seen[2]) < 50 {
		t.Errorf("signs came up %v times: the test is too easy", seen)
	}
}

// A point on a plane that cuts a sphere is inside the sphere where it is inside
// the circle in that plane: the sphere test has no other freedom left.
func TestInSphereExactOnAPlaneIsInCircleExact(t *testing.T) {
	const seed = 6
	r := rand.New(rand.NewPCG(seed, 0))
	var seen [3]int
	for range 2000 {
		v := spaceCase(r)
		a, b, c, e := v[0:2], v[3:5], v[6:8], v[9:11]
		top := [3]float64{v[12], v[13], math.Abs(v[14]) + 1} // on the side that sees a, b, c as they are
		got := InSphereExact(a[0], a[1], 0, b[0], b[1], 0, c[0], c[1], 0, top[0], top[1], top[2], e[0], e[1], 0)
		want := InCircleExact(a[0], a[1], b[0], b[1], c[0], c[1], e[0], e[1])
		if got != want {
			t.Fatalf("seed %d: %v and %v: in the sphere %d, in the circle %d", seed, v[:12], top, got, want)
		}
		seen[got+1]++
	}
	if min(seen[0], seen[1], seen[2]) < 50 {
		t.Errorf("signs came up %v times: the test is too easy", seen)
	}
}

// The sign of the sphere test changes when two points change places.
func TestInSphereExactIsAntisymmetric(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, 0))
	sphere := func(v [15]float64) int {
		return InSphereExact(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11],
			v[12], v[13], v[14])
	}
	for range 500 {
		v := spaceCase(r)
		for i := range 5 {
			for j := range i {
				w := v
				copy(w[3*i:3*i+3], v[3*j:3*j+3])
				copy(w[3*j:3*j+3], v[3*i:3*i+3])
				if sphere(w) != -sphere(v) {
					t.Fatalf("seed %d: points %d and %d of %v: %d, swapped %d", seed, i, j, v, sphere(v), sphere(w))
				}
			}
		}
	}
}
