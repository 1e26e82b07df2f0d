package pipeline

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"entropipe/schemas"
	"entropipe/sparse/plan"
)

// service records what workers do in which order: c for a cloud, tt for a
// sequence, whose plan is asked for twice. Each letter takes a millisecond.
type service struct {
	mu    sync.Mutex
	order strings.Builder
}

func (s *service) began(what string) {
	s.mu.Lock()
	s.order.WriteString(what)
	s.mu.Unlock()
	time.Sleep(time.Millisecond)
}

// pipeline returns a pipeline that records.
func (s *service) pipeline(t *testing.T, change func(*Config)) *Pipeline {
	cfg := tokenConfig(tiny(t, 1), Embed)
	cfg.Plan = func(int) *plan.Plan { s.began("t"); return &plan.Plan{Dense: "a test"} }
	return newPipeline(&topicOutput{}, nil, func(c *Config) {
		c.NewProcess = func() Process {
			return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
				s.began("c")
				return []schemas.Result{{FrameKey: schemas.FrameKey{Topic: m.Topic, Offset: m.Offset}}}, nil
			}
		}
		c.NewTokens = func() *Tokens { return NewTokens(cfg) }
		c.Roll.Records = 1 << 30
		change(c)
	})
}

// topicOutput takes batches of several topics, and keeps none.
type topicOutput struct{ memoryOutput }

func (o *topicOutput) Resume(context.Context, string, int32) (schemas.Position, error) {
	return schemas.Position{}, nil
}

// endless is a topic of n messages that are there at once.
type endless struct {
	message schemas.Message
	n       int64
	bytes   int64 // bytes of a fetch of perFetch messages
	each    int64
}

func (e *endless) Check(context.Context, schemas.Position) (schemas.TopicID, error) {
	return schemas.TopicID{}, nil
}
func (e *endless) Committed(context.Context, int64) {}

func (e *endless) Fetch(ctx context.Context, from int64, _ int32) (schemas.Fetched, error) {
	if from >= e.n {
		return schemas.Fetched{}, io.EOF
	}
	f := schemas.Fetched{From: from, Next: min(from+e.each, e.n), End: e.n, Bytes: e.bytes}
	for o := from; o < f.Next; o++ {
		m := e.message
		m.Offset, m.Time = o, time.Now()
		f.Messages = append(f.Messages, m)
	}
	return f, ctx.Err()
}

// Law: while clouds and sequences both wait, each branch gets half of a worker's
// time, however much longer a group of messages of sequences takes than a cloud,
// however long a queue is, and however much memory records of sequences take. So
// a worker serves no more than one group between two clouds, and clouds between
// two groups for no longer than a group took.
func TestBranchesShareTime(t *testing.T) {
	const frames, sequences = 60, 3000
	for _, c := range []struct {
		workers, queue int
		fetched        int64 // bytes of a fetch of sequences; half of the memory is for all
		each           int64 // sequences of a fetch
	}{{1, 1000, 1000, 100}, {2, 1000, 1000, 100}, {1, 2, 1000, 100}, {1, 1000, 7 << 20, 1000}, {2, 100, 7 << 20, 300}} {
		workers := c.workers
		synctest.Test(t, func(t *testing.T) {
			var s service
			p := s.pipeline(t, func(cfg *Config) { cfg.Workers, cfg.Queue, cfg.Memory = workers, c.queue, 16<<20 })
			var ends [2]time.Duration
			var both sync.WaitGroup
			start := time.Now()
			tokens := idMessage(t, 0, []int32{1, 2})
			tokens.Topic = "tokens"
			for i, e := range []*endless{
				{message: schemas.Message{Topic: "points"}, n: frames, each: 5},
				{message: tokens, n: sequences, each: c.each, bytes: c.fetched},
			} {
				both.Go(func() {
					if err := p.Partition(t.Context(), e.message.Topic, 0, e); err != nil {
						t.Error(err)
					}
					ends[i] = time.Since(start)
				})
			}
			both.Wait()
			p.Close()
			order := s.order.String()
			if strings.Count(order, "c") != frames || strings.Count(order, "t") != 2*sequences {
				t.Fatalf("%+v: %s", c, order)
			}
			// A group fills a batch: messages of at least 16 bytes of tokens in
			// four bytes for each token of the budget.
			group := 4 * 100 / 16
			waiting := order[strings.Index(order, "c") : strings.LastIndex(order, "c")+1]
			for _, served := range strings.FieldsFunc(waiting, func(r rune) bool { return r == 'c' }) {
				if len(served) > 2*group*workers {
					t.Errorf("%+v: %d sequences were served between two clouds, at most %d may be", c,
						len(served)/2, group*workers)
				}
			}
			for _, served := range strings.FieldsFunc(waiting, func(r rune) bool { return r == 't' }) {
				if len(served) > (2*group+1)*workers {
					t.Errorf("%+v: %d clouds were served between two groups of sequences", c, len(served))
				}
			}
			// As long as the clouds alone, as much for sequences, and what was
			// under way before.
			if most := time.Duration(2*frames+3*2*group) * time.Millisecond; ends[0] > most || ends[1] < 5*most {
				t.Errorf("%+v: the clouds took %v, at most %v; the sequences %v", c, ends[0], most, ends[1])
			}
		})
	}
}
