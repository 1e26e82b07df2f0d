package optimal_test

import (
	"fmt"

	"entropipe/algos/geom"
	"entropipe/algos/optimal"
)

// Six points below one maximal point are done with in one go; the same number on
// a staircase must be told apart, one by one.
func ExampleMaxima() {
	var m optimal.Maxima[float64]
	easy := geom.Cloud[float64]{X: []float64{9, 1, 2, 3, 4, 5, 6}, Y: []float64{9, 3, 1, 4, 1, 5, 2}}
	hard := geom.Cloud[float64]{X: []float64{0, 1, 2, 3, 4, 5, 6}, Y: []float64{6, 5, 4, 3, 2, 1, 0}}
	for _, c := range []geom.Cloud[float64]{easy, hard} {
		fmt.Print(m.Append(nil, c))
		fmt.Printf(" touched %d, entropy %.2f nats\n", m.Trace.Touched, m.Trace.Entropy())
	}
	// Output:
	// [0] touched 7, entropy 0.00 nats
	// [0 1 2 3 4 5 6] touched 17, entropy 1.95 nats
}

func ExampleHull2D() {
	var h optimal.Hull2D[float32]
	c := geom.Cloud[float32]{X: []float32{0, 4, 4, 0, 1, 2, 3}, Y: []float32{0, 0, 4, 4, 2, 1, 3}}
	fmt.Println(h.Append(nil, c))
	for k, r := range h.Upper.Ranges {
		fmt.Printf("below %d-%d:", r.A, r.B)
		for i, g := range h.Upper.Group {
			if int(g) == k {
				fmt.Print(" ", i)
			}
		}
		fmt.Println()
	}
	// Output:
	// [0 1 2 3]
	// below 3-2: 0 1 4 5 6
	// below 3-3: 3
	// below 2-2: 2
}
