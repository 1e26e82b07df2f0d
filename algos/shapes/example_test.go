package shapes_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"entropipe/algos/geomtest"
	"entropipe/algos/shapes"
)

func TestUse(t *testing.T) { geomtest.CheckUse(t, "shapes.go") }

// The use of the package comment.
func Example() {
	r := rand.New(rand.NewPCG(1, 2))
	cloud := shapes.Plane[float32](1000, r, shapes.Disk) // 1000 points, uniform in the unit disk
	solid := shapes.Space[float64](1000, r, shapes.Sphere)
	fmt.Println(cloud.Len(), solid.Len(), len(solid.Z))
	// Output: 1000 1000 1000
}
