package kernel

import (
	"math"
	"slices"
	"unsafe"
)

//go:generate go run -C gen ./soft -out ../soft_amd64.s -stubs ../soft_amd64.go -pkg kernel

// SoftLanes is the number of ranges in a block: a vector of float64.
const SoftLanes = 8

// softChunk is how many points are taken at a time, so that room for all their
// blocks can be made first.
const softChunk = 256

// Soft holds how much every point belongs to every one of some ranges: 1 inside,
// exp(-distance/tau) outside, 0 far away. A range is where none of its planes,
// Planes of them in Dims coordinates, is positive; the distance is the largest of
// their values.
//
// It is a sparse matrix of blocks: SoftLanes ranges side by side are one block, and
// of a point's row only blocks that are not all zero are stored. So ranges that
// hold the same points should be neighbours.
type Soft struct {
	Dims, Planes int
	// Table holds for every block, plane by plane, the normals' coordinates and then
	// the constants, SoftLanes each: value = normal·point + constant. Lanes without a
	// range have constant +Inf and normal 0.
	Table []float64
	// Scale is -1/tau, -Inf for hard ranges; distances from Cut on count as far.
	Scale, Cut float64

	ends   []int32   // of every point: where its blocks end
	index  []int32   // of every stored block: its number
	values []float64 // and its memberships
}

// Stored returns the number of stored blocks, a measure of the cost of Step.
func (s *Soft) Stored() int { return len(s.index) }

// Fill computes the memberships of points, z nil unless Dims is 3. Cost: some
// cycles a point and block, and 15 for blocks with points near a border.
func (s *Soft) Fill(x, y, z []float64) {
	s.ends, s.index, s.values = s.ends[:0], s.index[:0], s.values[:0]
	blocks := s.blocks()
	for from := 0; from < len(x); from += softChunk {
		to := min(from+softChunk, len(x))
		room := (to - from) * blocks
		s.ends = slices.Grow(s.ends, to-from)
		s.index = slices.Grow(s.index, room)
		s.values = slices.Grow(s.values, room*SoftLanes)
		if level == AVX512 && blocks > 0 {
			s.fillVectors(x, y, z, from, to, blocks)
			continue
		}
		for i := from; i < to; i++ {
			p := [3]float64{x[i], y[i]}
			if z != nil {
				p[2] = z[i]
			}
			s.fill(&p, blocks)
		}
	}
}

// fillVectors is fill for points [from, to), for which there is room.
func (s *Soft) fillVectors(x, y, z []float64, from, to, blocks int) {
	loop := softFill22AVX512
	switch {
	case s.Dims == 2 && s.Planes == 2:
	case s.Dims == 2 && s.Planes == 3:
		loop = softFill23AVX512
	case s.Dims == 3 && s.Planes == 3:
		loop = softFill33AVX512
	case s.Dims == 3 && s.Planes == 4:
		loop = softFill34AVX512
	default:
		panic(badShape)
	}
	var pz *float64
	if s.Dims == 3 {
		pz = &z[from]
	}
	was := len(s.index)
	now := loop(&x[from], &y[from], pz, &s.Table[0], to-from, blocks,
		unsafe.SliceData(s.values[len(s.values):cap(s.values)]), unsafe.SliceData(s.index[:cap(s.index)]),
		unsafe.SliceData(s.ends[len(s.ends):cap(s.ends)]), was, s.Scale, s.Cut)
	s.ends, s.index, s.values = s.ends[:to], s.index[:now], s.values[:now*SoftLanes]
}

const badShape = "kernel: no loop for ranges of this shape"

func (s *Soft) blocks() int { return len(s.Table) / ((s.Dims + 1) * s.Planes * SoftLanes) }

// lanes is the number of places for ranges.
func (s *Soft) lanes() int { return s.blocks() * SoftLanes }

