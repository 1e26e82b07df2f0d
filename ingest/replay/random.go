package replay

import "math"

// random is a splitmix64 generator (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014). Its numbers are the same
// everywhere, whatever the Go release.
type random uint64

// newRandom returns the generator that belongs to a place: a seed, and what it
// is split by. Neighbouring places are unrelated.
func newRandom(seed uint64, place ...int64) random {
	r := random(seed)
	for _, p := range place {
		r = random(r.next() ^ uint64(p)*0x9e3779b97f4a7c15)
	}
	return r
}

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// float returns a number from [0, 1).
func (r *random) float() float64 { return float64(r.next()>>11) / (1 << 53) }

// between returns a number from [lo, hi).
func (r *random) between(lo, hi float64) float64 { return lo + float64((hi-lo)*r.float()) }

// chance is true with probability p.
func (r *random) chance(p float64) bool { return r.float() < p }

// below returns a number from 0 to n-1.
func (r *random) below(n int) int { return int(float64(float64(n) * r.float())) }

// sincos returns the sine and cosine of x for |x| up to some thousand, with an
// error below 1e-12. Package math may fuse multiplications and additions, and
// then scenes would differ from one CPU to the next; every product here is
// rounded.
func sincos(x float64) (sin, cos float64) {
	turns := math.RoundToEven(x / (math.Pi / 2))
	x -= float64(turns * (math.Pi / 2))
	q := float64(x * x)
	s, c := 1.0, 1.0
	for k := 16.0; k > 0; k -= 2 { // Taylor's series, by Horner's rule
		s = 1 - float64(s*q)/((k+1)*k)
		c = 1 - float64(c*q)/(k*(k-1))
	}
	s = float64(s * x)
	switch int64(turns) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	}
	return -c, s
}
