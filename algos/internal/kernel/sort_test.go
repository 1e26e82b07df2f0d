package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A radix sort equals a stable comparison sort by key, for every number of
// passes and for keys from all equal to all different.
func TestSortByKeyIsAStableSort(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	for passes := 1; passes <= MaxPasses; passes++ {
		for _, n := range []int{0, 1, 2, 3, 100, 5000} {
			for _, distinct := range []uint64{1, 2, 50, 1 << min(32, 11*passes)} {
				a := make([]uint64, n)
				for i := range a {
					a[i] = r.Uint64N(distinct)<<32 | uint64(n-i)
				}
				unsorted, want := slices.Clone(a), slices.Clone(a)
				slices.SortStableFunc(want, func(x, y uint64) int { return int(x>>32) - int(y>>32) })
				if got, _ := SortByKey(a, make([]uint64, n), passes); !slices.Equal(got, want) {
					t.Fatalf("seed %d: %d passes, %d values, %d distinct keys: not the stable order", seed,
						passes, n, distinct)
				}
				for workers := 1; workers <= 3; workers++ {
					if got, _ := SortByKeyParallel(slices.Clone(unsorted), make([]uint64, n), passes,
						workers); !slices.Equal(got, want) {
						t.Fatalf("seed %d: %d passes, %d values, %d distinct keys, %d workers: not the stable order",
							seed, passes, n, distinct, workers)
					}
				}
			}
		}
	}
}

func BenchmarkSortByKey(b *testing.B) {
	const n = 1 << 20
	r := rand.New(rand.NewPCG(1, 0))
	src, a, tmp := make([]uint64, n), make([]uint64, n), make([]uint64, n)
	for i := range src {
		src[i] = r.Uint64N(1<<22)<<32 | uint64(i)
	}
	for b.Loop() {
		copy(a, src)
		SortByKey(a, tmp, 2)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/point")
}
