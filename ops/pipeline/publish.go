package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"entropipe/schemas"
)

// outbox counts the records that a session has sent and brokers have not
// acknowledged. Their memory counts as held until the acknowledgement or the end
// of the session. Any goroutine may call the methods.
type outbox struct {
	mu        sync.Mutex
	records   int64
	bytes     int64
	abandoned bool
	empty     chan struct{} // made by wait, closed when records becomes 0; nil if nothing waits
}

// sent counts a record of that many bytes.
func (o *outbox) sent(bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.records++
	o.bytes += bytes
}

// acked returns the bytes of an acknowledged record to give back to the budget: 0
// after abandon, which has returned them already. done follows it.
func (o *outbox) acked(bytes int64) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.abandoned {
		return 0
	}
	o.bytes -= bytes
	return bytes
}

// done counts a record as acknowledged, and closes wait's channel after the last.
func (o *outbox) done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.abandoned {
		return
	}
	o.records--
	if o.records == 0 && o.empty != nil {
		close(o.empty)
		o.empty = nil
	}
}

// abandon stops counting, and returns the bytes of all unacknowledged records.
func (o *outbox) abandon() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	bytes := o.bytes
	o.abandoned, o.records, o.bytes = true, 0, 0
	return bytes
}

// wait returns a channel that is closed when every record is acknowledged, or nil
// if every record is already.
func (o *outbox) wait() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.records == 0 {
		return nil
	}
	if o.empty == nil {
		o.empty = make(chan struct{})
	}
	return o.empty
}

// publish sends the records that the results of t publish, which are survivors and what was
// found, and the dead letter of t.
func (c *collector) publish(ctx context.Context, t *task) error {
	total := c.p.statsOf(c.topic)
	for i := range t.results {
		r := &t.results[i]
		err := c.send(ctx, t, &r.Publish, c.p.cfg.Publisher, func(bytes, points int64) {
			c.src.Published(bytes, points)
			total.published.Add(1)
			total.publishedBytes.Add(bytes)
		})
		if err == nil {
			err = c.send(ctx, t, &r.Found, c.p.cfg.Results, func(bytes, _ int64) {
				c.src.PublishedResults(bytes)
				total.found.Add(1)
				total.foundBytes.Add(bytes)
			})
		}
		if err != nil {
			c.p.budget.hold(-t.bytes) // the rest of the task, which is in no batch
			return c.notPublished(t.msg.Offset, err)
		}
	}
	err := c.send(ctx, t, &t.letter, c.p.cfg.Letters, func(bytes, _ int64) {
		c.src.DeadLetter(bytes)
		total.letters.Add(1)
		total.letterBytes.Add(bytes)
	})
	if err != nil {
		c.p.budget.hold(-t.bytes)
		return c.notPublished(t.msg.Offset, err)
	}
	return nil
}

// send takes a record of t, if there is one, and sends it to a topic. count is called, from
// any goroutine, when the record is acknowledged.
func (c *collector) send(ctx context.Context, t *task, from **schemas.Record, to Publisher,
	count func(bytes, points int64)) error {
	r := *from
	if r == nil {
		return nil
	}
	*from = nil
	bytes, value, points := r.Bytes(), int64(len(r.Value)), int64(r.Points)
	t.bytes -= bytes
	c.outbox.sent(bytes)
	return to.Send(ctx, r, func() {
		count(value, points)
		c.p.budget.hold(-c.outbox.acked(bytes))
		c.outbox.done()
	})
}

// published returns when every record that was sent is acknowledged, or with an
// error when a Publisher has failed or ctx ends.
func (c *collector) published(ctx context.Context) error {
	empty := c.outbox.wait()
	if empty == nil {
		return nil
	}
	select {
	case <-empty:
		return nil
	case <-failed(c.p.cfg.Publisher):
		return c.notPublished(c.batch.Start, c.p.cfg.Publisher.Err())
	case <-failed(c.p.cfg.Results):
		return c.notPublished(c.batch.Start, c.p.cfg.Results.Err())
	case <-failed(c.p.cfg.Letters):
		return c.notPublished(c.batch.Start, c.p.cfg.Letters.Err())
	case <-ctx.Done():
		c.p.cfg.Log.Warn("the partition is given up before brokers acknowledged its published records; "+
			"its next owner publishes again from here", "topic", c.topic, "partition", c.id, "offset", c.batch.Start)
		return c.notPublished(c.batch.Start, context.Cause(ctx))
	}
}

// failed returns the channel that is closed when p has failed, or nil for no Publisher.
func failed(p Publisher) <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.Done()
}

func (c *collector) notPublished(offset int64, err error) error {
	return fmt.Errorf("%s/%d@%d: publish: %w", c.topic, c.id, offset, err)
}

// drainTime bounds the wait of a session that must end for acknowledgements of
// its published records.
const drainTime = 10 * time.Second

// drain returns a context that ends drainTime after ctx, or when end is called.
func drain(ctx context.Context) (draining context.Context, end func()) {
	draining, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(drainTime, cancel)
		context.AfterFunc(draining, func() { t.Stop() })
	})
	return draining, func() { stop(); cancel() }
}
