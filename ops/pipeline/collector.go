package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"entropipe/schemas"
)

// collector takes the slots of one session in order, fills a batch with their
// results and commits it when it is due. Its goroutine, that of
// Pipeline.Partition, alone touches the fields, but for the two that
// Pipeline.relieve uses from any goroutine, and the outbox, which has a lock.
type collector struct {
	*session
	ctx   context.Context // ends when the partition is revoked; bounds the wait between two tries of a commit
	retry *retry

	rollNow  chan struct{} // capacity 1, sent by Pipeline.relieve: commit what the batch holds
	buffered atomic.Int64  // bytes of results and rejects in batch; read by Pipeline.relieve

	outbox   outbox
	batch    schemas.Batch
	staged   tally            // rows of the batch that the output has staged
	refused  map[string]int64 // rejects among them, by reason
	times    []int64          // SentAt of the batch's records
	since    time.Time        // when the batch's first record entered it
	resumed  bool             // the session has not committed yet
	dropping bool             // a skipped task was met: no later slot counts
	head     slot             // the slot that is waited for, if waiting
	waiting  bool
	chunks   ledger
}

// newCollector returns a collector whose first batch starts at pos.
func newCollector(ctx context.Context, s *session, pos schemas.Position, again *retry) *collector {
	return &collector{session: s, ctx: ctx, retry: again, rollNow: make(chan struct{}, 1), resumed: true,
		chunks: newLedger(s.p.cfg.Chunks, pos.Chunks),
		batch: schemas.Batch{Topic: s.topic, Partition: s.id, Start: pos.Next, End: pos.Next,
			Last: pos.Last, TopicID: pos.TopicID}}
}

// run returns after the last slot, with everything committed. ctx bounds the wait
// for acknowledgements of published records.
func (c *collector) run(ctx context.Context) error {
	age := time.NewTimer(time.Hour)
	age.Stop()
	defer age.Stop()
	for {
		some, done := c.slots.some, (chan struct{})(nil)
		if c.waiting {
			some, done = nil, c.head.task.done
		}
		select {
		case <-some:
			ended, err := c.take(ctx)
			if ended || err != nil {
				return err
			}
			if c.waiting {
				continue
			}
		case <-done:
			if err := c.proceed(ctx); err != nil {
				return err
			}
		case <-age.C:
			if !c.due() {
				continue // the timer was set for a batch that is committed
			}
			if err := c.commit(ctx); err != nil {
				return err
			}
			continue
		case <-c.rollNow:
			if len(c.batch.Results)+len(c.batch.Rejects) == 0 {
				continue
			}
			age.Stop()
			if err := c.commit(ctx); err != nil {
				return err
			}
			continue
		}
		if len(c.times) == 1 && c.age() > 0 {
			age.Reset(time.Until(c.since.Add(c.age())))
		}
		if !c.full() {
			continue
		}
		age.Stop()
		if err := c.commit(ctx); err != nil {
			return err
		}
	}
}

// take takes the next slot, if there is one, and adds it unless its task is still worked on.
// ended: there was none, and everything is committed.
func (c *collector) take(ctx context.Context) (ended bool, err error) {
	sl, none, closed := c.slots.pop()
	switch {
	case none && closed:
		return true, c.commit(ctx)
	case none:
		return false, nil
	}
	c.slots.signal() // there may be more
	c.head, c.waiting = sl, sl.task != nil
	if c.waiting {
		select {
		case <-sl.task.done:
		default:
			c.stall()
			return false, nil
		}
	}
	return false, c.proceed(ctx)
}

// proceed adds the slot whose task is done.
func (c *collector) proceed(ctx context.Context) error {
	if c.stalled.Swap(false) {
		c.p.budget.settled(c.session)
	}
	sl := c.head
	c.head, c.waiting = slot{}, false
	return c.add(ctx, sl)
}

// stall says that the collector waits for a message of chunks, which only the reader can
// bring.
func (c *collector) stall() {
	if c.head.task.parts == nil || c.stalled.Load() {
		return
	}
	c.waits.Store(c.p.ticks())
	c.waitsAt.Store(c.head.next - 1) // not of the message, which the reader may still replace
	c.stalled.Store(true)
	c.p.budget.look()
}

// add appends the results of one slot to the batch, and sends their records that
// are to be published.
func (c *collector) add(ctx context.Context, sl slot) error {
	t := sl.task
	if t != nil {
		<-t.done
		c.dropping = c.dropping || t.skipped
	}
	if c.dropping {
		if t != nil {
			c.p.budget.hold(-t.bytes)
			if t.rows > 0 {
				t.lease.done()
			}
		}
		return nil
	}
	if t != nil && t.rows > 0 {
		return c.large(ctx, t)
	}
	b := &c.batch
	if t != nil {
		c.chunks.began(t.parts)
		if err := c.publish(ctx, t); err != nil {
			return err
		}
		if len(c.times) == 0 {
			c.opens()
		}
		c.times = append(c.times, c.sentAt(&t.msg))
		b.Results = append(b.Results, t.results...)
		b.Rejects = append(b.Rejects, t.rejects...)
		b.Originals = t.appendCopy(b.Originals)
		b.Bytes += int64(len(t.msg.Key) + len(t.msg.Value))
		b.Messages++
		c.batched.Store(b.Messages)
		id := t.id // a pointer into t would keep the record's memory
		b.Last = &id
		c.buffered.Add(t.bytes)
		c.p.budget.press()
	}
	if sl.chunk != nil {
		b.Chunks++
		b.Last = sl.chunk
	}
	b.End = sl.next
	b.Holes = b.End - b.Start - b.Messages - b.Chunks
	return nil
}

