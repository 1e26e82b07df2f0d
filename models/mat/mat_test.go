package mat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"entropipe/ops/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// everyLevel runs f at each level that this CPU has.
func everyLevel(t *testing.T, f func(t *testing.T)) {
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

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// gap fills what lies between and around the rows of a matrix, and must stay.
const gap = 1e30

// random returns a matrix at any alignment, with room between its rows and
// around them.
func random(r *rand.Rand, rows, cols int) Matrix {
	stride := cols + r.IntN(5)
	room := make([]float32, rows*stride+cols+40)
	for i := range room {
		room[i] = gap
	}
	from := 1 + r.IntN(17)
	m := Matrix{rows, cols, stride, room[from : from+max(0, rows-1)*stride+cols+1]}
	for i := range rows {
		for j := range cols {
			m.Row(i)[j] = float32(r.NormFloat64())
		}
	}
	return m
}

// intact fails if something between the rows of m, or after them, was written.
func intact(t *testing.T, m Matrix, what string) {
	t.Helper()
	for i := range m.Rows {
		for j := m.Cols; j < m.Stride && i*m.Stride+j < len(m.Data); j++ {
			if m.Data[i*m.Stride+j] != gap {
				t.Fatalf("%s: %v between the rows, after row %d", what, m.Data[i*m.Stride+j], i)
			}
		}
	}
	if m.Rows > 0 && m.Data[len(m.Data)-1] != gap {
		t.Fatalf("%s: %v after the last row", what, m.Data[len(m.Data)-1])
	}
}

func sameBits(t *testing.T, got, want Matrix, what string) {
	t.Helper()
	for i := range want.Rows {
		for j, w := range want.Row(i) {
			if g := got.Row(i)[j]; math.Float32bits(g) != math.Float32bits(w) {
				t.Fatalf("%s: row %d column %d: %v, want the bits of %v", what, i, j, g, w)
			}
		}
	}
}

func TestViews(t *testing.T) {
	m := Of(3, 2, []float32{1, 2, 3, 4, 5, 6})
	if got := fmt.Sprint(m.Row(1), m.Slice(1, 3).Row(1), m.Columns(1, 2).Row(2), m.Slice(3, 3).Rows,
		m.Columns(2, 2).Cols); got != "[3 4] [5 6] [6] 0 0" {
		t.Errorf("got %s", got)
	}
}

// Every mistake of a caller is a panic with a constant text.
func TestMistakesPanic(t *testing.T) {
	m := Of(3, 2, make([]float32, 6))
	var w Weights
	w.Pack(m)
	two := make([]float32, 2)
	for i, f := range []func(){
		func() { Of(3, 3, two) },
		func() { m.Slice(2, 4) },
		func() { m.Columns(-1, 1) },
		func() { Matrix{2, 2, 1, two}.check() },
		func() { w.Mul(m, m, Epilogue{}, 1) },
		func() { w.Mul(m, Of(2, 3, make([]float32, 6)), Epilogue{}, 1) },
		func() { w.Mul(Of(2, 2, make([]float32, 4)), Of(2, 3, make([]float32, 6)), Epilogue{Bias: two[:1]}, 1) },
		func() { TMul(m, m, m, 1) },
		func() { TMul(Of(2, 3, make([]float32, 6)), m, m, 1) },
		func() { Exp(two, two[:1]) },
		func() { LayerNorm(m, m, two, two[:1], 0) },
		func() { LayerNorm(m, m.Slice(0, 2), two, two, 0) },
		func() { Affine(m, m.Columns(0, 1), two, two) },
		func() { ColumnMax(two, make([]int32, 1), m, 0) },
		func() { AdamW{}.Update(two, two, two, two[:1], 1, 1) },
		func() { Keep(make([]float32, 65), []uint64{1}) },
		func() { Tiles(3, 0, 1, func(int, int) {}) },
		func() {
			w.Mul(Of(2, 2, make([]float32, 4)), Of(2, 3, make([]float32, 6)), Epilogue{Times: Of(1, 2, two)}, 1)
		},
		func() { Multiply(two, two, two[:1]) },
		func() { GELUBackward(two, two[:1]) },
		func() { GELUTanhBackward(two[:1], two) },
		func() { SoftmaxBackward(m, Of(1, 2, two)) },
		func() { LayerNormBackward(m, m, m, two, two, two[:1], 1) },
	} {
		func() {
			defer func() {
				if _, ok := recover().(string); !ok {
					t.Errorf("mistake %d: no panic with a text", i)
				}
			}()
			f()
		}()
	}
}

// Tiles are the same for any number of workers, and each is visited once.
func TestTiles(t *testing.T) {
	for _, n := range []int{0, 1, 5, 16, 17} {
		for _, tile := range []int{1, 4, 16, 100} {
			for _, workers := range []int{0, 1, 2, 7} {
				seen := make([]int32, n)
				Tiles(n, tile, workers, func(lo, hi int) {
					if lo%tile != 0 || hi != min(lo+tile, n) {
						t.Errorf("n %d, tile %d, workers %d: tile %d to %d", n, tile, workers, lo, hi)
					}
					for i := lo; i < hi; i++ {
						seen[i]++
					}
				})
				for i, s := range seen {
					if s != 1 {
						t.Errorf("n %d, tile %d, workers %d: row %d was visited %d times", n, tile, workers, i, s)
					}
				}
			}
		}
	}
}

// Every task is done once, no two at a time under one name, also when those
// who share share again, and when goroutines that helped before have left.
func TestShare(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 8} {
		for round := range 200 {
			n := round % 40
			done := make([]atomic.Int32, n*3)
			names := make([]atomic.Int32, workers)
			Share(n, workers, func(i, who int) {
				if names[who].Add(1) != 1 {
					t.Errorf("%d workers: two are number %d", workers, who)
				}
				Share(3, 2, func(k, _ int) { done[i*3+k].Add(1) })
				names[who].Add(-1)
			})
			for i := range done {
				if got := done[i].Load(); got != 1 {
					t.Fatalf("%d workers, %d tasks: task %d was done %d times", workers, n, i, got)
				}
			}
			if round%50 == 49 {
				time.Sleep(3 * patience)
			}
		}
	}
}

