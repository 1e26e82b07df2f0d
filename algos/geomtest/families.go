package geomtest

import (
	"math"
	"math/rand/v2"
	"slices"

	"entropipe/algos/geom"
)

// Family makes point sets of one kind in the unit square. Their entropy varies widely
// from seed to seed.
type Family struct {
	Name string
	Make func(n int, seed uint64) geom.Cloud[float64]
}

// MaximaFamilies lists ten kinds of sets for maxima in the plane: from sets with one
// point that dominates nearly all others to bands where nearly all points are maximal.
func MaximaFamilies() []Family {
	return []Family{
		family("uniform", func(r *dice, n int) drawn { return r.uniform }),
		family("normal", maximaNormal), family("band", maximaBand), family("arc", maximaArc),
		family("steps", maximaSteps), family("share", maximaShare), family("clusters", clusters(10, .5, 2.5)),
		family("depth", maximaDepth), family("corner", maximaCorner), family("tails", maximaTails),
	}
}

// HullFamilies lists twelve kinds of sets for hulls in the plane.
func HullFamilies() []Family {
	return []Family{
		family("uniform", func(r *dice, n int) drawn { return r.uniform }),
		family("disk", hullDisk), family("normal", hullNormal), family("ring", hullRing), family("share", hullShare),
		family("polygon", hullPolygon), family("parabola", hullParabola), family("clusters", clusters(8, .5, 2.5)),
		family("depth", hullDepth), family("tails", hullTails), family("stroke", hullStroke), family("edge", hullEdge),
	}
}

// drawn draws point i.
type drawn func(i int) (x, y float64)

// dice draws random numbers for families.
type dice struct{ *rand.Rand }

func (r *dice) uniform(int) (x, y float64) { return r.Float64(), r.Float64() }

// between returns a number that is uniform in [a, b).
func (r *dice) between(a, b float64) float64 { return a + (b-a)*r.Float64() }

// power returns 10 to an exponent that is uniform in [a, b).
func (r *dice) power(a, b float64) float64 { return math.Pow(10, r.between(a, b)) }

// direction returns a point that is uniform on the unit circle.
func (r *dice) direction() (x, y float64) {
	y, x = math.Sincos(2 * math.Pi * r.Float64())
	return x, y
}

// shares cuts 1 into k parts and returns their running sums. The parts have Dirichlet's
// distribution, which is the more unequal the smaller alpha is. They are made from gamma
// variates.
func (r *dice) shares(k int, alpha float64) []float64 {
	s, sum := make([]float64, k), 0.0
	for i := range s {
		sum += r.gamma(alpha)
		s[i] = sum
	}
	for i := range s {
		s[i] /= sum
	}
	return s
}

