package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"entropipe/schemas"
)

// While an output cannot be written, for example because its disk is full, the
// pipeline retries. A failed commit is retried in its session: the batch is kept,
// and Resume says whether the output holds it already. A resumption, and rows of a
// large message that were staged before, cannot be retried there: a new session
// reads the records again.
//
// Meanwhile the partition's reader continues until the memory is full, and the
// process remains a member of its group.

// Pauses between two tries grow: a disk that is full for a moment costs little
// time, a disk that is full for hours costs little work.
const (
	firstPause = 100 * time.Millisecond
	mostPause  = 10 * time.Second

	outageEvery = time.Minute // between two log lines about the output, for all partitions together
)

// outage is the state of the output for all partitions. The zero value means that
// the output can be written. Any goroutine may call the methods.
type outage struct {
	mu      sync.Mutex
	waiting map[*retry]error // the last error of each retry that waits
	since   time.Time        // when the first of waiting began to wait
	logged  time.Time        // time of the last log line
	told    bool             // the log has a line about the present outage
}

// retry is the patience of one partition, or of one Question. It belongs to one
// goroutine.
type retry struct {
	p     *Pipeline
	since time.Time     // the first failure after the last success; zero if there is none
	tried waiting       // since then
	pause time.Duration // the last pause between two tries

	resuming bool // the first failure was a resumption's, so that a good resumption is a success
}

// Unavailable returns an error that says why the output cannot be written, if a
// partition waits for the output now, else nil.
func (p *Pipeline) Unavailable() error {
	p.outage.mu.Lock()
	defer p.outage.mu.Unlock()
	for _, err := range p.outage.waiting {
		return err
	}
	return nil
}

// again waits before the next try after err, and tells whether there is a next try.
// There is none if err is no *schemas.UnavailableError, when RetryFor has passed
// since the first failure, and when ctx ends.
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

// failed records err and tells whether another try is allowed.
func (r *retry) failed(err error) bool {
	now := time.Now()
	if passing := (*schemas.UnavailableError)(nil); !errors.As(err, &passing) {
		return false
	}
	if r.since.IsZero() {
		r.since = now
	}
	// A try may be a minute's wait for a network. An hour between two tries is no patience.
	if r.tried.look(now, max(r.p.cfg.RetryFor/4, 2*mostPause)) >= r.p.cfg.RetryFor {
		return false
	}
	r.p.cfg.Metrics.Failed("commit", "output_unavailable")
	r.p.outage.began(r, err, now)
	return true
}

// succeeded ends the wait after a try that succeeded.
func (r *retry) succeeded() {
	if r.since.IsZero() {
		return
	}
	r.since, r.tried, r.pause, r.resuming = time.Time{}, waiting{}, 0, false
	r.p.outage.recovered(r)
}

// resumed records the result of a resumption. A resumption writes little, so its
// success does not end a wait that a failed commit began.
func (r *retry) resumed(err error) {
	if err != nil && r.since.IsZero() {
		r.resuming = true
	}
	if err == nil && r.resuming {
		r.succeeded()
	}
}

// over ends the wait without a success.
func (r *retry) over() { r.p.outage.leave(r) }

// final returns err as the run reports it when there is no further try.
func (r *retry) final(err error) error {
	if passing := (*schemas.UnavailableError)(nil); r.since.IsZero() || r.p.cfg.RetryFor == 0 ||
		!errors.As(err, &passing) {
		return err
	}
	return fmt.Errorf("%w (retried for %v)", err, time.Since(r.since).Round(time.Second))
}

// began records that r waits because of err, and logs at most a line a minute.
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

// recovered records that the output was written for r. After the last of the
// retries that wait it logs the end of the outage, if the log has its beginning: a
// disk that is full again and again is not worth a line each time.
func (o *outage) recovered(r *retry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.remove(r) && o.told {
		r.p.cfg.Log.Info("the output can be written again", "after", time.Since(o.since).Round(time.Millisecond))
		o.told = false
	}
}

// leave records that r waits no more, though the output was not written for it.
func (o *outage) leave(r *retry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.remove(r) {
		o.told = false
	}
}

// remove removes r, and tells whether r was the last retry that waited. The caller
// holds the lock.
func (o *outage) remove(r *retry) (last bool) {
	if _, waited := o.waiting[r]; !waited {
		return false
	}
	delete(o.waiting, r)
	return len(o.waiting) == 0
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
		case pos.Next == b.End && sameRecord(pos.Last, b.Last): // an earlier try was committed in spite of its error
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

// Question asks the output about a partition, which another process may have. While
// the output cannot be written, it answers no, for at most Config.RetryFor. One
// goroutine at a time may use it.
type Question struct {
	r   retry
	ask func(ctx context.Context, topic string, id int32, end int64) (bool, error)
}

// Question returns a Question that calls ask.
func (p *Pipeline) Question(ask func(ctx context.Context, topic string, id int32, end int64) (bool, error)) *Question {
	return &Question{retry{p: p}, ask}
}

// Ask calls ask. If ask fails because the output cannot be written, Ask returns
// false and no error until Config.RetryFor has passed since the first such failure.
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
