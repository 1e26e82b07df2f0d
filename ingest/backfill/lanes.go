package backfill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// Shard selects the lanes whose number modulo Of is Index. The zero value selects all.
type Shard struct{ Index, Of int32 }

// UnmarshalText reads I/N, with 0 <= I < N.
func (s *Shard) UnmarshalText(text []byte) error {
	index, of, ok := strings.Cut(string(text), "/")
	i, err := strconv.ParseInt(index, 10, 32)
	n, err2 := strconv.ParseInt(of, 10, 32)
	if !ok || err != nil || err2 != nil || i < 0 || n < 1 || i >= n {
		return fmt.Errorf("shard %q: want I/N with I from 0 to N-1", text)
	}
	s.Index, s.Of = int32(i), int32(n)
	return nil
}

// String returns I/N; "" for all lanes.
func (s Shard) String() string {
	if s.Of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Of)
}

// has tells whether a lane belongs to the shard.
func (s Shard) has(lane int32) bool { return s.Of == 0 || lane%s.Of == s.Index }

// Output tells how far a partition has come.
type Output interface {
	// Reached tells whether all offsets before end are committed and published.
	Reached(ctx context.Context, topic string, id int32, end int64) (bool, error)
	// Newest returns the newest manifest of a partition; nil: there is none.
	Newest(ctx context.Context, topic string, id int32) (*record.Manifest, error)
}

// DefaultPatience is how long a lane of another process may stand still before this one
// works on it, too.
const DefaultPatience = 30 * time.Second

// Lanes hands out the lanes of a plan to one process. Lanes of a shard come in the order
// of their numbers, all lanes of a plan in an order that differs between processes. A
// lane on which another process commits is put back: it is tried last, and only after it
// has stood still for Patience, so that the lane of a dead process is taken over and that
// of a living one is left alone. Any goroutine may call the methods.
type Lanes struct {
	// Patience is set before Run; 0: DefaultPatience.
	Patience time.Duration

	plan   *record.Plan
	output Output
	fresh  int // lanes before this index of queue were handed out

	mu      sync.Mutex
	queue   []*lane
	back    []*lane // put back, in no order
	counts  LaneCounts
	stopped []StoppedLane
	looking int   // lanes of back that a goroutine looks at
	fault   error // ends Run
	cancel  context.CancelFunc
}

// lane is what this process knows about a lane.
type lane struct {
	number int32
	items  int64
	end    int64     // end of its newest manifest when it was looked at last
	moved  time.Time // when end was seen to change

	passing bool // it is passed over, once, if another process seems to work on it
}

// LaneCounts counts the lanes of this process's shard, and their items.
type LaneCounts struct {
	Lanes, Done, Stopped int
	Items, DoneItems     int64 // DoneItems are those of lanes that are done
}

// StoppedLane is a lane that this process gave up.
type StoppedLane struct {
	Lane int32
	Err  error
}

// NewLanes returns the lanes of a shard. order is the seed of their order where the shard
// is the whole plan.
func NewLanes(plan *record.Plan, shard Shard, output Output, order uint64) *Lanes {
	l := &Lanes{plan: plan, output: output}
	for i := range plan.Segments {
		s := &plan.Segments[i]
		for k, n := range s.Numbers {
			if shard.has(n) {
				l.queue = append(l.queue, &lane{number: n, items: s.Items[k], end: -1})
				l.counts.Lanes++
				l.counts.Items += s.Items[k]
			}
		}
	}
	if shard.Of == 0 {
		rng := rand.New(rand.NewPCG(order, 1))
		rng.Shuffle(len(l.queue), func(i, k int) { l.queue[i], l.queue[k] = l.queue[k], l.queue[i] })
		for _, each := range l.queue {
			each.passing = true
		}
	} else {
		slices.SortFunc(l.queue, func(a, b *lane) int { return cmp.Compare(a.number, b.number) })
	}
	return l
}

// Counts returns the counts now.
func (l *Lanes) Counts() LaneCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Stopped returns the lanes that were given up, in the order in which they were.
func (l *Lanes) Stopped() []StoppedLane {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]StoppedLane{}, l.stopped...)
}

// Run calls work for one lane after the other, for as many as jobs at a time, until every
// lane is done or given up, or ctx ends. work returns nil when it has read its lane to the
// end or ctx has ended. A lane whose work fails for its source is given up; any other
// error ends Run, which returns it.
func (l *Lanes) Run(ctx context.Context, jobs int, work func(ctx context.Context, lane int32) error) error {
	ctx, l.cancel = context.WithCancel(ctx)
	defer l.cancel()
	var wg sync.WaitGroup
	for range max(1, min(jobs, len(l.queue))) {
		wg.Go(func() {
			for {
				n := l.next(ctx)
				if n == nil {
					return
				}
				l.worked(ctx, n, work(ctx, n.number))
			}
		})
	}
	wg.Wait()
	return l.fault
}

