package geomtest

import (
	"fmt"
	"hash/fnv"
	"math"
	"testing"

	"entropipe/algos/geom"
)

// CloudHash returns a hash of the bits of all coordinates of c, for tests that
// recorded clouds stay the same.
func CloudHash[T geom.Float](c geom.Cloud[T]) string {
	h := fnv.New64a()
	for _, axis := range [][]T{c.X, c.Y, c.Z} {
		fmt.Fprintf(h, "%d:", len(axis))
		for _, v := range axis {
			fmt.Fprintf(h, "%x ", math.Float64bits(float64(v)))
		}
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// SkipWhereFused skips a test of recorded clouds where the compiler fuses a product
// with an addition: clouds have other last bits there. It does so on arm64 and with
// GOAMD64=v3.
func SkipWhereFused(t testing.TB) {
	t.Helper()
	if x := 1 + 0x1p-30; fused(x, x, -1) {
		t.Skip("products are fused here, so clouds have other last bits")
	}
}

//go:noinline
func fused(a, b, c float64) bool { return a*b+c != float64(a*b)+c }
