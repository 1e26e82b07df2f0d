package geomtest

import (
	"fmt"
	"math"
	"slices"

	"entropipe/algos/geom"
)

// side3 is OrientExact3 of four points.
func side3(a, b, c, d [3]float64) int {
	return OrientExact3(a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2], d[0], d[1], d[2])
}

func place[T geom.Float](c geom.Cloud[T], i int32) [3]float64 {
	return [3]float64{float64(c.X[i]), float64(c.Y[i]), float64(c.Z[i])}
}

// dropped returns the projection of c along axis k.
func dropped[T geom.Float](c geom.Cloud[T], k int) geom.Cloud[T] {
	axes := [][]T{c.X, c.Y, c.Z}
	return geom.Cloud[T]{X: axes[(k+1)%3], Y: axes[(k+2)%3]}
}

// straight reports whether three points are on one line, in all projections.
func straight[T geom.Float](c geom.Cloud[T], p, q, r int32) bool {
	for k := range 3 {
		if turn(dropped(c, k), p, q, r) != 0 {
			return false
		}
	}
	return true
}

func turn[T geom.Float](c geom.Cloud[T], p, q, r int32) int {
	return OrientExact(float64(c.X[p]), float64(c.Y[p]), float64(c.X[q]), float64(c.Y[q]),
		float64(c.X[r]), float64(c.Y[r]))
}

// Hull3D is the oracle of the convex hull in space, by definition: every plane
// through three points with all others on one side of it holds a facet, the
// plane hull of the points in it. It returns the vertices, ascending, the
// triangles and the dimension, -1 to 3; below 3 there are no triangles. Each facet is a
// fan around its lexicographically least corner, each triangle begins with its lowest
// index, counter-clockwise seen from outside, and triangles ascend. Equal points count
// as the one with the lowest index. Cost: O(n⁴), for some dozens of points.
func Hull3D[T geom.Float](c geom.Cloud[T]) (vertices, faces []int32, dim int) {
	p := indices(c.Len())
	slices.SortStableFunc(p, func(a, b int32) int { return lexicographic(a, b, c.X, c.Y, c.Z) })
	p = slices.CompactFunc(p, func(a, b int32) bool { return lexicographic(a, b, c.X, c.Y, c.Z) == 0 })
	if len(p) < 2 {
		return p, nil, len(p) - 1
	}
	vertices, dim = []int32{p[0], p[len(p)-1]}, 1
	var triangles [][3]int32
	for i, a := range p {
		for j := i + 1; j < len(p); j++ {
			for _, b := range p[j+1:] {
				if straight(c, a, p[j], b) {
					continue
				}
				dim = max(dim, 2)
				plane := planeOf(c, p, a, p[j], b)
				if plane.above+plane.below > 0 {
					dim = 3
				}
				if plane.above > 0 && plane.below > 0 {
					continue
				}
				ring := corners(c, plane)
				vertices = append(vertices, ring...)
				for k := 2; k < len(ring); k++ {
					triangles = append(triangles, rotated(ring[0], ring[k-1], ring[k]))
				}
			}
		}
	}
	slices.Sort(vertices)
	vertices = slices.Compact(vertices)
	if dim < 3 {
		return vertices, nil, dim
	}
	slices.SortFunc(triangles, func(a, b [3]int32) int { return slices.Compare(a[:], b[:]) })
	for _, t := range slices.Compact(triangles) {
		faces = append(faces, t[:]...)
	}
	return vertices, faces, 3
}

// supporting is a plane: the points in it, and the numbers of points on its sides.
type supporting struct {
	in           []int32
	above, below int
}

func planeOf[T geom.Float](c geom.Cloud[T], p []int32, a, b, d int32) (s supporting) {
	for _, q := range p {
		switch side3(place(c, a), place(c, b), place(c, d), place(c, q)) {
		case 1:
			s.above++
		case -1:
			s.below++
		default:
			s.in = append(s.in, q)
		}
	}
	return s
}

