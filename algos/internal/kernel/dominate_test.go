package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// atEveryLevel runs f at each level that this CPU has.
func atEveryLevel(t *testing.T, f func(t *testing.T)) {
	for _, l := range []Level{Portable, AVX2, AVX512} {
		t.Run(l.String(), func(t *testing.T) {
			if l > Best() {
				t.Skipf("this CPU has %v", Best())
			}
			defer Limit(l)()
			f(t)
		})
	}
}

// tied returns dims axes of n values with many ties and both zeros, from the
// offset-th place of a larger slice.
func tied[T float32 | float64](r *rand.Rand, dims, n, offset int) [][]T {
	axes := make([][]T, dims)
	for k := range axes {
		axes[k] = make([]T, n+offset)[offset:]
		for i := range axes[k] {
			axes[k][i] = []T{-2, -1, T(math.Copysign(0, -1)), 0, 1, 1.5, 2, 3}[r.IntN(8)]
		}
	}
	return axes
}

// The points left are those of the definition, for every number of axes, length, alignment
// and direction, and several numbers of pivots.
func TestUndominated(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		testUndominated[float32](t)
		testUndominated[float64](t)
	})
}

func testUndominated[T float32 | float64](t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	var p Pivots[T]
	for dims := 2; dims <= MaxAxes; dims++ {
		for n := range 70 {
			axes := tied[T](r, dims, n, n%17)
			p.Values = p.Values[:0]
			for range PivotGroup * (1 + n%4) * dims {
				p.Values = append(p.Values, []T{-1, 0, 1, 2, 3, 3, 4}[r.IntN(7)])
			}
			for k := range p.Low {
				p.Low[k] = r.IntN(3) == 0
			}
			want := []int32{-5}
			for i := range n {
				if !dominatedByOne(axes, &p, i) {
					want = append(want, int32(i+9))
				}
			}
			if got, ok := p.Undominated([]int32{-5}, axes, 9); !ok || !slices.Equal(got, want) {
				t.Fatalf("seed %d, %d axes of %T, %d points, %d pivots, low %v: ok %v\ngot  %v\nwant %v", seed, dims,
					T(0), n, len(p.Values)/dims, p.Low, ok, got, want)
			}
			if p.args.axes[0] != nil {
				t.Fatal("a pointer to the points stays")
			}
		}
	}
}

func dominatedByOne[T float32 | float64](axes [][]T, p *Pivots[T], i int) bool {
	d := len(axes)
	for q := range slices.Chunk(p.Values, d) {
		all := true
		for k := range d {
			v := axes[k][i]
			if p.Low[k] {
				v = -v
			}
			all = all && (q[k] > v || q[k] == v && k < d-1)
		}
		if all {
			return true
		}
	}
	return false
}

// A point that is not finite is left or reported, at every place.
func TestUndominatedSeesWhatIsNotFinite(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		testNotFinite[float32](t)
		testNotFinite[float64](t)
	})
}

func testNotFinite[T float32 | float64](t *testing.T) {
	for dims := 2; dims <= MaxAxes; dims++ {
		top := make([]T, PivotGroup*dims)
		for k := range top {
			top[k] = 9
		}
		for at := range 40 {
			for axis := range dims {
				for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
					for _, low := range []bool{false, true} {
						axes := make([][]T, dims)
						for k := range axes {
							axes[k] = make([]T, 40)
						}
						axes[axis][at] = T(bad)
						p := Pivots[T]{Values: top}
						p.Low[axis] = low
						got, ok := p.Undominated(nil, axes, 0)
						if seen := !ok || slices.Contains(got, int32(at)); !seen || len(got) > 1 {
							t.Fatalf("%d axes of %T: %v on axis %d of point %d, low %v: left %v, ok %v", dims, T(0),
								bad, axis, at, low, got, ok)
						}
					}
				}
			}
		}
	}
}

// More points than a chunk, and growth of the points left.
func TestUndominatedInChunks(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		n := 3*pivotChunk + 21
		axes := [][]float32{make([]float32, n), make([]float32, n)}
		for i := range n {
			axes[0][i] = float32(i)
		}
		p := Pivots[float32]{Values: []float32{100, 1, 200, 1, 5, 1, 6, 1}}
		got, ok := p.Undominated(nil, axes, 0)
		if !ok || len(got) != n-201 || got[0] != 201 || !slices.IsSorted(got) {
			t.Errorf("%d left, from %d, ok %v", len(got), got[0], ok)
		}
	})
}

// The list holds the points of the definition, for every number of axes and length and
// several ways to cut the points into calls.
func TestFront(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		testFront[float32](t)
		testFront[float64](t)
	})
}

