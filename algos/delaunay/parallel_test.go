package delaunay_test

import (
	"os"
	"slices"
	"testing"

	"entropipe/algos/delaunay"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// Any number of goroutines gives the same mesh, down to the order.
func TestWorkersGiveTheSameMesh(t *testing.T) {
	t.Run("float64", workers[float64])
	t.Run("float32", workers[float32])
}

// A worker has 8192 points. Each cloud has two of the four ways, which change with the cloud and
// the type; ENTROPIPE_LONG takes all four.
func workers[T geom.Float](t *testing.T) {
	var one delaunay.Triangulator[T]
	var many delaunay.Triangulator[T]
	_, wide := any(T(0)).(float64)
	for i, g := range geomtest.Generators2D[T]() {
		if g.Name == "spread" {
			continue // exact arithmetic over the whole range: a minute
		}
		for _, many.Workers = range []int{2, 4} {
			if testing.Short() && many.Workers != 2+2*(i/2%2) {
				continue // each cloud in one of four ways
			}
			c := g.Make(8500*many.Workers, 3)
			for k, unsorted := range []bool{false, true} {
				if os.Getenv("ENTROPIPE_LONG") == "" && ((i+k+many.Workers/2)%2 == 0) != wide {
					continue
				}
				one.Unsorted, many.Unsorted = unsorted, unsorted
				want := one.Triangulate(c)
				if got := many.Triangulate(c); !equal(got, want) {
					t.Errorf("%s, %d points, seed 3, unsorted %v, %d workers: not the mesh of one", g.Name, c.Len(),
						one.Unsorted, many.Workers)
				}
			}
		}
	}
}

func equal(a, b geom.Mesh) bool {
	return slices.Equal(a.Triangles, b.Triangles) && slices.Equal(a.Halfedges, b.Halfedges) &&
		slices.Equal(a.Hull, b.Hull)
}

// Only points along the borders of zones are left to one goroutine.
func TestWorkersLeaveFewPoints(t *testing.T) {
	const n = 100_000
	for _, g := range geomtest.Generators2D[float64]() {
		if !slices.Contains([]string{"square", "gauss", "disk", "grid", "rings", "utm", "sorted"}, g.Name) {
			continue
		}
		for _, workers := range []int{2, 4} {
			tr := delaunay.Triangulator[float64]{Workers: workers}
			tr.Triangulate(g.Make(n, 1))
			if left := tr.Left(); left > n/30*(workers+1) {
				t.Errorf("%s, %d workers: %d points left of %d", g.Name, workers, left, n)
			}
		}
	}
}
