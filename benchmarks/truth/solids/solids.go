// Package solids draws clouds from the surfaces of made solids of ten classes. They stand
// in for the meshes of ShapeNet and ModelNet40, which may not be passed on: proportions,
// exponents and the turn about the upright axis are random, and so is every point.
package solids

import (
	"math"
	"math/rand/v2"
)

// Classes are the names of the classes, in the order of their numbers.
var Classes = []string{"round superquadric", "square superquadric", "torus", "cone", "cylinder", "table", "chair",
	"bench", "lamp", "bottle"}

// Solid is the surface of one solid.
type Solid struct {
	Class  int
	parts  []part
	sin    float64 // turn about z
	cos    float64
	center [3]float64
	scale  float64
}

// part is a piece of a surface with its share of the points.
type part struct {
	area float64
	draw func(r *rand.Rand) [3]float64
}

// New draws a solid of a class. Its longest side is about 1, its centre the origin.
func New(class int, r *rand.Rand) *Solid {
	s := &Solid{Class: class, scale: 1}
	s.sin, s.cos = math.Sincos(2 * math.Pi * r.Float64())
	makers[class](s, r)
	lo, hi := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}, [3]float64{math.Inf(-1), math.Inf(-1), math.Inf(-1)}
	for range 2000 {
		for d, v := range s.point(r) {
			lo[d], hi[d] = min(lo[d], v), max(hi[d], v)
		}
	}
	longest := 0.0
	for d := range lo {
		longest = max(longest, hi[d]-lo[d])
		s.center[d] = (lo[d] + hi[d]) / 2
	}
	s.scale = 1 / longest
	return s
}

// Append appends n points of the surface, x y z each, with a normal error of deviation
// noise on every coordinate.
func (s *Solid) Append(dst []float32, n int, noise float64, r *rand.Rand) []float32 {
	for range n {
		for _, v := range s.point(r) {
			dst = append(dst, float32(v+noise*r.NormFloat64()))
		}
	}
	return dst
}

// point draws a point of the surface.
func (s *Solid) point(r *rand.Rand) [3]float64 {
	total := 0.0
	for _, p := range s.parts {
		total += p.area
	}
	left := total * r.Float64()
	k := 0
	for ; k < len(s.parts)-1 && left >= s.parts[k].area; k++ {
		left -= s.parts[k].area
	}
	p := s.parts[k].draw(r)
	p[0], p[1] = s.cos*p[0]-s.sin*p[1], s.sin*p[0]+s.cos*p[1]
	for d := range p {
		p[d] = s.scale * (p[d] - s.center[d])
	}
	return p
}

// between is uniform.
func between(r *rand.Rand, lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }

// makers add the parts of each class.
var makers = []func(s *Solid, r *rand.Rand){
	func(s *Solid, r *rand.Rand) { s.superquadric(between(r, .7, 1.2), r) },
	func(s *Solid, r *rand.Rand) { s.superquadric(between(r, .15, .55), r) },
	func(s *Solid, r *rand.Rand) { s.torus(1, between(r, .15, .5)) },
	func(s *Solid, r *rand.Rand) { s.frustum(1, between(r, 0, .6), 0, between(r, .8, 3)) },
	func(s *Solid, r *rand.Rand) { s.frustum(1, between(r, .8, 1), 0, between(r, .8, 3)) },
	func(s *Solid, r *rand.Rand) { // table
		w, d, h, t := between(r, 1, 2), between(r, .8, 1.4), between(r, .6, 1.2), between(r, .05, .15)
		s.box(-w/2, w/2, -d/2, d/2, h-t, h)
		s.legs(w, d, h-t, between(r, .06, .14))
	},
	func(s *Solid, r *rand.Rand) { // chair
		w, d, h, t := between(r, .8, 1.2), between(r, .8, 1.2), between(r, .6, 1.2), between(r, .06, .15)
		s.box(-w/2, w/2, -d/2, d/2, h-t, h)
		s.box(-w/2, w/2, d/2-t, d/2, h, h+between(r, .3, 1.2))
		s.legs(w, d, h-t, between(r, .06, .14))
	},
	func(s *Solid, r *rand.Rand) { // bench: a slab on two slabs
		w, d, h, t := between(r, 1.2, 2.4), between(r, .5, 1), between(r, .5, 1), between(r, .05, .15)
		s.box(-w/2, w/2, -d/2, d/2, h-t, h)
		s.box(-w/2, -w/2+t, -d/2, d/2, 0, h-t)
		s.box(w/2-t, w/2, -d/2, d/2, 0, h-t)
	},
	func(s *Solid, r *rand.Rand) { // lamp: foot, pole, shade
		h, foot, shade := between(r, 1.2, 2.4), between(r, .3, .6), between(r, .3, .8)
		s.frustum(foot, foot, 0, .08)
		s.frustum(.05, .05, .08, h)
		s.frustum(shade, shade*between(r, .3, .9), h-.2, h+between(r, .1, .5))
	},
	func(s *Solid, r *rand.Rand) { // bottle: body, shoulder, neck
		body, shoulder, neck := between(r, .9, 1.8), between(r, .2, .5), between(r, .2, .7)
		width, narrow := between(r, .3, .6), between(r, .1, .25)
		s.frustum(width, width, 0, body)
		s.frustum(width, narrow, body, body+shoulder)
		s.frustum(narrow, narrow, body+shoulder, body+shoulder+neck)
	},
}

