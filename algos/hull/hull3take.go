package hull

import (
	"math/bits"
	"sync"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

const (
	sieveFrom  = 2000 // points; below, all of them are candidates
	spaceRate  = 16   // of how many points one is in the first sample,
	spaceMost  = 2048 // at most
	secondFrom = 8192 // candidates expected after the first sieve that make a second worth its cost
	secondRate = 32   // of how many blocks one is in the second sample
	block      = 64
	seedRate   = 16         // of how many points at most one may be a seed
	seedMost   = 4          // of how many points at most one may pass a sieve of seeds
	probeRate  = 64         // of how many blocks one tries it,
	probeMost  = 64         // at most
	chunk      = 64 * block // points that the check for NaN and the sieve look at in turn
	lane3From  = 1 << 15    // points a goroutine is worth starting for
)

// lane3 is the scratch of one goroutine.
type lane3 struct {
	points []corner
	mask   [chunk / block]uint64
	finite bool
}

// takeAll makes every point a candidate.
func (h *Hull3D[T]) takeAll(c geom.Cloud[T]) {
	b := &h.body
	b.reset()
	for i := range c.X {
		b.points = append(b.points, cornerOf(c, i))
	}
}

func cornerOf[T geom.Float](c geom.Cloud[T], i int) corner {
	return corner{x: float64(c.X[i]), y: float64(c.Y[i]), z: float64(c.Z[i]), index: int32(i), on: none}
}

// takeSieved finds the hull by way of sieves: of the hull of a small sample,
// for large clouds that of a larger one, and of all points that these do not
// drop. All vertices are among them, and what equals one. It reports
// false, and has done nothing, when it finds no sieve or a coordinate that is
// not finite.
func (h *Hull3D[T]) takeSieved(c geom.Cloud[T]) bool {
	b, n := &h.body, c.Len()
	b.reset()
	total := min(spaceMost, n/spaceRate)
	for k := range total {
		b.points = append(b.points, cornerOf(c, kernel.SampleAt(k, total, n)))
	}
	if !h.firstSieve() {
		return false
	}
	// A point is outside the hull of a sample as often as one of the sample is a
	// vertex, and those have twice as many faces.
	return h.takeRest(c, n/total*(len(b.faces)-len(b.free))/2)
}

// takeSeeded is takeSieved with the hull of the seeds, if it drops enough of
// some blocks of points.
func (h *Hull3D[T]) takeSeeded(c geom.Cloud[T]) bool {
	b := &h.body
	if len(h.Seeds) < 4 || len(h.Seeds) > c.Len()/seedRate {
		return false // too many cost more than they save
	}
	b.reset()
	for _, i := range h.Seeds {
		b.points = append(b.points, cornerOf(c, int(i)))
	}
	if !h.firstSieve() {
		return false
	}
	passed, tried := h.probe(c)
	if passed > tried/seedMost {
		return false
	}
	h.seeded = h.takeRest(c, c.Len()/tried*passed)
	return h.seeded
}

// firstSieve makes the sieve of the hull of the candidates, if they are finite
// and it has one.
func (h *Hull3D[T]) firstSieve() bool {
	b := &h.body
	for i := range b.points {
		if p := &b.points[i]; p.x-p.x != 0 || p.y-p.y != 0 || p.z-p.z != 0 {
			return false
		}
	}
	seed, dim := b.simplex()
	if dim < 3 {
		return false
	}
	b.start(seed)
	b.grow()
	return h.sieve.build(b)
}

// probe counts what passes the sieve in a few blocks of points.
func (h *Hull3D[T]) probe(c geom.Cloud[T]) (passed, tried int) {
	l := h.lane(0)
	l.points, l.finite = l.points[:0], true
	blocks := c.Len() / block
	total := max(1, min(blocks/probeRate, probeMost))
	for k := range total {
		at := block * kernel.SampleAt(k, total, blocks)
		takeFrom(l, &h.sieve.planes, c, at, at+block)
	}
	return len(l.points), total * block
}

// takeRest finds the hull by way of the first sieve, which is expected to pass
// so many points. It reports false when a coordinate is not finite.
func (h *Hull3D[T]) takeRest(c geom.Cloud[T], expected int) bool {
	b := &h.body
	if expected > secondFrom && !(h.refine(c) && h.sieve.build(b)) {
		return false
	}
	base := len(b.points)
	if !h.takeSurvivors(c) {
		return false
	}
	h.survivors = len(b.points) - base
	h.settle(base)
	return true
}

// refine inserts the points of some blocks, unless one is not finite.
func (h *Hull3D[T]) refine(c geom.Cloud[T]) bool {
	l := h.lane(0)
	base := len(h.body.points)
	l.points, h.body.points = h.body.points, l.points
	blocks := c.Len() / block
	total := blocks / secondRate
	l.finite = true
	for k := range total {
		at := block * kernel.SampleAt(k, total, blocks)
		takeFrom(l, &h.sieve.planes, c, at, at+block)
	}
	l.points, h.body.points = h.body.points, l.points
	if l.finite {
		h.settle(base)
	}
	return l.finite
}

// settle inserts the candidates from base on. The sieve is of the hull of those
// before.
func (h *Hull3D[T]) settle(base int) {
	b := &h.body
	b.extend(base)
	h.sieve.settle(b, base, h.Workers)
	b.pendAll()
	b.grow()
}

func (h *Hull3D[T]) lane(k int) *lane3 {
	for len(h.lanes) <= k {
		h.lanes = append(h.lanes, lane3{})
	}
	return &h.lanes[k]
}

// takeSurvivors makes candidates of what the sieve does not hold back, in the
// order of the cloud. It reports false when a coordinate is not finite.
func (h *Hull3D[T]) takeSurvivors(c geom.Cloud[T]) bool {
	n := c.Len()
	workers := max(1, min(h.Workers, n/lane3From))
	h.lane(workers - 1)
	for k := range h.lanes {
		h.lanes[k].points, h.lanes[k].finite = h.lanes[k].points[:0], true
	}
	b, first := &h.body, &h.lanes[0]
	first.points, b.points = b.points, first.points
	if workers > 1 {
		h.share(c, workers)
	} else {
		takeFrom(first, &h.sieve.planes, c, 0, n)
	}
	first.points, b.points = b.points, first.points
	for k := range h.lanes[:workers] {
		if !h.lanes[k].finite {
			return false
		}
		if k > 0 {
			b.points = append(b.points, h.lanes[k].points...)
		}
	}
	return true
}

// share divides the cloud among goroutines. It is apart, since what they hold
// is allocated.
func (h *Hull3D[T]) share(c geom.Cloud[T], workers int) {
	n := c.Len()
	var wg sync.WaitGroup
	for k := 1; k < workers; k++ {
		wg.Go(func() { takeFrom(&h.lanes[k], &h.sieve.planes, c, n*k/workers, n*(k+1)/workers) })
	}
	takeFrom(&h.lanes[0], &h.sieve.planes, c, 0, n/workers)
	wg.Wait()
}

// takeFrom adds those of the points from to to that are beyond the planes,
// until one is not finite.
func takeFrom[T geom.Float](l *lane3, p *kernel.Planes[T], c geom.Cloud[T], from, to int) {
	for ; from < to && l.finite; from += chunk {
		part := c.Slice(from, min(from+chunk, to))
		l.finite = part.Finite()
		kernel.Beyond(p, part.X, part.Y, part.Z, l.mask[:])
		for k, word := range l.mask[:(part.Len()+block-1)/block] {
			for ; word != 0; word &= word - 1 {
				i := block*k + bits.TrailingZeros64(word)
				v := cornerOf(part, i)
				v.index += int32(from)
				l.points = append(l.points, v)
			}
		}
	}
}
