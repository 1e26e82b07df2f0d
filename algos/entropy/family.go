package entropy

import (
	"math"
	"slices"

	"entropipe/algos/exact"
	"entropipe/algos/geom"
)

// Family is a set of legal ranges of a cloud, each as the list of points that it
// holds. Single points are legal groups without being listed.
type Family struct {
	// Points is the number of points.
	Points int
	// Range r holds points Members[Start[r]:Start[r+1]], ascending.
	Start   []int
	Members []int32
	// Weight[i] is the number of points that point i stands for, at least 1; nil
	// means 1 for every point. With other weights the points are a sample, and
	// results are estimates.
	Weight []float64
	// Slack bounds the least entropy of this family minus H: 0 for boxes and for
	// all chords, log 2 for chords of vertices 1, 2, 4, ... apart, +Inf if nothing
	// is known (tetrahedra, and the ranges of witnesses).
	Slack float64
}

// MaxMembers is the largest number of members of a family. It bounds the memory: 4
// bytes a member here, and 4 bytes in Cover.
const MaxMembers = 1 << 27

// fullChords is the largest number of vertices for which Ranges lists all chords.
const fullChords = 70

// Len returns the number of ranges.
func (f *Family) Len() int { return max(len(f.Start)-1, 0) }

// Range returns the points of range r, in memory of f.
func (f *Family) Range(r int) []int32 { return f.Members[f.Start[r]:f.Start[r+1]] }

// reset makes f a family of n points without ranges.
func (f *Family) reset(n int) {
	f.Points, f.Start, f.Members, f.Weight, f.Slack = n, append(f.Start[:0], 0), f.Members[:0], nil, 0
}

// weight returns the number of points that point i stands for.
func (f *Family) weight(i int32) float64 {
	if f.Weight == nil {
		return 1
	}
	return f.Weight[i]
}

// total returns the number of points that all points of f stand for.
func (f *Family) total() float64 {
	if f.Weight == nil {
		return float64(f.Points)
	}
	sum := 0.0
	for _, w := range f.Weight {
		sum += w
	}
	return sum
}

// Ranges fills f with the ranges of a cloud, in the memory of f, and reports whether
// they fit in MaxMembers. output holds the maximal points, or the vertices of the
// hull (for UpperHull and LowerHull those of the side or of the whole hull). The
// ranges are:
//
//   - for maxima, the boxes below all maximal points;
//   - for one side of a hull, the chords of all pairs of up to 70 vertices; for more
//     vertices the chords of vertices 1, 2, 4, ... apart and the longest chord;
//   - for Hull3D, the tetrahedra from a centre to the faces of the hulls of nested
//     sets of vertices: all of them, half, a quarter, ...
//
// Whether a point is in a range is decided exactly; points on a border are in the
// range. It panics for Hull2D, which is two problems. Cost: O(n log n + members); in
// space O(n·h), and O(h²) for the hulls.
func Ranges[T geom.Float](f *Family, c geom.Cloud[T], output []int32, p Problem) (fits bool) {
	check(c, p.dims())
	checkIndices(output, c.Len())
	var raw points
	load(&raw, c, p)
	list := slices.Clone(output)
	f.reset(c.Len())
	switch p {
	case Maxima2D:
		return f.steps(&raw, list)
	case Maxima3D:
		return f.boxes(&raw, list)
	case UpperHull, LowerHull:
		list = upperChain(list, &raw)
		if len(list) > fullChords {
			f.Slack = math.Ln2
		}
		return f.chords(&raw, list, appendChords(nil, len(list), fullChords))
	case Hull3D:
		f.Slack = math.Inf(1)
		var s fans
		var u points
		box := BoxOf(c)
		for k, v := range [][]T{c.X, c.Y, c.Z} {
			u[k] = unit(nil, v, &box, k)
		}
		s.build(&raw, &u, &box, list)
		return f.tetrahedra(&raw, s.cones)
	}
	panic(badProblem)
}

const badProblem = "entropy: the problem has no single family of ranges"

// close ends a range, and reports whether there is room for more members.
func (f *Family) close() bool {
	f.Start = append(f.Start, len(f.Members))
	return len(f.Members) <= MaxMembers
}

