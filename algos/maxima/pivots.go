package maxima

import (
	"math/bits"

	"entropipe/algos/geom"
	"entropipe/algos/internal/kernel"
)

const (
	candidates = 64 // largest number of maximal points of the sample that may become pivots
	witnesses  = 64 // largest number of sampled points that judge candidates, one bit each
)

// pivots chooses the points that drop most other points. The volume that a point
// dominates says little in clouds that are not uniform, so sampled points, the
// witnesses, judge: each pivot is the candidate that dominates most of the
// witnesses that no pivot before it dominates. After a few pivots new witnesses are
// chosen among the points that no pivot dominates.
type pivots[T geom.Float] struct {
	values []T // pivot after pivot, in order of choice, whole groups
	pass   kernel.Pivots[T]
	left   []int32 // positions of the points of the sample that no pivot dominates
	kept   []int32 // positions in left of the points that the newest pivots leave

	candidate [candidates]int32
	beats     [candidates]uint64 // witnesses that a candidate dominates
	witness   [MaxDims][witnesses]T
	rest      [MaxDims][]T
}

// best returns the first group of pivots.
func (p *pivots[T]) best(dims int) []T { return p.values[:kernel.PivotGroup*dims] }

// pick chooses pivots among the points of sample, which are in random order. It
// returns false when the pivots leave most of the sample, as they do when most
// points are maximal.
func (m *Maxima[T]) pick(sample [][]T) bool {
	p := &m.filter.pivots
	p.values = p.values[:0]
	size := m.fillList(sample, 24*len(sample[0])) // the points taken are a sample, too
	m.turnList()
	front := len(m.back.IDs)
	m.crowded = float64(front) / float64(size)
	if 2*front > size {
		return false
	}
	for k, v := range sample {
		sample[k] = v[:size]
	}
	count := min(front, candidates)
	for j := range count {
		p.candidate[j] = m.list.IDs[int32(len(m.list.IDs)-1)-m.back.IDs[j*front/count]]
	}
	p.left = appendAll(p.left[:0], size)
	for _, more := range [...]int{2, 2, 4, 4, 4} {
		m.touched += len(p.left)
		if !p.choose(sample, count, more) {
			break
		}
		p.drop(sample)
		if len(p.left) <= front+size/512 {
			break
		}
	}
	if len(p.values) == 0 {
		return false
	}
	p.fill(len(sample))
	return 4*len(p.left) < 3*size
}

// choose appends up to more pivots. It returns false when no candidate dominates a
// witness.
func (p *pivots[T]) choose(sample [][]T, count, more int) bool {
	n := min(len(p.left), witnesses)
	for k, v := range sample {
		for i := range n {
			p.witness[k][i] = v[p.left[i*len(p.left)/n]]
		}
	}
	for j := range count {
		p.beats[j] = p.beaten(sample, p.candidate[j], n)
	}
	alive := ^uint64(0)
	for range more {
		best, top := 0, 0
		for j, b := range p.beats[:count] {
			if c := bits.OnesCount64(b & alive); c > top {
				best, top = j, c
			}
		}
		if top == 0 {
			break
		}
		alive &^= p.beats[best]
		for _, v := range sample {
			p.values = append(p.values, v[p.candidate[best]])
		}
	}
	return alive != ^uint64(0)
}

// beaten returns the witnesses that a point of the sample dominates strictly.
func (p *pivots[T]) beaten(sample [][]T, point int32, n int) uint64 {
	mask := ^uint64(0) >> (64 - n)
	for k, v := range sample {
		q, below := v[point], uint64(0)
		for i, w := range p.witness[k][:n] {
			bit := uint64(0)
			if q > w {
				bit = 1
			}
			below |= bit << i
		}
		mask &= below
	}
	return mask
}

// drop removes from left the points that the newest pivots dominate.
func (p *pivots[T]) drop(sample [][]T) {
	dims := len(sample)
	for k, v := range sample {
		rest := p.rest[k][:0]
		for _, i := range p.left {
			rest = append(rest, v[i])
		}
		p.rest[k] = rest
	}
	whole := len(p.values)
	p.fill(dims)
	p.pass.Values = p.values
	p.kept, _ = p.pass.Undominated(p.kept[:0], p.rest[:dims], 0)
	for j, i := range p.kept {
		p.left[j] = p.left[i]
	}
	p.left = p.left[:len(p.kept)]
	p.values = p.values[:whole]
}

// fill repeats the last pivot until the last group is whole.
func (p *pivots[T]) fill(dims int) {
	for len(p.values)%(dims*kernel.PivotGroup) != 0 {
		p.values = append(p.values, p.values[len(p.values)-dims:]...)
	}
}
