package hull

import (
	"math"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// sieve recognises points strictly inside a convex polytope Q that has the
// centre o inside: in each cell of a cube around o, by one plane that cuts off
// less than Q's boundary does.
//
// Let g be Q's gauge around o: g(v) is the least factor by which Q must grow to
// hold v. It is sublinear: g(v+w) <= g(v) + g(w) and g(tv) = t·g(v), t >= 0. All
// is measured in scaled coordinates, relative to o, in which no coordinate of Q
// exceeds 1; let ρ be the radius of a ball around o in Q, so that g(e) <= |e|/ρ.
//
// A cell's normal n has n·d >= (1+2μ)·g(d) for the directions d of its four
// corners, where μ = 32u(N + 1/ρ), u = 2^-24 and N is the sum of the magnitudes
// of n. Every v' in the cell's pyramid is a sum of these with weights >= 0, so
// n·v' >= (1+2μ)·g(v').
//
// A point v is computed with an error of 2u of each coordinate; its cell with,
// in all, less than 12u of v's largest coordinate m: a v' that close to v is in
// the cell's pyramid. The computed product c is off by 5uNm. Hence
//
//	(1+2μ)·g(v) <= (1+2μ)·(g(v') + 12√3·u·m/ρ) <= n·v' + 21(1+2μ)·u·m/ρ
//	            <= n·v + 12uNm + 21(1+2μ)·u·m/ρ <= c + 17uNm + 21(1+2μ)·u·m/ρ
//
// and with m <= g(v), since no coordinate of Q exceeds 1, and μ <= 1/8:
// c >= (1+2μ-μ)·g(v) >= g(v). So c < 1 means that v is strictly inside of Q.
//
// The gauges of the corners are bounded from above, in float64, by the face of Q
// that the ray through a corner leaves by: with d = αa + βb + γc for its three
// corners, g(d) <= α + β + γ, where negative coefficients count as |α|·√3/ρ.
type sieve[T geom.Float] struct {
	planes kernel.Planes[T]
	gauge  [kernel.Cells + 1][kernel.Cells + 1]float64 // of one side's corners
	at     []vector                                    // Q's corners, scaled, relative to o
	radius float64                                     // ρ
}

type vector [3]float64

const (
	narrowUnit = 0x1p-24 // u
	// lossy bounds the error of a determinant of three vectors with coordinates
	// up to 1, each computed from the points with a few roundings: six products
	// of three, at most twenty roundings each, and as many again to spare.
	lossy     = 0x1p-43
	flattest  = 0x1p-12 // the least ρ worth a sieve
	walkMost  = 1000    // steps; only rounding could make them so many
	sizeLeast = 0x1p-100
	sizeMost  = 0x1p+100
)

// build makes the sieve of a finished polytope. It reports false where there is
// none: for polytopes too flat, too small or too large.
func (s *sieve[T]) build(p *polytope) bool {
	if !s.place(p) {
		return false
	}
	f := int32(0)
	for !p.faces[f].alive {
		f++
	}
	for side := range 6 {
		f = s.measureSide(p, side, f)
		for i := range kernel.Cells {
			for j := range kernel.Cells {
				s.setCell(side, i, j)
			}
		}
	}
	return true
}

// place chooses centre and scale, and measures the radius.
func (s *sieve[T]) place(p *polytope) bool {
	var low, high, sum vector
	for k := range low {
		low[k], high[k] = math.Inf(1), math.Inf(-1)
	}
	count := 0.0
	for f := range p.faces {
		if !p.faces[f].alive {
			continue
		}
		for _, v := range p.faces[f].v {
			for k, x := range p.points[v].coordinates() {
				low[k], high[k] = min(low[k], x), max(high[k], x)
				sum[k] += x
			}
			count++
		}
	}
	for k := range low {
		if size := high[k] - low[k]; !(size > sizeLeast && size < sizeMost && max(high[k], -low[k]) < sizeMost) {
			return false
		}
	}
	// The middle of the box is best where it is well inside, and the mean is
	// always inside.
	for k := range low {
		s.planes.Center[k] = T((low[k] + high[k]) / 2)
	}
	s.scale(p, low, high)
	if s.radius < 1./16 {
		for k := range low {
			s.planes.Center[k] = T(sum[k] / count)
		}
		s.scale(p, low, high)
	}
	return s.radius > flattest
}

func (c *corner) coordinates() vector { return vector{c.x, c.y, c.z} }

// scale sets the scale for the centre, and all that depends on the two.
func (s *sieve[T]) scale(p *polytope, low, high vector) {
	for k := range low {
		o := float64(s.planes.Center[k])
		s.planes.Scale[k] = T((1 - 0x1p-20) / max(high[k]-o, o-low[k]))
	}
	s.at = resize(s.at, len(p.points))
	for i := range p.points {
		for k, x := range p.points[i].coordinates() {
			s.at[i][k] = (x - float64(s.planes.Center[k])) * float64(s.planes.Scale[k])
		}
	}
	s.radius = math.Inf(1)
	for f := range p.faces {
		if v := &p.faces[f].v; p.faces[f].alive {
			a, b, c := s.at[v[0]], s.at[v[1]], s.at[v[2]]
			n := cross(minus(b, a), minus(c, a))
			s.radius = min(s.radius, (dot(n, a)-lossy)/(math.Sqrt(dot(n, n))+lossy))
		}
	}
}

func minus(a, b vector) vector { return vector{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }
func dot(a, b vector) float64 {
	return float64(a[0]*b[0]) + float64(a[1]*b[1]) + float64(a[2]*b[2])
}
func cross(a, b vector) vector {
	return vector{
		float64(a[1]*b[2]) - float64(a[2]*b[1]),
		float64(a[2]*b[0]) - float64(a[0]*b[2]),
		float64(a[0]*b[1]) - float64(a[1]*b[0]),
	}
}

// direction returns that of corner i, j of a side's cells.
func direction(side, i, j int) (d vector) {
	axis := side / 2
	d[axis] = 1 - 2*float64(side%2)
	first, second := (axis+1)%3, (axis+2)%3
	if axis == 1 {
		first, second = 0, 2
	}
	d[first] = float64(2*i)/kernel.Cells - 1
	d[second] = float64(2*j)/kernel.Cells - 1
	return d
}

// measureSide bounds the gauge of all corners of one side's cells. It walks
// over the surface from corner to corner, from face f on, and returns where it
// ends.
func (s *sieve[T]) measureSide(p *polytope, side int, f int32) int32 {
	for i := range s.gauge {
		for k := range s.gauge[i] {
			j := k
			if i%2 == 1 { // there and back again
				j = kernel.Cells - k
			}
			f, s.gauge[i][j] = s.walk(p, f, direction(side, i, j))
		}
	}
	return f
}

// walk finds the face by which the ray along d leaves, and bounds d's gauge,
// by infinity where rounding prevents that.
func (s *sieve[T]) walk(p *polytope, f int32, d vector) (int32, float64) {
	for range walkMost {
		v := &p.faces[f].v
		a, b, c := s.at[v[0]], s.at[v[1]], s.at[v[2]]
		weight := [3]float64{dot(d, cross(a, b)), dot(d, cross(b, c)), dot(d, cross(c, a))} // beside each edge
		worst := 0
		for k := range weight {
			if weight[k] < weight[worst] {
				worst = k
			}
		}
		if weight[worst] >= -lossy {
			return f, s.bound(&weight, dot(a, cross(b, c)))
		}
		f = p.faces[f].adj[worst]
	}
	return f, math.Inf(1)
}

// bound is the gauge for a direction with these weights, times the volume.
func (s *sieve[T]) bound(weight *[3]float64, volume float64) float64 {
	if volume -= lossy; volume < lossy {
		return math.Inf(1)
	}
	sum := 0.0
	for _, w := range weight {
		sum += max(0, w) + lossy + 2*(max(0, -w)+lossy)/s.radius
	}
	return sum / volume
}

// setCell sets the plane of a cell from the gauges of its corners.
func (s *sieve[T]) setCell(side, i, j int) {
	at := (side*kernel.Cells+i)*kernel.Cells + j
	var corners [4]vector // where the rays leave
	var d [4]vector
	var g [4]float64
	for k, o := range [4][2]int{{0, 0}, {1, 0}, {1, 1}, {0, 1}} {
		d[k], g[k] = direction(side, i+o[0], j+o[1]), s.gauge[i+o[0]][j+o[1]]
		for x := range 3 {
			corners[k][x] = d[k][x] / g[k]
		}
	}
	// Parallel to both diagonals of the four, as far out as the nearest allows.
	n := cross(minus(corners[2], corners[0]), minus(corners[3], corners[1]))
	if dot(n, d[0]) < 0 {
		n = vector{-n[0], -n[1], -n[2]}
	}
	nearest := math.Inf(1)
	for k := range d {
		nearest = min(nearest, dot(n, d[k])/g[k])
	}
	size := math.Abs(n[0]) + math.Abs(n[1]) + math.Abs(n[2])
	margin := 32 * narrowUnit * (size/nearest + 1/s.radius)
	grow := (1 + 4*margin) / nearest // twice what is needed: rounding to float32 costs less
	for x := range n {
		value := math.NaN()
		if nearest > 0 && margin < 1./16 {
			value = n[x] * grow
		}
		s.planes.Normal[x][at] = float32(value)
	}
}
