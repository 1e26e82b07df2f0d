package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Every level finds the first of the highest points, ties included, for every
// number of tiles and directions and every alignment.
func TestHighest(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for round := range 300 {
			n, dirs, from := HighTile*(1+r.IntN(5)), r.IntN(40), r.IntN(17)
			coarse := round%2 == 0 // few values: many ties
			v := make([][]float32, 4)
			for k := range v {
				v[k] = make([]float32, from+n)
				if k == 3 {
					v[k] = make([]float32, from+3*dirs)
				}
				for i := range v[k] {
					v[k][i] = float32(r.NormFloat64())
					if coarse {
						v[k][i] = float32(r.IntN(5) - 2)
					}
				}
				v[k] = v[k][from:]
			}
			best, at := make([]float32, dirs), make([]int32, dirs)
			Highest(v[3], v[0], v[1], v[2], best, at)
			for k := range at {
				want, top := 0, height(v[3][3*k:], v[0][0], v[1][0], v[2][0])
				for i := range n {
					if h := height(v[3][3*k:], v[0][i], v[1][i], v[2][i]); h > top {
						want, top = i, h
					}
				}
				if int(at[k]) != want || best[k] != top {
					t.Fatalf("round %d, %d points, direction %d of %d: point %d, %v, want %d, %v", round, n, k, dirs,
						at[k], best[k], want, top)
				}
			}
		}
	})
}

func BenchmarkHighest(b *testing.B) {
	for _, l := range []Level{Portable, AVX2, AVX512} {
		for _, dirs := range []int{6, 32, 64} {
			b.Run(fmt.Sprintf("%v/%d", l, dirs), func(b *testing.B) {
				if l > Best() {
					b.Skipf("this CPU has %v", Best())
				}
				defer Limit(l)()
				const n = 256 * HighTile
				r := rand.New(rand.NewPCG(1, 2))
				var v [4][]float32
				for k := range v {
					v[k] = make([]float32, n)
					for i := range v[k] {
						v[k][i] = float32(r.NormFloat64())
					}
				}
				best, at := make([]float32, dirs), make([]int32, dirs)
				for b.Loop() {
					Highest(v[3], v[0], v[1], v[2], best, at)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n*dirs), "ns/point/direction")
			})
		}
	}
}
