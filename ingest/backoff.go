package ingest

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff makes pauses that double from 50 ms to 2 s, with jitter, so that
// many clients do not come back together.
type backoff struct{ next time.Duration }

func (b *backoff) reset() { b.next = 0 }

// wait pauses; its error is that of ctx.
func (b *backoff) wait(ctx context.Context) error {
	b.next = min(max(2*b.next, 50*time.Millisecond), 2*time.Second)
	return sleep(ctx, b.next/2+rand.N(b.next/2))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