// corners returns the corners of the plane hull of the points in s, which are
// not collinear, from the lexicographically least, counter-clockwise seen from
// the side without points.
func corners[T geom.Float](c geom.Cloud[T], s supporting) []int32 {
	var ring []int32
	for k := 0; len(ring) < 3; k++ {
		ring = nil
		for _, i := range Hull2D(Gather(dropped(c, k), s.in)) {
			ring = append(ring, s.in[i])
		}
	}
	for q := range indices(c.Len()) {
		if side3(place(c, ring[0]), place(c, ring[1]), place(c, ring[2]), place(c, int32(q))) > 0 {
			slices.Reverse(ring)
			break
		}
	}
	least := 0
	for k, v := range ring {
		if lexicographic(v, ring[least], c.X, c.Y, c.Z) < 0 {
			least = k
		}
	}
	return append(slices.Clone(ring[least:]), ring[:least]...)
}

// rotated returns the triangle rotated to begin with its lowest index.
func rotated(a, b, c int32) [3]int32 {
	switch min(a, b, c) {
	case b:
		return [3]int32{b, c, a}
	case c:
		return [3]int32{c, a, b}
	}
	return [3]int32{a, b, c}
}

// CheckHull3D returns nil if vertices and faces are those that Hull3D returns for a cloud
// of dimension 3, otherwise an error that names a fault. It checks that vertices ascend
// and are those of the triangles; that equal points are named by their lowest index; that
// triangles ascend and begin with their lowest index; that the surface is closed and has
// Euler's characteristic; that no edge bends inwards; that every vertex is a corner; and
// that no point is outside any triangle. Cost: O(n·f) cheap tests for n points and f
// triangles.
func CheckHull3D[T geom.Float](c geom.Cloud[T], vertices, faces []int32) error {
	if err := checkOrder(vertices, faces); err != nil {
		return err
	}
	opposite := map[[2]int32]int32{}
	for k := 0; k < len(faces); k += 3 {
		for i := range 3 {
			e := [2]int32{faces[k+i], faces[k+(i+1)%3]}
			if _, twice := opposite[e]; twice {
				return fmt.Errorf("edge %v belongs to two triangles", e)
			}
			opposite[e] = faces[k+(i+2)%3]
		}
	}
	for e, far := range opposite {
		back, closed := opposite[[2]int32{e[1], e[0]}]
		if !closed {
			return fmt.Errorf("edge %v has no opposite", e)
		}
		if side3(place(c, e[0]), place(c, e[1]), place(c, far), place(c, back)) > 0 {
			return fmt.Errorf("edge %v bends inwards", e)
		}
	}
	if v, e, f := len(vertices), len(opposite)/2, len(faces)/3; v-e+f != 2 {
		return fmt.Errorf("the surface has %d vertices, %d edges and %d triangles, against Euler's formula", v, e, f)
	}
	if err := checkCorners(c, vertices, opposite); err != nil {
		return err
	}
	return checkOutside(c, vertices, faces)
}

func checkOrder(vertices, faces []int32) error {
	if len(vertices) < 4 || len(faces)%3 != 0 {
		return fmt.Errorf("the hull has %d vertices and %d indices of triangles, want at least 4 and a multiple of 3",
			len(vertices), len(faces))
	}
	for k := 1; k < len(vertices); k++ {
		if vertices[k-1] >= vertices[k] {
			return fmt.Errorf("vertices %d, %d do not ascend", vertices[k-1], vertices[k])
		}
	}
	used := slices.Clone(faces)
	slices.Sort(used)
	if !slices.Equal(slices.Compact(used), vertices) {
		return fmt.Errorf("the triangles have other vertices")
	}
	for k := 0; k < len(faces); k += 3 {
		t := faces[k : k+3]
		if t[0] > min(t[1], t[2]) || k > 0 && slices.Compare(faces[k-3:k], t) >= 0 {
			return fmt.Errorf("triangle %d, %v, is out of order", k/3, t)
		}
	}
	return nil
}

