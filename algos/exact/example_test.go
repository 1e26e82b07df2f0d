package exact_test

import (
	"fmt"

	"entropipe/algos/exact"
)

func ExampleOrient2D() {
	fmt.Println(exact.Orient2D(0, 0, 1, 0, 0, 1), exact.Orient2D(0.1, 0.1, 0.2, 0.2, 0.3, 0.30000000000000004))
	// Output: 1 1
}

func ExampleInCircle() {
	fmt.Println(exact.InCircle(0, 0, 1, 0, 1, 1, 0.5, 0.5), exact.InCircle(0, 0, 1, 0, 1, 1, 0, 1))
	// Output: 1 0
}

// The floor, seen counter-clockwise from above, and points over, under and on it.
func ExampleOrient3D() {
	for _, z := range []float64{2, -2, 0} {
		fmt.Println(exact.Orient3D(0, 0, 0, 1, 0, 0, 0, 1, 0, 0.3, 0.3, z))
	}
	// Output:
	// 1
	// -1
	// 0
}

// The ball through four corners of a cube holds its centre, and touches the
// opposite corner.
func ExampleInSphere() {
	fmt.Println(exact.InSphere(0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0.5, 0.5, 0.5))
	fmt.Println(exact.InSphere(0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1))
	// Output:
	// 1
	// 0
}
