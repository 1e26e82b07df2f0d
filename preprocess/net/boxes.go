package net

import (
	"math"
	"slices"
)

// box is an axis-parallel box.
type box struct{ lo, hi [3]float64 }

func emptyBox() box {
	inf := math.Inf(1)
	return box{[3]float64{inf, inf, inf}, [3]float64{-inf, -inf, -inf}}
}

func (b *box) add(p [3]float64) {
	for d, v := range p {
		b.lo[d], b.hi[d] = min(b.lo[d], v), max(b.hi[d], v)
	}
}

func (b *box) join(o *box) {
	b.add(o.lo)
	b.add(o.hi)
}

// boxTree finds the least value of many items, given a lower bound of the values
// within a box. Nodes lie in one slice: the left child follows its parent.
type boxTree struct {
	items []int32
	boxes []box // box of each item
	nodes []boxNode
	stack []int32
}

type boxNode struct {
	box
	right  int32 // node of the right child; 0: a leaf
	lo, hi int32 // items[lo:hi] of a leaf
}

const leafItems = 4

// build builds the tree of items 0 to len(boxes)-1 and keeps a reference to boxes.
func (t *boxTree) build(boxes []box) {
	t.boxes = boxes
	t.items, t.nodes = t.items[:0], t.nodes[:0]
	for i := range boxes {
		t.items = append(t.items, int32(i))
	}
	if len(boxes) > 0 {
		t.split(0, int32(len(boxes)))
	}
}

func (t *boxTree) split(lo, hi int32) {
	at := len(t.nodes)
	n := boxNode{box: emptyBox(), lo: lo, hi: hi}
	for _, i := range t.items[lo:hi] {
		n.join(&t.boxes[i])
	}
	t.nodes = append(t.nodes, n)
	if hi-lo <= leafItems {
		return
	}
	axis := 0
	for d := range 3 {
		if n.box.hi[d]-n.box.lo[d] > n.box.hi[axis]-n.box.lo[axis] {
			axis = d
		}
	}
	middle := func(i int32) float64 { return t.boxes[i].lo[axis] + t.boxes[i].hi[axis] }
	slices.SortFunc(t.items[lo:hi], func(a, b int32) int {
		switch ma, mb := middle(a), middle(b); {
		case ma < mb:
			return -1
		case ma > mb:
			return 1
		}
		return int(a - b)
	})
	mid := (lo + hi) / 2
	t.split(lo, mid)
	t.nodes[at].right = int32(len(t.nodes))
	t.split(mid, hi)
}

// least returns the smallest value of an item, +Inf without items. promise returns a
// lower bound of the values of the items within a box.
func (t *boxTree) least(promise func(*box) float64, value func(item int32) float64) float64 {
	best := math.Inf(1)
	t.stack = t.stack[:0]
	if len(t.nodes) > 0 {
		t.stack = append(t.stack, 0)
	}
	for len(t.stack) > 0 {
		at := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		n := &t.nodes[at]
		if promise(&n.box) >= best {
			continue
		}
		if n.right == 0 {
			for _, i := range t.items[n.lo:n.hi] {
				best = min(best, value(i))
			}
			continue
		}
		near, far := at+1, n.right
		if promise(&t.nodes[far].box) < promise(&t.nodes[near].box) {
			near, far = far, near
		}
		t.stack = append(t.stack, far, near)
	}
	return best
}
