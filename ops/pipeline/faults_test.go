package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"entropipe/schemas"
)

var errBroken = errors.New("it is broken for once")

// trouble makes every third or so call of a source or an output take its time,
// and every twentieth fail. It is shared by partitions.
type trouble struct {
	mu     sync.Mutex
	rng    *rand.Rand
	failed int
}

// meet waits, and says whether the call fails.
func (d *trouble) meet(ctx context.Context) error {
	d.mu.Lock()
	wait, fails := time.Duration(0), d.rng.IntN(20) == 0
	if d.rng.IntN(3) == 0 {
		wait = time.Duration(d.rng.IntN(200)) * time.Millisecond
	}
	if fails {
		d.failed++
	}
	d.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return ctx.Err()
	}
	if fails {
		return errBroken
	}
	return nil
}

// troubledOutput is the outputs of many partitions. A commit that fails may have
// been made, and others may be faster.
type troubledOutput struct {
	trouble
	logs []*topicLog
	outs []memoryOutput
	look func()
}

func (o *troubledOutput) Resume(ctx context.Context, topic string, id int32) (schemas.Position, error) {
	if err := o.meet(ctx); err != nil {
		return schemas.Position{}, err
	}
	return o.outs[id].Resume(ctx, topic, id)
}

func (o *troubledOutput) Stage(ctx context.Context, b *schemas.Batch) error {
	return errors.New("no message is large")
}

func (o *troubledOutput) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	o.look()
	first, out := o.meet(ctx), &o.outs[b.Partition]
	if first != nil && b.Start%2 == 0 {
		return schemas.Committed{}, first
	}
	if first == nil && b.Start%5 == 0 && !b.Gap { // another's commit, of a part of it
		if rival := part0(b, o.logs[b.Partition]); rival != nil {
			out.Commit(ctx, rival)
			return schemas.Committed{}, schemas.ErrLost
		}
	}
	done, err := out.Commit(ctx, b)
	return done, errors.Join(err, first)
}

// part0 is what another writer commits of the beginning of b; nil: nothing.
func part0(b *schemas.Batch, l *topicLog) *schemas.Batch {
	c := *b
	c.End = (b.Start + b.End) / 2
	before := func(o int64) bool { return o < c.End }
	c.Results = slices.DeleteFunc(slices.Clone(b.Results), func(r schemas.Result) bool { return !before(r.Offset) })
	c.Rejects = slices.DeleteFunc(slices.Clone(b.Rejects), func(r schemas.Reject) bool { return !before(r.Offset) })
	c.Messages = int64(len(c.Results) + len(c.Rejects))
	if c.Holes = c.End - c.Start - c.Messages; c.Messages == 0 {
		return nil
	}
	for o := c.Start; o < c.End; o++ {
		if _, ok := l.data[o]; ok {
			c.Last = &schemas.RecordID{Offset: o}
		}
	}
	return &c
}

// troubledLog is a partition of a source that fails.
type troubledLog struct {
	*topicLog
	*trouble
}

func (l troubledLog) Check(ctx context.Context, pos schemas.Position) (schemas.TopicID, error) {
	if err := l.meet(ctx); err != nil {
		return pos.TopicID, err
	}
	return l.topicLog.Check(ctx, pos)
}

func (l troubledLog) Fetch(ctx context.Context, from int64, most int32) (schemas.Fetched, error) {
	if err := l.meet(ctx); err != nil {
		return schemas.Fetched{}, err
	}
	return l.topicLog.Fetch(ctx, from, most)
}

