package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"entropipe/ops/metrics"
	"entropipe/schemas"
)

// slowTopic acknowledges records after a while, until it fails.
type slowTopic struct {
	delay time.Duration
	room  chan struct{} // a token for every record that may be on its way
	sink  sync.WaitGroup

	mu    sync.Mutex
	got   []string // as acknowledged
	until int      // acknowledged records, after which it fails
	done  chan struct{}
	err   error
}

func newSlowTopic(delay time.Duration, room, until int) *slowTopic {
	return &slowTopic{delay: delay, room: make(chan struct{}, room), until: until, done: make(chan struct{})}
}

func (s *slowTopic) Send(ctx context.Context, r *schemas.Record, acked func()) error {
	select {
	case s.room <- struct{}{}:
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.sink.Go(func() {
		select {
		case <-time.After(s.delay):
		case <-s.done:
			return
		}
		if s.take(string(r.Value)) {
			acked()
			<-s.room
		}
	})
	return nil
}

func (s *slowTopic) take(value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) == s.until {
		if s.err == nil {
			s.err = errors.New("the brokers took nothing")
			close(s.done)
		}
		return false
	}
	s.got = append(s.got, value)
	return true
}

func (s *slowTopic) Done() <-chan struct{} { return s.done }
func (s *slowTopic) Err() error            { return s.err }

// holds tells whether the record of an offset is there.
func (s *slowTopic) holds(offset int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.got {
		if v == fmt.Sprint(offset) {
			return true
		}
	}
	return false
}

// publishing is echo with something to publish of every record.
func publishing(maxDelay time.Duration) func() Process {
	inner := echo(maxDelay)
	return func() Process {
		process := inner()
		return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
			results, rejects := process(m)
			for i := range results {
				results[i].Publish = &schemas.Record{Value: fmt.Append(nil, m.Offset)}
			}
			return results, rejects
		}
	}
}

// checkedOutput fails a commit of what is not published.
type checkedOutput struct {
	memoryOutput
	topic   *slowTopic
	missing []int64
}

func (o *checkedOutput) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	for i := range b.Results {
		if r := &b.Results[i]; r.Publish != nil || !o.topic.holds(r.Offset) {
			o.missing = append(o.missing, r.Offset)
		}
	}
	return o.memoryOutput.Commit(ctx, b)
}

func publisher(topic *slowTopic) func(*Config) {
	return func(c *Config) { c.Publisher = topic }
}

// When a batch is committed, brokers have all that was published of it.
func TestPublishedBeforeCommitted(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			l, topic := randomLog(seed, 300), newSlowTopic(time.Duration(seed)*time.Second, 1+int(seed%40), -1)
			o := &checkedOutput{topic: topic}
			reg := prometheus.NewRegistry()
			p := newPipeline(o, publishing(10*time.Millisecond),
				func(c *Config) { c.Publisher, c.Metrics = topic, metrics.New(reg, "test") })
			defer p.Close()
			if err := p.Partition(t.Context(), "t", 0, l); err != nil {
				t.Fatal(err)
			}
			checkChain(t, &o.memoryOutput, l, l.end)
			checkMemory(t, p, l)
			st := p.Stats()
			if len(o.missing) > 0 || st.Published != st.Frames || int64(len(topic.got)) != st.Frames {
				t.Errorf("seed %d: committed before they were published: %v; stats %+v", seed, o.missing, st)
			}
			want := fmt.Sprintf("# HELP entropipe_records_out_total Kafka records that left a stage.\n# TYPE "+
				"entropipe_records_out_total counter\n"+
				"entropipe_records_out_total{source=\"t\",stage=\"commit\"} "+
				"%d\nentropipe_records_out_total{source=\"t\",stage=\"publish\"} %d\n", st.Messages, st.Frames)
			if err := testutil.GatherAndCompare(reg, strings.NewReader(want),
				"entropipe_records_out_total"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A publisher that fails ends the partition with an error that says where;
// nothing is committed that was not published, and no memory is kept.
func TestPublisherFailureStops(t *testing.T) {
	for _, until := range []int{0, 1, 33, 120} {
		for _, room := range []int{1, 1000} { // it fails in Send, or while a commit waits
			synctest.Test(t, func(t *testing.T) {
				l, topic := randomLog(3, 300), newSlowTopic(time.Second, room, until)
				o := &checkedOutput{topic: topic}
				p := newPipeline(o, publishing(time.Millisecond), publisher(topic))
				defer p.Close()
				err := p.Partition(t.Context(), "t", 5, l)
				topic.sink.Wait()
				if err == nil || !strings.HasPrefix(err.Error(), "t/5@") ||
					!strings.HasSuffix(err.Error(), ": publish: the brokers took nothing") {
					t.Errorf("error %v", err)
				}
				if len(o.missing) > 0 {
					t.Errorf("committed, but not published: %v", o.missing)
				}
				checkMemory(t, p, l)
			})
		}
	}
}

// Who loses a race or begins again publishes again, but nothing is missing.
func TestLostRacePublishesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, rng, topic := randomLog(4, 300), rand.New(rand.NewPCG(4, 2)), newSlowTopic(time.Second, 5, -1)
		o := &checkedOutput{topic: topic}
		o.rival = func(start int64) int64 {
			if rng.IntN(3) > 0 {
				return 0
			}
			return min(start+1, l.end)
		}
		p := newPipeline(o, publishing(time.Millisecond), publisher(topic))
		defer p.Close()
		if err := p.Partition(t.Context(), "t", 0, l); err != nil {
			t.Fatal(err)
		}
		if st := p.Stats(); len(o.missing) > 0 || st.Published <= st.Frames {
			t.Errorf("missing %v, published %d records of %d frames", o.missing, st.Published, st.Frames)
		}
		checkMemory(t, p, l)
	})
}

