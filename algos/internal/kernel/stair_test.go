package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// The staircase answers as a list of all points would, for every number of
// levels, on both sides of each, and for steps in calls of every length.
func TestStair(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		testStair[float32](t)
		testStair[float64](t)
	})
}

func testStair[T float32 | float64](t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	var s Stair[T]
	for _, n := range []int{1, 2, fan - 1, fan, fan + 1, 3 * fan, fan*fan - 1, fan * fan, fan*fan + 5,
		3 * fan * fan, fan*fan*fan + 1} {
		for _, values := range []int{1, 20, 1 << 20} {
			s.Reset(n)
			var all []Step[T]
			var got, want []int32
			for len(all) < 600 {
				var steps []Step[T]
				for range r.IntN(40) {
					p := Step[T]{Y: T(r.IntN(values) - values/2), Rank: int32(r.IntN(n)),
						ID: int32(len(all) + len(steps))}
					steps = append(steps, p)
				}
				for _, p := range steps {
					if s.Covers(p.Rank, p.Y) && !coveredByOne(all, p) {
						t.Fatalf("%T, seed %d, %d ranks: %v is not covered by %v", p.Y, seed, n, p, all)
					}
				}
				got = s.Climb(got, steps)
				for _, p := range steps {
					if !coveredByOne(all, p) {
						want = append(want, p.ID)
					}
					all = append(all, p)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%T, seed %d, %d ranks, after %v:\ngot  %v\nwant %v", T(0), seed, n, all, got, want)
				}
			}
		}
	}
}

func coveredByOne[T float32 | float64](all []Step[T], p Step[T]) bool {
	return slices.ContainsFunc(all, func(q Step[T]) bool { return q.Rank <= p.Rank && q.Y >= p.Y })
}

// The generated code reads fields at these places.
func TestOffsetsOfStairArguments(t *testing.T) {
	var a stairArgs
	var s Step[float32]
	var d Step[float64]
	got := []uintptr{unsafe.Offsetof(a.count), unsafe.Offsetof(a.steps), unsafe.Offsetof(a.n), unsafe.Offsetof(a.out),
		unsafe.Offsetof(a.up),
		unsafe.Offsetof(s.Rank), unsafe.Offsetof(s.ID), unsafe.Sizeof(s), unsafe.Offsetof(d.Rank),
		unsafe.Offsetof(d.ID), unsafe.Sizeof(d)}
	if want := []uintptr{64, 72, 80, 88, 96, 4, 8, 12, 8, 12, 16}; unsafe.Sizeof(uintptr(0)) == 8 &&
		!slices.Equal(got, want) {
		t.Errorf("fields at %v, the generator has %v", got, want)
	}
}
