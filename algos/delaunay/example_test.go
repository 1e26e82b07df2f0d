package delaunay_test

import (
	"fmt"
	"testing"

	"entropipe/algos/delaunay"
	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

func TestUse(t *testing.T) { geomtest.CheckUse(t, "delaunay.go") }

// The use of the package comment: a square with its centre.
func Example() {
	var t delaunay.Triangulator[float64] // ready as it is; keep it for the next cloud
	cloud := geom.Cloud[float64]{X: []float64{0, 2, 2, 0, 1}, Y: []float64{0, 0, 2, 2, 1}}
	mesh := t.Triangulate(cloud) // valid until the next call
	for e := 0; e < len(mesh.Triangles); e += 3 {
		fmt.Println(mesh.Triangles[e : e+3]) // indices into cloud, counter-clockwise
	}
	// Output:
	// [0 1 4]
	// [0 4 3]
	// [1 2 4]
	// [2 3 4]
}
