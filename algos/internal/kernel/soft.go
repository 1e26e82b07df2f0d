package kernel

import (
	"math"
	"slices"
	"unsafe"
)

//go:generate go run -C gen ./soft -out ../soft_amd64.s -stubs ../soft_amd64.go -pkg kernel

// SoftLanes is the number of ranges in a block: a vector of float64.
const SoftLanes = 8

// softChunk is the number of points for whose blocks Fill makes room at a time.
const softChunk = 256

// Soft holds the membership of every point in every range: 1 inside the range,
// exp(-distance/tau) outside, 0 far away. A range is the set of points where none of its
// planes is positive; it has Planes planes in Dims coordinates. The distance is the
// largest value of the planes.
//
// Soft is a sparse matrix of blocks: SoftLanes neighbouring ranges are one block, and a
// point's row stores only the blocks that are not all zero. So ranges that hold the same
// points should be neighbours. Points near no border that lie in the same ranges share
// one row.
type Soft struct {
	Dims, Planes int
	// Table holds for every block, plane by plane, the normals' coordinates and then
	// the constants, SoftLanes each: value = normal·point + constant. Lanes without a
	// range have constant +Inf and normal 0.
	Table []float64
	// Scale is -1/tau, or -Inf for hard ranges. From distance Cut on, the membership
	// is 0.
	Scale, Cut float64

	bounds  []int32   // row r has blocks bounds[r] to bounds[r+1]
	index   []int32   // for every stored block, its number
	values  []float64 // for every stored block, its memberships
	weights []float64 // for every row, its number of points
	rows    []int32   // for every point, its row
	hashes  []uint64  // for every point of a chunk, the hash of its row, or 0: no other row equals it
	known   rowTable
}

// Rows returns the number of rows, at most the number of points, and the number of points
// of each row, which is valid until the next Fill.
func (s *Soft) Rows() (n int, points []float64) { return len(s.weights), s.weights }

// Stored returns the number of stored blocks, a measure of the cost of Step.
func (s *Soft) Stored() int { return len(s.index) }

// Fill computes the memberships of points; z is nil unless Dims is 3. Cost: some cycles a
// point and block, and 15 cycles where the point is near a border of the block.
func (s *Soft) Fill(x, y, z []float64) {
	s.bounds, s.index, s.values = append(s.bounds[:0], 0), s.index[:0], s.values[:0]
	s.weights, s.rows = s.weights[:0], s.rows[:0]
	s.known.reset()
	blocks := s.blocks()
	for from := 0; from < len(x); from += softChunk {
		to := min(from+softChunk, len(x))
		room := (to - from) * blocks
		s.bounds = slices.Grow(s.bounds, to-from)
		s.hashes = slices.Grow(s.hashes[:0], to-from)[:0]
		s.index = slices.Grow(s.index, room)
		s.values = slices.Grow(s.values, room*SoftLanes)
		if l, shape := s.loops(); l != nil && blocks > 0 {
			s.fillVectors(l.fill[shape], x, y, z, from, to, blocks)
		} else {
			for i := from; i < to; i++ {
				p := [3]float64{x[i], y[i]}
				if z != nil {
					p[2] = z[i]
				}
				s.fill(&p, blocks)
			}
		}
		s.merge(to - from)
	}
}

// fillVectors is fill for points [from, to) in vectors; there must be room for them.
func (s *Soft) fillVectors(loop softFill, x, y, z []float64, from, to, blocks int) {
	var pz *float64
	if s.Dims == 3 {
		pz = &z[from]
	}
	was := len(s.index)
	now := loop(&x[from], &y[from], pz, &s.Table[0], to-from, blocks,
		unsafe.SliceData(s.values[len(s.values):cap(s.values)]), unsafe.SliceData(s.index[:cap(s.index)]),
		unsafe.SliceData(s.bounds[len(s.bounds):cap(s.bounds)]), unsafe.SliceData(s.hashes), was, s.Scale, s.Cut)
	s.bounds, s.hashes = s.bounds[:len(s.bounds)+to-from], s.hashes[:to-from]
	s.index, s.values = s.index[:now], s.values[:now*SoftLanes]
}

// blocks returns the number of blocks of Table.
func (s *Soft) blocks() int { return len(s.Table) / ((s.Dims + 1) * s.Planes * SoftLanes) }

// lanes returns the number of places for ranges.
func (s *Soft) lanes() int { return s.blocks() * SoftLanes }

// hashFactor is an odd number with mixed bits.
const hashFactor = 0x9e3779b97f4a7c15

