package pipeline

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"entropipe/ops/metrics"
	"entropipe/schemas"
)

// reader fetches the records of one session, and hands each to a worker and its
// slot to the collector. Its goroutine alone touches the fields, but for open.
type reader struct {
	*session
	next int64 // offset of the next fetch

	chunks   *assembler
	expected int64     // bytes of the last fetch that brought records
	each     int64     // mean bytes of one of those records
	atEnd    bool      // the last fetch brought no record
	asked    time.Time // when the last fetch began

	told bool // the log says that a transaction is open

	beyond bool // reading behind the end of --until-end; also in chunks.ending

	err error // why reading ended; set before slots is closed
}

// run reads until ctx or the log ends, or something fails. Then it closes slots.
func (r *reader) run(ctx context.Context) {
	defer r.slots.close() // after err is set: the session reads it once slots is closed
	defer r.abandon()
	for r.err == nil {
		r.err = r.fetch(ctx, r.part.Fetch)
	}
	if errors.Is(r.err, io.EOF) {
		r.past(ctx)
	}
}

// fetch reserves memory, fetches once and submits what came.
func (r *reader) fetch(ctx context.Context, from func(context.Context, int64, int32) (schemas.Fetched, error)) error {
	budget := &r.p.budget
	size := r.p.fetchSize(r.atEnd)
	reserved := r.reservation(size)
	if err := budget.reserve(ctx, reserved, r.session); err != nil {
		return err
	}
	if r.atEnd && len(r.chunks.open) == 0 {
		budget.settled(r.session) // it may wait for records, and few of them come
	}
	r.p.busy.fetch.Add(1)
	r.asked = time.Now()
	fetched, err := from(ctx, r.next, int32(size))
	took := time.Since(r.asked)
	r.p.busy.fetch.Add(-1)
	if err != nil {
		budget.fetch(-reserved)
		budget.settled(r.session)
		return err
	}
	budget.fetch(fetched.Bytes - reserved)
	records := int64(len(fetched.Messages))
	if r.atEnd = records == 0; r.atEnd || len(r.chunks.open) == 0 {
		budget.settled(r.session) // nothing here waits for what comes, maybe, in a while
	}
	if !r.atEnd {
		r.expected, r.each = fetched.Bytes, fetched.Bytes/records
		r.newest.CompareAndSwap(0, r.sentAt(&fetched.Messages[0]))
	}
	r.transaction(&fetched)
	r.logEnd.Store(fetched.End)
	r.src.Fetched(&fetched, took)
	r.lag()
	err = r.submit(ctx, &fetched)
	r.next = fetched.Next
	return err
}

// hiddenFrom is how long a transaction is open before the log says so.
const hiddenFrom = 10 * time.Second

// transaction notes since when the end of the log stands still before records that are there,
// and logs once that it has for long, and once that it goes on.
func (r *reader) transaction(f *schemas.Fetched) {
	since, now := r.hiddenSince.Load(), r.p.ticks()
	switch {
	case f.End < 0 || f.High <= f.End:
		r.hiddenSince.Store(0)
		r.goesOn()
	case since == 0 || r.logEnd.Load() != f.End:
		r.hiddenSince.Store(now)
		r.goesOn()
	case !r.told && time.Duration(now-since) >= hiddenFrom:
		r.told = true
		r.p.cfg.Log.Warn("waiting for a producer's open transaction; the brokers end it after the producer's "+
			"transaction timeout", "topic", r.topic, "partition", r.id, "offset", f.End, "offsets", f.High-f.End)
	}
	r.hidden.Store(f.High - f.End)
}

