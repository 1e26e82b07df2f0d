//go:build !race

package preprocess

import (
	"testing"

	"entropipe/algos/entropy"
	"entropipe/algos/geomtest"
)

// A frame costs no allocation once memory has grown (instrumented for the
// race detector, it costs two).
func TestApproximateAnswersAllocateNothing(t *testing.T) {
	s, err := New[float32](Config{Mode: Perturb,
		Model: networkModel(t, "perturb", 0.1, entropy.Hull2D, entropy.Maxima3D, entropy.Hull3D)})
	if err != nil {
		t.Fatal(err)
	}
	c := geomtest.Ball[float32](3000, 1)
	idx, faces := make([]int32, 0, 1<<14), make([]int32, 0, 1<<14)
	all := func() {
		p, _ := s.Apply(c)
		s.Hull2D(idx, &p)
		s.Maxima3D(idx, &p)
		s.Hull3D(idx, faces, &p)
	}
	for range 3 {
		all()
	}
	if a := testing.AllocsPerRun(5, all); a > 0 {
		t.Errorf("%v allocations a frame", a)
	}
}
