package entropy

import (
	"math"
	"slices"

	"entropipe/algos/geom"
)

// Witnesses appends at most k indices of witnesses (k on each side for Hull2D) to dst,
// adapted to the cloud, ascending and each once, and returns the extended slice. For
// maxima and for hulls in the plane it is a truncated search for all maximal points or
// all vertices, which always goes on where most points are not covered yet. For the
// hull in space it takes the farthest points along k directions of a spiral on the
// sphere, the axes among them. No points, or k < 1, add nothing. Cost: O(n log k) for
// most clouds, O(n·k) in the worst case and for Hull3D.
func (s *Surrogate[T]) Witnesses(dst []int32, c geom.Cloud[T], k int) []int32 {
	check(c, s.Problem.dims())
	if c.Len() == 0 || k < 1 {
		return dst
	}
	base := len(dst)
	switch p := s.Problem; p {
	case Maxima2D, Maxima3D:
		s.prepare(c, p)
		dst = s.choose.maxima(dst, &s.unit, p.dims(), k)
	case Hull3D:
		dst = s.spiral(dst, c, k)
	case Hull2D:
		s.prepare(c, UpperHull)
		dst = s.choose.upperHull(dst, &s.unit, k)
		s.prepare(c, LowerHull)
		dst = s.choose.upperHull(dst, &s.unit, k)
	default:
		s.prepare(c, p)
		dst = s.choose.upperHull(dst, &s.unit, k)
	}
	slices.Sort(dst[base:])
	return append(dst[:base], slices.Compact(dst[base:])...)
}

// Along appends the indices of the witnesses that directions find to dst, ascending and
// each once, and returns the extended slice. For hulls a direction finds the point
// farthest along it; hulls in the plane add their leftmost and rightmost points. For
// maxima a direction finds the point with the largest least coordinate, where
// coordinates are measured from the box's lower corner and divided by those of the
// direction, which must be positive. Directions refer to the unit box; in the plane
// their third coordinate is ignored. Among equal points the lowest index stands. No
// points add nothing. Cost: O(n·len(directions)).
func (s *Surrogate[T]) Along(dst []int32, c geom.Cloud[T], directions [][3]float64) []int32 {
	check(c, s.Problem.dims())
	if c.Len() == 0 {
		return dst
	}
	p := s.Problem
	if p == LowerHull || p == Hull2D {
		p = UpperHull
	}
	s.prepare(c, p)
	base := len(dst)
	for _, d := range directions {
		dst = append(dst, s.along(&d, p))
	}
	if p == UpperHull {
		a, b := ends(&s.unit)
		dst = append(dst, a, b)
		s.prepare(c, LowerHull)
		a, b = ends(&s.unit)
		dst = append(dst, a, b)
	}
	slices.Sort(dst[base:])
	return append(dst[:base], slices.Compact(dst[base:])...)
}

// along returns the point that one direction finds.
func (s *Surrogate[T]) along(d *[3]float64, p Problem) int32 {
	x, y, z := s.unit[0], s.unit[1], s.unit[2]
	best, most := int32(0), math.Inf(-1)
	switch {
	case p == UpperHull:
		for i := range x {
			if v := d[0]*x[i] + d[1]*y[i]; v > most {
				best, most = int32(i), v
			}
		}
	case p == Hull3D:
		for i := range x {
			if v := d[0]*x[i] + d[1]*y[i] + d[2]*z[i]; v > most {
				best, most = int32(i), v
			}
		}
	default:
		fx, fy, fz := 1/d[0], 1/d[1], 0.0
		if p == Maxima3D {
			fz = 1 / d[2]
		}
		for i := range x {
			v := min(x[i]*fx, y[i]*fy)
			if p == Maxima3D {
				v = min(v, z[i]*fz)
			}
			if v > most {
				best, most = int32(i), v
			}
		}
	}
	return best
}

// spiral appends the points farthest along k directions: first both directions of each
// axis, then directions spread evenly over the sphere.
func (s *Surrogate[T]) spiral(dst []int32, c geom.Cloud[T], k int) []int32 {
	s.prepare(c, Hull3D)
	for j := range k {
		var d [3]float64
		if j < 6 {
			d[j/2] = 1 - 2*float64(j%2)
		} else {
			d[2] = 1 - (2*float64(j-6)+1)/float64(k-6)
			r := math.Sqrt(1 - d[2]*d[2])
			sin, cos := math.Sincos(float64(j) * math.Pi * (3 - math.Sqrt(5)))
			d[0], d[1] = r*cos, r*sin
		}
		dst = append(dst, s.along(&d, Hull3D))
	}
	return dst
}

// Hard returns the greedy entropy of the ranges of the witnesses as Upper: it belongs to
// a legal partition, so H is at most Upper. As witnesses are added, Upper falls towards
// the greedy entropy of all ranges, in space not always. It does not depend on Tau and
// Steps, and on Box only for Hull3D, whose tetrahedra depend on the distances of
// witnesses in the box. Models are judged by Hard. Cost: O(n·K) for K ranges.
func (s *Surrogate[T]) Hard(c geom.Cloud[T], witnesses []int32) Bracket {
	check(c, s.Problem.dims())
	checkIndices(witnesses, c.Len())
	if s.Problem != Hull2D {
		return s.hard(c, witnesses, s.Problem)
	}
	return s.hard(c, witnesses, UpperHull).Plus(s.hard(c, witnesses, LowerHull))
}

func (s *Surrogate[T]) hard(c geom.Cloud[T], witnesses []int32, p Problem) Bracket {
	load(&s.raw, c, p)
	s.list = append(s.list[:0], witnesses...)
	s.family.reset(c.Len())
	s.family.Slack = math.Inf(1)
	fits := false
	switch p {
	case Maxima2D:
		fits = s.family.steps(&s.raw, s.list)
	case Maxima3D:
		fits = s.family.boxes(&s.raw, s.list)
	case Hull3D:
		s.prepare(c, p)
		s.fans.build(&s.raw, &s.unit, &s.box, s.list)
		fits = s.family.tetrahedra(&s.raw, s.fans.cones)
	default:
		s.list = upperChain(s.list, &s.raw)
		s.pairs = appendChords(s.pairs[:0], len(s.list), allChords)
		fits = s.family.chords(&s.raw, s.list, s.pairs)
	}
	if !fits {
		return bracket(0, math.Inf(1), float64(c.Len()), Witness)
	}
	b := s.cover.Greedy(&s.family)
	b.Kind = Witness
	return b
}