// steps lists the boxes below points in the plane, from left to right.
func (f *Family) steps(p *points, list []int32) bool {
	slices.SortFunc(list, func(i, j int32) int { return sign(p[0][i] - p[0][j]) })
	byX := sorted(p[0])
	for _, w := range list {
		base := len(f.Members)
		for _, i := range byX {
			if p[0][i] > p[0][w] {
				break
			}
			if p[1][i] <= p[1][w] {
				f.Members = append(f.Members, i)
			}
		}
		slices.Sort(f.Members[base:])
		if !f.close() {
			return false
		}
	}
	return true
}

// boxes lists the boxes below points in space by falling sum of coordinates. So among
// boxes with equal numbers of points, the more central box is taken first.
func (f *Family) boxes(p *points, list []int32) bool {
	x, y, z := p[0], p[1], p[2]
	slices.SortFunc(list, func(i, j int32) int {
		if s := sign(x[j] + y[j] + z[j] - x[i] - y[i] - z[i]); s != 0 {
			return s
		}
		return int(i) - int(j)
	})
	for _, w := range list {
		wx, wy, wz := x[w], y[w], z[w]
		for i := range x {
			if x[i] <= wx && y[i] <= wy && z[i] <= wz {
				f.Members = append(f.Members, int32(i))
			}
		}
		if !f.close() {
			return false
		}
	}
	return true
}

// chords lists the points on or below the chords of a chain, between their ends.
func (f *Family) chords(p *points, chain []int32, pairs []pair) bool {
	x, y := p[0], p[1]
	byX := sorted(x)
	from := make([]int, len(chain)) // for each vertex, the first point not left of it
	for k, v := range chain {
		from[k], _ = slices.BinarySearchFunc(byX, x[v], func(i int32, at float64) int { return sign(x[i] - at) })
	}
	for _, c := range pairs {
		a, b := chain[c.a], chain[c.b]
		base := len(f.Members)
		for _, i := range byX[from[c.a]:] {
			if x[i] > x[b] {
				break
			}
			if a == b && y[i] <= y[a] || a != b && exact.Orient2D(x[a], y[a], x[b], y[b], x[i], y[i]) <= 0 {
				f.Members = append(f.Members, i)
			}
		}
		slices.Sort(f.Members[base:])
		if !f.close() {
			return false
		}
	}
	return true
}

// sorted returns the numbers of v in ascending order of their values.
func sorted(v []float64) []int32 {
	ids := make([]int32, len(v))
	for i := range ids {
		ids[i] = int32(i)
	}
	slices.SortFunc(ids, func(i, j int32) int {
		if v[i] != v[j] {
			return sign(v[i] - v[j])
		}
		return int(i) - int(j)
	})
	return ids
}

// tetrahedra lists the points in tetrahedra, borders included.
func (f *Family) tetrahedra(p *points, list []cone) bool {
	for k := range list {
		c := &list[k]
		apex := c.center
		if c.apex >= 0 {
			apex = p.at(c.apex)
		}
		base := face{c.a, c.b, c.c}
		if side(p, base, apex) == 0 {
			continue
		}
		lo, hi := apex, apex
		for _, v := range base {
			for d, w := range p.at(v) {
				lo[d], hi[d] = min(lo[d], w), max(hi[d], w)
			}
		}
		for i, x := range p[0] {
			y, z := p[1][i], p[2][i]
			if x < lo[0] || x > hi[0] || y < lo[1] || y > hi[1] || z < lo[2] || z > hi[2] {
				continue
			}
			if inTetrahedron(p, base, apex, [3]float64{x, y, z}) {
				f.Members = append(f.Members, int32(i))
			}
		}
		if !f.close() {
			return false
		}
	}
	return true
}

// inTetrahedron reports whether at is in the tetrahedron of a face and an apex off its
// plane: it lies on each of the four planes, or on the same side of the plane as the
// fourth corner.
func inTetrahedron(p *points, f face, apex, at [3]float64) bool {
	inner := side(p, f, apex)
	if side(p, f, at)*inner < 0 {
		return false
	}
	for k := range f {
		a, b, c := p.at(f[k]), p.at(f[(k+1)%3]), p.at(f[(k+2)%3])
		to := exact.Orient3D(a[0], a[1], a[2], b[0], b[1], b[2], apex[0], apex[1], apex[2], at[0], at[1], at[2])
		if to == 0 {
			continue
		}
		if to != exact.Orient3D(a[0], a[1], a[2], b[0], b[1], b[2], apex[0], apex[1], apex[2], c[0], c[1], c[2]) {
			return false
		}
	}
	return true
}
