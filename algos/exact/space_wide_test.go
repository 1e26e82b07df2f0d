package exact

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bigVolume and bigSphere are the determinants of rows of integers: three
// points, and four with their squared lengths (so that a positive one is a
// last point inside the sphere of the others, as InSphere counts).
func bigVolume(n []*big.Int) *big.Int {
	sum := new(big.Int)
	for i := range 3 {
		j, k := 3*((i+1)%3), 3*((i+2)%3)
		cross := new(big.Int).Sub(mul(n[j], n[k+1]), mul(n[k], n[j+1]))
		sum.Add(sum, mul(n[3*i+2], cross))
	}
	return sum
}

func bigSphere(n []*big.Int) *big.Int {
	sum := new(big.Int)
	for i := range 4 {
		lift := new(big.Int)
		var rest []*big.Int
		for j := range 4 {
			p := n[3*j : 3*j+3]
			if j != i {
				rest = append(rest, p...)
				continue
			}
			for _, c := range p {
				lift.Add(lift, mul(c, c))
			}
		}
		term := mul(lift, bigVolume(rest))
		if i%2 == 1 {
			term.Neg(term)
		}
		sum.Add(sum, term)
	}
	return sum
}

func mul(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }

// bigDifferences returns the points of v less the last, times 2^1074.
func bigDifferences(v []float64) (n []*big.Int) {
	whole := func(f float64) *big.Int {
		i, _ := new(big.Float).SetMantExp(big.NewFloat(f), 1074).Int(nil)
		return i
	}
	last := len(v) - 3
	for i := range last {
		n = append(n, new(big.Int).Sub(whole(v[i]), whole(v[last+i%3])))
	}
	return n
}

// The wide stage in space alone, at every length of its integers: anything, a
// box (a sphere through its corners) and its neighbourhood, a plane and its
// neighbourhood.
func TestWideStageInSpaceAtEveryLength(t *testing.T) {
	const seed = 14
	r := rand.New(rand.NewPCG(seed, 0))
	step, zeros := 7, 0
	if testing.Short() {
		step = 31
	}
	for bits := 1; bits <= 2046; bits += step {
		low := r.IntN(2046-bits+1) - 1022
		draw := func() float64 { return math.Ldexp(2*r.Float64()-1, low+r.IntN(bits+1)) }
		a, b, c := draw(), draw(), draw()
		for _, v := range [][15]float64{
			{draw(), draw(), draw(), draw(), draw(), draw(), draw(), draw(), draw(), draw(), draw(), draw(),
				draw(), draw(), draw()},
			{a, b, c, a, b, -c, -a, b, -c, a, -b, c, -a, -b, -c},
			{a, b, c, a, b, -c, -a, b, -c, a, -b, c, -a, -b, math.Nextafter(-c, 0)},
			{a, b, a, b, a, b, c, -a, c, -b, c, -b, -c, -c, -c}, // x = z
			{a, b, a, b, a, b, c, -a, c, -b, c, math.Nextafter(-b, 0), -c, a, -c},
		} {
			p := [12]float64(v[:12])
			n := bigDifferences(p[:])
			if got, want := orient3DWide(&p), -bigVolume(n).Sign(); got != want {
				t.Errorf("seed %d, %d bits: orient3DWide(%v) = %d, want %d", seed, bits, p, got, want)
			}
			want := bigSphere(bigDifferences(v[:])).Sign()
			if got := sphereWide(&v); got != want {
				t.Errorf("seed %d, %d bits: sphereWide(%v) = %d, want %d", seed, bits, v, got, want)
			}
			if want == 0 {
				zeros++
			}
		}
	}
	if zeros == 0 {
		t.Error("no five points on a sphere: the test is too easy")
	}
}

// extreme fills n with numbers of the given bits that make sums long: at the
// limit, of either sign, near zero, and anything.
func extreme(r *rand.Rand, n []int64, bits int) (whole []*big.Int) {
	limit := int64(1)<<bits - 1
	for i := range n {
		switch r.IntN(4) {
		case 0:
			n[i] = limit
		case 1:
			n[i] = -limit
		case 2:
			n[i] = int64(r.IntN(3)) - 1
		default:
			n[i] = r.Int64N(2*limit) - limit
		}
		whole = append(whole, big.NewInt(n[i]))
	}
	return whole
}

