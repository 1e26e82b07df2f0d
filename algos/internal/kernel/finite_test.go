package kernel

import (
	"math"
	"testing"
)

// Every length and alignment, and each kind of non-finite value at every place,
// at every level.
func TestFinite(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		testFinite[float32](t, math.MaxFloat32, math.SmallestNonzeroFloat32)
		testFinite[float64](t, math.MaxFloat64, math.SmallestNonzeroFloat64)
	})
}

func testFinite[T float32 | float64](t *testing.T, large, small T) {
	zero := T(0)
	odd := []T{T(math.NaN()), T(math.Inf(1)), T(math.Inf(-1))}
	room := make([]T, 120)
	for from := range 17 {
		for n := 0; from+n < len(room); n++ {
			v := room[from : from+n]
			for i := range v {
				v[i] = []T{1, -2, large, -large, small, zero, -zero}[i%7]
			}
			if !Finite(v) {
				t.Fatalf("%T: %d values from %d: a finite one was refused", zero, n, from)
			}
			for i := range v {
				was := v[i]
				v[i] = odd[i%3]
				if Finite(v) {
					t.Fatalf("%T: %d values from %d: %v at %d was not seen", zero, n, from, v[i], i)
				}
				v[i] = was
			}
		}
	}
}

func BenchmarkFinite(b *testing.B) {
	for _, l := range []Level{Portable, AVX512} {
		b.Run(l.String(), func(b *testing.B) {
			defer Limit(l)()
			v := make([]float32, 120_000)
			b.SetBytes(int64(4 * len(v)))
			for b.Loop() {
				if !Finite(v) {
					b.Fatal("zeros are not finite")
				}
			}
		})
	}
}