func testFront[T float32 | float64](t *testing.T) {
	const seed = 2
	r := rand.New(rand.NewPCG(seed, 0))
	var f Front[T]
	for dims := 2; dims <= MaxAxes; dims++ {
		for n := range 150 {
			axes := tied[T](r, dims, n+1, n%17)
			f.Reset(dims)
			next, left := f.Add(axes, n/3, 1<<30)
			want := frontOf(axes, n/3)
			if next != n+1 || left >= 1<<30 && len(want) > 1 || !slices.Equal(f.IDs, want) {
				t.Fatalf("seed %d, %d axes of %T, %d points: stopped at %d, left %d\ngot  %v\nwant %v", seed, dims,
					T(0), n+1, next, left, f.IDs, want)
			}
			for k := range dims {
				for j, v := range f.Values(k) {
					if v != axes[k][f.IDs[j]] {
						t.Fatalf("seed %d: entry %d, axis %d is %v", seed, j, k, v)
					}
				}
			}
		}
	}
}

func frontOf[T float32 | float64](axes [][]T, from int) (kept []int32) {
	for i := from; i < len(axes[0]); i++ {
		if !slices.ContainsFunc(kept, func(q int32) bool {
			for _, v := range axes {
				if !(v[q] >= v[i]) {
					return false
				}
			}
			return true
		}) {
			kept = append(kept, int32(i))
		}
	}
	return kept
}

// A full list and a spent budget stop where a later call goes on, with the same
// result as one call.
func TestFrontStops(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		n := FrontMax + 50
		axes := [][]float64{make([]float64, n), make([]float64, n)}
		for i := range n {
			axes[0][i], axes[1][i] = float64(i), float64(-i)
		}
		var f Front[float64]
		f.Reset(2)
		next, calls := 0, 0
		for next < FrontMax {
			was := next
			if next, _ = f.Add(axes, next, 500); next <= was {
				t.Fatalf("no progress at %d", next)
			}
			calls++
		}
		if next != FrontMax || len(f.IDs) != FrontMax || calls < 50 {
			t.Errorf("%d calls to %d, %d in the list", calls, next, len(f.IDs))
		}
		f.Reset(2)
		if next, _ := f.Add(axes, n-3, 100); next != n ||
			!slices.Equal(f.IDs, []int32{int32(n - 3), int32(n - 2), int32(n - 1)}) {
			t.Errorf("after Reset: %d, %v", next, f.IDs)
		}
	})
}

// The generated code reads fields at these places.
func TestOffsetsOfArguments(t *testing.T) {
	var d dominateArgs
	var f frontArgs
	got := []uintptr{unsafe.Offsetof(d.sign), unsafe.Offsetof(d.pivots), unsafe.Offsetof(d.groups),
		unsafe.Offsetof(d.blocks), unsafe.Offsetof(d.ids), unsafe.Offsetof(d.first), unsafe.Offsetof(d.found),
		unsafe.Offsetof(d.low),
		unsafe.Offsetof(f.list), unsafe.Offsetof(f.stride), unsafe.Offsetof(f.kept), unsafe.Offsetof(f.points),
		unsafe.Offsetof(f.count), unsafe.Offsetof(f.limit), unsafe.Offsetof(f.budget), unsafe.Offsetof(f.done)}
	if want := []uintptr{64, 128, 136, 144, 152, 160, 168, 176, 64, 72, 80, 88, 96, 104, 112,
		120}; unsafe.Sizeof(uintptr(0)) == 8 && !slices.Equal(got, want) {
		t.Errorf("fields at %v, the generator has %v", got, want)
	}
}

func BenchmarkUndominated(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 0))
	for _, l := range []Level{Portable, AVX2, AVX512} {
		if l > Best() {
			continue
		}
		b.Run(l.String(), func(b *testing.B) {
			defer Limit(l)()
			benchUndominated[float32](b, r)
			benchUndominated[float64](b, r)
		})
	}
}

func benchUndominated[T float32 | float64](b *testing.B, r *rand.Rand) {
	const n = 120_000
	axes := make([][]T, 3)
	for k := range axes {
		axes[k] = make([]T, n)
		for i := range axes[k] {
			axes[k][i] = T(r.Float64())
		}
	}
	p := Pivots[T]{}
	for k := range 4 * 3 * PivotGroup {
		p.Values = append(p.Values, T(0.98-0.01*float64(k/3)))
	}
	name := map[bool]string{true: "float32", false: "float64"}[unsafe.Sizeof(T(0)) == 4]
	b.Run(name, func(b *testing.B) {
		var ids []int32
		for b.Loop() {
			ids, _ = p.Undominated(ids[:0], axes, 0)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/point")
		b.ReportMetric(float64(len(ids))/n, "left")
	})
}
