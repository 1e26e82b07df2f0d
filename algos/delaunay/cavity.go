package delaunay

import "math"

// A new point p lies in the circles of some triangles, its hole (or cavity).
// dig finds the hole and its border, the ring; fill replaces the hole by a fan of
// triangles around p. With A the triangle where the walk ended, B and C the
// others whose circles hold p:
//
//	       v3                         v3
//	     .'  '.                     .' : '.
//	   .'   C  '.                 .'   :   '.
//	 v4----------v2             v4.    :    .v2
//	  \    A    / |               \ '.  :  .' |
//	   \   p   /  |     dig         \  '.:.'  |
//	    \     / B |    ----->        \  .p.   |
//	     \   /    |     fill          \ : '.  |
//	      \ /     |                    \:   '.|
//	       v0-----v1                   v0-----v1
//
// The hole is star-shaped: p sees every edge of the ring from the inside, so all
// triangles of the fan turn counter-clockwise. A hole of k triangles has k+2
// edges in its ring. The fan takes the memory of the hole and of two triangles
// more. Triangle (v, next v, p) of the fan has these twins, by slot:
//
//	 next v ----0---- v      0: outside, the half-edge from next v to v
//	       \         /       1: slot 2 of the triangle of next v
//	        1       2        2: slot 1 of the triangle before
//	         \     /
//	          \   /
//	            p

// rim is a vertex of a ring, relative to the new point, in the frame's unit.
type rim struct {
	v       int32
	outside int32   // code of the outer half-edge, from the next vertex of the ring to v
	slot    int32   // memory for the triangle inside that edge
	x, y, l float64 // l = x² + y², infinite for the vertex at infinity
}

// room is the size of the arrays that most holes fit. Arrays of this size need no
// bounds checked and no lengths kept, for which the CPU has no registers left.
const room = 64

// dig finds the hole of p, which the circle of triangle start holds, and returns
// its ring, counter-clockwise. The ring has memory for the triangles of the fan:
// one, two and the triangles of the hole. ok is false where the hole reaches out
// of the zone of a guarded inserter.
//
// Every vertex of the triangles in the hole stays a vertex, so the triangles of
// the hole are a tree: dig walks it depth first, counter-clockwise, and reaches
// each triangle once.
func (w *inserter) dig(start int32, p point, one, two int32) (ring []rim, ok bool) {
	tris, pts := w.tris, w.pts
	scale, here := w.scale, w.in(p)
	margin := here.margin()
	small := &w.small
	small.hole[0], small.hole[1], small.hole[2] = one, two, start
	twins := &tris[start].n
	small.stack[0], small.stack[1] = twins[2], twins[1]
	code := twins[0] // the half-edge to look across
	dug, top, edges := 3, 2, 0
	for {
		number, slot := code>>2, code&3
		far := &tris[number]
		det := far.at(here)
		bound := float64(float64(far.err) * margin)
		inside := det > bound
		if !inside && !(-det > bound) {
			inside = w.inside(far, p)
		}
		if inside {
			if w.guarded && far.v[kind] != w.zone {
				return nil, false
			}
			if dug == room-3 {
				return w.digLarge(start, p, one, two)
			}
			small.hole[dug&(room-1)] = number
			dug++
			small.stack[top&(room-1)] = far.n[prev[slot]]
			top++
			code = far.n[next[slot]]
			continue
		}
		v := far.v[next[slot]&3]
		// In place: copying a finished rim stalls on its parts still in flight.
		edge := &small.ring[edges&(room-1)]
		edge.v, edge.outside, edge.slot = v, code, small.hole[edges&(room-1)]
		edges++
		if v >= 0 {
			q := &pts[v]
			x, y := (q.x-p.x)*scale, (q.y-p.y)*scale
			edge.x, edge.y, edge.l = x, y, float64(x*x)+float64(y*y)
		} else {
			edge.x, edge.y, edge.l = 0, 0, math.Inf(1)
		}
		if top--; top < 0 {
			break
		}
		code = small.stack[top&(room-1)]
	}
	w.steps += dug - 2
	return small.ring[:edges], true
}

// digLarge is dig for holes of any size.
func (w *inserter) digLarge(start int32, p point, one, two int32) (ring []rim, ok bool) {
	ring = w.ring[:0]
	hole := append(w.hole[:0], one, two, start)
	twins := &w.tris[start].n
	stack := append(w.stack[:0], twins[2], twins[1], twins[0])
	for len(stack) > 0 {
		code := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		far, slot := &w.tris[code>>2], code&3
		if w.holds(far, p) {
			if w.guarded && far.v[kind] != w.zone {
				return nil, false
			}
			hole = append(hole, code>>2)
			stack = append(stack, far.n[prev[slot]], far.n[next[slot]])
			continue
		}
		edge := rim{v: far.v[next[slot]], outside: code, slot: hole[len(ring)], l: math.Inf(1)}
		if edge.v >= 0 {
			edge.x, edge.y = (w.pts[edge.v].x-p.x)*w.scale, (w.pts[edge.v].y-p.y)*w.scale
			edge.l = float64(edge.x*edge.x) + float64(edge.y*edge.y)
		}
		ring = append(ring, edge)
	}
	w.steps += len(hole) - 2
	w.ring, w.hole, w.stack = ring, hole, stack
	return ring, true
}

// fill replaces the hole inside a ring by a fan of triangles around point i, and
// makes the triangle that faces point i+1 the last: there the next walk begins.
func (w *inserter) fill(ring []rim, i int32, p point) {
	tris, zone := w.tris, w.zone
	here := w.in(p)
	rounding := w.rounding
	var toX, toY float64 // the way to the next point
	if int(i)+1 < len(w.pts) {
		q := &w.pts[i+1]
		toX, toY = q.x-p.x, q.y-p.y
	}
	last, before := int32(-1), ring[len(ring)-1].slot
	first := &ring[0]
	v, slot, x, y, l := first.v, first.slot, first.x, first.y, first.l
	for j := range ring {
		outside := ring[j].outside
		after := first
		if j+1 < len(ring) {
			after = &ring[j+1]
		}
		own := zone | (v|after.v)>>31 // the kind: ghost if one of the two is infinity
		t := &tris[slot]
		t.v[0], t.v[1], t.v[2], t.v[kind] = v, after.v, i, own
		t.n[0], t.n[1], t.n[2] = outside, after.slot<<2|2, before<<2|1
		t.lift(float64(l*after.y)-float64(y*after.l), float64(x*after.l)-float64(l*after.x),
			float64(y*after.x)-float64(x*after.y), here)
		t.err = rounding.errorOf(l+after.l, here)
		tris[outside>>2].n[outside&3] = slot << 2
		// Branches here would go wrong as often as not.
		facesLeft, facesRight := int32(0), int32(0)
		if float64(x*toY) >= float64(y*toX) {
			facesLeft = 1
		}
		if float64(after.x*toY) < float64(after.y*toX) {
			facesRight = 1
		}
		if facesLeft&facesRight&(1+own>>31) != 0 {
			last = slot
		}
		before = slot
		v, slot, x, y, l = after.v, after.slot, after.x, after.y, after.l
	}
	if last < 0 {
		last = w.anyFinite(ring)
	}
	w.last = last
}

// anyFinite returns a triangle of the fan that is no ghost. At most two
// triangles around a point are ghosts, and a fan has three at least.
func (w *inserter) anyFinite(ring []rim) int32 {
	for k := range ring {
		if at := ring[k].slot; w.tris[at].v[kind] >= 0 {
			return at
		}
	}
	panic("delaunay: all triangles around a point are ghosts")
}
