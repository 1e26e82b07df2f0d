package net

// Squared distances in space. Coordinates are at most 2 in size.

type vector = [3]float64

func minus(a, b vector) vector { return vector{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

func dot(a, b vector) float64 {
	return float64(a[0]*b[0]) + float64(a[1]*b[1]) + float64(a[2]*b[2])
}

// squaredDistance returns the squared distance of p to the box, 0 inside.
func (b *box) squaredDistance(p vector) float64 {
	sum := 0.0
	for d, v := range p {
		e := max(0, b.lo[d]-v, v-b.hi[d])
		sum += float64(e * e)
	}
	return sum
}

// toSegment returns the squared distance of p to the segment ab, which may be a
// point.
func toSegment(p, a, b vector) float64 {
	ab, ap := minus(b, a), minus(p, a)
	t := 0.0
	if l := dot(ab, ab); l > 0 {
		t = max(0, min(1, dot(ap, ab)/l))
	}
	for d := range ap {
		ap[d] -= float64(t * ab[d])
	}
	return dot(ap, ap)
}

// toTriangle returns the squared distance of p to the triangle abc, which may be a
// segment or a point. If the foot of p on the plane lies inside all three edges,
// this is the distance to the plane, otherwise the distance to the nearest edge.
func toTriangle(p, a, b, c vector) float64 {
	edges := min(toSegment(p, a, b), toSegment(p, b, c), toSegment(p, c, a))
	n := cross(minus(b, a), minus(c, a))
	l := dot(n, n)
	if l == 0 {
		return edges
	}
	for _, e := range [...][2]vector{{a, b}, {b, c}, {c, a}} {
		if dot(cross(minus(e[1], e[0]), minus(p, e[0])), n) < 0 {
			return edges
		}
	}
	h := dot(minus(p, a), n)
	// The normal of a sliver is inexact. The foot is nearer to an edge than the
	// least height is, so this much of the distance to the edges is certain.
	long := max(dot(minus(b, a), minus(b, a)), dot(minus(c, b), minus(c, b)), dot(minus(a, c), minus(a, c)))
	return min(edges, max(float64(h*h)/l, edges-l/long))
}

func cross(a, b vector) vector {
	return vector{
		float64(a[1]*b[2]) - float64(a[2]*b[1]),
		float64(a[2]*b[0]) - float64(a[0]*b[2]),
		float64(a[0]*b[1]) - float64(a[1]*b[0]),
	}
}
