package mat

import (
	"fmt"
	"testing"
)

func TestKeep(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		r := seeded(51)
		for n := range 200 {
			x := random(r, 1, n)
			bits := make([]uint64, (n+63)/64)
			for i := range bits {
				bits[i] = r.Uint64()
			}
			want := make([]float32, n)
			for i, v := range x.Row(0) {
				if bits[i/64]>>(i%64)&1 == 1 {
					want[i] = v
				}
			}
			Keep(x.Row(0), bits)
			what := fmt.Sprintf("%d numbers", n)
			sameBits(t, x, Of(1, n, want), what)
			intact(t, x, what)
		}
	})
}