// full tells whether the batch has reached one of Roll's bounds.
func (c *collector) full() bool {
	r := &c.p.cfg.Roll
	return c.batch.Bytes >= r.Bytes || c.batch.Messages >= r.Records || c.due()
}

// due tells whether the batch has reached its age.
func (c *collector) due() bool {
	return len(c.times) > 0 && c.age() > 0 && time.Since(c.since) >= c.age()
}

// age returns the age at which the batch is committed; 0: none. The partition's last commit
// before the session is as old as the partition was without an owner: up to the session timeout
// of a static member. A whole Roll.Age after that would make the pause longer than twice
// Roll.Age, so the session's first batch waits for a quarter of it.
func (c *collector) age() time.Duration {
	if c.resumed {
		return c.p.cfg.Roll.Age / 4
	}
	return c.p.cfg.Roll.Age
}

// commit makes the batch durable and begins the next one. ctx bounds the wait for
// acknowledgements only: the batch of a revoked partition is committed, too.
func (c *collector) commit(ctx context.Context) error {
	b := &c.batch
	if b.End == b.Start {
		return nil
	}
	due := time.Now()
	if err := c.published(ctx); err != nil {
		return err
	}
	b.Chunked = c.chunks.at(b.End)
	start := time.Now()
	c.p.busy.commit.Add(1)
	done, err := c.write(context.WithoutCancel(ctx))
	c.p.busy.commit.Add(-1)
	if errors.Is(err, schemas.ErrLost) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%s/%d@%d: commit: %w", c.topic, c.id, b.Start, err)
	}
	if b.Messages > 0 {
		c.src.Batch(due.Sub(c.since), start.Sub(due))
	}
	c.account(done, time.Since(start))
	c.part.Committed(context.WithoutCancel(ctx), b.End)
	c.p.cfg.Tap.Committed(c.topic, c.id, b.End)
	c.p.budget.hold(-c.buffered.Swap(0))
	c.p.budget.press()
	clear(b.Results)
	clear(b.Rejects)
	c.p.recycle(b.Originals)
	*b = schemas.Batch{Topic: b.Topic, Partition: b.Partition, Start: b.End, End: b.End, Last: b.Last,
		TopicID: b.TopicID,
		Results: b.Results[:0], Rejects: b.Rejects[:0], Originals: b.Originals[:0]}
	c.times, c.resumed = c.times[:0], false
	c.opened.Store(0)
	c.batched.Store(0)
	return nil
}

// opens begins the age of the batch.
func (c *collector) opens() {
	c.since = time.Now()
	c.opened.Store(c.p.ticks())
}

// account adds the committed batch to the totals and metrics, and reports the lag.
func (c *collector) account(done schemas.Committed, took time.Duration) {
	total, b, now := c.p.statsOf(c.topic), &c.batch, time.Now()
	total.firstCommit.CompareAndSwap(0, c.p.ticks())
	total.batches.Add(1)
	total.messages.Add(b.Messages)
	total.bytesIn.Add(b.Bytes)
	c.src.Sequences(c.staged.sequences, c.staged.tokens)
	c.src.Rejected(c.refused)
	all := c.staged
	all.add(b)
	total.points.Add(all.points)
	total.sequences.Add(all.sequences)
	total.tokens.Add(all.tokens)
	total.frames.Add(all.frames)
	total.rejects.Add(all.rejects)
	c.staged, c.refused = tally{}, nil
	c.p.warnOfRejects(total, b)
	for _, t := range done.Tables {
		total.rows.Add(t.Rows)
		total.fileBytes.Add(t.Bytes)
	}
	total.filled(done.Tables)
	var last time.Time
	for _, ns := range c.times {
		if ns == 0 {
			continue
		}
		last = time.Unix(0, ns)
		c.src.Latency(now.Sub(last))
		total.latency.Add(now.Sub(last))
	}
	c.src.Committed(b, done, took)
	c.durable.Store(b.End)
	if !last.IsZero() {
		c.newest.Store(last.UnixNano())
	}
	c.lag()
	c.p.cfg.Log.Debug("committed", "topic", c.topic, "partition", c.id, "start", b.Start, "end", b.End,
		"results", len(b.Results), "rejects", len(b.Rejects), "took", took)
}

// discard gives back the memory of the batch and of every slot that the reader
// still sends, after an error. It returns when the reader has closed slots.
func (c *collector) discard() {
	c.dropping = true
	for {
		if c.waiting {
			c.proceed(context.Background()) // publishes nothing and cannot fail: the slot is dropped
		}
		sl, none, ended := c.slots.pop()
		if ended {
			break
		}
		if none {
			<-c.slots.some
			continue
		}
		c.head, c.waiting = sl, true
	}
	c.p.budget.hold(-c.buffered.Swap(0) - c.outbox.abandon())
}