// fail ends Run with err, unless that only says that ctx has ended.
func (l *Lanes) fail(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		l.fault = err
	}
	l.cancel()
}

// next returns a lane to work on; nil: there is none for the caller.
func (l *Lanes) next(ctx context.Context) *lane {
	for ctx.Err() == nil {
		n := l.take()
		if n == nil {
			return l.again(ctx)
		}
		done, err := l.output.Reached(ctx, l.plan.Name, n.number, n.items)
		switch {
		case err != nil:
			l.fail(ctx, fmt.Errorf("lane %d of plan %s: %w", n.number, l.plan.Name, err))
			return nil
		case done:
			l.done(n)
			continue
		case n.passing && l.lively(ctx, n):
			n.passing = false
			l.mu.Lock()
			l.queue = append(l.queue, n) // behind the lanes that nobody seems to work on
			l.mu.Unlock()
			continue
		}
		return n
	}
	return nil
}

// take returns the next lane of the queue; nil: it is empty.
func (l *Lanes) take() *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fresh == len(l.queue) {
		return nil
	}
	n := l.queue[l.fresh]
	l.queue[l.fresh] = nil
	l.fresh++
	return n
}

// lively tells whether a lane was committed to just now.
func (l *Lanes) lively(ctx context.Context, n *lane) bool {
	m, err := l.output.Newest(ctx, l.plan.Name, n.number)
	return err == nil && m != nil && time.Since(m.Created) < l.patience()
}

func (l *Lanes) patience() time.Duration {
	if l.Patience > 0 {
		return l.Patience
	}
	return DefaultPatience
}

// again waits for a lane that was put back: until it is done, or has stood still for too
// long. nil: there is none.
func (l *Lanes) again(ctx context.Context) *lane {
	for first := true; ; first = false {
		if !first {
			timer := time.NewTimer(l.patience()/8 + time.Millisecond)
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil
			case <-timer.C:
			}
		}
		n, left, err := l.look(ctx)
		if err != nil {
			l.fail(ctx, err)
			return nil
		}
		if n != nil || !left {
			return n
		}
	}
}

// look looks at the lanes that were put back. It returns one that has stood still, and
// whether others are left.
func (l *Lanes) look(ctx context.Context) (ready *lane, left bool, err error) {
	l.mu.Lock()
	waiting := l.back
	l.back = nil // nobody else looks at these meanwhile
	l.looking += len(waiting)
	l.mu.Unlock()
	var keep []*lane
	for _, n := range waiting {
		if ready != nil || err != nil || ctx.Err() != nil {
			keep = append(keep, n)
			continue
		}
		var done bool
		done, err = l.output.Reached(ctx, l.plan.Name, n.number, n.items)
		switch {
		case err != nil:
			keep = append(keep, n)
			err = fmt.Errorf("lane %d of plan %s: %w", n.number, l.plan.Name, err)
		case done:
			l.done(n)
		case l.still(ctx, n):
			ready = n
		default:
			keep = append(keep, n)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.back = append(l.back, keep...)
	l.looking -= len(waiting)
	return ready, len(l.back)+l.looking > 0, err
}

// still tells whether a lane has stood still for longer than Patience.
func (l *Lanes) still(ctx context.Context, n *lane) bool {
	m, err := l.output.Newest(ctx, l.plan.Name, n.number)
	if err == nil && m != nil && m.End != n.end {
		n.end, n.moved = m.End, time.Now()
	}
	return time.Since(n.moved) >= l.patience()
}

func (l *Lanes) done(n *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Done++
	l.counts.DoneItems += n.items
}

// worked takes a lane back with the error of its work.
func (l *Lanes) worked(ctx context.Context, n *lane, err error) {
	var changed *SourceChangedError
	var unreadable *SourceError
	var busy *BusyError
	switch {
	case errors.As(err, &busy):
		n.moved, n.end = time.Now(), -1
		l.mu.Lock()
		l.back = append(l.back, n)
		l.mu.Unlock()
	case errors.As(err, &changed), errors.As(err, &unreadable):
		l.mu.Lock()
		l.counts.Stopped++
		l.stopped = append(l.stopped, StoppedLane{n.number, err})
		l.mu.Unlock()
	case err != nil:
		l.fail(ctx, err)
	case ctx.Err() == nil: // read to its end
		l.done(n)
	default: // interrupted, perhaps behind the last commit
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if done, err := l.output.Reached(ctx, l.plan.Name, n.number, n.items); err == nil && done {
			l.done(n)
		}
	}
}

var _ Output = (*sinks.Output)(nil)
