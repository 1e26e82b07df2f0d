package exact_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
)

var campaign = flag.Int("campaign", 1000, "random sets of points per predicate, against fractions")

// family draws the points of one call.
type family struct {
	name string
	draw func(r *rand.Rand, dims, points int) []float64
}

// families are the places where geometry goes wrong.
var families = []family{
	{"grid", each(func(r *rand.Rand) float64 { return float64(r.IntN(4)) })},
	{"flat", flat},
	{"flat, one float off", nudged(flat)},
	{"round", round},
	{"round, one float off", nudged(round)},
	{"twins", twins},
	{"utm", each(func(r *rand.Rand) float64 { return 1e7 + float64(r.IntN(4))*0.1 })},
	{"utm round", moved(round, 1e7)},
	{"1e-150", scaled(flat, 1e-150)},
	{"1e+150", scaled(flat, 1e150)},
	{"1e±150", each(func(r *rand.Rand) float64 {
		return float64(r.IntN(3)-1) * math.Pow(1e150, float64(r.IntN(3)-1))
	})},
	{"float32", each(func(r *rand.Rand) float64 { return float64(r.Float32()) })},
	{"float32 subnormal", each(func(r *rand.Rand) float64 {
		return float64(r.IntN(9)-4) * math.SmallestNonzeroFloat32
	})},
	{"denormal", each(func(r *rand.Rand) float64 { return float64(r.IntN(9)-4) * math.SmallestNonzeroFloat64 })},
	{"ends", each(func(r *rand.Rand) float64 {
		return []float64{-math.MaxFloat64, -5e-324, 0, 1, 5e-324, math.MaxFloat64}[r.IntN(6)]
	})},
	{"spread", each(func(r *rand.Rand) float64 { return math.Ldexp(2*r.Float64()-1, r.IntN(2097)-1073) })},
}

func each(value func(r *rand.Rand) float64) func(r *rand.Rand, dims, points int) []float64 {
	return func(r *rand.Rand, dims, points int) []float64 {
		p := make([]float64, dims*points)
		for i := range p {
			p[i] = value(r)
		}
		return p
	}
}

// flat has the points near a line or plane through decimal fractions: on it,
// were there no rounding.
func flat(r *rand.Rand, dims, points int) []float64 {
	p := make([]float64, dims*points)
	base, u, v := direction(r, dims), direction(r, dims), direction(r, dims)
	for i := range points {
		s, t := float64(r.IntN(9)-4), float64(r.IntN(9)-4)
		if dims == 2 {
			t = 0
		}
		for k := range dims {
			p[i*dims+k] = base[k] + s*u[k] + t*v[k]
		}
	}
	return p
}

func direction(r *rand.Rand, dims int) []float64 {
	unit := []float64{1, 0.1, 0.25}[r.IntN(3)]
	v := make([]float64, dims)
	for k := range v {
		v[k] = float64(r.IntN(21)-10) * unit
	}
	return v
}

// round has the points on one circle or sphere: an integer vector with its
// coordinates exchanged and negated, round a centre of integers.
func round(r *rand.Rand, dims, points int) []float64 {
	radius, centre := make([]float64, dims), make([]float64, dims)
	for k := range dims {
		radius[k], centre[k] = float64(r.IntN(1000)), float64(r.IntN(100))
	}
	p := make([]float64, 0, dims*points)
	for range points {
		for k, from := range r.Perm(dims) {
			v := radius[from]
			if r.IntN(2) == 0 {
				v = -v
			}
			p = append(p, centre[k]+v)
		}
	}
	return p
}

// twins has fewer places than points.
func twins(r *rand.Rand, dims, points int) []float64 {
	p := each((*rand.Rand).NormFloat64)(r, dims, points)
	i, j := r.IntN(points), r.IntN(points)
	copy(p[i*dims:][:dims], p[j*dims:])
	return p
}

// nudged moves some coordinates to a neighbouring float.
func nudged(draw func(r *rand.Rand, dims, points int) []float64) func(r *rand.Rand, dims, points int) []float64 {
	return func(r *rand.Rand, dims, points int) []float64 {
		p := draw(r, dims, points)
		for i, v := range p {
			if r.IntN(4) == 0 {
				p[i] = math.Nextafter(v, math.Inf(1-2*r.IntN(2)))
			}
		}
		return p
	}
}

func scaled(draw func(r *rand.Rand, dims, points int) []float64, by float64) func(r *rand.Rand, dims,
	points int) []float64 {
	return func(r *rand.Rand, dims, points int) []float64 {
		p := draw(r, dims, points)
		for i := range p {
			p[i] *= by
		}
		return p
	}
}

func moved(draw func(r *rand.Rand, dims, points int) []float64, by float64) func(r *rand.Rand, dims,
	points int) []float64 {
	return func(r *rand.Rand, dims, points int) []float64 {
		p := draw(r, dims, points)
		for i := range p {
			p[i] += by
		}
		return p
	}
}

// Every predicate on every family; go test -run Campaign -v -campaign 100000
// makes the record. Counts are printed, and a mixture that hardly ever gave one
// of the three signs would prove little.
func TestCampaign(t *testing.T) {
	const seed = 31
	sets := *campaign
	if testing.Short() {
		sets /= 5
	}
	for _, q := range predicates {
		t.Run(q.name, func(t *testing.T) {
			var total [3]int
			for k, f := range families {
				r := rand.New(rand.NewPCG(seed, uint64(k)))
				var counts [3]int
				n := (sets + len(families) - 1) / len(families)
				for range n {
					p := f.draw(r, q.dims, q.points)
					got, want := q.sign(p), q.rational(p)
					if got != want {
						t.Fatalf("family %s, seed %d: %s(%v) = %d, want %d", f.name, seed, q.name, p, got, want)
					}
					counts[want+1]++
					total[want+1]++
				}
				t.Logf("%-22s %7d sets: %6d -, %6d 0, %6d +", f.name, n, counts[0], counts[1], counts[2])
			}
			sum := total[0] + total[1] + total[2]
			t.Logf("%s: %d sets agree: %d -, %d 0, %d +", q.name, sum, total[0], total[1], total[2])
			if least := min(total[0], total[1], total[2]); least < sum/20 {
				t.Errorf("one of the signs came up only %d times", least)
			}
		})
	}
}
