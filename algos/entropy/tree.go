package entropy

import (
	"math"
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// FromTree returns the entropy of a kd-tree's partition as an upper bound. Cells are
// halved at the median, axis by axis, until one range holds the bounding box of a cell
// or a cell holds one point. output holds the maximal points, or the vertices of the
// hull (for one side those of the side or of the whole hull). In space a box inside the
// hull counts as five tetrahedra. No points give 0. It panics for Hull2D, which is two
// problems.
//
// For maxima in d dimensions the bound is at most d·H plus a constant. Cost: O(n log n)
// in the plane; in space in addition O(h) for every cell, and O(h²) for the hull.
func FromTree[T geom.Float](c geom.Cloud[T], output []int32, p Problem) Bracket {
	check(c, p.dims())
	checkIndices(output, c.Len())
	n := c.Len()
	if n == 0 {
		return Bracket{Kind: Tree}
	}
	t := tree{dims: p.dims()}
	load(&t.p, c, p)
	extra := 0.0 // nats a point of a cell that needs several ranges
	switch p {
	case Maxima2D:
		s := newStaircase(&t.p, output)
		t.held = func(_, hi *[3]float64) bool {
			k, _ := slices.BinarySearch(s.x, hi[0])
			return k < len(s.y) && s.y[k] >= hi[1]
		}
	case Maxima3D:
		t.held = t.under(slices.Clone(output))
	case UpperHull, LowerHull:
		t.held = t.below(upperChain(slices.Clone(output), &t.p))
	case Hull3D:
		var s solid
		if !s.build(&t.p, slices.Clone(output)) {
			s.faces = nil
		}
		t.held = t.within(s.faces)
		extra = math.Log(5)
	default:
		panic(badProblem)
	}
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i)
	}
	t.divide(ids, 0)
	size, cells := float64(n), 0.0
	for _, s := range t.sizes {
		if s > 1 {
			cells += float64(s)
		}
	}
	return bracket(0, OfSizes(t.sizes)+extra*cells/size, size, Tree)
}

// tree is a kd-tree under construction.
type tree struct {
	p     points
	dims  int
	held  func(lo, hi *[3]float64) bool // reports whether a range holds the box from lo to hi
	sizes []int32
}

func (t *tree) divide(ids []int32, axis int) {
	if len(ids) == 1 {
		t.sizes = append(t.sizes, 1)
		return
	}
	var lo, hi [3]float64
	for d := range t.dims {
		lo[d], hi[d] = t.p[d][ids[0]], t.p[d][ids[0]]
		for _, i := range ids {
			lo[d], hi[d] = min(lo[d], t.p[d][i]), max(hi[d], t.p[d][i])
		}
	}
	if t.held(&lo, &hi) {
		t.sizes = append(t.sizes, int32(len(ids)))
		return
	}
	half := len(ids) / 2
	split(ids, t.p[axis], half)
	next := (axis + 1) % t.dims
	t.divide(ids[:half], next)
	t.divide(ids[half:], next)
}

// split moves the k smallest points by value, then index, to the front: quickselect
// with the median of three, which the orders of sensors do not make slow.
func split(ids []int32, v []float64, k int) {
	less := func(i, j int32) bool { return v[i] < v[j] || v[i] == v[j] && i < j }
	for len(ids) > 1 {
		a, b, c := ids[0], ids[len(ids)/2], ids[len(ids)-1]
		if less(b, a) {
			a, b = b, a
		}
		if less(c, b) {
			b = greater(a, c, less)
		}
		lo, hi := 0, len(ids)-1
		for lo <= hi {
			for less(ids[lo], b) {
				lo++
			}
			for less(b, ids[hi]) {
				hi--
			}
			if lo <= hi {
				ids[lo], ids[hi] = ids[hi], ids[lo]
				lo++
				hi--
			}
		}
		switch {
		case k <= hi:
			ids = ids[:hi+1]
		case k >= lo:
			ids, k = ids[lo:], k-lo
		default:
			return
		}
	}
}

// greater returns the greater one of two points.
func greater(a, c int32, less func(i, j int32) bool) int32 {
	if less(a, c) {
		return c
	}
	return a
}

// under returns a test of boxes against the boxes below maximal points in space.
func (t *tree) under(list []int32) func(lo, hi *[3]float64) bool {
	x, y, z := t.p[0], t.p[1], t.p[2]
	slices.SortFunc(list, func(i, j int32) int { return sign(x[j] - x[i]) })
	return func(_, hi *[3]float64) bool {
		for _, w := range list {
			if x[w] < hi[0] {
				return false
			}
			if y[w] >= hi[1] && z[w] >= hi[2] {
				return true
			}
		}
		return false
	}
}

// below returns a test of boxes against the chords of an upper hull. Among the chords
// that reach over a box, the shortest chord is the highest there.
func (t *tree) below(chain []int32) func(lo, hi *[3]float64) bool {
	x, y := t.p[0], t.p[1]
	at := make([]float64, len(chain))
	for k, v := range chain {
		at[k] = x[v]
	}
	return func(lo, hi *[3]float64) bool {
		k, on := slices.BinarySearch(at, lo[0])
		if !on {
			k--
		}
		m, _ := slices.BinarySearch(at, hi[0])
		a, b := chain[k], chain[m]
		if a == b { // the box is a vertical line under one vertex
			return hi[1] <= y[a]
		}
		return exact.Orient2D(x[a], y[a], x[b], y[b], lo[0], hi[1]) <= 0 &&
			exact.Orient2D(x[a], y[a], x[b], y[b], hi[0], hi[1]) <= 0
	}
}

// within returns a test of boxes against a hull in space: each plane against the eight
// corners of a box.
func (t *tree) within(faces []face) func(lo, hi *[3]float64) bool {
	return func(lo, hi *[3]float64) bool {
		if len(faces) == 0 {
			return *lo == *hi // equal points are one group with any hull
		}
		for k, f := range faces {
			for corner := range 8 {
				at := *lo
				for d := range at {
					if corner>>d&1 == 1 {
						at[d] = hi[d]
					}
				}
				if side(&t.p, f, at) > 0 {
					// The next box is likely to fail at this face, too.
					faces[0], faces[k] = faces[k], faces[0]
					return false
				}
			}
		}
		return true
	}
}
