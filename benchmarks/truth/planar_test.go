package main

import (
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
)

// What is measured beside ours finds the same hull, wherever its own arithmetic
// is good for the coordinates.
func TestPlanarPeersAreExact(t *testing.T) {
	finders := map[string]hullOf{
		"chain": (&chain{}).find, "quickhull": (&quickhull{}).find, "Chan": (&chan96{}).find,
		"octagon": (&octagon{}).find,
		"uniform": (&rowFilter{}).uniform, "last frame": (&rowFilter{}).lastFrame(),
	}
	skipped := map[string]bool{"huge": true, "spread": true, "denormal": true} // differences overflow, products vanish
	for _, n := range []int{1, 2, 3, 10, 500, 3000} {
		for _, g := range geomtest.Clouds2D[float32](n, uint64(n)) {
			if skipped[g.Name] {
				continue
			}
			want := (&hull.Hull2D[float32]{}).Append(nil, g.Cloud)
			for name, find := range finders {
				if got := find(nil, g.Cloud); !samePolygon(g.Cloud, got, want) {
					t.Errorf("%s of %s, %d points: %d corners, want %d", name, g.Name, n, len(got), len(want))
				}
			}
		}
	}
}

func TestSamePolygon(t *testing.T) {
	c := geomtest.Points([2]float32{0, 0}, [2]float32{1, 0}, [2]float32{0, 1}, [2]float32{0, 0})
	if !samePolygon(c, []int32{0, 1, 2}, []int32{3, 1, 2}) || samePolygon(c, []int32{0, 1, 2}, []int32{0, 2, 1}) ||
		samePolygon(c, []int32{0, 1}, []int32{0, 1, 2}) {
		t.Error("polygons of equal points are equal, no others")
	}
	if !samePolygon(geom.Cloud[float32]{}, nil, nil) {
		t.Error("no polygon equals no polygon")
	}
}

// The curve visits neighbours one after the other, and each cell once.
func TestHilbertCurve(t *testing.T) {
	const side = 32
	at := make(map[uint32][2]int)
	for x := range side {
		for y := range side {
			at[hilbert(uint32(x), uint32(y))] = [2]int{x, y}
		}
	}
	for d := range uint32(side * side) {
		p, ok := at[d]
		q, next := at[d+1]
		if step := max(p[0]-q[0], q[0]-p[0]) + max(p[1]-q[1], q[1]-p[1]); !ok || next != (d+1 < side*side) ||
			next && step != 1 {
			t.Fatalf("place %d: cell %v (%v), then %v (%v)", d, p, ok, q, next)
		}
	}
}

// Sorting keeps points and says where they were, negative values included.
func TestSorter(t *testing.T) {
	c := geomtest.Gauss[float32](500, 1)
	var s sorter
	out := s.sort(c, byX)
	for k, x := range out.X {
		if i := s.perm[k]; c.X[i] != x || c.Y[i] != out.Y[k] {
			t.Fatalf("place %d: not point %d", k, i)
		}
		if k > 0 && out.X[k-1] > x {
			t.Fatalf("place %d: x %v after %v", k, x, out.X[k-1])
		}
	}
}
