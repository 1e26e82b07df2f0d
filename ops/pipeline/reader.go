package pipeline

import (
	"context"
	"sync/atomic"
	"time"

	"entropipe/schemas"
)

// reader fetches the records of one session, and hands each to a worker and its
// slot to the collector. Its goroutine alone touches the fields, but for open.
type reader struct {
	*session
	next int64 // offset of the next fetch

	expected int64 // bytes of the last fetch that brought records
	each     int64 // mean bytes of one of those records
	atEnd    bool  // the last fetch brought no record

	open atomic.Int64 // leases that have not ended; also decremented by workers and the collector
	err  error        // why reading ended; set before slots is closed
}

// run reads until ctx or the log ends, or something fails. Then it closes slots.
func (r *reader) run(ctx context.Context) {
	defer close(r.slots) // after err is set: the session reads it once slots is closed
	for r.err == nil {
		r.err = r.fetch(ctx)
	}
}

// fetch reserves memory, fetches once and submits what came.
func (r *reader) fetch(ctx context.Context) error {
	budget := &r.p.budget
	size := r.p.fetchSize(r.atEnd)
	reserved := r.reservation(size)
	if err := budget.reserve(ctx, reserved, r.idle); err != nil {
		return err
	}
	r.p.busy.fetch.Add(1)
	start := time.Now()
	fetched, err := r.part.Fetch(ctx, r.next, int32(size))
	took := time.Since(start)
	r.p.busy.fetch.Add(-1)
	if err != nil {
		budget.fetch(-reserved)
		return err
	}
	budget.fetch(fetched.Bytes - reserved)
	records := int64(len(fetched.Messages))
	if r.atEnd = records == 0; !r.atEnd {
		r.expected, r.each = fetched.Bytes, fetched.Bytes/records
		r.newest.CompareAndSwap(0, r.sentAt(&fetched.Messages[0]))
	}
	r.transaction(&fetched)
	r.logEnd.Store(fetched.End)
	r.src.Fetched(&fetched, took)
	r.lag()
	r.submit(&fetched)
	r.next = fetched.Next
	return nil
}

// transaction notes since when the end of the log stands still before records that are there.
func (r *reader) transaction(f *schemas.Fetched) {
	switch {
	case f.End < 0 || f.High <= f.End:
		r.hiddenSince.Store(0)
	case r.hiddenSince.Load() == 0 || r.logEnd.Load() != f.End:
		r.hiddenSince.Store(time.Now().UnixNano())
	}
	r.hidden.Store(f.High - f.End)
}

// reservation returns the bytes to reserve for a fetch of size bytes. A record may
// be larger than size, and after a large fetch the next one is likely to be large
// too. At the end of the log one record is expected. More than a quarter of the
// memory is not reserved: such a reservation could wait as long as any other
// partition holds memory.
func (r *reader) reservation(size int64) int64 {
	expected := r.expected
	if r.atEnd {
		expected = r.each
	}
	return max(size, min(expected, r.p.cfg.Memory/4))
}

// idle tells whether the session holds no fetched memory.
func (r *reader) idle() bool { return r.open.Load() == 0 }

// submit gives every record of f a slot and a worker. It blocks while the
// workers are behind.
func (r *reader) submit(f *schemas.Fetched) {
	l := &lease{reader: r, bytes: f.Bytes, release: f.Release}
	r.open.Add(1)
	l.records.Store(int64(len(f.Messages)) + 1) // one for submit itself, so that the lease outlives this loop
	defer l.done()
	last := f.From
	for _, m := range f.Messages {
		t := &task{msg: m, s: r.session, lease: l, done: make(chan struct{})}
		t.tokens = r.p.cfg.NewTokens != nil && schemas.IsTokens(&m)
		last = m.Offset + 1
		r.slots <- slot{t, last}
		r.p.submit(t)
	}
	if f.Next > last {
		r.slots <- slot{nil, f.Next}
	}
}

// lease is the memory of one fetch. It counts the records that are still read;
// the end of the last one hands the memory back to the source. Any goroutine may
// call done.
type lease struct {
	reader  *reader
	records atomic.Int64
	bytes   int64
	release func()
}

// done ends the use of one record.
func (l *lease) done() {
	if l.records.Add(-1) > 0 {
		return
	}
	if l.release != nil {
		l.release()
	}
	l.reader.open.Add(-1)
	l.reader.p.budget.fetch(-l.bytes)
}
