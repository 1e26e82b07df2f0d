package mat_test

import (
	"fmt"

	"entropipe/models/mat"
)

// A layer that is stored as [out][in], over three rows.
func ExampleWeights_Mul() {
	layer := mat.Of(2, 3, []float32{
		1, 0, -1,
		0.5, 0.5, 0.5,
	})
	rows := mat.Of(3, 3, []float32{
		1, 2, 3,
		4, 4, 0,
		-2, 1, 1,
	})
	out := mat.Of(3, 2, make([]float32, 6))
	var w mat.Weights
	w.PackT(layer)
	w.Mul(out, rows, mat.Epilogue{Bias: []float32{0.5, -1}, ReLU: true}, 1)
	for i := range out.Rows {
		fmt.Println(out.Row(i))
	}
	// Output:
	// [0 2]
	// [4.5 3]
	// [0 0]
}

// A sum over rows that is the same for any number of workers: every tile has a
// place of its own, and the places are added in order.
func ExampleTiles() {
	numbers := []float32{1, 2, 3, 4, 5, 6, 7}
	const tile = 3
	var sums [3]float32
	mat.Tiles(len(numbers), tile, 4, func(lo, hi int) {
		for _, v := range numbers[lo:hi] {
			sums[lo/tile] += v
		}
	})
	fmt.Println(sums, sums[0]+sums[1]+sums[2])
	// Output: [6 15 7] 28
}
