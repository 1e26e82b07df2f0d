package hull

import (
	"math"
	"sync"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// sieve recognises points strictly inside a convex polytope Q that has the centre o
// inside. It divides a cube around o into cells; each cell has one plane, whose side
// towards o is inside Q over that cell.
//
// Let g be Q's gauge around o: g(v) is the least factor by which Q must grow to
// hold v. It is sublinear: g(v+w) <= g(v) + g(w) and g(tv) = t·g(v), t >= 0. All
// coordinates are scaled and relative to o, and no coordinate of Q exceeds 1; let ρ
// be the radius of a ball around o in Q, so that g(e) <= |e|/ρ.
//
// A cell's normal n has n·d >= (1+2μ)·g(d) for the directions d of its four
// corners, where μ = 32u(N + 1/ρ), u = 2^-24 and N is the sum of the magnitudes
// of n. Every v' in the cell's pyramid is a sum of these directions with weights
// >= 0, so n·v' >= (1+2μ)·g(v').
//
// Each coordinate of a point v is computed with an error of 2u of itself. The error
// of its cell is in all less than 12u of v's largest coordinate m: some v' that close
// to v is in the cell's pyramid. The computed product c is off by 5uNm. Hence
//
//	(1+2μ)·g(v) <= (1+2μ)·(g(v') + 12√3·u·m/ρ) <= n·v' + 21(1+2μ)·u·m/ρ
//	            <= n·v + 12uNm + 21(1+2μ)·u·m/ρ <= c + 17uNm + 21(1+2μ)·u·m/ρ
//
// and with m <= g(v), since no coordinate of Q exceeds 1, and μ <= 1/8:
// c >= (1+2μ-μ)·g(v) >= g(v). So c < 1 means that v is strictly inside of Q.
//
// The gauge of a cell's corner is bounded from above, in float64, by the face of Q
// through which the ray along the corner leaves Q: with d = αa + βb + γc for the
// corners a, b, c of that face, g(d) <= α + β + γ, where a negative coefficient
// counts as |α|·√3/ρ.
type sieve[T geom.Float] struct {
	planes kernel.Planes[T]
	exits  [kernel.Cells + 1][kernel.Cells + 1]vector // d/g(d) for the corners of one side's cells
	// for each cell, the face where its first corner's ray leaves
	exit           [kernel.CubeCells]int32
	at             []vector   // Q's corners, scaled, relative to o
	sides          []triangle // its faces
	radius         float64    // ρ
	order, tmp     []uint64
	sorted         []corner
	centre, factor vector // Center and Scale of planes
}

const (
	narrowUnit = 0x1p-24 // u
	// lossy bounds the error of a determinant of three vectors with coordinates
	// up to 1, each computed from the points with a few roundings: six products of
	// three factors, at most twenty roundings each, and as many again to spare.
	lossy     = 0x1p-43
	flattest  = 0x1p-12 // the least ρ worth a sieve
	walkMost  = 1000    // largest number of steps of a walk; only rounding errors make so many
	offCentre = 0.49307 // not 1/2: rays of symmetric clouds would all leave through edges
	sizeLeast = 0x1p-100
	sizeMost  = 0x1p+100
)

// build makes the sieve of a finished polytope. It returns false for polytopes that
// are too flat, too small or too large for a sieve.
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

// place chooses the centre and the scale, and computes the radius. It returns false
// where build does.
func (s *sieve[T]) place(p *polytope) bool {
	infinite := math.Inf(1)
	low, high := vector{infinite, infinite, infinite}, vector{-infinite, -infinite, -infinite}
	var sum vector
	count := 0.0
	for f := range p.faces {
		if !p.faces[f].alive {
			continue
		}
		for _, v := range p.faces[f].v {
			c := &p.points[v]
			low = vector{min(low.x, c.x), min(low.y, c.y), min(low.z, c.z)}
			high = vector{max(high.x, c.x), max(high.y, c.y), max(high.z, c.z)}
			sum = vector{sum.x + c.x, sum.y + c.y, sum.z + c.z}
			count++
		}
	}
	size := minus(high, low)
	least, most := min(size.x, size.y, size.z), max(size.x, size.y, size.z)
	if !(least > sizeLeast && most < sizeMost && max(high.x, high.y, high.z, -low.x, -low.y, -low.z) < sizeMost) {
		return false
	}
	// The middle of the box, moved a little, is the best centre where it is well
	// inside; the mean of the corners is always inside.
	s.scale(p, low, high, vector{low.x + size.x*offCentre, low.y + size.y*offCentre, low.z + size.z*offCentre})
	if s.radius < 1./16 {
		s.scale(p, low, high, times(sum, 1/count))
	}
	return s.radius > flattest
}

// scale sets the centre, and computes everything that depends on it.
func (s *sieve[T]) scale(p *polytope, low, high, centre vector) {
	s.planes.Center = [3]T{T(centre.x), T(centre.y), T(centre.z)}
	s.centre = vector{float64(T(centre.x)), float64(T(centre.y)), float64(T(centre.z))}
	up, down := minus(high, s.centre), minus(s.centre, low)
	const most = 1 - 0x1p-20
	s.planes.Scale = [3]T{T(most / max(up.x, down.x)), T(most / max(up.y, down.y)), T(most / max(up.z, down.z))}
	s.factor = vector{float64(s.planes.Scale[0]), float64(s.planes.Scale[1]), float64(s.planes.Scale[2])}
	s.at = resize(s.at, len(p.points))
	for i := range p.points {
		s.at[i] = s.relative(&p.points[i])
	}
	s.sides = resize(s.sides, len(p.faces))
	s.radius = math.Inf(1)
	for f := range p.faces {
		if v := &p.faces[f].v; p.faces[f].alive {
			a, b, c := s.at[v[0]], s.at[v[1]], s.at[v[2]]
			s.sides[f] = triangle{cross(a, b), cross(b, c), cross(c, a), 0}
			s.sides[f].volume = dot(a, s.sides[f].bc)
			n := cross(minus(b, a), minus(c, a))
			s.radius = min(s.radius, (dot(n, a)-lossy)/(math.Sqrt(dot(n, n))+lossy))
		}
	}
}

// relative returns c, scaled and relative to the centre.
func (s *sieve[T]) relative(c *corner) vector {
	return vector{(c.x - s.centre.x) * s.factor.x, (c.y - s.centre.y) * s.factor.y, (c.z - s.centre.z) * s.factor.z}
}

// measureSide bounds the gauges of all corners of one side's cells. It walks over
// the surface from corner to corner, beginning at face f, and returns the last face.
func (s *sieve[T]) measureSide(p *polytope, side int, f int32) int32 {
	for i := range s.exits {
		for k := range s.exits[i] {
			j := k
			if i%2 == 1 { // every other row backwards, so that each walk is short
				j = kernel.Cells - k
			}
			var gauge float64
			d := direction(side, i, j)
			f, gauge = s.walk(p, f, d)
			s.exits[i][j] = times(d, 1/gauge)
			if i < kernel.Cells && j < kernel.Cells {
				s.exit[(side*kernel.Cells+i)*kernel.Cells+j] = f
			}
		}
	}
	return f
}

// direction returns the direction of corner i, j of a side's cells.
func direction(side, i, j int) vector {
	major := 1 - 2*float64(side%2)
	a, b := float64(2*i)/kernel.Cells-1, float64(2*j)/kernel.Cells-1
	switch side / 2 {
	case 0:
		return vector{major, a, b}
	case 1:
		return vector{a, major, b}
	}
	return vector{a, b, major}
}

// walk returns the face through which the ray along d leaves, and a bound of d's
// gauge, infinity where rounding hides it. It begins at face f.
func (s *sieve[T]) walk(p *polytope, f int32, d vector) (int32, float64) {
	for range walkMost {
		w, least, worst := s.sides[f].weigh(d)
		if least >= -lossy {
			return f, s.bound(w, s.sides[f].volume)
		}
		f = p.faces[f].adj[worst]
	}
	return f, math.Inf(1)
}

// triangle is a face with corners a, b and c, relative to the centre: the normals of
// the planes through the centre and each edge, and the determinant of the corners.
type triangle struct {
	ab, bc, ca vector
	volume     float64
}

// weigh returns the weights of c, a and b, in this order, in d, times the volume of
// the triangle: the sign of a weight says on which side of an edge the ray along d
// passes. least is the least weight, and worst the edge that belongs to it.
func (t *triangle) weigh(d vector) (w vector, least float64, worst int) {
	w = vector{dot(d, t.ab), dot(d, t.bc), dot(d, t.ca)}
	least = w.x
	if w.y < least {
		least, worst = w.y, 1
	}
	if w.z < least {
		least, worst = w.z, 2
	}
	return w, least, worst
}

// bound returns a bound of the gauge of a direction with weights w, which are times
// volume.
func (s *sieve[T]) bound(w vector, volume float64) float64 {
	if volume -= lossy; volume < lossy {
		return math.Inf(1)
	}
	in := max(0, w.x) + max(0, w.y) + max(0, w.z) + 3*lossy
	out := max(0, -w.x) + max(0, -w.y) + max(0, -w.z) + 3*lossy
	return (in + 2*out/s.radius) / volume
}

// setCell computes the plane of a cell from the exits at its corners: n·d >= g(d) if
// and only if n·(d/g(d)) >= 1.
func (s *sieve[T]) setCell(side, i, j int) {
	a, b, c, d := s.exits[i][j], s.exits[i+1][j], s.exits[i+1][j+1], s.exits[i][j+1]
	// The plane is parallel to both diagonals of the four exits, through the nearest.
	n := cross(minus(c, a), minus(d, b))
	if dot(n, a) < 0 {
		n = times(n, -1)
	}
	nearest := min(dot(n, a), dot(n, b), dot(n, c), dot(n, d))
	size := math.Abs(n.x) + math.Abs(n.y) + math.Abs(n.z)
	margin := 32 * narrowUnit * (size/nearest + 1/s.radius)
	grow := math.NaN()
	if nearest > 0 && margin < 1./16 {
		grow = (1 + 4*margin) / nearest // twice the need: rounding to float32 costs less
	}
	at := (side*kernel.Cells+i)*kernel.Cells + j
	s.planes.Normal[0][at] = float32(n.x * grow)
	s.planes.Normal[1][at] = float32(n.y * grow)
	s.planes.Normal[2][at] = float32(n.z * grow)
}

// settle puts each candidate from base on onto the list of a face that it sees, if
// there is one. The sieve must be that of p.
//
// It first sorts the candidates by cell, so that neighbours in space are neighbours
// in memory: for large clouds that halves the time of settle and of later steps.
func (s *sieve[T]) settle(p *polytope, base, workers int) {
	points := p.points[base:]
	s.order, s.tmp = resize(s.order, len(points)), resize(s.tmp, len(points))
	for k := range points {
		d := s.relative(&points[k])
		cell := 0
		if size := d.size(); size < math.MaxFloat32 {
			cell = kernel.CellOf(float32(d.x), float32(d.y), float32(d.z))
		}
		s.order[k] = uint64(cell)<<32 | uint64(k)
	}
	s.order, s.tmp = kernel.SortByKey(s.order, s.tmp, 1)
	s.sorted = resize(s.sorted, len(points))
	for k, e := range s.order {
		s.sorted[k] = points[uint32(e)]
	}
	copy(points, s.sorted)
	if workers = min(workers, len(points)/settleFrom); workers > 1 {
		s.share(p, base, workers)
	} else {
		s.locate(p, base, 0, len(points))
	}
	for q := base; q < len(p.points); q++ {
		if f := p.points[q].on; f != none {
			s.put(p, int32(q), f)
		}
	}
	p.touched += int64(len(points))
}

// settleFrom is the number of candidates that a goroutine is worth starting for.
const settleFrom = 2048

// share divides the candidates among goroutines.
func (s *sieve[T]) share(p *polytope, base, workers int) {
	n := len(s.order)
	var wg sync.WaitGroup
	for k := 1; k < workers; k++ {
		wg.Go(func() { s.locate(p, base, n*k/workers, n*(k+1)/workers) })
	}
	s.locate(p, base, 0, n/workers)
	wg.Wait()
}

// locate sets on of the candidates [base+from, base+to) to the result of find. It
// changes nothing else.
func (s *sieve[T]) locate(p *polytope, base, from, to int) {
	for k := from; k < to; k++ {
		c := &p.points[base+k]
		c.on = s.find(p, c, s.exit[s.order[k]>>32])
	}
}

// find walks from face f to the face through which the ray from the centre to c
// leaves. It returns that face, or none if c certainly lies inside. Where rounding
// errors hide the face, because the ray passes near an edge, it returns -2 minus a
// face nearby.
func (s *sieve[T]) find(p *polytope, c *corner, f int32) int32 {
	d := s.relative(c)
	size := d.size()
	if !(size > 0x1p-500 && size < 0x1p500) {
		return -2 - f
	}
	d = times(d, 1/size)
	for range walkMost {
		_, least, worst := s.sides[f].weigh(d)
		if least < -lossy {
			f = p.faces[f].adj[worst]
			continue
		}
		if !(least > lossy) {
			break
		}
		g := &p.faces[f]
		if far := float64(g.nx*(c.x-g.ax)) + float64(g.ny*(c.y-g.ay)) + float64(g.nz*(c.z-g.az)); far < -g.err {
			return none
		}
		return f
	}
	return -2 - f
}

// put puts candidate q on the list of face f, the result of find, or of another face
// that it sees, if there is one. find is uncertain for few candidates other than
// those that equal a vertex.
func (s *sieve[T]) put(p *polytope, q, f int32) {
	certain := f >= 0
	if !certain {
		f = -2 - f
	}
	p.points[q].on = none
	if far, yes := p.sees(&p.faces[f], q); yes {
		p.put(f, q, far)
	} else if !certain && !p.touches(&p.faces[f], q) {
		p.search(q)
	}
}

// vector is a struct because the compiler keeps arrays out of registers.
type vector struct{ x, y, z float64 }

func (a vector) size() float64         { return max(math.Abs(a.x), math.Abs(a.y), math.Abs(a.z)) }
func minus(a, b vector) vector         { return vector{a.x - b.x, a.y - b.y, a.z - b.z} }
func times(a vector, t float64) vector { return vector{a.x * t, a.y * t, a.z * t} }
func dot(a, b vector) float64 {
	return float64(a.x*b.x) + float64(a.y*b.y) + float64(a.z*b.z)
}
func cross(a, b vector) vector {
	return vector{
		float64(a.y*b.z) - float64(a.z*b.y),
		float64(a.z*b.x) - float64(a.x*b.z),
		float64(a.x*b.y) - float64(a.y*b.x),
	}
}
