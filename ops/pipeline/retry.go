package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"entropipe/schemas"
)

// An output that cannot be written for now, such as one on a full disk, is
// waited for, as brokers are. A commit that was refused is tried again where it
// stands: its batch is kept, and Resume says whether it is in the output already.
// What cannot be tried again there (a resumption, rows of a large message that
// were staged before) begins a new session, which reads the records again.
//
// Meanwhile the partition's reader goes on until the memory is full, and the
// process stays a member of its group.

// Pauses between two tries: a disk that is full for a moment costs little time, and
// one that is full for hours little work.
const (
	firstPause = 100 * time.Millisecond
	mostPause  = 10 * time.Second

	outageEvery = time.Minute // between two lines of the log about the output, of all partitions
)

// outage is what is wrong with the output, for all partitions. The zero value is
// ready: nothing is wrong.
type outage struct {
	mu      sync.Mutex
	waiting map[*retry]error // of the partitions that wait: why
	since   time.Time        // the first of them began to
	logged  time.Time        // the last line
	told    bool             // of this outage
}

// retry tries again for one partition, or for one question. It belongs to one
// goroutine.
type retry struct {
	p     *Pipeline
	since time.Time // of the first failure that no success has followed; zero: none
	pause time.Duration

	resuming bool // the first failure was that of a resumption, so that another one is a success
}

// Unavailable says why the output cannot be written, if some partition waits for it
// now; else nil.
func (p *Pipeline) Unavailable() error {
	p.outage.mu.Lock()
	defer p.outage.mu.Unlock()
	for _, err := range p.outage.waiting {
		return err
	}
	return nil
}

// again waits before the next try after err, and tells whether there is one: not
// after what does not pass, not when patience is over, and not when ctx ends.
func (r *retry) again(ctx context.Context, err error) bool {
	if !r.failed(err) {
		return false
	}
	r.pause = min(max(2*r.pause, firstPause), mostPause)
	t := time.NewTimer(r.pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// failed notes err and tells whether it may be tried again.
func (r *retry) failed(err error) bool {
	now := time.Now()
	if passing := (*schemas.UnavailableError)(nil); !errors.As(err, &passing) {
		return false
	}
	if r.since.IsZero() {
		r.since = now
	}
	if now.Sub(r.since) >= r.p.cfg.RetryFor {
		return false
	}
	r.p.cfg.Metrics.Failed("commit", "output_unavailable")
	r.p.outage.began(r, err, now)
	return true
}

// succeeded ends the wait, after a try that was good.
func (r *retry) succeeded() {
	if r.since.IsZero() {
		return
	}
	r.since, r.pause, r.resuming = time.Time{}, 0, false
	r.p.outage.ended(r, true)
}

// resumed notes how a resumption went. It writes little, so that a good one is no
// news of a commit that was refused.
func (r *retry) resumed(err error) {
	if err != nil && r.since.IsZero() {
		r.resuming = true
	}
	if err == nil && r.resuming {
		r.succeeded()
	}
}

// over ends the wait, good or not.
func (r *retry) over() { r.p.outage.ended(r, false) }

// final is err as the run reports it, where there is no further try.
func (r *retry) final(err error) error {
	if passing := (*schemas.UnavailableError)(nil); r.since.IsZero() || r.p.cfg.RetryFor == 0 || !errors.As(err, &passing) {
		return err
	}
	return fmt.Errorf("%w (tried again for %v)", err, time.Since(r.since).Round(time.Second))
}

// began notes that r waits, and logs at most a line a minute.
func (o *outage) began(r *retry, err error, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting == nil {
		o.waiting = map[*retry]error{}
	}
	if len(o.waiting) == 0 {
		o.since = now
	}
	o.waiting[r] = err
	if !o.logged.IsZero() && now.Sub(o.logged) < outageEvery {
		return
	}
	o.logged, o.told = now, true
	r.p.cfg.Log.Warn("the output cannot be written, trying again", "error", err, "partitions", len(o.waiting),
		"for", now.Sub(o.since).Round(time.Second), "gives_up_after", r.p.cfg.RetryFor)
}

// ended notes that r waits no more. good: the output was written.
func (o *outage) ended(r *retry, good bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, waited := o.waiting[r]; !waited {
		return
	}
	delete(o.waiting, r)
	if len(o.waiting) > 0 {
		return
	}
	if good && o.told { // a disk that is full again and again is no line each time
		r.p.cfg.Log.Info("the output can be written again", "after", time.Since(o.since).Round(time.Millisecond))
	}
	o.told = false
}

// write commits the batch, and tries again while the output cannot be written.
func (c *collector) write(ctx context.Context) (schemas.Committed, error) {
	out, b := c.p.cfg.Output, &c.batch
	done, err := out.Commit(ctx, b)
	held := done
	for err != nil && c.staged == (tally{}) && c.retry.again(c.ctx, err) {
		pos, failed := out.Resume(ctx, b.Topic, b.Partition)
		switch {
		case failed != nil:
			err = failed
		case pos.Next == b.Start:
			if done, err = out.Commit(ctx, b); done.Tables != nil {
				held = done
			}
		case pos.Next == b.End && sameRecord(pos.Last, b.Last): // an earlier try was made all the same
			done, err = held, nil
		default:
			err = schemas.ErrLost
		}
	}
	if err == nil || errors.Is(err, schemas.ErrLost) {
		c.retry.succeeded()
	}
	return done, err
}

func sameRecord(a, b *schemas.RecordID) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// Question asks the output about a partition that this process may not have, and
// takes "not now" for no answer while patience lasts. It may be called by one
// goroutine at a time.
type Question struct {
	r   retry
	ask func(ctx context.Context, topic string, id int32, end int64) (bool, error)
}

// Question returns ask with patience.
func (p *Pipeline) Question(ask func(ctx context.Context, topic string, id int32, end int64) (bool, error)) *Question {
	return &Question{retry{p: p}, ask}
}

// Ask is ask; but while the output cannot be written it says false.
func (q *Question) Ask(ctx context.Context, topic string, id int32, end int64) (bool, error) {
	yes, err := q.ask(ctx, topic, id, end)
	if err != nil && q.r.failed(err) {
		return false, nil
	}
	if err == nil {
		q.r.succeeded()
	}
	return yes, q.r.final(err)
}
