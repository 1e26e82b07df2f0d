package vector_test

import (
	"testing"

	"entropipe/algos/vector"
)

func TestLimitLowersAndRestores(t *testing.T) {
	best := vector.Best()
	for _, l := range []vector.Level{vector.Portable, vector.AVX2, vector.AVX512} {
		restore := vector.Limit(l)
		if got := vector.Best(); got != min(l, best) {
			t.Errorf("limited to %v: %v, want %v", l, got, min(l, best))
		}
		restore()
		if got := vector.Best(); got != best {
			t.Errorf("restored: %v, want %v", got, best)
		}
	}
}
