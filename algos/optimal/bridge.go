package optimal

import "slices"

// bridge returns the edge of the upper hull of p, q and in that crosses the
// vertical line just right of x = m: a.x <= m < b.x. p and q are the leftmost
// and the rightmost point and on different sides.
//
//	            b---.
//	     .--*--'  .  `.
//	  a-'  .  |   .    q
//	 / .      m  .
//	p    .
//
// The line through a and b is the lowest over all points, seen at m: a linear
// program in two variables. Points are added in random order, beginning with p
// and q. One above the line so far is an end of the new bridge; the other end
// is the last that a line through it, turning, meets on the other side. The
// k-th point is an end with probability 2/k, so that all of it costs a
// constant number of tests a point, in expectation.
func (h *half[T]) bridge(p, q site[T], in []site[T], m T) (a, b site[T]) {
	limit := h.tests + h.luck*len(in)
	for i := len(in) - 1; i > 0; i-- {
		j := h.dice.below(i + 1)
		in[i], in[j] = in[j], in[i]
	}
	a, b = p, q
	for k, s := range in {
		if h.side(a, b, s) <= 0 {
			continue
		}
		if h.tests > limit {
			return h.bridgeBySorting(p, q, in, m)
		}
		if s.x <= m {
			a, b = s, q
			for _, o := range in[:k] {
				if o.x > m && h.side(a, b, o) > 0 {
					b = o
				}
			}
			continue
		}
		a, b = p, s
		for _, o := range in[:k] {
			if o.x <= m && h.side(a, b, o) > 0 {
				a = o
			}
		}
	}
	return h.extend(p, q, a, b, in)
}

// extend returns the outermost points on the line through a and b, of equal
// points the lowest index: inner ones, and copies, are no vertices.
func (h *half[T]) extend(p, q, a, b site[T], in []site[T]) (left, right site[T]) {
	left, right = a, b
	take := func(s site[T]) {
		if h.side(a, b, s) != 0 {
			return
		}
		if s.x < left.x || s.x == left.x && s.i < left.i {
			left = s
		}
		if s.x > right.x || s.x == right.x && s.i < right.i {
			right = s
		}
	}
	take(p)
	take(q)
	for _, s := range in {
		take(s)
	}
	return left, right
}

// bridgeBySorting is bridge along the whole chain, for the unlucky: no order of
// points, however unfortunate, makes the algorithm quadratic.
func (h *half[T]) bridgeBySorting(p, q site[T], in []site[T], m T) (a, b site[T]) {
	h.lost++
	slices.SortFunc(in, func(s, o site[T]) int {
		switch {
		case s.before(o):
			return -1
		case o.before(s):
			return 1
		}
		return 0
	})
	chain := append(h.stack[:0], p)
	push := func(s site[T]) {
		for len(chain) > 1 && h.side(chain[len(chain)-2], chain[len(chain)-1], s) >= 0 {
			chain = chain[:len(chain)-1]
		}
		chain = append(chain, s)
	}
	for i, s := range in {
		if i+1 < len(in) && in[i+1].x == s.x { // the last of a column is its top
			continue
		}
		push(s)
	}
	push(q)
	h.stack = chain
	for i, s := range chain {
		if s.x > m {
			return chain[i-1], s
		}
	}
	return p, q // not reached: q is right of m
}
