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
				if b.reserve(t.Context(), n, idle) == nil {
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
	if err := b.reserve(t.Context(), 100, busy); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := b.reserve(ctx, 1, busy); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a second reservation passed beside it: %v", err)
	}
	b.fetch(-100)
	if err := b.reserve(t.Context(), 1, busy); err != nil || b.used() != 1 {
		t.Fatalf("after its end: %v, %d used", err, b.used())
	}
}
