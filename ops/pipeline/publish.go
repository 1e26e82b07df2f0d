package pipeline

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// outbox is what a session has sent and brokers have not acknowledged. Its
// memory is counted as held until they have, or the session ends.
type outbox struct {
	mu        sync.Mutex
	records   int64
	bytes     int64
	abandoned bool
	empty     chan struct{} // of whoever waits; closed when nothing is on its way
}

func (o *outbox) sent(bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.records++
	o.bytes += bytes
}

// acked returns how many bytes to give back, before done is called.
func (o *outbox) acked(bytes int64) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.abandoned {
		return 0
	}
	o.bytes -= bytes
	return bytes
}

// done counts a record that is acknowledged, and wakes who waits for the last.
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

// abandon forgets what is on its way, and returns its bytes.
func (o *outbox) abandon() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	bytes := o.bytes
	o.abandoned, o.records, o.bytes = true, 0, 0
	return bytes
}

// wait returns a channel that is closed when nothing is on its way, nil if
// nothing is.
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

// publish sends what the results of t have to publish.
func (s *session) publish(ctx context.Context, t *task) error {
	for i := range t.results {
		r := t.results[i].Publish
		if r == nil {
			continue
		}
		t.results[i].Publish = nil
		bytes, value, points, c := r.Bytes(), int64(len(r.Value)), int64(r.Points), s.p.statsOf(s.topic)
		t.bytes -= bytes
		s.outbox.sent(bytes)
		err := s.p.cfg.Publisher.Send(ctx, r, func() {
			s.src.Published(value, points)
			c.published.Add(1)
			c.publishedBytes.Add(value)
			s.p.budget.hold(-s.outbox.acked(bytes))
			s.outbox.done()
		})
		if err != nil {
			s.p.budget.hold(-t.bytes) // the rest of the task, which is in no batch
			return s.notPublished(t.msg.Offset, err)
		}
	}
	return nil
}

// published returns when everything that was sent is acknowledged.
func (s *session) published(ctx context.Context) error {
	empty := s.outbox.wait()
	if empty == nil {
		return nil
	}
	select {
	case <-empty:
		return nil
	case <-s.p.cfg.Publisher.Done():
		return s.notPublished(s.batch.Start, s.p.cfg.Publisher.Err())
	case <-ctx.Done():
		s.p.cfg.Log.Warn("the partition is given up before brokers have what was published of it; whoever has it next begins there",
			"topic", s.topic, "partition", s.id, "offset", s.batch.Start)
		return s.notPublished(s.batch.Start, context.Cause(ctx))
	}
}

func (s *session) notPublished(offset int64, err error) error {
	return fmt.Errorf("%s/%d@%d: publish: %w", s.topic, s.id, offset, err)
}

// drainTime is how long a session that was asked to end waits for brokers to
// take what it publishes.
const drainTime = 10 * time.Second

// drain returns a context that ends a while after ctx, or with end.
func drain(ctx context.Context) (draining context.Context, end func()) {
	draining, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(drainTime, cancel)
		context.AfterFunc(draining, func() { t.Stop() })
	})
	return draining, func() { stop(); cancel() }
}
