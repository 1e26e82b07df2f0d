package pipeline

import (
	"context"
	"slices"
	"sync"
)

// budget bounds the bytes that the pipeline holds. Two kinds are counted:
// fetched, the records that came from the broker and are not processed yet,
// and held, the results and rejects that wait for their commit.
//
// Fetched memory is reserved before it is asked for and takes at most half of
// the limit, so that results find room. Held memory is only known when a
// record has been processed, so hold never blocks; what exceeds the limit is
// bounded by what had been fetched. A reservation larger than everything
// passes when nothing else is there: one huge record cannot block for ever.
type budget struct {
	limit int64
	// relieve is called, without the lock, when a reservation has to wait or
	// the limit is exceeded: it asks for held memory to be committed.
	relieve func()

	mu      sync.Mutex
	fetched int64
	held    int64
	waiting []*reservation
}

type reservation struct {
	bytes   int64
	granted chan struct{}
}

// reserve waits until n bytes may be fetched. First come, first served.
func (b *budget) reserve(ctx context.Context, n int64) error {
	b.mu.Lock()
	if len(b.waiting) == 0 && b.fits(n) {
		b.fetched += n
		b.mu.Unlock()
		return nil
	}
	r := &reservation{bytes: n, granted: make(chan struct{})}
	b.waiting = append(b.waiting, r)
	b.mu.Unlock()
	b.relieve()
	select {
	case <-r.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, r); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		b.grant() // r may have been what the others waited behind
		return ctx.Err()
	}
	return nil // granted in the meantime: the caller gives it back
}

func (b *budget) fits(n int64) bool {
	if b.fetched == 0 && b.held == 0 {
		return true
	}
	return b.fetched+b.held+n <= b.limit && (b.fetched == 0 || b.fetched+n <= b.limit/2)
}

// grant serves reservations in their order. The caller holds the lock.
func (b *budget) grant() {
	for len(b.waiting) > 0 && b.fits(b.waiting[0].bytes) {
		r := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.fetched += r.bytes
		close(r.granted)
	}
}

// fetch changes what is counted as fetched: a reservation becomes the size
// that really came, or is given back.
func (b *budget) fetch(delta int64) {
	b.mu.Lock()
	b.fetched += delta
	b.grant()
	b.mu.Unlock()
}

// hold changes what is counted as held.
func (b *budget) hold(delta int64) {
	b.mu.Lock()
	b.held += delta
	b.grant()
	b.mu.Unlock()
}

// press asks for a commit if memory is short. It is called whenever a batch has
// grown or has been committed: a request made earlier may have found only
// results that were in no batch yet.
func (b *budget) press() {
	b.mu.Lock()
	short := len(b.waiting) > 0 || b.fetched+b.held > b.limit
	b.mu.Unlock()
	if short {
		b.relieve()
	}
}

// used returns the bytes counted now.
func (b *budget) used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fetched + b.held
}
