package shapes_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"entropipe/algos/shapes"
)

// norm is the length of a vector.
func norm(v ...float64) float64 {
	sum := 0.0
	for _, c := range v {
		sum += c * c
	}
	return math.Sqrt(sum)
}

// Every distribution lies where its comment says.
func TestPointsLieInTheirShape(t *testing.T) {
	const n, seed, slack = 2000, 5, 1e-12
	unit := func(v float64) bool { return v >= 0 && v < 1 }
	for name, c := range map[string]struct {
		draw shapes.Point2
		in   func(x, y float64) bool
	}{
		"square":   {shapes.Square, func(x, y float64) bool { return unit(x) && unit(y) }},
		"disk":     {shapes.Disk, func(x, y float64) bool { return norm(x, y) <= 1+slack }},
		"gauss":    {shapes.Gauss, func(x, y float64) bool { return norm(x, y) < 10 }},
		"parabola": {shapes.Parabola, func(x, y float64) bool { return math.Abs(x) <= 1 && math.Abs(y-x*x) < 0.1 }},
		"circle":   {shapes.Circle, func(x, y float64) bool { return math.Abs(norm(x, y)-1) < slack }},
		"front":    {shapes.Front, func(x, y float64) bool { return unit(x) && x+y == 1 }},
		"grid": {shapes.Grid, func(x, y float64) bool {
			return x == math.Floor(x) && y == math.Floor(y) && max(x, y) < 45
		}},
		"clusters": {shapes.Clusters(n, rand.New(rand.NewPCG(seed, 1))),
			func(x, y float64) bool { return max(x, y) < 1.1 && min(x, y) > -0.1 }},
	} {
		cloud := shapes.Plane[float64](n, rand.New(rand.NewPCG(seed, 0)), c.draw)
		if cloud.Len() != n || cloud.Z != nil {
			t.Fatalf("%s: %d points, z %v", name, cloud.Len(), cloud.Z != nil)
		}
		for i, x := range cloud.X {
			if !c.in(x, cloud.Y[i]) {
				t.Fatalf("%s, seed %d: point %d, (%v, %v), lies outside", name, seed, i, x, cloud.Y[i])
			}
		}
	}
	for name, c := range map[string]struct {
		draw shapes.Point3
		in   func(x, y, z float64) bool
	}{
		"cube":   {shapes.Cube, func(x, y, z float64) bool { return unit(x) && unit(y) && unit(z) }},
		"ball":   {shapes.Ball, func(x, y, z float64) bool { return norm(x, y, z) <= 1+slack }},
		"sphere": {shapes.Sphere, func(x, y, z float64) bool { return math.Abs(norm(x, y, z)-1) < slack }},
		"octant": {shapes.Octant, func(x, y, z float64) bool {
			return min(x, y, z) >= 0 && math.Abs(norm(x, y, z)-1) < slack
		}},
		"anti": {shapes.Anti, func(x, y, z float64) bool { return min(x, y, z) >= 0 && math.Abs(x+y+z-1.5) < 1 }},
	} {
		cloud := shapes.Space[float64](n, rand.New(rand.NewPCG(seed, 0)), c.draw)
		for i, x := range cloud.X {
			if !c.in(x, cloud.Y[i], cloud.Z[i]) {
				t.Fatalf("%s, seed %d: point %d, (%v, %v, %v), lies outside", name, seed, i, x, cloud.Y[i], cloud.Z[i])
			}
		}
	}
}
