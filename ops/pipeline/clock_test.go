package pipeline

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"entropipe/schemas"
)

// sleepy is a log of which the last records come while the machine of the reader sleeps, or
// its clock jumps: between a fetch that finds nothing and its answer, and between fetches.
type sleepy struct {
	messages []schemas.Message
	first    int64 // so many are there from the begin
	jump     time.Duration
	answered bool // the jump comes before the answer, else after it
	polls    int  // empty fetches before the jump
	ends     bool // the rest never comes
	ctx      context.Context
	done     context.CancelFunc
}

func (l *sleepy) Check(context.Context, schemas.Position) (schemas.TopicID, error) {
	return schemas.TopicID{}, nil
}

func (l *sleepy) Committed(context.Context, int64) { l.done() }

func (l *sleepy) Fetch(ctx context.Context, from int64, _ int32) (schemas.Fetched, error) {
	there := l.first
	if l.polls < 0 && !l.ends {
		there = int64(len(l.messages))
	}
	if from < there {
		return schemas.Fetched{From: from, Next: there, End: there, Messages: l.messages[from:there]}, nil
	}
	wait := time.Second // the poll time
	if l.polls == 0 {
		wait = l.jump
		if !l.answered { // asked once more afterwards
			time.Sleep(wait)
			l.polls--
			return l.Fetch(ctx, from, 0)
		}
	}
	l.polls--
	select {
	case <-ctx.Done():
		return schemas.Fetched{}, ctx.Err()
	case <-time.After(wait):
		return schemas.Fetched{From: from, Next: from, End: there}, nil
	}
}

// Law: a message whose chunks come while the reader's machine is suspended, or its clock jumps
// by an hour, is whole: an answer from before the jump says nothing about the log after it, and
// the jump is no waiting. A message whose chunks never come is given up all the same.
func TestChunksSurviveAJumpOfTheClock(t *testing.T) {
	for _, polls := range []int{0, 1, 25} {
		for _, answered := range []bool{true, false} {
			for _, ends := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d polls, answered %t, ends %t", polls, answered, ends), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						l := &sleepy{first: 2, jump: time.Hour, answered: answered, polls: polls, ends: ends}
						whole := &schemas.Record{Value: []byte("abc")}
						for i, r := range schemas.ChunksOf(whole, 1, "00000000000000aa") {
							l.messages = append(l.messages, schemas.Message{Topic: "t", Offset: int64(i),
								Value: r.Value, Headers: r.Headers, Time: time.Unix(1, 0)})
						}
						l.ctx, l.done = context.WithCancel(t.Context())
						defer l.done()
						out := &memoryOutput{}
						p := newPipeline(out, sums, func(c *Config) { c.Roll = Roll{Bytes: 1 << 30, Records: 1} })
						defer p.Close()
						begin := time.Now()
						if err := p.Partition(l.ctx, "t", 0, l); err != nil {
							t.Fatal(err)
						}
						size := int64(3)
						if ends {
							size = 2
						}
						rows := chunkRows(t, out, size)
						if want := map[bool]string{true: schemas.ReasonIncomplete}[ends]; len(rows) != 1 ||
							rows[0].Reason != want {
							t.Errorf("rows %+v", rows)
						}
						if took := time.Since(begin); ends && took > time.Hour+2*defaultChunkAge {
							t.Errorf("given up after %v", took)
						}
					})
				})
			}
		}
	}
}

// Law: the time between two looks counts for no more than it may, in any order of times.
func TestPatienceIsNotSpentByAJump(t *testing.T) {
	at := time.Date(2026, 3, 29, 2, 0, 0, 0, time.UTC)
	var p waiting
	for i, c := range []struct{ step, want time.Duration }{
		{0, 0}, {time.Second, time.Second}, {time.Hour, 11 * time.Second}, {-2 * time.Hour, 11 * time.Second},
		{2*time.Hour + time.Second, 12 * time.Second}, {time.Second, 13 * time.Second},
	} {
		at = at.Add(c.step)
		if got := p.look(at, 10*time.Second); got != c.want {
			t.Errorf("look %d: %v, want %v", i, got, c.want)
		}
	}
}

// sleepyOutput is an output whose second commit takes an hour.
type sleepyOutput struct{ fullOutput }