// Law: fifty partitions with little memory, whose source and output fail, take
// their time and lose races, and which are revoked at any moment, end: each
// record is in one commit, in order, no memory is kept, and whoever was only
// revoked has not failed.
func TestManyPartitionsInTrouble(t *testing.T) {
	const partitions, records, limit, size, workers = 50, 60, 4 << 20, 20_000, 3
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			o := &troubledOutput{outs: make([]memoryOutput, partitions), logs: make([]*topicLog, partitions)}
			o.rng = rand.New(rand.NewPCG(seed, 11))
			sized := func() Process {
				work := echo(3 * time.Millisecond)()
				return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
					results, rejects := work(m)
					for i := range results {
						results[i].Triangles = make([]int32, size/4)
					}
					return results, rejects
				}
			}
			p := newPipeline(o, sized, func(c *Config) {
				c.Memory, c.Workers, c.SkipGaps, c.Roll = limit, workers, true,
					Roll{Bytes: 1 << 40, Records: 17, Age: 3 * time.Second}
			})
			var peak atomic.Int64
			o.look = func() { peak.Store(max(peak.Load(), p.budget.used())) }
			var revoked atomic.Int64
			var wg sync.WaitGroup
			for id := range partitions {
				l := randomLog(seed*1000+uint64(id), records)
				if id%10 == 9 {
					l.logStart = 7
				}
				o.logs[id] = l
				rng := rand.New(rand.NewPCG(seed, uint64(id)))
				wg.Go(func() {
					for tries := 0; o.outs[id].end() < l.end; tries++ {
						ctx, cancel := context.WithTimeout(context.Background(),
							time.Duration(rng.IntN(20_000))*time.Millisecond)
						err := p.Partition(ctx, "t", int32(id), troubledLog{l, &o.trouble})
						if ctx.Err() != nil {
							revoked.Add(1)
						}
						cancel()
						if err != nil && !errors.Is(err, errBroken) || tries > 1000 {
							t.Errorf("seed %d, partition %d: after %d tries: %v", seed, id, tries, err)
							return
						}
					}
				})
			}
			wg.Wait()
			p.Close()
			for id, l := range o.logs {
				if out := &o.outs[id]; l.logStart > 0 && len(out.batches) > 0 && out.batches[0].Gap {
					out.base, out.batches = l.logStart, out.batches[1:]
				}
				checkChain(t, &o.outs[id], l, l.end)
				checkMemory(t, p, l)
			}
			// Of each partition nine records of a fetch, and what the workers have.
			if most := int64(limit + (9*partitions+5*workers)*(size+3600)); peak.Load() > most {
				t.Errorf("seed %d: peak %d bytes, want at most %d", seed, peak.Load(), most)
			}
			if o.failed < 50 || revoked.Load() < 5 {
				t.Errorf("seed %d: %d calls failed, %d revocations", seed, o.failed, revoked.Load())
			}
			t.Log(fmt.Sprint(o.failed, " failures, ", revoked.Load(), " revocations, peak ", peak.Load()))
		})
	}
}

// heavyLog is a partition of records that say that they take much memory.
type heavyLog struct {
	topicLog
	bytes int64
	look  func()
}

func (l *heavyLog) Fetch(ctx context.Context, from int64, _ int32) (schemas.Fetched, error) {
	if from >= l.end {
		return schemas.Fetched{}, io.EOF
	}
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
		return schemas.Fetched{}, ctx.Err()
	}
	l.leased.Add(1)
	l.look()
	return schemas.Fetched{From: from, Next: from + 1, End: l.end,
		Messages: []schemas.Message{{Topic: "t", Offset: from}}, Bytes: l.bytes,
		Release: func() { l.leased.Add(-1) }}, nil
}

// Records that are larger than what a partition asks for do not add up, once it
// has seen one: fifty partitions of records of a quarter of the memory stay
// within it, and all of them go on.
func TestLargeRecordsOfManyPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const partitions, records, limit = 50, 20, 64 << 20
		o := make([]memoryOutput, partitions)
		outs := &manyOutputs{o}
		p := newPipeline(outs, echo(10*time.Millisecond), func(c *Config) { c.Memory = limit })
		begin, peak := time.Now(), int64(0)
		var mu sync.Mutex
		look := func() {
			mu.Lock()
			defer mu.Unlock()
			if time.Since(begin) > time.Second { // nobody knows the first record of each
				peak = max(peak, p.budget.used())
			}
		}
		logs := make([]*heavyLog, partitions)
		var wg sync.WaitGroup
		for id := range logs {
			l := &heavyLog{topicLog: topicLog{end: records, data: map[int64]int{}}, bytes: limit / 4, look: look}
			for i := range l.end {
				l.data[i] = 0
			}
			logs[id] = l
			wg.Go(func() {
				if err := p.Partition(t.Context(), "t", int32(id), l); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		p.Close()
		for id, l := range logs {
			checkChain(t, &o[id], &l.topicLog, records)
			checkMemory(t, p, &l.topicLog)
		}
		if peak == 0 || peak > limit {
			t.Errorf("peak %d bytes, the limit is %d", peak, limit)
		}
		t.Logf("peak %.2f of the limit, in %v", float64(peak)/limit, time.Since(begin))
	})
}

// manyOutputs are the outputs of many partitions.
type manyOutputs struct{ outs []memoryOutput }

func (o *manyOutputs) Resume(ctx context.Context, topic string, id int32) (schemas.Position, error) {
	return o.outs[id].Resume(ctx, topic, id)
}

func (o *manyOutputs) Stage(ctx context.Context, b *schemas.Batch) error {
	return o.outs[b.Partition].Stage(ctx, b)
}

func (o *manyOutputs) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	return o.outs[b.Partition].Commit(ctx, b)
}

func (o *memoryOutput) end() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.batches); n > 0 {
		return o.batches[n-1].End
	}
	return o.base
}