// goesOn logs the end of what transaction has logged.
func (r *reader) goesOn() {
	if r.told {
		r.told = false
		r.p.cfg.Log.Info("the open transaction has ended", "topic", r.topic, "partition", r.id)
	}
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
func (s *session) idle() bool { return s.open.Load() == 0 }

// starved tells whether the session goes on only if its reader gets memory: its collector
// waits for a message of chunks.
func (s *session) starved() bool { return s.stalled.Load() }

// submit gives every record of f a slot and a worker. It blocks while the workers are
// behind, and while there is no memory for a message of chunks: only then an error of ctx is
// possible.
func (r *reader) submit(ctx context.Context, f *schemas.Fetched) error {
	l := &lease{reader: r, bytes: f.Bytes, release: f.Release}
	r.open.Add(1)
	l.records.Store(1) // for submit itself, so that the lease outlives this loop
	defer l.done()
	last := f.From
	for i := range f.Messages {
		if err := r.record(ctx, &f.Messages[i], l); err != nil {
			return err
		}
		last = f.Messages[i].Offset + 1
	}
	if f.Next > last && !r.beyond {
		r.push(slot{next: f.Next})
	}
	r.decide(r.atEnd && f.Next >= f.End)
	return nil
}

// record gives one record its slot.
func (r *reader) record(ctx context.Context, m *schemas.Message, l *lease) error {
	is, opened, err := r.chunks.take(m, r.asked, func(bytes int64) error {
		return r.p.budget.reserveChunk(ctx, bytes, r.session)
	})
	switch {
	case is == beyond:
		return nil
	case is == noMemory:
		return err
	case r.beyond:
	case is == continuation:
		id := m.ID()
		r.push(slot{next: m.Offset + 1, chunk: &id})
	case opened != nil:
		r.begin(opened, m.ID())
	default:
		t := r.task(*m, l)
		l.records.Add(1)
		r.push(slot{task: t, next: m.Offset + 1})
		if err != nil {
			t.refuse(r.p, err)
			break
		}
		r.p.submit(t)
	}
	r.decide(false)
	r.count()
	return nil
}

// count tells the metrics of the chunks since the last call, and of the open messages.
func (r *reader) count() {
	if n := &r.chunks.counts; *n != (metrics.Chunks{}) {
		r.src.Chunks(*n)
		*n = metrics.Chunks{}
		r.openMessages()
	}
}

// openMessages tells the metrics of the open messages of chunks.
func (r *reader) openMessages() {
	var bytes int64
	for _, f := range r.chunks.open {
		bytes += f.reserved
	}
	r.src.OpenChunked(len(r.chunks.open), bytes)
}

// task returns the task of a message whose memory l is.
func (r *reader) task(m schemas.Message, l *lease) *task {
	return &task{msg: m, s: r.session, lease: l, done: make(chan struct{}),
		tokens: r.p.cfg.NewTokens != nil && schemas.IsTokens(&m)}
}

// begin gives a message of chunks its slot. id is that of its first record.
func (r *reader) begin(f *assembly, id schemas.RecordID) {
	l := &lease{reader: r} // decide and abandon set its bytes
	l.records.Store(1)
	r.open.Add(1)
	f.task = r.task(f.message, l)
	f.task.parts, f.task.id = f, id
	r.push(slot{task: f.task, next: f.message.Offset + 1})
}

// decide passes on the messages of chunks that are decided.
func (r *reader) decide(atEnd bool) {
	decided := r.chunks.decided(r.asked, atEnd)
	if len(decided) > 0 {
		r.openMessages()
	}
	for _, f := range decided {
		r.src.Assembled(f.reason())
		t := f.task
		t.msg, t.lease.bytes = f.message, f.reserved
		if value := f.message.Value; f.reserved > 0 {
			t.lease.release = func() { r.p.buffers.put(value) }
		}
		r.p.budget.decided(r.session, f.reserved)
		if f.refused != nil {
			t.refuse(r.p, f.refused)
			continue
		}
		r.p.submit(t)
	}
}

// push appends a slot.
func (r *reader) push(s slot) { r.slots.push(s, len(r.chunks.open) > 0) }

// abandon ends the messages of chunks that are not decided.
func (r *reader) abandon() {
	for _, f := range r.chunks.open {
		f.drop(r.chunks.memory)
		f.task.skipped, f.task.lease.bytes = true, f.reserved
		r.p.budget.decided(r.session, f.reserved)
		f.task.end(r.p)
	}
	r.chunks.open = nil
	r.openMessages()
	r.p.budget.settled(r.session)
}

// past reads behind the end that the source has fixed, until the messages of chunks that
// began before it are decided. This run leaves all other records behind the end alone.
func (r *reader) past(ctx context.Context) {
	source, ok := r.part.(Past)
	r.beyond, r.chunks.ending = true, true
	for ok && len(r.chunks.open) > 0 {
		if err := r.fetch(ctx, source.FetchPast); err != nil {
			if !errors.Is(err, io.EOF) {
				r.err = err
			}
			return
		}
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