// gamma draws from the gamma distribution, by Marsaglia and Tsang's method.
func (r *dice) gamma(alpha float64) float64 {
	if alpha < 1 {
		return max(r.gamma(alpha+1)*math.Pow(r.Float64(), 1/alpha), math.SmallestNonzeroFloat64)
	}
	d := alpha - 1./3
	for {
		x := r.NormFloat64()
		v := 1 + x/math.Sqrt(9*d)
		v *= v * v
		if v > 0 && math.Log(1-r.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// pick draws a part, given the running sums of parts.
func (r *dice) pick(sums []float64) int {
	k, _ := slices.BinarySearch(sums, r.Float64())
	return min(k, len(sums)-1)
}

// student draws from Student's t distribution with nu degrees of freedom.
func (r *dice) student(nu float64) float64 {
	return r.NormFloat64() / math.Sqrt(2*r.gamma(nu/2)/nu)
}

// family makes a Family of a function that starts a drawing. It adds noise of 1e-12
// against ties, and stretches the cloud to the unit square.
func family(name string, start func(r *dice, n int) drawn) Family {
	return Family{name, func(n int, seed uint64) geom.Cloud[float64] {
		r := &dice{rand.New(rand.NewPCG(seed, 0xfa))}
		draw := start(r, n)
		c := geom.Cloud[float64]{X: make([]float64, n), Y: make([]float64, n)}
		for i := range n {
			x, y := draw(i)
			c.X[i], c.Y[i] = x+1e-12*r.NormFloat64(), y+1e-12*r.NormFloat64()
		}
		for _, v := range [][]float64{c.X, c.Y} {
			if n == 0 {
				break
			}
			lo, hi := slices.Min(v), slices.Max(v)
			for i := range v {
				v[i] = (v[i] - lo) / max(hi-lo, 1e-300)
			}
		}
		return c
	}}
}

func maximaNormal(r *dice, _ int) drawn {
	rho := (1 - math.Pow(10, -3*r.Float64())) * float64(1-2*r.IntN(2))
	return func(int) (x, y float64) {
		u, v := r.NormFloat64(), r.NormFloat64()
		return u, rho*u + math.Sqrt(1-rho*rho)*v
	}
}

func maximaBand(r *dice, _ int) drawn {
	width := r.power(-6, 0)
	return func(int) (x, y float64) {
		x = r.Float64()
		d := width * r.Float64()
		return x - d, 1 - x - d
	}
}

func maximaArc(r *dice, _ int) drawn {
	width, p := r.power(-5, 0), r.between(.3, 4)
	return func(int) (x, y float64) {
		s, c := math.Sincos(r.Float64() * math.Pi / 2)
		d := 1 - width*math.Pow(r.Float64(), p)
		return d * c, d * s
	}
}

func maximaSteps(r *dice, _ int) drawn {
	k := 2 + r.IntN(58)
	share := r.shares(k, r.power(-1, 1))
	at := make([]float64, k)
	for i := range at {
		at[i] = r.Float64()
	}
	slices.Sort(at)
	size := r.power(-4, -1)
	return func(int) (x, y float64) {
		a := at[r.pick(share)]
		return a - size*r.Float64(), 1 - a - size*r.Float64()
	}
}

func maximaShare(r *dice, _ int) drawn {
	top := math.Pow(r.Float64(), 2)
	return func(int) (x, y float64) {
		a := r.Float64()
		if r.Float64() < top {
			return a, 1 - a
		}
		return .5 * r.Float64() * a, .5 * r.Float64() * (1 - a)
	}
}

// clusters draws Gaussian clusters of one size.
func clusters(k int, least, most float64) func(r *dice, n int) drawn {
	return func(r *dice, _ int) drawn {
		at := make([][2]float64, k)
		for i := range at {
			at[i] = [2]float64{r.Float64(), r.Float64()}
		}
		size := r.power(-most, -least)
		return func(int) (x, y float64) {
			a := at[r.IntN(k)]
			return a[0] + size*r.NormFloat64(), a[1] + size*r.NormFloat64()
		}
	}
}

func maximaDepth(r *dice, _ int) drawn {
	d := r.between(1, 8)
	return func(int) (x, y float64) {
		a, depth := r.Float64(), r.power(-d, 0)
		return a - depth*r.Float64(), 1 - a - depth*r.Float64()
	}
}

func maximaCorner(r *dice, _ int) drawn {
	share := r.Float64() * .9
	return func(i int) (x, y float64) {
		if i == 0 {
			return 1.01, 1.01
		}
		if a := r.Float64(); r.Float64() < share {
			return .2 * a, 1.2 - .2*a
		}
		return r.Float64(), r.Float64()
	}
}

func maximaTails(r *dice, n int) drawn {
	both := hullTails(r, n)
	return func(i int) (x, y float64) {
		x, y = both(i)
		return math.Abs(x), math.Abs(y)
	}
}

func hullTails(r *dice, _ int) drawn {
	nu := r.between(.7, 3)
	return func(int) (x, y float64) { return r.student(nu), r.student(nu) }
}

func hullDisk(r *dice, _ int) drawn {
	return func(int) (x, y float64) {
		x, y = r.direction()
		d := math.Sqrt(r.Float64())
		return d * x, d * y
	}
}

func hullNormal(r *dice, _ int) drawn {
	shear := r.between(-2, 2)
	return func(int) (x, y float64) { x = r.NormFloat64(); return x, shear*x + r.NormFloat64() }
}

func hullRing(r *dice, _ int) drawn {
	width := r.power(-5, 0)
	return func(int) (x, y float64) {
		x, y = r.direction()
		d := 1 - width*r.Float64()
		return d * x, d * y
	}
}

func hullShare(r *dice, _ int) drawn {
	top := math.Pow(r.Float64(), 2)
	return func(int) (x, y float64) {
		x, y = r.direction()
		if r.Float64() < top {
			return x, y
		}
		d := .9 * math.Sqrt(r.Float64())
		return d * x, d * y
	}
}

func hullPolygon(r *dice, _ int) drawn {
	h := 3 + r.IntN(57)
	angle := make([]float64, h)
	for i := range angle {
		angle[i] = r.Float64() * 2 * math.Pi
	}
	slices.Sort(angle)
	share, depth := r.shares(h, r.power(-1, 1)), r.power(-4, -1)
	return func(int) (x, y float64) {
		k := r.pick(share)
		as, ac := math.Sincos(angle[k])
		bs, bc := math.Sincos(angle[(k+1)%h])
		u, d := r.Float64(), 1-depth*r.Float64()
		return d * (ac*(1-u) + bc*u), d * (as*(1-u) + bs*u)
	}
}

func hullParabola(r *dice, _ int) drawn {
	noise := r.power(-5, 0)
	return func(int) (x, y float64) { x = r.between(-1, 1); return x, -x*x - noise*r.Float64() }
}

func hullDepth(r *dice, _ int) drawn {
	most := r.between(1, 8)
	return func(int) (x, y float64) {
		x, y = r.direction()
		d := 1 - math.Pow(10, -most*r.Float64())
		return d * x, d * y
	}
}

// hullStroke draws a smooth random curve, like a pen.
func hullStroke(r *dice, n int) drawn {
	type wave struct{ size, rate, shift float64 }
	var waves [2][5]wave
	for q := range 5 {
		rate := 2 * math.Pi * float64(q+1) * r.between(.3, 1)
		for d := range waves {
			waves[d][q] = wave{r.NormFloat64() / float64(q+1), rate, r.between(0, 2*math.Pi)}
		}
	}
	noise := r.power(-5, -2)
	at := func(t float64, w *[5]wave) (v float64) {
		for _, k := range w {
			v += k.size * math.Sin(k.rate*t+k.shift)
		}
		return v + noise*r.NormFloat64()
	}
	return func(i int) (x, y float64) {
		t := float64(i) / float64(max(n-1, 1))
		return at(t, &waves[0]), at(t, &waves[1])
	}
}

// hullEdge draws points along one long edge, and others far below it.
func hullEdge(r *dice, _ int) drawn {
	bulk, depth := r.Float64(), r.power(-6, -1)
	return func(i int) (x, y float64) {
		switch {
		case i < 2:
			return float64(i), 1
		case r.Float64() < bulk:
			return r.Float64(), .5 * r.Float64()
		}
		return r.Float64(), 1 - depth*r.Float64()
	}
}
