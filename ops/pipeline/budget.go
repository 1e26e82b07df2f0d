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
//
// Who has nothing fetched goes first, and may use half of what is left for
// results: a partition of clouds would otherwise wait until records of sequences,
// which are small and take long, have been read to the end of a fetch. Everybody
// has nothing fetched now and then, so nobody waits for ever.
type budget struct {
	limit int64
	// relieve is called, without the lock, when held memory keeps a reservation
	// waiting or the limit is exceeded: it asks for held memory to be committed.
	relieve func()

	mu      sync.Mutex
	fetched int64
	held    int64
	waiting []*reservation
}

type reservation struct {
	bytes   int64
	idle    func() bool // has whoever waits nothing fetched?
	granted chan struct{}
}

// reserve waits until n bytes may be fetched. First come, first served, but for
// those who are idle.
func (b *budget) reserve(ctx context.Context, n int64, idle func() bool) error {
	b.mu.Lock()
	r := &reservation{bytes: n, idle: idle, granted: make(chan struct{})}
	b.waiting = append(b.waiting, r)
	b.grant()
	b.mu.Unlock()
	select {
	case <-r.granted:
		return nil
	default:
	}
	b.press()
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

// fits tells whether n more bytes may be fetched, if they take no more than most
// together with those that are.
func (b *budget) fits(n, most int64) bool {
	if b.fetched == 0 && b.held == 0 {
		return true
	}
	return b.fetched+b.held+n <= b.limit && (b.fetched == 0 || b.fetched+n <= most)
}

// grant serves the idle, and then the others, in their order. The caller holds
// the lock.
func (b *budget) grant() {
	b.waiting = slices.DeleteFunc(b.waiting, func(r *reservation) bool {
		return b.fits(r.bytes, b.limit/4*3) && r.idle() && b.pass(r)
	})
	for len(b.waiting) > 0 && b.fits(b.waiting[0].bytes, b.limit/2) {
		b.pass(b.waiting[0])
		b.waiting = b.waiting[1:]
	}
}

// pass grants r.
func (b *budget) pass(r *reservation) bool {
	b.fetched += r.bytes
	close(r.granted)
	return true
}

// fetch changes what is counted as fetched: a reservation becomes the size
// that really came, or is given back. Who has waited for it may now wait for held
// memory, which nobody else would tell.
func (b *budget) fetch(delta int64) {
	b.mu.Lock()
	b.fetched += delta
	b.grant()
	b.mu.Unlock()
	b.press()
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
	short := b.short()
	b.mu.Unlock()
	if short {
		b.relieve()
	}
}

// short tells whether a commit would help: the limit is exceeded, or there is
// room for a reservation but for what is held. Hundreds of partitions that wait for
// records, and others that wait for theirs, are no reason: they would make every
// record a commit; nor is a reservation that fits, because who asks has become idle
// just now, and will be served. The caller holds the lock.
func (b *budget) short() bool {
	if b.fetched+b.held > b.limit {
		return true
	}
	for i, r := range b.waiting {
		idle := r.idle()
		most := b.limit / 4 * 3
		if !idle {
			most = b.limit / 2
		}
		served := idle || i == 0
		if served && !b.fits(r.bytes, most) && (b.fetched == 0 || b.fetched+r.bytes <= most) {
			return true
		}
	}
	return false
}

// used returns the bytes counted now.
func (b *budget) used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fetched + b.held
}
