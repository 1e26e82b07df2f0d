package entropy_test

import (
	"fmt"

	"entropipe/algos/entropy"
	"entropipe/algos/geom"
	"entropipe/algos/maxima"
)

// Five points under three maximal ones.
var staircase = geom.Cloud[float64]{
	X: []float64{1, 2, 3, .5, .6},
	Y: []float64{3, 2, 1, .5, 1.5},
}

func ExampleGroundTruth() {
	var m maxima.Maxima[float64]
	top := m.Append2D(nil, staircase)
	t := entropy.GroundTruth(staircase, top, entropy.Maxima2D)
	fmt.Printf("%.3f to %.3f nats a point (%v)\n", t.Lower, t.Upper, t.Kind)
	fmt.Printf("%.3f from the sizes of the groups\n", entropy.OfSizes([]int{3, 1, 1}))
	// Output:
	// 0.950 to 0.950 nats a point (exact)
	// 0.950 from the sizes of the groups
}

func ExampleCover_Greedy() {
	var f entropy.Family
	entropy.Ranges(&f, staircase, []int32{0, 1, 2}, entropy.Maxima2D)
	for r := range f.Len() {
		fmt.Println("below", r, "are", f.Range(r))
	}
	var g entropy.Cover
	b := g.Greedy(&f)
	fmt.Printf("%.3f to %.3f (%v), groups of %v\n", b.Lower, b.Upper, b.Kind, g.Sizes)
	// Output:
	// below 0 are [0 3 4]
	// below 1 are [1 3 4]
	// below 2 are [2 3]
	// 0.000 to 0.950 (greedy), groups of [3 1 1]
}

func ExampleSurrogate_Gradient() {
	s := entropy.Surrogate[float64]{Problem: entropy.Maxima2D, Tau: .1}
	w := s.Witnesses(nil, staircase, 1)
	grad := geom.Cloud[float64]{X: make([]float64, 5), Y: make([]float64, 5)}
	f := s.Gradient(grad, staircase, w)
	fmt.Printf("F %.3f with witness %v, G at most %.3f\n", f, w, s.Hard(staircase, w).Upper)
	fmt.Printf("point 4 pulls %+.2f %+.2f, point 0 %+.2f %+.2f\n", grad.X[4], grad.Y[4], grad.X[0], grad.Y[0])
	// Output:
	// F 0.772 with witness [2], G at most 1.332
	// point 4 pulls +0.00 +0.32, point 0 +0.00 +0.00
}

func ExampleFromSize() {
	b := entropy.FromSize(entropy.UpperHull, 1000, 20)
	fmt.Printf("%.2f to %.2f\n", b.Lower, b.Upper)
	// Output: 0.13 to 2.94
}
