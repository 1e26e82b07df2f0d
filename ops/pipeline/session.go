package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"entropipe/ops/metrics"
	"entropipe/schemas"
)

// task is one record on its way through a worker. The worker fills the second
// half and closes done.
type task struct {
	msg      schemas.Message
	s        *session
	lease    *lease // nil: the message's own task has it
	tokens   bool   // of the branch of sequences
	from, to int    // rows, of a part; to 0: the whole message

	rows    int // of a large message: the collector has it read in parts, and then ends the lease
	each    int // rows of a part
	results []schemas.Result
	rejects []schemas.Reject
	id      schemas.RecordID
	bytes   int64 // memory of results and rejects
	skipped bool  // the session ended before the work began
	done    chan struct{}
}

// lease counts the records of one fetch that are still read. The last one
// hands the memory back to the source.
type lease struct {
	s       *session
	records atomic.Int64
	bytes   int64
	release func()
}

func (l *lease) done(b *budget) {
	if l.records.Add(-1) > 0 {
		return
	}
	if l.release != nil {
		l.release()
	}
	l.s.leases.Add(-1)
	b.fetch(-l.bytes)
}

// slot is a place in a partition's order: a task, or nil for offsets that hold
// no data. next is the offset after it.
type slot struct {
	task *task
	next int64
}

// session processes one partition from where the output says, until it is
// revoked, ends or fails.
type session struct {
	p     *Pipeline
	topic string
	id    int32
	part  Partition
	src   *metrics.Source

	ctx      context.Context // ends when the partition is revoked
	retry    *retry
	slots    chan slot
	rollNow  chan struct{} // memory is short: commit what there is
	stopped  atomic.Bool   // tasks that have not begun are skipped
	leases   atomic.Int64  // fetches that are still read
	buffered atomic.Int64  // bytes in batch
	logEnd   atomic.Int64  // the partition's end when last fetched
	durable  atomic.Int64  // everything before it is committed
	newest   atomic.Int64  // Kafka timestamp of the last committed record, of the first one read before that, Unix ns; 0: none

	outbox   outbox
	batch    schemas.Batch
	staged   tally   // of parts of the batch that the output has
	times    []int64 // SentAt of the batch's records
	opened   time.Time
	dropping bool // a skipped task was met: what follows does not count
}

// session runs one session to its end. nil: ctx ended and all is committed.
func (p *Pipeline) session(ctx context.Context, topic string, id int32, part Partition, again *retry) error {
	pos, err := p.cfg.Output.Resume(ctx, topic, id)
	again.resumed(err)
	if err == nil {
		pos.TopicID, err = part.Check(ctx, pos)
	}
	if err != nil {
		return err
	}
	s := &session{p: p, topic: topic, id: id, part: part, ctx: ctx, retry: again, src: p.cfg.Metrics.ForPartition(topic, id),
		slots: make(chan slot, 1024), rollNow: make(chan struct{}, 1)}
	s.logEnd.Store(-1)
	s.durable.Store(pos.Next)
	s.batch = schemas.Batch{Topic: topic, Partition: id, Start: pos.Next, End: pos.Next, Last: pos.Last, TopicID: pos.TopicID}
	p.mu.Lock()
	p.sessions[s] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.sessions, s)
		p.mu.Unlock()
	}()
	return s.run(ctx)
}

func (s *session) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { s.stopped.Store(true) })()
	draining, end := drain(ctx)
	defer end()
	var readErr error
	go func() {
		defer close(s.slots) // after readErr is set: the collector reads it then
		readErr = s.read(ctx, s.batch.Start)
	}()
	if err := s.collect(draining); err != nil {
		cancel()
		s.discard()
		return err
	}
	if errors.Is(readErr, context.Canceled) {
		return nil
	}
	return readErr
}