// Survivors and results go to topics of their own: a commit waits for both, and the failure
// of either ends the partition.
func TestResultsArePublishedBesideSurvivors(t *testing.T) {
	for _, until := range []int{-1, 0, 40} {
		synctest.Test(t, func(t *testing.T) {
			l, survivors := randomLog(5, 300), newSlowTopic(time.Second, 9, -1)
			found := newSlowTopic(time.Minute, 20, until)
			o := &checkedOutput{topic: found}
			inner := publishing(time.Millisecond)
			p := newPipeline(o, func() Process {
				process := inner()
				return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
					results, rejects := process(m)
					for i := range results {
						results[i].Found = &schemas.Record{Value: fmt.Append(nil, m.Offset)}
					}
					return results, rejects
				}
			}, func(c *Config) { c.Publisher, c.Results = survivors, found })
			defer p.Close()
			err := p.Partition(t.Context(), "t", 0, l)
			found.sink.Wait()
			survivors.sink.Wait()
			if st := p.Stats(); until < 0 && (err != nil || st.Found != st.Frames || st.Published != st.Frames ||
				st.FoundBytes == 0) {
				t.Errorf("error %v, stats %+v", err, st)
			}
			if until >= 0 && (err == nil || !strings.HasSuffix(err.Error(), ": publish: the brokers took nothing")) {
				t.Errorf("the topic takes %d records: error %v", until, err)
			}
			if len(o.missing) > 0 {
				t.Errorf("the topic takes %d records: committed before they were published: %v", until, o.missing)
			}
			checkMemory(t, p, l)
		})
	}
}

// A revoked partition waits for brokers, but not for ever: then it leaves its
// batch to whoever is next.
func TestRevocationWaitsForWhatIsPublished(t *testing.T) {
	for _, test := range []struct {
		delay     time.Duration
		committed bool
	}{{5 * time.Second, true}, {time.Hour, false}} {
		synctest.Test(t, func(t *testing.T) {
			l, topic := randomLog(7, 9), newSlowTopic(test.delay, 1000, -1)
			l.follow = true
			o := &checkedOutput{topic: topic}
			p := newPipeline(o, publishing(time.Millisecond), publisher(topic))
			defer p.Close()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			begin := time.Now()
			if err := p.Partition(ctx, "t", 0, l); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > time.Second+drainTime {
				t.Errorf("it took %v", took)
			}
			if got := len(o.batches) > 0; got != test.committed || len(o.missing) > 0 {
				t.Errorf("acknowledged after %v: committed %v, not published %v", test.delay, got, o.missing)
			}
			checkMemory(t, p, l)
			topic.sink.Wait()
			if n := p.budget.used(); n != 0 {
				t.Errorf("%d bytes counted after late acknowledgements", n)
			}
		})
	}
}

// What is on its way counts against the memory: a topic that is slow holds the
// reader up instead of filling the process.
func TestWhatIsPublishedCountsAsMemory(t *testing.T) {
	t.Run("survivors", func(t *testing.T) {
		countsAsMemory(t, func(r *schemas.Result, rec *schemas.Record) { r.Publish = rec },
			func(c *Config, topic Publisher) { c.Publisher = topic })
	})
	t.Run("results", func(t *testing.T) {
		countsAsMemory(t, func(r *schemas.Result, rec *schemas.Record) { r.Found = rec },
			func(c *Config, topic Publisher) { c.Results = topic })
	})
}

func countsAsMemory(t *testing.T, set func(*schemas.Result, *schemas.Record), to func(*Config, Publisher)) {
	const limit = 4 << 20
	synctest.Test(t, func(t *testing.T) {
		l, topic := randomLog(2, 400), newSlowTopic(time.Minute, 1<<20, -1)
		large := func() Process {
			return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
				r := schemas.Result{FrameKey: schemas.FrameKey{Offset: m.Offset}}
				set(&r, &schemas.Record{Value: append(fmt.Append(nil, m.Offset), make([]byte, 100_000)...)})
				return []schemas.Result{r}, nil
			}
		}
		p := newPipeline(&memoryOutput{}, large, func(c *Config) {
			to(c, topic)
			c.Memory, c.Roll = limit, Roll{Bytes: 1 << 40, Records: 1 << 40}
		})
		defer p.Close()
		var peak int64
		over := make(chan struct{})
		go func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Second):
					peak = max(peak, p.budget.used())
				}
			}
		}()
		if err := p.Partition(t.Context(), "t", 0, l); err != nil {
			t.Fatal(err)
		}
		close(over)
		synctest.Wait()
		// Beyond it go the records that were fetched before it was reached.
		if most := int64(limit + (4*4+4+9)*101_000); peak < limit/2 || peak > most {
			t.Errorf("peak %d bytes, want about %d, at most %d", peak, limit, most)
		}
		checkMemory(t, p, l)
	})
}
