package maxima_test

import (
	"fmt"

	"entropipe/algos/geom"
	"entropipe/algos/maxima"
)

// Hotels by price and distance, both better when lower: what is not beaten on
// both by another one.
func ExampleMaxima_Append2D() {
	price := []float64{80, 120, 95, 200, 80}
	metres := []float64{900, 300, 950, 250, 900}
	m := maxima.Maxima[float64]{Min: [maxima.MaxDims]bool{true, true}}
	fmt.Println(m.Append2D(nil, geom.Cloud[float64]{X: price, Y: metres}))
	// Output: [0 1 3]
}

func ExampleMaxima_Append3D() {
	var m maxima.Maxima[float32]
	fmt.Println(m.Append3D(nil, geom.Cloud[float32]{
		X: []float32{1, 0, 0, 1},
		Y: []float32{0, 1, 0, 0},
		Z: []float32{0, 0, 1, -1},
	}))
	// Output: [0 1 2]
}
