package hull_test

import (
	"fmt"

	"entropipe/algos/geom"
	"entropipe/algos/hull"
)

func ExampleHull3D_Append() {
	c := geom.Cloud[float32]{
		X: []float32{1, 0, 2, 0, 0, 1},
		Y: []float32{1, 0, 0, 2, 0, 0},
		Z: []float32{0, 0, 0, 0, 2, 1}, // the first and the last lie inside an edge
	}
	var h hull.Hull3D[float32]
	vertices, faces, dim := h.Append(nil, nil, c)
	fmt.Println(dim, vertices, faces)
	// Output: 3 [1 2 3 4] [1 2 4 1 3 2 1 4 3 2 3 4]
}

func ExampleMeasure3D() {
	c := geom.Cloud[float64]{X: []float64{0, 1, 0, 0}, Y: []float64{0, 0, 1, 0}, Z: []float64{0, 0, 0, 1}}
	var h hull.Hull3D[float64]
	_, faces, _ := h.Append(nil, nil, c)
	area, volume := hull.Measure3D(c, faces)
	fmt.Printf("%.4f %.4f\n", area, volume)
	// Output: 2.3660 0.1667
}