func (o *sleepyOutput) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	if o.commits == 1 {
		time.Sleep(time.Hour)
	}
	return o.fullOutput.Commit(ctx, b)
}

// An output that cannot be written when a machine goes to sleep, and for some seconds after
// it wakes up, is waited for. Patience ends as ever where it cannot be written at all.
func TestOutputIsWaitedForAfterAJump(t *testing.T) {
	for _, heals := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			l, o := randomLog(5, 100), &sleepyOutput{fullOutput: fullOutput{full: true}}
			p := newPipeline(o, echo(0), func(c *Config) { c.RetryFor = 2 * time.Minute })
			defer p.Close()
			if heals {
				go func() { time.Sleep(time.Hour + 20*time.Second); o.set(false) }()
			}
			err := p.Partition(t.Context(), "t", 0, l)
			if heals != (err == nil) {
				t.Errorf("it heals: %t; %v", heals, err)
			}
			if heals {
				checkChain(t, &o.memoryOutput, l, l.end)
			}
		})
	}
}

// Batches that a clock closes, at other places in each run and with jumps of an hour between
// records, hold every record once, in order.
func TestBatchesAreClosedByAJumpingClock(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			l, o := randomLog(seed, 200), &memoryOutput{}
			jumps := &jumping{topicLog: l}
			p := newPipeline(o, echo(time.Millisecond), func(c *Config) {
				c.Roll = Roll{Bytes: 1 << 30, Records: 1 << 30, Age: time.Duration(1+seed) * time.Second}
			})
			defer p.Close()
			if err := p.Partition(t.Context(), "t", 0, jumps); err != nil {
				t.Fatal(err)
			}
			checkChain(t, o, l, l.end)
			if len(o.batches) < 2 {
				t.Errorf("seed %d: %d batches: the clock closed none", seed, len(o.batches))
			}
		})
	}
}

// jumping is a log between whose fetches a second passes, or an hour.
type jumping struct{ *topicLog }

func (l *jumping) Fetch(ctx context.Context, from int64, most int32) (schemas.Fetched, error) {
	if l.rng.IntN(10) == 0 {
		time.Sleep(time.Hour)
	} else {
		time.Sleep(time.Duration(l.rng.IntN(2000)) * time.Millisecond)
	}
	return l.topicLog.Fetch(ctx, from, most)
}

// Law: the first batch of a session is committed a quarter of Roll.Age after its first record,
// each later one after a whole Roll.Age. A partition whose owner went away without a word rests
// for up to a session timeout, so its next owner must not wait for a whole age again.
func TestASessionsFirstBatchIsYoung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, apart = 8 * time.Second, 100 * time.Millisecond
		l, o := randomLog(1, 600), &timedOutput{}
		l.perFetch = 1
		for offset := range l.end {
			l.data[offset] = 10
		}
		p := newPipeline(o, echo(0), func(c *Config) { c.Roll = Roll{Bytes: 1 << 30, Records: 1 << 30, Age: limit} })
		defer p.Close()
		for session := range 2 {
			o.times = nil
			ctx, cancel := context.WithTimeout(t.Context(), 4*limit)
			begin := time.Now()
			if err := p.Partition(ctx, "t", 0, &slowly{l, apart}); err != nil {
				t.Fatal(err)
			}
			cancel()
			if len(o.times) < 3 {
				t.Fatalf("session %d: commits at %v", session, o.times)
			}
			if first := o.times[0].Sub(begin); first < limit/4 || first > limit/4+2*apart {
				t.Errorf("session %d: the first commit comes after %v", session, first)
			}
			if next := o.times[1].Sub(o.times[0]); next < limit || next > limit+2*apart {
				t.Errorf("session %d: the second commit comes %v after the first", session, next)
			}
		}
	})
}

// timedOutput notes when batches are committed.
type timedOutput struct {
	memoryOutput
	times []time.Time
}

func (o *timedOutput) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	o.times = append(o.times, time.Now())
	return o.memoryOutput.Commit(ctx, b)
}

// slowly is a log with a fixed time before each fetch.
type slowly struct {
	*topicLog
	apart time.Duration
}

func (l *slowly) Fetch(ctx context.Context, from int64, most int32) (schemas.Fetched, error) {
	time.Sleep(l.apart)
	return l.topicLog.Fetch(ctx, from, most)
}