// No more goroutines share than were asked for, where there is time for more to
// come.
func TestShareBoundsItsWorkers(t *testing.T) {
	for _, workers := range []int{2, 3, 5} {
		var inside, most, highest atomic.Int32
		Share(20*workers, workers, func(_, who int) {
			n := inside.Add(1)
			for _, x := range []struct {
				to    *atomic.Int32
				value int32
			}{{&most, n}, {&highest, int32(who)}} {
				for was := x.to.Load(); x.value > was && !x.to.CompareAndSwap(was, x.value); was = x.to.Load() {
				}
			}
			time.Sleep(300 * time.Microsecond)
			inside.Add(-1)
		})
		if int(most.Load()) > workers || int(highest.Load()) >= workers {
			t.Errorf("%d workers: %d at once, the highest number %d", workers, most.Load(), highest.Load())
		}
	}
}

// A panic of any call comes out of Share, in the caller's goroutine, when no call
// is at work any more; and sharing goes on as before.
func TestSharePanics(t *testing.T) {
	const tasks = 1 << 30 // so many that some are left however late a helper is woken to say that it panicked
	for round := range 60 {
		workers, byHelper := 2+round%3, round%2 == 0
		var inside, begun atomic.Int32
		var panicked atomic.Bool
		value := func() (p any) {
			defer func() { p = recover() }()
			Share(tasks, workers, func(i, who int) {
				inside.Add(1)
				defer inside.Add(-1)
				begun.Add(1)
				if byHelper == (who > 0) {
					panicked.Store(true)
					panic(i)
				}
				for wait := 0; !panicked.Load() && wait < 1e5; wait++ { // the other kind gets its turn
					time.Sleep(50 * time.Microsecond)
				}
			})
			return nil
		}()
		if _, ok := value.(int); !ok || inside.Load() != 0 {
			t.Fatalf("round %d, %d workers: panic %v with %d calls at work", round, workers, value, inside.Load())
		}
		if begun.Load() == tasks {
			t.Errorf("round %d: all tasks were begun", round)
		}
		var sum atomic.Int64
		Share(10, workers, func(i, _ int) { sum.Add(int64(i)) })
		if sum.Load() != 45 {
			t.Fatalf("round %d: the tasks sum to %d", round, sum.Load())
		}
	}
}

// Callers share at the same time, and helpers leave when nothing comes.
func TestShareFromMany(t *testing.T) {
	var sum atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 100 {
				Share(10, 4, func(i, _ int) { sum.Add(int64(i)) })
			}
		})
	}
	wait.Wait()
	if got := sum.Load(); got != 8*100*45 {
		t.Errorf("the tasks sum to %d, want %d", got, 8*100*45)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		idle.Lock()
		left := len(idle.helpers)
		idle.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d helpers still wait", left)
		}
	}
}
