package geomtest

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"entropipe/algos/geom"
)

// brute makes the triangulation by definition: every counter-clockwise triple
// whose circle holds no other point, where of four cocircular points the
// lexicographically greatest is lifted (the signs of Devillers and Teillaud).
func brute(c geom.Cloud[float64]) geom.Mesh {
	k := checker[float64]{c: c}
	reps := distinctSorted(c)
	slices.Sort(reps)
	var m geom.Mesh
	for _, i := range reps {
		for _, j := range reps {
			for _, l := range reps {
				if j <= i || l <= i || k.orient(i, j, l) <= 0 {
					continue
				}
				if !slices.ContainsFunc(reps, func(d int32) bool {
					return d != i && d != j && d != l && perturbed(k, i, j, l, d) > 0
				}) {
					m.Triangles = append(m.Triangles, i, j, l)
				}
			}
		}
	}
	return finish(c, m)
}

func perturbed(k checker[float64], a, b, c, d int32) int {
	if s := k.inCircle(a, b, c, d); s != 0 {
		return s
	}
	switch top := slices.MaxFunc([]int32{a, b, c, d}, func(p, q int32) int {
		return cmp.Or(cmp.Compare(k.c.X[p], k.c.X[q]), cmp.Compare(k.c.Y[p], k.c.Y[q]))
	}); top {
	case d:
		return -k.orient(a, b, c)
	case a:
		return k.orient(d, b, c)
	case b:
		return k.orient(a, d, c)
	}
	return k.orient(a, b, d)
}

// finish sorts the triangles and adds halfedges and hull.
func finish(c geom.Cloud[float64], m geom.Mesh) geom.Mesh {
	if len(m.Triangles) == 0 {
		return geom.Mesh{Hull: Hull2D(c)}
	}
	rows := slices.Collect(slices.Chunk(m.Triangles, 3))
	slices.SortFunc(rows, func(a, b []int32) int { return slices.Compare(a, b) })
	t := slices.Concat(rows...)
	m = geom.Mesh{Triangles: t, Halfedges: make([]int32, len(t))}
	edge := map[[2]int32]int32{}
	for e := range t {
		edge[[2]int32{t[e], t[next(e)]}] = int32(e)
	}
	after := map[int32]int32{}
	for e := range t {
		twin, ok := edge[[2]int32{t[next(e)], t[e]}]
		if !ok {
			twin = -1
			after[t[e]] = t[next(e)]
		}
		m.Halfedges[e] = twin
	}
	start := distinctSorted(c)[0]
	m.Hull = []int32{start}
	for v := after[start]; v != start; v = after[v] {
		m.Hull = append(m.Hull, v)
	}
	return m
}

// The checker takes the triangulation that the definition gives, for clouds
// full of equal, collinear and cocircular points.
func TestCheckDelaunayTakesTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Tied[float64](2).Draw(t, "cloud")
		if c.Len() > 14 {
			c = c.Slice(0, 14)
		}
		if err := CheckDelaunay(c, brute(c)); err != nil {
			t.Fatalf("%#v: %v", c, err)
		}
	})
}

// Every kind of fault is seen, and named.
func TestCheckDelaunaySeesFaults(t *testing.T) {
	c := Points([2]float64{0, 0}, [2]float64{1, 0}, [2]float64{2, 0}, [2]float64{0, 1},
		[2]float64{1, 1}, [2]float64{2, 1},
		[2]float64{0, 2}, [2]float64{1, 2}, [2]float64{2, 2}, [2]float64{1, 1})
	good := brute(c)
	if err := CheckDelaunay(c, good); err != nil {
		t.Fatal(err)
	}
	for want, fault := range map[string]func(m *geom.Mesh){
		"halfedges":               func(m *geom.Mesh) { m.Halfedges = m.Halfedges[3:] },
		"vertex 10 of a cloud":    func(m *geom.Mesh) { m.Triangles[4] = 10 },
		"equals a point of lower": func(m *geom.Mesh) { m.Triangles[slices.Index(m.Triangles, 4)] = 9 },
		"not counter-clockwise": func(m *geom.Mesh) {
			m.Triangles[1], m.Triangles[2] = m.Triangles[2],
				m.Triangles[1]
		},
		"smallest vertex":       func(m *geom.Mesh) { rotate(m.Triangles[:3]) },
		"out of order":          func(m *geom.Mesh) { swapRows(m.Triangles) },
		"does not point back":   func(m *geom.Mesh) { m.Halfedges[interior(m)] = m.Halfedges[interior(m)] ^ 1 },
		"boundary edges":        func(m *geom.Mesh) { m.Hull = m.Hull[:len(m.Hull)-1] },
		"lexicographic minimum": func(m *geom.Mesh) { rotate(m.Hull) },
		"no boundary edge":      func(m *geom.Mesh) { slices.Reverse(m.Hull[1:]) },
		"is in no triangle": func(m *geom.Mesh) {
			*m = finish(c, geom.Mesh{Triangles: []int32{0, 1, 3, 1, 4, 3}})
		},
		"meets the greatest point": func(m *geom.Mesh) { *m = otherDiagonal(c, *m) },
	} {
		m := geom.Mesh{Triangles: slices.Clone(good.Triangles), Halfedges: slices.Clone(good.Halfedges),
			Hull: slices.Clone(good.Hull)}
		fault(&m)
		if err := CheckDelaunay(c, m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q expected, got %v", want, err)
		}
	}
}

func rotate(v []int32) { copy(v, append(slices.Clone(v[1:]), v[0])) }

func swapRows(v []int32) {
	for i := range 3 {
		v[i], v[i+3] = v[i+3], v[i]
	}
}

func interior(m *geom.Mesh) int {
	return slices.IndexFunc(m.Halfedges, func(t int32) bool { return t >= 0 })
}

// otherDiagonal flips the diagonal of the unit square 0, 1, 4, 3.
func otherDiagonal(c geom.Cloud[float64], m geom.Mesh) geom.Mesh {
	var t []int32
	for row := range slices.Chunk(m.Triangles, 3) {
		if !slices.Equal(row, []int32{0, 1, 3}) && !slices.Equal(row, []int32{1, 4, 3}) {
			t = append(t, row...)
		}
	}
	return finish(c, geom.Mesh{Triangles: append(t, 0, 1, 4, 0, 4, 3)})
}

// A point inside a circle, a fold and a double cover are seen although the
// halfedges are in order.
func TestCheckDelaunaySeesWrongTriangulations(t *testing.T) {
	kite := Points([2]float64{0, 0}, [2]float64{4, -1}, [2]float64{8, 0}, [2]float64{4, 1})
	if err := CheckDelaunay(kite, finish(kite, geom.Mesh{Triangles: []int32{0, 1, 2, 0, 2, 3}})); err == nil ||
		!strings.Contains(err.Error(), "lies in the circle") {
		t.Errorf("flat diagonal: %v", err)
	}
	if err := CheckDelaunay(kite, finish(kite, geom.Mesh{Triangles: []int32{0, 1, 3}})); err == nil {
		t.Error("half of a kite: no error")
	}
	line := Points([2]float64{0, 0}, [2]float64{1, 1}, [2]float64{2, 2})
	if err := CheckDelaunay(line, geom.Mesh{Hull: []int32{0, 1, 2}}); err == nil {
		t.Error("collinear points with a middle one on the hull: no error")
	}
}