// superquadric adds a superquadric whose two exponents are near each other (Barr 1981):
// |x/a|^(2/e) and so on sum to 1. A direction is drawn and pushed to the surface.
func (s *Solid) superquadric(e float64, r *rand.Rand) {
	axes := [3]float64{1, between(r, .5, 1), between(r, .5, 1.6)}
	s.parts = append(s.parts, part{1, func(r *rand.Rand) (p [3]float64) {
		sum := 0.0
		for d := range p {
			p[d] = axes[d] * r.NormFloat64()
			sum += math.Pow(math.Abs(p[d]/axes[d]), 2/e)
		}
		far := math.Pow(sum, -e/2)
		for d := range p {
			p[d] *= far
		}
		return p
	}})
}

// torus adds a torus about z.
func (s *Solid) torus(ring, tube float64) {
	s.parts = append(s.parts, part{1, func(r *rand.Rand) [3]float64 {
		for {
			v := 2 * math.Pi * r.Float64()
			if out := ring + tube*math.Cos(v); r.Float64()*(ring+tube) <= out { // even over the surface
				sin, cos := math.Sincos(2 * math.Pi * r.Float64())
				return [3]float64{out * cos, out * sin, tube * math.Sin(v)}
			}
		}
	}})
}

// frustum adds a cone about z from radius a at z = lo to radius b at z = hi, and its caps.
func (s *Solid) frustum(a, b, lo, hi float64) {
	lid := func(radius, z float64) part {
		return part{math.Pi * radius * radius, func(r *rand.Rand) [3]float64 {
			sin, cos := math.Sincos(2 * math.Pi * r.Float64())
			d := radius * math.Sqrt(r.Float64())
			return [3]float64{d * cos, d * sin, z}
		}}
	}
	side := part{math.Pi * (a + b) * math.Hypot(a-b, hi-lo), func(r *rand.Rand) [3]float64 {
		for {
			t := r.Float64()
			if d := a + t*(b-a); r.Float64()*max(a, b) <= d {
				sin, cos := math.Sincos(2 * math.Pi * r.Float64())
				return [3]float64{d * cos, d * sin, lo + t*(hi-lo)}
			}
		}
	}}
	s.parts = append(s.parts, side, lid(a, lo), lid(b, hi))
}

// box adds the six faces of a box.
func (s *Solid) box(x0, x1, y0, y1, z0, z1 float64) {
	lo, hi := [3]float64{x0, y0, z0}, [3]float64{x1, y1, z1}
	for d := range lo {
		u, v := (d+1)%3, (d+2)%3
		area := (hi[u] - lo[u]) * (hi[v] - lo[v])
		for _, at := range []float64{lo[d], hi[d]} {
			s.parts = append(s.parts, part{area, func(r *rand.Rand) (p [3]float64) {
				p[d], p[u], p[v] = at, between(r, lo[u], hi[u]), between(r, lo[v], hi[v])
				return p
			}})
		}
	}
}

// legs adds four legs under the corners of a top of w by d at height h.
func (s *Solid) legs(w, d, h, t float64) {
	for _, x := range []float64{-w / 2, w/2 - t} {
		for _, y := range []float64{-d / 2, d/2 - t} {
			s.box(x, x+t, y, y+t, 0, h)
		}
	}
}