// fill appends the row of one point.
func (s *Soft) fill(p *[3]float64, blocks int) {
	for b := range blocks {
		out, _ := s.distances(p, b)
		var m [SoftLanes]float64
		near := false
		for k, d := range out {
			switch {
			case d <= 0:
				m[k] = 1
			case d < s.Cut:
				m[k] = math.Exp(d * s.Scale)
			default:
				continue
			}
			near = true
		}
		if near {
			s.index = append(s.index, int32(b))
			s.values = append(s.values, m[:]...)
		}
	}
	s.ends = append(s.ends, int32(len(s.index)))
}

// distances returns the largest plane value of each range of a block, and which
// plane has it.
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

// Step does one round of expectation and maximisation: with weights q of the
// ranges, a[i] = sum_k q[k] m[i,k] + floor, and sums[k] = sum_i m[i,k]/a[i]. Both
// slices are overwritten; q and sums have one place a lane of all blocks.
func (s *Soft) Step(q, sums, a []float64, floor float64) {
	clear(sums)
	if len(s.index) == 0 || level < AVX512 {
		s.step(q, sums, a, floor)
		return
	}
	_, _, _ = q[s.lanes()-1], sums[s.lanes()-1], a[len(s.ends)-1]
	softStepAVX512(&s.values[0], &s.index[0], &s.ends[0], len(s.ends), &q[0], &sums[0], &a[0], floor)
}

// step is what Step does with sums of 0.
func (s *Soft) step(q, sums, a []float64, floor float64) {
	from := 0
	for i, end := range s.ends {
		v := floor
		for e := from; e < int(end); e++ {
			w := q[int(s.index[e])*SoftLanes:][:SoftLanes]
			m := s.values[e*SoftLanes:][:SoftLanes]
			v += w[0]*m[0] + w[1]*m[1] + w[2]*m[2] + w[3]*m[3] + (w[4]*m[4] + w[5]*m[5] + w[6]*m[6] + w[7]*m[7])
		}
		a[i] = v
		v = 1 / v
		for e := from; e < int(end); e++ {
			t := sums[int(s.index[e])*SoftLanes:][:SoftLanes]
			m := s.values[e*SoftLanes:][:SoftLanes]
			for k := range t {
				t[k] += v * m[k]
			}
		}
		from = int(end)
	}
}

// Push computes for every point sum_k q[k] m[i,k]/a[i] times the normal of the
// plane that gives its distance from range k, where that is positive, and
// overwrites gx, gy and, where Dims is 3, gz. The points are those of the last Fill,
// a that of the last Step.
func (s *Soft) Push(gx, gy, gz, q, a, x, y, z []float64) {
	if len(s.index) == 0 || level < AVX512 {
		s.push(gx, gy, gz, q, a, x, y, z)
		return
	}
	n := len(s.ends)
	_, _, _, _, _, _ = gx[n-1], gy[n-1], a[n-1], x[n-1], y[n-1], q[s.lanes()-1]
	loop := softPush22AVX512
	switch {
	case s.Dims == 2 && s.Planes == 2:
	case s.Dims == 2 && s.Planes == 3:
		loop = softPush23AVX512
	case s.Dims == 3 && s.Planes == 3:
		loop = softPush33AVX512
	case s.Dims == 3 && s.Planes == 4:
		loop = softPush34AVX512
	default:
		panic(badShape)
	}
	var pz, pgz *float64
	if s.Dims == 3 {
		pz, pgz = &z[:n][0], &gz[:n][0]
	}
	loop(&x[0], &y[0], pz, &s.Table[0], n, &s.values[0], &s.index[0], &s.ends[0], &q[0], &a[0], &gx[0], &gy[0], pgz)
}

// push is what Push means.
func (s *Soft) push(gx, gy, gz, q, a, x, y, z []float64) {
	from := 0
	size := (s.Dims + 1) * SoftLanes
	for i, end := range s.ends {
		p := [3]float64{x[i], y[i]}
		if z != nil {
			p[2] = z[i]
		}
		var g [3]float64
		for e := from; e < int(end); e++ {
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
		inverse := 1 / a[i]
		gx[i], gy[i] = g[0]*inverse, g[1]*inverse
		if gz != nil {
			gz[i] = g[2] * inverse
		}
		from = int(end)
	}
}