// read fetches records and hands each to a worker, keeping its slot.
func (s *session) read(ctx context.Context, from int64) error {
	b := &s.p.budget
	idle := func() bool { return s.leases.Load() == 0 }
	var expected, each int64 // bytes of the last fetch that brought records, and of one of these
	atEnd := false           // the last fetch brought none
	for {
		size := s.p.fetchSize(atEnd)
		if atEnd {
			expected = each
		}
		// A record may be larger than what is asked for, and the next one is likely
		// to be too. More than a quarter is not reserved, or it could be waited for
		// as long as others have something.
		reserved := max(size, min(expected, s.p.cfg.Memory/4))
		if err := b.reserve(ctx, reserved, idle); err != nil {
			return err
		}
		f, err := s.part.Fetch(ctx, from, int32(size))
		if err != nil {
			b.fetch(-reserved)
			return err
		}
		b.fetch(f.Bytes - reserved)
		if n := int64(len(f.Messages)); n > 0 {
			expected, each = f.Bytes, f.Bytes/n
		}
		atEnd = len(f.Messages) == 0
		s.logEnd.Store(f.End)
		s.src.Fetched(&f)
		if len(f.Messages) > 0 {
			s.newest.CompareAndSwap(0, f.Messages[0].SentAt())
		}
		s.lag()
		s.submit(&f)
		from = f.Next
	}
}

// lag reports how far the commits are behind. It is called for every fetch, so
// that a partition whose commits are stuck is seen to fall behind.
func (s *session) lag() {
	var newest time.Time
	if ns := s.newest.Load(); ns != 0 {
		newest = time.Unix(0, ns)
	}
	s.src.Lag(max(s.logEnd.Load()-s.durable.Load(), 0), newest)
}

// submit gives every record of f a slot and a worker. It blocks while the
// workers are behind.
func (s *session) submit(f *schemas.Fetched) {
	l := &lease{s: s, bytes: f.Bytes, release: f.Release}
	s.leases.Add(1)
	l.records.Store(int64(len(f.Messages)) + 1) // one for ourselves
	defer l.done(&s.p.budget)
	for _, m := range f.Messages {
		t := &task{msg: m, s: s, lease: l, done: make(chan struct{})}
		t.tokens = s.p.cfg.NewTokens != nil && schemas.IsTokens(&m)
		s.slots <- slot{t, m.Offset + 1}
		s.p.submit(t)
	}
	last := f.From
	if n := len(f.Messages); n > 0 {
		last = f.Messages[n-1].Offset + 1
	}
	if f.Next > last {
		s.slots <- slot{nil, f.Next}
	}
}

// collect takes the slots in order, fills the batch and commits it when it is
// due. It returns after the last slot, with everything committed. ctx bounds the
// wait for what is published.
func (s *session) collect(ctx context.Context) error {
	age := time.NewTimer(time.Hour)
	age.Stop()
	defer age.Stop()
	for {
		select {
		case sl, open := <-s.slots:
			if !open {
				return s.commit(ctx)
			}
			if err := s.add(ctx, sl); err != nil {
				return err
			}
			if len(s.times) == 1 && s.p.cfg.Roll.Age > 0 {
				age.Reset(time.Until(s.opened.Add(s.p.cfg.Roll.Age)))
			}
			if !s.full() {
				continue
			}
		case <-age.C:
			if !s.due() {
				continue // set for a batch that has been committed since
			}
		case <-s.rollNow:
			if len(s.batch.Results)+len(s.batch.Rejects) == 0 {
				continue
			}
		}
		age.Stop()
		if err := s.commit(ctx); err != nil {
			return err
		}
	}
}

