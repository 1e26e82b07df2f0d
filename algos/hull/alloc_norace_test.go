//go:build !race

package hull

import (
	"testing"

	"entropipe/algos/geom"
	"entropipe/algos/geomtest"
)

// Allocations are counted without the race detector, which says nothing of them
// and takes ten times as long.

func TestWarmCallsDoNotAllocate(t *testing.T) {
	for _, n := range []int{50, shorter(5000, 2000)} {
		for _, c := range geomtest.Clouds2D[float32](n, seed) {
			var h Hull2D[float32]
			dst := h.Append(nil, c.Cloud)
			dst = h.Append(dst[:0], c.Cloud)
			if a := testing.AllocsPerRun(5, func() { dst = h.Append(dst[:0], c.Cloud) }); a > 0 {
				t.Errorf("%s, %d points: %v allocations", c.Name, n, a)
			}
		}
	}
	for _, f := range []func(int, uint64) geom.Cloud[float32]{geomtest.Square[float32], geomtest.Circle[float32]} {
		h := Hull2D[float32]{Workers: 3}
		c := f(3*laneFrom, seed)
		dst := h.Append(nil, c)
		dst = h.Append(dst[:0], c)
		// Which goroutine sees which points depends on timing, so that the memory of
		// each may have to grow some more times: seldom, and not in every call.
		if a := testing.AllocsPerRun(10, func() { dst = h.Append(dst[:0], c) }); a > 0 {
			t.Errorf("%d points shared by three goroutines: %v allocations", c.Len(), a)
		}
	}
}

func TestHull3DWarmCallsDoNotAllocate(t *testing.T) {
	for _, n := range []int{50, shorter(5000, 2000)} {
		for _, g := range spaces[float32]() {
			c := g.Make(n, seed)
			var h Hull3D[float32]
			v, f, _ := h.Append(nil, nil, c)
			v, f, _ = h.Append(v[:0], f[:0], c)
			if a := testing.AllocsPerRun(5, func() { v, f, _ = h.Append(v[:0], f[:0], c) }); a > 0 {
				t.Errorf("%s, %d points: %v allocations", g.Name, n, a)
			}
		}
	}
}
