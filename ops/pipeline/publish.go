package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"
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

// publish sends the records that the results of t publish.
func (c *collector) publish(ctx context.Context, t *task) error {
	for i := range t.results {
		r := t.results[i].Publish
		if r == nil {
			continue
		}
		t.results[i].Publish = nil
		bytes, value, points, total := r.Bytes(), int64(len(r.Value)), int64(r.Points), c.p.statsOf(c.topic)
		t.bytes -= bytes
		c.outbox.sent(bytes)
		err := c.p.cfg.Publisher.Send(ctx, r, func() {
			c.src.Published(value, points)
			total.published.Add(1)
			total.publishedBytes.Add(value)
			c.p.budget.hold(-c.outbox.acked(bytes))
			c.outbox.done()
		})
		if err != nil {
			c.p.budget.hold(-t.bytes) // the rest of the task, which is in no batch
			return c.notPublished(t.msg.Offset, err)
		}
	}
	return nil
}

// published returns when every record that was sent is acknowledged, or with an
// error when the Publisher has failed or ctx ends.
func (c *collector) published(ctx context.Context) error {
	empty := c.outbox.wait()
	if empty == nil {
		return nil
	}
	select {
	case <-empty:
		return nil
	case <-c.p.cfg.Publisher.Done():
		return c.notPublished(c.batch.Start, c.p.cfg.Publisher.Err())
	case <-ctx.Done():
		c.p.cfg.Log.Warn("the partition is given up before brokers acknowledged its published records; "+
			"its next owner publishes again from here", "topic", c.topic, "partition", c.id, "offset", c.batch.Start)
		return c.notPublished(c.batch.Start, context.Cause(ctx))
	}
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