// fill appends the row of one point, and its hash.
func (s *Soft) fill(p *[3]float64, blocks int) {
	hash, shared := uint64(1), true
	for b := range blocks {
		out, _ := s.distances(p, b)
		var m [SoftLanes]float64
		inside, near := 0, false
		for k, d := range out {
			switch {
			case d <= 0:
				m[k] = 1
				inside |= 1 << k
			case d < s.Cut:
				m[k] = math.Exp(d * s.Scale)
				near = true
			}
		}
		if near || inside != 0 {
			s.index = append(s.index, int32(b))
			s.values = append(s.values, m[:]...)
			hash = (hash + uint64(b<<8|inside)) * hashFactor
			shared = shared && !near
		}
	}
	if !shared {
		hash = 0
	} else {
		hash |= 1
	}
	s.hashes = append(s.hashes, hash)
	s.bounds = append(s.bounds, int32(len(s.index)))
}

// distances returns for each range of block b the largest value of its planes, and the
// plane with that value.
func (s *Soft) distances(p *[3]float64, b int) (out [SoftLanes]float64, plane [SoftLanes]int) {
	size := (s.Dims + 1) * SoftLanes
	for j := range s.Planes {
		t := s.Table[(b*s.Planes+j)*size:][:size]
		for k := range SoftLanes {
			v := t[s.Dims*SoftLanes+k]
			for d := range s.Dims {
				v += t[d*SoftLanes+k] * p[d]
			}
			if j == 0 || v > out[k] {
				out[k], plane[k] = v, j
			}
		}
	}
	return out, plane
}

// Step does one round of expectation and maximisation with weights q of the ranges: for
// every row a[r] = sum_k q[k] m[r,k] + floor, and for every range sums[k] = sum_i
// m[i,k]/a[i] over all points. It overwrites sums and a. q and sums have SoftLanes places
// for each block.
func (s *Soft) Step(q, sums, a []float64, floor float64) {
	clear(sums)
	l, _ := s.loops()
	if l == nil || len(s.index) == 0 {
		s.step(q, sums, a, floor)
		return
	}
	_, _, _ = q[s.lanes()-1], sums[s.lanes()-1], a[len(s.weights)-1]
	l.step(&s.values[0], &s.index[0], &s.bounds[0], &s.weights[0], len(s.weights), &q[0], &sums[0], &a[0], floor)
}

// step is the portable form of Step. sums must be 0.
func (s *Soft) step(q, sums, a []float64, floor float64) {
	for r, w := range s.weights {
		from, to := int(s.bounds[r]), int(s.bounds[r+1])
		v := floor
		for e := from; e < to; e++ {
			w := q[int(s.index[e])*SoftLanes:][:SoftLanes]
			m := s.values[e*SoftLanes:][:SoftLanes]
			v += w[0]*m[0] + w[1]*m[1] + w[2]*m[2] + w[3]*m[3] + (w[4]*m[4] + w[5]*m[5] + w[6]*m[6] + w[7]*m[7])
		}
		a[r] = v
		v = w / v
		for e := from; e < to; e++ {
			t := sums[int(s.index[e])*SoftLanes:][:SoftLanes]
			m := s.values[e*SoftLanes:][:SoftLanes]
			for k := range t {
				t[k] += v * m[k]
			}
		}
	}
}

// Push computes for every point the sum over ranges k of q[k] m[i,k]/a times the normal
// of the plane that gives the point's distance from range k, where that distance is
// positive. It overwrites gx, gy and, where Dims is 3, gz. The points must be those of
// the last Fill, a that of the last Step.
func (s *Soft) Push(gx, gy, gz, q, a, x, y, z []float64) {
	l, shape := s.loops()
	if l == nil || len(s.index) == 0 {
		s.push(gx, gy, gz, q, a, x, y, z)
		return
	}
	n := len(s.rows)
	_, _, _, _, _, _ = gx[n-1], gy[n-1], a[len(s.weights)-1], x[n-1], y[n-1], q[s.lanes()-1]
	var pz, pgz *float64
	if s.Dims == 3 {
		pz, pgz = &z[:n][0], &gz[:n][0]
	}
	l.push[shape](&x[0], &y[0], pz, &s.Table[0], n, &s.values[0], &s.index[0], &s.bounds[0], &s.rows[0], &q[0], &a[0],
		&gx[0], &gy[0], pgz)
}

// push is the portable form of Push.
func (s *Soft) push(gx, gy, gz, q, a, x, y, z []float64) {
	size := (s.Dims + 1) * SoftLanes
	for i, row := range s.rows {
		p := [3]float64{x[i], y[i]}
		if z != nil {
			p[2] = z[i]
		}
		var g [3]float64
		for e := int(s.bounds[row]); e < int(s.bounds[row+1]); e++ {
			b := int(s.index[e])
			out, plane := s.distances(&p, b)
			for k, d := range out {
				r := q[b*SoftLanes+k] * s.values[e*SoftLanes+k]
				if d <= 0 || r == 0 {
					continue
				}
				t := s.Table[(b*s.Planes+plane[k])*size+k:]
				for c := range s.Dims {
					g[c] += r * t[c*SoftLanes]
				}
			}
		}
		inverse := 1 / a[row]
		gx[i], gy[i] = g[0]*inverse, g[1]*inverse
		if gz != nil {
			gz[i] = g[2] * inverse
		}
	}
}
