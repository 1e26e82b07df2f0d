package hull

import (
	"math/bits"
	"sync"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

const (
	sieveFrom  = 2000       // points; below, all of them are candidates
	spaceRate  = 16         // stride of the first sample: one point in spaceRate,
	spaceMost  = 2048       // up to this number of points
	secondFrom = 8192       // candidates expected after the first sieve that make a second worth its cost
	secondRate = 32         // stride of the second sample: one block in secondRate
	block      = 64         // points in a block
	seedRate   = 16         // seeds are not used if they are more than one point in seedRate
	seedMost   = 4          // nor if their sieve passes more than one point in seedMost
	probeRate  = 64         // stride of the trial of seeds: one block in probeRate,
	probeMost  = 64         // up to this number of blocks
	chunk      = 64 * block // number of points that are checked for NaN and then sieved
	lane3From  = 1 << 15    // number of points that a goroutine is worth starting for
)

// lane3 is the working memory of one goroutine.
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

// takeSieved computes the hull with sieves. The hull of a small sample is the first
// sieve; for large clouds the hull of a larger sample is a second sieve. The points
// that no sieve drops hold all vertices and all points equal to a vertex; the result
// is their hull. takeSieved returns false, without a result, when a sample makes no
// sieve or a coordinate is not finite.
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
	// A point lies outside the hull of a sample with the probability that a sampled
	// point is a vertex, and a hull has twice as many faces as vertices.
	return h.takeRest(c, n/total*(len(b.faces)-len(b.free))/2)
}

// takeSeeded is takeSieved with the hull of the seeds as the first sieve. It returns
// false, too, when that sieve drops too few points of some blocks.
func (h *Hull3D[T]) takeSeeded(c geom.Cloud[T]) bool {
	b := &h.body
	if len(h.Seeds) < 4 || len(h.Seeds) > c.Len()/seedRate {
		return false // too many seeds cost more than they save
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

// firstSieve computes the hull of the candidates and its sieve. It returns false
// where a candidate is not finite or the hull has no sieve.
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

// probe counts the points of a few blocks that pass the sieve, and the points tried.
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

// takeRest computes the hull with the first sieve, which passes about expected
// points. It returns false when a coordinate is not finite.
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

// refine inserts the points of some blocks. It returns false, and inserts nothing,
// when one of them is not finite.
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

// settle inserts the candidates from base on. The sieve must be that of the hull of
// the candidates before.
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

// takeSurvivors makes candidates of the points that the sieve does not drop, in the
// order of the cloud. It returns false when a coordinate is not finite.
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

// share divides the cloud among goroutines. It is a function of its own because the
// variables that goroutines hold are allocated.
func (h *Hull3D[T]) share(c geom.Cloud[T], workers int) {
	n := c.Len()
	var wg sync.WaitGroup
	for k := 1; k < workers; k++ {
		wg.Go(func() { takeFrom(&h.lanes[k], &h.sieve.planes, c, n*k/workers, n*(k+1)/workers) })
	}
	takeFrom(&h.lanes[0], &h.sieve.planes, c, 0, n/workers)
	wg.Wait()
}

// takeFrom adds the points of [from, to) beyond the planes to l.points. It ends, with
// l.finite false, at a chunk with a coordinate that is not finite.
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