// add appends what came of one slot to the batch, and sends what is to be
// published of it.
func (s *session) add(ctx context.Context, sl slot) error {
	t := sl.task
	if t != nil {
		<-t.done
		s.dropping = s.dropping || t.skipped
	}
	if s.dropping {
		if t != nil {
			s.p.budget.hold(-t.bytes)
			if t.rows > 0 {
				t.lease.done(&s.p.budget)
			}
		}
		return nil
	}
	if t != nil && t.rows > 0 {
		return s.large(ctx, t)
	}
	b := &s.batch
	if t != nil {
		if err := s.publish(ctx, t); err != nil {
			return err
		}
		if len(s.times) == 0 {
			s.opened = time.Now()
		}
		s.times = append(s.times, t.msg.SentAt())
		b.Results = append(b.Results, t.results...)
		b.Rejects = append(b.Rejects, t.rejects...)
		b.Bytes += int64(len(t.msg.Key) + len(t.msg.Value))
		b.Messages++
		id := t.id // a pointer into t would keep the record's memory
		b.Last = &id
		s.buffered.Add(t.bytes)
		s.p.budget.press()
	}
	b.End = sl.next
	b.Holes = b.End - b.Start - b.Messages
	return nil
}

func (s *session) full() bool {
	r := &s.p.cfg.Roll
	return s.batch.Bytes >= r.Bytes || s.batch.Messages >= r.Records || s.due()
}

func (s *session) due() bool {
	r := &s.p.cfg.Roll
	return len(s.times) > 0 && r.Age > 0 && time.Since(s.opened) >= r.Age
}

// commit makes the batch durable and begins the next. A batch that a revoked
// partition leaves behind is committed all the same, so ctx only lends values.
func (s *session) commit(ctx context.Context) error {
	b := &s.batch
	if b.End == b.Start {
		return nil
	}
	if err := s.published(ctx); err != nil {
		return err
	}
	start := time.Now()
	done, err := s.write(context.WithoutCancel(ctx))
	if errors.Is(err, schemas.ErrLost) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%s/%d@%d: commit: %w", s.topic, s.id, b.Start, err)
	}
	s.account(done, time.Since(start))
	s.part.Committed(context.WithoutCancel(ctx), b.End)
	s.p.budget.hold(-s.buffered.Swap(0))
	s.p.budget.press()
	s.p.cfg.Metrics.Memory(s.p.budget.used(), s.p.cfg.Memory)
	clear(b.Results)
	clear(b.Rejects)
	*b = schemas.Batch{Topic: b.Topic, Partition: b.Partition, Start: b.End, End: b.End, Last: b.Last, TopicID: b.TopicID, Results: b.Results[:0], Rejects: b.Rejects[:0]}
	s.times = s.times[:0]
	return nil
}

// account counts a commit.
func (s *session) account(done schemas.Committed, took time.Duration) {
	c, b, now := s.p.statsOf(s.topic), &s.batch, time.Now()
	c.firstCommit.CompareAndSwap(0, now.UnixNano())
	c.batches.Add(1)
	c.messages.Add(b.Messages)
	c.bytesIn.Add(b.Bytes)
	s.src.Sequences(s.staged.sequences, s.staged.tokens)
	all := s.staged
	all.add(b)
	c.points.Add(all.points)
	c.sequences.Add(all.sequences)
	c.tokens.Add(all.tokens)
	c.frames.Add(all.frames)
	c.rejects.Add(all.rejects)
	s.staged = tally{}
	s.p.warnOfRejects(c, b)
	for _, t := range done.Tables {
		c.rows.Add(t.Rows)
		c.fileBytes.Add(t.Bytes)
	}
	var last time.Time
	for _, ns := range s.times {
		if ns == 0 {
			continue
		}
		last = time.Unix(0, ns)
		s.src.Latency(now.Sub(last))
		c.latency.Add(now.Sub(last))
	}
	s.src.Committed(b, done, took)
	s.durable.Store(b.End)
	if !last.IsZero() {
		s.newest.Store(last.UnixNano())
	}
	s.lag()
	s.p.cfg.Log.Debug("committed", "topic", s.topic, "partition", s.id, "start", b.Start, "end", b.End, "results", len(b.Results), "rejects", len(b.Rejects), "took", took)
}

// discard gives the memory of everything under way back, after a commit that
// failed or was lost.
func (s *session) discard() {
	s.dropping = true
	for sl := range s.slots {
		s.add(context.Background(), sl) // nothing is sent any more
	}
	s.p.budget.hold(-s.buffered.Swap(0) - s.outbox.abandon())
}
