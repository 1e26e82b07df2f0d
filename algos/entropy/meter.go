package entropy

import (
	"math"
	"slices"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

// Meter measures entropies in a time that suits streams: some milliseconds for a LiDAR
// frame. The zero value is ready. A Meter keeps its working memory between calls. It
// must not be used by two goroutines at a time.
type Meter[T geom.Float] struct {
	limits limits // the zero value means the limits of streams
	search search
	chords chords
	boxes  boxes
	cells  cells
	packer packer
	corner points // coordinates of output
	list   []int32
	runs   []span
	outer  []int32 // the points outside the core
}

// limits bound the work of a Meter.
type limits struct {
	nearPlane, nearSpace float64 // a search stops when its bounds are as near, in nats a point
	sample               int     // points that choose the core
	steps                int     // maximal points in the plane whose entropy is exact
	chords               int     // vertices of a side that stand for themselves
	boxes                int     // maximal points that stand for themselves
	share, shareSpace    float64 // ranges with such a share of the largest range's points bound the core
	whole                int     // clouds of so many points have no core where it would widen the bracket
	rounds               int     // of expectation and maximisation
	work                 int     // runs and ranges that a search looks at
	sidePlane, sideSpace int     // cells on an axis
}

var ofStreams = limits{nearPlane: 0.01, nearSpace: 0.03, sample: 2048, steps: 256, chords: 48, boxes: 512,
	share: 0.95, shareSpace: 0.98, whole: 1 << 15, rounds: 64, work: 3 << 20, sidePlane: 32,
	sideSpace: 16}

// ofTruth are the limits of GroundTruth.
var ofTruth = limits{nearPlane: 1e-3, nearSpace: 1e-3, sample: 2048, steps: MaxSteps, chords: 64, boxes: 1024,
	share: 0.9, shareSpace: 0.9, whole: 1 << 16, rounds: 300, work: 1 << 22, sidePlane: 64, sideSpace: 24}

// ranges is a family of ranges, or of regions that hold the ranges of a family.
type ranges interface {
	// size is the number of ranges.
	size() int
	// runsOf appends the ranges that hold a place.
	runsOf(dst []span, x, y, z float64) []span
	// runsOfCell appends the ranges that meet a cell, perhaps more.
	runsOfCell(dst []span, c *cell) []span
	// holdsCore reports whether range r holds the core. It is true for regions that
	// are no ranges, whose covers are not legal anyway.
	holdsCore(r int32) bool
}

// Measure returns a bracket of the entropy of c. output must hold all maximal points, or
// all vertices of the hull (for UpperHull and LowerHull those of the side or of the
// whole hull).
//
// Maxima in the plane are exact for up to 256 maximal points. Otherwise, and for hulls in
// the plane, a search over the sequences of groups brackets H. It stops when the
// bracket is 0.01 (a side of a hull) or 0.03 (maxima in space) wide, or when its budget
// is spent. It takes vertices of a side beyond 48, and maximal points beyond 512, in
// groups, which widens the bracket. For Hull3D the upper bound is a greedy cover by
// tetrahedra between vertices, the lower bound that of FromSize. No points, or no
// output, give 0.
func (m *Meter[T]) Measure(c geom.Cloud[T], output []int32, p Problem) Bracket {
	check(c, p.dims())
	checkIndices(output, c.Len())
	if m.limits == (limits{}) {
		m.limits = ofStreams
	}
	n, h := c.Len(), len(output)
	if n == 0 || h == 0 {
		return Bracket{Kind: Search}
	}
	switch p {
	case Hull2D:
		return m.side(c, output, UpperHull).Plus(m.side(c, output, LowerHull))
	case UpperHull, LowerHull:
		return m.side(c, output, p)
	case Hull3D:
		known := FromSize(p, n, h)
		return bracket(0, packed(&m.packer, c, output), float64(n), Greedy).And(known)
	case Maxima2D:
		c.Z = nil
		if h <= m.limits.steps {
			b, _ := ExactMaxima(c, output)
			return b
		}
	}
	return m.maxima(c, output, p)
}

// side measures one side of a hull in the plane.
func (m *Meter[T]) side(c geom.Cloud[T], output []int32, p Problem) Bracket {
	c.Z = nil
	flip := 1.0
	if p == LowerHull {
		flip = -1
	}
	m.gather(c, output, flip)
	chain := upperChain(m.list, &m.corner)
	if len(chain) < 2 {
		return bracket(0, 0, float64(c.Len()), Exact) // one vertical line
	}
	known := FromSize(p, c.Len(), len(chain))
	m.chords.single(&m.corner, chain)
	if len(chain) <= m.limits.chords {
		return m.bounds(c, &m.chords, flip, m.limits.nearPlane).And(known)
	}
	m.chords.merge(m.weigh(c), m.limits.chords)
	known.Lower = max(known.Lower, m.bounds(c, &m.chords, flip, m.limits.nearPlane).Lower)
	m.chords.split()
	return m.bounds(c, &m.chords, flip, math.Inf(1)).under(known)
}

// under returns the bracket from the lower bound of known to the lesser upper bound.
func (b Bracket) under(known Bracket) Bracket {
	b.Lower = 0
	return b.And(known)
}

// weigh returns the number of sampled points between any two neighbouring vertices.
func (m *Meter[T]) weigh(c geom.Cloud[T]) []float64 {
	gaps := make([]float64, len(m.chords.first)-1)
	k := min(c.Len(), 4*m.limits.sample)
	for j := range k {
		at, on := m.chords.find(float64(c.X[kernel.SampleAt(j, k, c.Len())]))
		if !on && at > 0 && at <= len(gaps) {
			gaps[at-1]++
		}
	}
	return gaps
}

// maxima measures maxima by search.
func (m *Meter[T]) maxima(c geom.Cloud[T], output []int32, p Problem) Bracket {
	m.gather(c, output, 1)
	known := FromSize(p, c.Len(), len(output))
	near := m.limits.nearSpace
	m.boxes.build(&m.corner, m.list, p.dims(), m.limits.boxes)
	if len(output) <= m.limits.boxes {
		return m.bounds(c, &m.boxes, 1, near).And(known)
	}
	known.Lower = max(known.Lower, m.bounds(c, &m.boxes, 1, near).Lower)
	m.boxes.split(&m.corner)
	return m.bounds(c, &m.boxes, 1, math.Inf(1)).under(known)
}

// gather copies the coordinates of the points of list, and numbers them.
func (m *Meter[T]) gather(c geom.Cloud[T], list []int32, flip float64) {
	m.list = m.list[:0]
	for d := range m.corner {
		m.corner[d] = m.corner[d][:0]
	}
	for k, i := range list {
		m.list = append(m.list, int32(k))
		m.corner[0] = append(m.corner[0], float64(c.X[i]))
		m.corner[1] = append(m.corner[1], flip*float64(c.Y[i]))
		if c.Z != nil {
			m.corner[2] = append(m.corner[2], float64(c.Z[i]))
		}
	}
}

// bounds searches the least entropy of the ranges of f. The upper bound is of use only
// where these are legal. near is +Inf where the lower bound is of no use.
func (m *Meter[T]) bounds(c geom.Cloud[T], f ranges, flip, near float64) Bracket {
	n := float64(c.Len())
	b := m.try(c, f, flip, near, m.guess(c, f, flip))
	if b.Gap() <= near*(1+1e-9) {
		return b
	}
	if len(m.outer) < c.Len() && c.Len() <= m.limits.whole {
		b = b.And(m.try(c, f, flip, near, nil))
	}
	if b.Gap() > near*(1+1e-9) {
		b.Lower = min(max(b.Lower, m.search.fractional(m.limits.rounds, near/10)), b.Upper)
	}
	return bracket(b.Lower, b.Upper, n, Search)
}

// try searches with the core that the ranges of likely have in common.
func (m *Meter[T]) try(c geom.Cloud[T], f ranges, flip, near float64, likely []int32) Bracket {
	m.divide(c, f, flip, likely)
	s := &m.search
	s.reset(f.size())
	for k := range m.cells.cells {
		if at := &m.cells.cells[k]; at.count > 0 {
			m.runs = f.runsOfCell(m.runs[:0], at)
			s.add(m.runs, at.count)
		}
	}
	m.fill(c, f, flip, m.outer)
	s.legal = s.legal[:0]
	for r := range f.size() {
		s.legal = append(s.legal, len(m.outer) == c.Len() || f.holdsCore(int32(r)))
	}
	n := float64(c.Len())
	least, most := s.solve(near*n, m.limits.work)
	return bracket(math.Log(n)-most/n, math.Log(n)-least/n, n, Search)
}

// divide sets cells to the points in the core, and outer to the others.
func (m *Meter[T]) divide(c geom.Cloud[T], f ranges, flip float64, likely []int32) {
	box := BoxOf(c)
	switch f := f.(type) {
	case *chords:
		if flip < 0 {
			box.Lo[1], box.Hi[1] = -box.Hi[1], -box.Lo[1]
		}
		t := f.shrink(likely)
		box.Lo[0], box.Hi[0] = max(box.Lo[0], t.from), min(box.Hi[0], t.to)
		m.cells.reset(&box, 2, m.limits.sidePlane)
		m.outer = outsideLine(m.outer[:0], &m.cells, c, flip, t)
	case *boxes:
		top := f.shrink(likely)
		for d := range top {
			box.Hi[d] = min(box.Hi[d], top[d])
		}
		m.cells.reset(&box, f.dims, m.limits.sideSpace)
		m.outer = outsideBox(m.outer[:0], &m.cells, c, top)
	}
}

// fill adds the points ids of c to the search.
func (m *Meter[T]) fill(c geom.Cloud[T], f ranges, flip float64, ids []int32) {
	z := 0.0
	for _, i := range ids {
		if c.Z != nil {
			z = float64(c.Z[i])
		}
		m.runs = f.runsOf(m.runs[:0], float64(c.X[i]), flip*float64(c.Y[i]), z)
		m.search.add(m.runs, 1)
	}
}

// guess chooses the ranges whose common points are the core: those with nearly as many
// points of a sample as the largest range, and with as many as the entropy of the sample
// asks of a largest group.
func (m *Meter[T]) guess(c geom.Cloud[T], f ranges, flip float64) []int32 {
	n := c.Len()
	k := min(n, m.limits.sample)
	m.outer = m.outer[:0]
	for j := range k {
		m.outer = append(m.outer, int32(kernel.SampleAt(j, k, n)))
	}
	s := &m.search
	s.reset(f.size())
	s.legal = s.legal[:0]
	m.fill(c, f, flip, m.outer)
	least, _ := s.solve(math.Inf(1), 0)
	s.alive = s.alive[:0]
	for i := range s.weight {
		s.alive = append(s.alive, int32(i))
	}
	s.count(s.alive)
	// The mean of the logarithms of all points' group sizes is least/k.
	share := m.limits.share
	if c.Z != nil {
		share = m.limits.shareSpace
	}
	wanted := max(math.Exp(least/float64(k)), share*slices.Max(s.counts))
	var list []int32
	for r, held := range s.counts {
		if held >= wanted {
			list = append(list, int32(r))
		}
	}
	return list
}
