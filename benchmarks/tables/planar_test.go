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
		"chain": (&chain{}).find, "quickhull": (&quickhull{}).find, "Chan": (&chan96{}).find, "octagon": (&octagon{}).find,
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
	if !samePolygon(c, []int32{0, 1, 2}, []int32{3, 1, 2}) || samePolygon(c, []int32{0, 1, 2}, []int32{0, 2, 1}) || samePolygon(c, []int32{0, 1}, []int32{0, 1, 2}) {
		t.Error("polygons of equal points are equal, no others")
	}
	if !samePolygon(geom.Cloud[float32]{}, nil, nil) {
		t.Error("no polygon equals no polygon")
	}
}
