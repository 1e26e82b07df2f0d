package hull

import (
	"math/bits"
	"sync"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

const (
	sieveFrom = 1000 // points; below, all of them are candidates
	spaceRate = 32   // of how many points one is sampled,
	spaceMost = 2048 // at most
	chunk     = 4096 // points that the check for NaN and the sieve look at in turn
	lane3From = 1 << 15
)

// lane3 is the scratch of one goroutine.
type lane3[T geom.Float] struct {
	points []corner
	mask   [chunk / 64]uint64
	finite bool
}

// takeAll makes every point a candidate.
func (h *Hull3D[T]) takeAll(c geom.Cloud[T]) {
	if !c.Finite() {
		panic(badFinite)
	}
	b := &h.body
	b.reset()
	for i := range c.X {
		b.points = append(b.points, cornerOf(c, i))
	}
}

func cornerOf[T geom.Float](c geom.Cloud[T], i int) corner {
	return corner{x: float64(c.X[i]), y: float64(c.Y[i]), z: float64(c.Z[i]), index: int32(i)}
}

// takeSieved makes candidates of those points that are not surely inside the
// hull of a sample. All vertices are among them, and what equals one.
func (h *Hull3D[T]) takeSieved(c geom.Cloud[T]) {
	b, n := &h.body, c.Len()
	b.reset()
	total := min(spaceMost, n/spaceRate)
	for k := range total {
		p := cornerOf(c, kernel.SampleAt(k, total, n))
		if p.x-p.x != 0 || p.y-p.y != 0 || p.z-p.z != 0 {
			panic(badFinite)
		}
		b.points = append(b.points, p)
	}
	seed, dim := b.simplex()
	if dim == 3 {
		b.grow(seed)
	}
	if dim < 3 || !h.sieve.build(b) {
		h.takeAll(c)
		return
	}
	h.takeSurvivors(c)
}

// takeSurvivors makes candidates of what the sieve holds back, in the order of
// the cloud.
func (h *Hull3D[T]) takeSurvivors(c geom.Cloud[T]) {
	n := c.Len()
	workers := max(1, min(h.Workers, n/lane3From))
	for len(h.lanes) < workers {
		h.lanes = append(h.lanes, lane3[T]{})
	}
	b, first := &h.body, &h.lanes[0]
	b.reset()
	first.points, b.points = b.points, first.points
	if workers > 1 {
		h.share(c, workers)
	} else {
		first.take(&h.sieve.planes, c, 0, n)
	}
	first.points, b.points = b.points, first.points
	for k := range h.lanes[:workers] {
		if !h.lanes[k].finite {
			panic(badFinite)
		}
		if k > 0 {
			b.points = append(b.points, h.lanes[k].points...)
		}
	}
}

// share divides the cloud among goroutines. It is apart, since what they hold
// is allocated.
func (h *Hull3D[T]) share(c geom.Cloud[T], workers int) {
	n := c.Len()
	var wg sync.WaitGroup
	for k := 1; k < workers; k++ {
		wg.Go(func() { h.lanes[k].take(&h.sieve.planes, c, n*k/workers, n*(k+1)/workers) })
	}
	h.lanes[0].take(&h.sieve.planes, c, 0, n/workers)
	wg.Wait()
}

// take collects those of the points from to to that are beyond the planes.
func (l *lane3[T]) take(p *kernel.Planes[T], c geom.Cloud[T], from, to int) {
	l.points, l.finite = l.points[:0], true
	for ; from < to; from += chunk {
		part := c.Slice(from, min(from+chunk, to))
		if !part.Finite() {
			l.finite = false
			return
		}
		kernel.Beyond(p, part.X, part.Y, part.Z, l.mask[:])
		for k, word := range l.mask[:(part.Len()+63)/64] {
			for ; word != 0; word &= word - 1 {
				i := 64*k + bits.TrailingZeros64(word)
				v := cornerOf(part, i)
				v.index += int32(from)
				l.points = append(l.points, v)
			}
		}
	}
}
