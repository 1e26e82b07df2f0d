package hull_test

import (
	"fmt"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/hull"
)

func TestUse(t *testing.T) { geomtest.CheckUse(t, "hull.go") }

// The use of the package comment.
func Example() {
	var h hull.Hull2D[float32] // ready as it is; keep it for the next cloud
	cloud := geom.Cloud[float32]{X: []float32{1, 0, 2, 2, 0}, Y: []float32{1, 0, 0, 2, 2}}
	vertices := h.Append(nil, cloud) // indices into cloud, counter-clockwise: 1 2 3 4
	area, perimeter := hull.Measure(cloud, vertices)
	fmt.Println(vertices, area, perimeter)
	// Output: [1 2 3 4] 4 8
}

func ExampleHull2D_Append() {
	c := geom.Cloud[float32]{
		X: []float32{1, 0, 2, 2, 0, 1},
		Y: []float32{1, 0, 0, 2, 2, 0}, // the first lies inside, the last on an edge
	}
	var h hull.Hull2D[float32]
	fmt.Println(h.Append(nil, c))
	// Output: [1 2 3 4]
}

func ExampleMeasure() {
	c := geom.Cloud[float64]{X: []float64{0, 3, 3, 0}, Y: []float64{0, 0, 4, 4}}
	area, perimeter := hull.Measure(c, []int32{0, 1, 2, 3})
	fmt.Println(area, perimeter)
	// Output: 12 14
}
