package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// reserver is a borrower of a test.
type reserver struct {
	isIdle  func() bool
	hungers atomic.Bool
}

func (r *reserver) idle() bool    { return r.isIdle() }
func (r *reserver) starved() bool { return r.hungers.Load() }

func whoIs(idle func() bool) *reserver { return &reserver{isIdle: idle} }

func busy() bool { return false }

// Who has nothing fetched passes those who have, as long as a quarter of the
// memory is left for results, and as soon as he has nothing any more.
func TestTheIdleGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget{limit: 100, relieve: func() {}}
		granted := make(chan string, 5)
		var idle atomic.Bool
		reserve := func(name string, n int64, idle func() bool) {
			go func() {
				if b.reserve(t.Context(), n, whoIs(idle)) == nil {
					granted <- name
				}
			}()
			synctest.Wait()
		}
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for range len(granted) {
				got = append(got, <-granted)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("granted %v, want %v", got, want)
			}
		}
		reserve("half", 50, busy)
		reserve("busy", 10, busy)
		reserve("late", 10, idle.Load)
		reserve("idle", 20, func() bool { return true })
		reserve("too much", 10, func() bool { return true })
		expect("half", "idle")
		idle.Store(true)
		b.fetch(-10)
		expect("late")
		b.fetch(-55)
		if expect("busy", "too much"); b.used() != 35 {
			t.Errorf("%d used", b.used())
		}
	})
}

// A reservation larger than the limit passes when nothing else is in flight.
func TestOversizedReservationPassesAlone(t *testing.T) {
	b := budget{limit: 10, relieve: func() {}}
	if err := b.reserve(t.Context(), 100, whoIs(busy)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := b.reserve(ctx, 1, whoIs(busy)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a second reservation passed beside it: %v", err)
	}
	b.fetch(-100)
	if err := b.reserve(t.Context(), 1, whoIs(busy)); err != nil || b.used() != 1 {
		t.Fatalf("after its end: %v, %d used", err, b.used())
	}
}

// Law: a reader for whose memory only itself can care exceeds the limit, one at a time, until
// it says that it does not need to any more.
func TestOneStarvedReaderExceedsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget{limit: 100, relieve: func() {}}
		var granted [3]atomic.Int32
		readers := []*reserver{whoIs(busy), whoIs(busy), whoIs(busy)}
		reserve := func(i int, n int64) {
			go func() {
				if b.reserve(t.Context(), n, readers[i]) == nil {
					granted[i].Add(1)
				}
			}()
			synctest.Wait()
		}
		expect := func(what string, want ...int32) {
			t.Helper()
			synctest.Wait()
			for i := range granted {
				if got := granted[i].Load(); got != want[i] {
					t.Errorf("%s: reader %d has %d reservations, want %d", what, i, got, want[i])
				}
			}
		}
		reserve(0, 50)
		reserve(1, 60)
		reserve(2, 60)
		expect("half of the memory is fetched", 1, 0, 0)
		readers[1].hungers.Store(true)
		readers[2].hungers.Store(true)
		b.look()
		expect("one starves", 1, 1, 0)
		reserve(1, 1000)
		expect("it takes more", 1, 2, 0)
		readers[1].hungers.Store(false)
		b.settled(readers[1])
		expect("it has what it needs", 1, 2, 1)
		readers[0].hungers.Store(true)
		reserve(0, 10)
		expect("another one exceeds the limit", 1, 2, 1)
		b.settled(readers[2])
		expect("it has what it needs, too", 2, 2, 1)
	})
}
