package hull_test

import (
	"fmt"

	"entropipe/algos/geom"
	"entropipe/algos/hull"
)

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
