//go:build !race

package mat

import "testing"

// Rounded rows lie in memory that is used again (not with the race detector,
// which empties pools at random).
func TestRoundedProductsDoNotAllocate(t *testing.T) {
	everyRounding(t, func(t *testing.T) {
		r := seeded(25)
		a, dst := random(r, 300, 70), random(r, 300, 100)
		w := roundedWeights(random(r, 70, 100))
		if got := testing.AllocsPerRun(20, func() { w.Mul(dst, a, Epilogue{Apply: GELU}, 1) }); got > 0.5 {
			t.Errorf("%v allocations", got)
		}
	})
}