// checkCorners looks for vertices that are no corners: all triangles around the vertex
// are in one plane, or in two planes that meet along a line through it.
func checkCorners[T geom.Float](c geom.Cloud[T], vertices []int32, opposite map[[2]int32]int32) error {
	around := map[int32][]int32{}
	for e := range opposite {
		around[e[0]] = append(around[e[0]], e[1])
	}
	for _, v := range vertices {
		bends := 0 // edges at v where the surface bends
		var ends []int32
		for _, w := range around[v] {
			e, back := [2]int32{v, w}, [2]int32{w, v}
			if side3(place(c, v), place(c, w), place(c, opposite[e]), place(c, opposite[back])) < 0 {
				bends++
				ends = append(ends, w)
			}
		}
		if bends < 2 || bends == 2 && straight(c, ends[0], v, ends[1]) {
			return fmt.Errorf("point %d is no corner: %d edges bend there", v, bends)
		}
	}
	return nil
}

// checkOutside looks for points above a triangle, and for points with a lower index that
// equal a vertex.
func checkOutside[T geom.Float](c geom.Cloud[T], vertices, faces []int32) error {
	lowest := map[[3]float64]int32{}
	for _, v := range vertices {
		p := place(c, v)
		if other, twice := lowest[p]; twice { // 0 and -0 are one key
			return fmt.Errorf("vertices %d and %d are equal", other, v)
		}
		lowest[p] = v
	}
	for i := range c.X {
		if v, is := lowest[place(c, int32(i))]; is && int(v) > i {
			return fmt.Errorf("vertex %d is equal to point %d", v, i)
		}
	}
	for k := 0; k < len(faces); k += 3 {
		if i := firstAbove(c, faces[k:k+3]); i >= 0 {
			return fmt.Errorf("point %d is outside triangle %v", i, faces[k:k+3])
		}
	}
	return nil
}

// InsideHull3D reports whether point i of c is strictly on the inner side of all
// triangles. Cost: O(f) for f triangles.
func InsideHull3D[T geom.Float](c geom.Cloud[T], faces []int32, i int) bool {
	for k := 0; k < len(faces); k += 3 {
		if side3(place(c, faces[k]), place(c, faces[k+1]), place(c, faces[k+2]), place(c, int32(i))) >= 0 {
			return false
		}
	}
	return true
}

// firstAbove returns the first point of c above the plane of triangle t, or -1.
// It is side3 for many points: a product with the plane's normal, with an error bound as
// in OrientExact3, decides most points.
func firstAbove[T geom.Float](c geom.Cloud[T], t []int32) int {
	p, q, r := place(c, t[0]), place(c, t[1]), place(c, t[2])
	var n, size [3]float64
	for k := range 3 {
		i, j := (k+1)%3, (k+2)%3
		a, b := float64((q[i]-p[i])*(r[j]-p[j])), float64((q[j]-p[j])*(r[i]-p[i]))
		n[k], size[k] = a-b, 1e-14*(math.Abs(a)+math.Abs(b))
	}
	px, py, pz := p[0], p[1], p[2]
	nx, ny, nz := n[0], n[1], n[2]
	sx, sy, sz := size[0], size[1], size[2]
	for i := range c.X {
		x, y, z := float64(c.X[i])-px, float64(c.Y[i])-py, float64(c.Z[i])-pz
		det := float64(nx*x) + float64(ny*y) + float64(nz*z)
		e := float64(sx*math.Abs(x)) + float64(sy*math.Abs(y)) + float64(sz*math.Abs(z)) + 1e-200
		if -det > e && max(math.Abs(x), math.Abs(y), math.Abs(z)) < 1e90 {
			continue
		}
		if side3(p, q, r, place(c, int32(i))) > 0 {
			return i
		}
	}
	return -1
}