// Every stage in whole numbers alone, up to its last bit: no sum may run over.
func TestIntegersAtTheirLimit(t *testing.T) {
	const seed = 12
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		var plane [6]int64
		var space [9]int64
		var sphere [12]int64
		for _, c := range []struct {
			name string
			bits int
			n    []int64
			sign func() int
			want func(n []*big.Int) *big.Int
		}{
			{"circleWords", wordBits, plane[:], func() int { return circleWords(&plane) }, bigLifted},
			{"circleIntegers", circleBits, plane[:], func() int { return circleIntegers(&plane) }, bigLifted},
			{"volumeWords", wordBits, space[:], func() int { return volumeWords(&space) }, bigVolume},
			{"volume", spaceBits, space[:], func() int { return volume(space[0:3], space[3:6], space[6:9]).sign() },
				bigVolume},
			{"sphereWords", sphereWordBits, sphere[:], func() int { return sphereWords(&sphere) }, bigSphere},
			{"sphereIntegers", spaceBits, sphere[:], func() int { return sphereIntegers(&sphere) }, bigSphere},
		} {
			whole := extreme(r, c.n, c.bits)
			if got, want := c.sign(), c.want(whole).Sign(); got != want {
				t.Fatalf("seed %d: %s(%d) = %d, want %d", seed, c.name, c.n, got, want)
			}
		}
	}
}

// bigLifted is the determinant of InCircle.
func bigLifted(n []*big.Int) *big.Int {
	sum := new(big.Int)
	for p := range 3 {
		q, s := (p+1)%3, (p+2)%3
		lift := new(big.Int).Add(mul(n[2*p], n[2*p]), mul(n[2*p+1], n[2*p+1]))
		sum.Add(sum, mul(lift, new(big.Int).Sub(mul(n[2*q], n[2*s+1]), mul(n[2*q+1], n[2*s]))))
	}
	return sum
}

// words takes what fits and nothing else, at every place of the exponent.
func TestWordsKeepEveryBit(t *testing.T) {
	const seed = 15
	r := rand.New(rand.NewPCG(seed, 0))
	taken := 0
	for exp := -1074; exp <= 1023; exp++ {
		long := r.IntN(2) // one bit too many for some of the calls
		bits := wordBits + long
		var d [6]float64
		for i := range d {
			d[i] = math.Ldexp(float64(r.Int64N(1<<bits)), exp-bits+r.IntN(2))
		}
		if r.IntN(4) == 0 {
			d[r.IntN(len(d))] = 5e-324
		}
		var n [6]int64
		if !words(n[:], d[:], wordBits) {
			continue
		}
		taken++
		var unit float64
		for i, v := range n {
			if v != 0 {
				unit = d[i] / float64(v)
			}
		}
		for i, v := range n {
			if float64(v)*unit != d[i] || v >= 1<<wordBits {
				t.Fatalf("seed %d: words(%v) = %d", seed, d, n)
			}
		}
	}
	if taken < 200 {
		t.Errorf("only %d sets of differences fit", taken)
	}
}

// The least and the largest floats together in space.
func TestEndsOfTheRangeInSpace(t *testing.T) {
	const seed, m, e = 16, math.MaxFloat64, 5e-324
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		var v [15]float64
		for i := range v {
			v[i] = []float64{-m, -e, 0, e, m}[r.IntN(5)]
		}
		if got, want := Orient3D(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11]),
			-bigVolume(bigDifferences(v[:12])).Sign(); got != want {
			t.Fatalf("seed %d: Orient3D(%v) = %d, want %d", seed, v[:12], got, want)
		}
		if got, want := InSphere(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13],
			v[14]), bigSphere(bigDifferences(v[:])).Sign(); got != want {
			t.Fatalf("seed %d: InSphere(%v) = %d, want %d", seed, v, got, want)
		}
	}
}
