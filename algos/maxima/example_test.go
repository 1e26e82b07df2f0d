package maxima_test

import (
	"fmt"
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
	"entropipe/algos/maxima"
)

func TestUse(t *testing.T) { geomtest.CheckUse(t, "maxima.go") }

// The use of the package comment.
func Example() {
	m := maxima.Maxima[float64]{Min: [maxima.MaxDims]bool{0: true}} // low x, high y
	price, rating := []float64{80, 120, 95, 200}, []float64{7, 9, 6, 9}
	front := m.Append2D(nil, geom.Cloud[float64]{X: price, Y: rating})
	fmt.Println(front) // indices, ascending: 0 1
	// Output: [0 1]
}

// Hotels by price and distance, both better when lower. The result lists the
// hotels that no other hotel beats on both.
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

// Cameras by four properties: price and weight better when lower, pixels and
// battery life when higher. The third is no better than the first on any axis.
func ExampleMaxima_AppendD() {
	var (
		price   = []float64{900, 450, 950, 300}
		grams   = []float64{600, 520, 700, 550}
		pixels  = []float64{45, 24, 45, 12}
		battery = []float64{350, 400, 330, 410}
	)
	m := maxima.Maxima[float64]{Min: [maxima.MaxDims]bool{0: true, 1: true}}
	fmt.Println(m.AppendD(nil, [][]float64{price, grams, pixels, battery}))
	// Output: [0 1 3]
}

// An operator used again keeps its memory: no call but the first allocates,
// unless a result is longer than any before.
func ExampleMaxima() {
	m := maxima.Maxima[float64]{Workers: 2}
	var front []int32
	for _, xs := range [][]float64{{1, 2, 3}, {3, 2, 2}} {
		front = m.Append2D(front[:0], geom.Cloud[float64]{X: xs, Y: []float64{3, 2, 1}})
		fmt.Println(front)
	}
	// Output:
	// [0 1 2]
	// [0]
}
