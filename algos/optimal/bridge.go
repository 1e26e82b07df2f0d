package optimal

import "slices"

// bridge returns the edge (a, b) of the upper hull of p, q and in that crosses the
// vertical line just right of x = m: a.x <= m < b.x. p and q are the leftmost and the
// rightmost point, on different sides of that line.
//
//	            b---.
//	     .--*--'  .  `.
//	  a-'  .  |   .    q
//	 / .      m  .
//	p    .
//
// At x = m, the line through a and b is the lowest line above all points: a linear
// program in two variables. Points are added in random order, beginning with p and q.
// A point above the line so far is an end of the new bridge; the other end is the
// last point on the other side that a line turning around the new end meets. The k-th
// point is an end with probability 2/k, so the expected cost is a constant number of
// orientations a point.
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

// extend returns the outermost points on the line through a and b, with the lowest
// index among equal points. Points between them, and equal points, are no vertices.
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

// bridgeBySorting is bridge by way of the whole chain. It replaces bridge where the
// random order is bad, so that no order makes the algorithm quadratic.
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
		if i+1 < len(in) && in[i+1].x == s.x { // the last point of a column is its top
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
