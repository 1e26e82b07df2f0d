package pipeline

import (
	"context"
	"slices"
	"sync"
)

// budget bounds the bytes that the pipeline holds. It counts two kinds: fetched,
// the records that came from the broker and are not processed yet, and held, the
// results and rejects that wait for their commit. Any goroutine may call the
// methods.
//
// Fetched memory is reserved before the fetch and takes at most half of the limit,
// so that results find room. Held memory is only known when a record has been
// processed, so hold never blocks; the bytes above the limit are bounded by the
// records that were fetched. A reservation larger than the limit is granted when
// nothing else is counted: one huge record cannot block for ever.
//
// A reader that has nothing fetched is idle. Idle readers are served first, and up
// to three quarters of the limit: a partition of clouds would otherwise wait until
// records of sequences, which are small and take long, have been processed to the
// end of a fetch. Every reader is idle now and then, so no reader waits for ever.
//
// Chunks of open messages take at most half of the limit from all else. What they have
// beyond that is memory beyond the limit: a partition of many interleaved messages has it all
// the time, and nobody else would ever read again. One reader at a time may reserve such
// memory, in turns with readers that wait beside open messages and are idle.
type budget struct {
	limit int64
	// relieve asks a collector to commit held memory. It is called, without the
	// lock, when held memory keeps a reservation waiting or the limit is exceeded.
	relieve func()

	mu      sync.Mutex
	over    borrower // the one that may exceed the limit; nil: nobody does
	fetched int64
	open    int64 // of fetched, the chunks of messages that are not decided
	held    int64
	working int // tasks that workers have, or will have
	waiting []*reservation
}

// borrower is a reader that reserves memory.
type borrower interface {
	idle() bool    // it has nothing fetched
	starved() bool // nobody else can free memory that it waits for
}

type reservation struct {
	borrower
	bytes   int64
	holding bool // for a chunk: the borrower has fetched memory, which it cannot give back meanwhile
	granted chan struct{}
}

// reserve waits until n bytes may be fetched, or until ctx ends. Reservations are
// granted in the order of their calls, idle readers' first.
func (b *budget) reserve(ctx context.Context, n int64, by borrower) error {
	return b.wait(ctx, &reservation{borrower: by, bytes: n, granted: make(chan struct{})})
}

// reserveChunk is reserve for the chunk of an open message, which decided takes back. The
// reader has fetched memory that it cannot give back before: nobody waits in front of it.
func (b *budget) reserveChunk(ctx context.Context, n int64, by borrower) error {
	return b.wait(ctx, &reservation{borrower: by, bytes: n, holding: true, granted: make(chan struct{})})
}

func (b *budget) wait(ctx context.Context, r *reservation) error {
	b.mu.Lock()
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
		b.grant() // r may have been the one that the others waited behind
		return ctx.Err()
	}
	return nil // granted in the meantime: the caller gives the bytes back
}

// fits tells whether n more bytes may be fetched: all counted bytes but those beyond stay
// within the limit, and fetched bytes within most. The caller holds the lock.
func (b *budget) fits(n, most int64) bool {
	fetched := b.fetched - b.beyond()
	if fetched == 0 && b.held == 0 {
		return true
	}
	return fetched+b.held+n <= b.limit && (fetched == 0 || fetched+n <= most)
}

// beyond returns the bytes of open messages that others need not make room for. The caller
// holds the lock.
func (b *budget) beyond() int64 { return max(b.open-b.limit/2, 0) }

// grant grants reservations that fit: first those of readers that are starved or hold
// memory, then those of idle ones, then the others, each in their order. Of the first, one
// reader at a time may exceed the limit: without that all readers could wait for memory that
// only they can free. It does so within what is left beside open messages, or when no worker
// will free memory. The caller holds the lock.
func (b *budget) grant() {
	b.waiting = slices.DeleteFunc(b.waiting, func(r *reservation) bool {
		urgent := r.holding || r.starved()
		switch {
		case urgent && b.fetched+b.held+r.bytes <= b.limit:
		case !urgent && (b.open == 0 || !r.idle()):
			return false
		case b.over != nil && b.over != r.borrower, b.working > 0 && !b.fits(r.bytes, b.limit):
			return false
		default:
			b.over = r.borrower
		}
		return b.pass(r)
	})
	b.waiting = slices.DeleteFunc(b.waiting, func(r *reservation) bool {
		return b.fits(r.bytes, b.limit/4*3) && r.idle() && b.pass(r)
	})
	for len(b.waiting) > 0 && b.fits(b.waiting[0].bytes, b.limit/2) {
		b.pass(b.waiting[0])
		b.waiting = b.waiting[1:]
	}
}

// pass grants r, and returns true. The caller holds the lock.
func (b *budget) pass(r *reservation) bool {
	b.fetched += r.bytes
	if r.holding {
		b.open += r.bytes
	}
	close(r.granted)
	return true
}

// fetch adds delta to the fetched bytes: a reservation becomes the size that really
// came, or is given back. It presses, because a reservation that waited for fetched
// memory may wait for held memory from now on, and no other call would notice.
func (b *budget) fetch(delta int64) {
	b.mu.Lock()
	b.fetched += delta
	b.grant()
	b.mu.Unlock()
	b.press()
}

// decided says that a message of r is no longer open, which has n bytes. They stay fetched.
func (b *budget) decided(r borrower, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open -= n
	if b.over == r {
		b.over = nil
	}
	b.grant()
}

// work adds delta to the tasks of workers.
func (b *budget) work(delta int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.working += delta
	b.grant()
}

// settled takes back the leave of r to exceed the limit.
func (b *budget) settled(r borrower) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over == r {
		b.over = nil
		b.grant()
	}
}

// look grants what may be granted now: a reader has become starved.
func (b *budget) look() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.grant()
}

// hold adds delta to the held bytes.
func (b *budget) hold(delta int64) {
	b.mu.Lock()
	b.held += delta
	b.grant()
	b.mu.Unlock()
}

// press asks for a commit if memory is short. It is called whenever a batch has
// grown or has been committed: an earlier request may have come when the results
// were in no batch yet.
func (b *budget) press() {
	b.mu.Lock()
	short := b.short()
	b.mu.Unlock()
	if short {
		b.relieve()
	}
}

// short tells whether a commit would help: the limit is exceeded, or a reservation
// does not fit because of held memory alone. Reservations that do not fit because of
// fetched memory are no reason: hundreds of partitions that wait for records would
// make every record a commit. Nor is a reservation that fits: its reader has become
// idle just now, and will be served. The caller holds the lock.
func (b *budget) short() bool {
	fetched := b.fetched - b.beyond()
	if fetched+b.held > b.limit {
		return true
	}
	for i, r := range b.waiting {
		idle := r.idle()
		most := b.limit / 4 * 3
		if !idle {
			most = b.limit / 2
		}
		served := idle || i == 0
		if served && !b.fits(r.bytes, most) && (fetched == 0 || fetched+r.bytes <= most) {
			return true
		}
	}
	return false
}

// used returns fetched + held.
func (b *budget) used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fetched + b.held
}
