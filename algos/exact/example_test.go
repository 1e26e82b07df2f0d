package exact_test

import (
	"fmt"
	"testing"

	"entropipe/algos/exact"
	"entropipe/algos/geomtest"
)

func TestUse(t *testing.T) { geomtest.CheckUse(t, "exact.go") }

// The use of the package comment.
func Example() {
	left := exact.Orient2D(0, 0, 2, 0, 1, 1)                        // 1: (1, 1) lies left of (0, 0) to (2, 0)
	on := exact.InCircle(0, 0, 2, 0, 2, 2, 0, 2)                    // 0: (0, 2) lies on the circle of the first three
	above := exact.Orient3D(0, 0, 0, 1, 0, 0, 0, 1, 0, 0.3, 0.3, 2) // 1: above the floor
	fmt.Println(left, on, above)
	// Output: 1 0 1
}

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
