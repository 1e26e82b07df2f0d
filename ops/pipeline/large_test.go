package pipeline

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"entropipe/ops/metrics"
	"entropipe/schemas"
)

// listLog is a partition of the given messages, one a fetch.
type listLog struct {
	messages []schemas.Message
	leased   atomic.Int64
}

func (l *listLog) Check(context.Context, schemas.Position) (schemas.TopicID, error) {
	return schemas.TopicID{5}, nil
}
func (l *listLog) Committed(context.Context, int64) {}

func (l *listLog) Fetch(ctx context.Context, from int64, _ int32) (schemas.Fetched, error) {
	if from >= int64(len(l.messages)) {
		return schemas.Fetched{}, io.EOF
	}
	l.leased.Add(1)
	m := l.messages[from]
	return schemas.Fetched{From: from, Next: from + 1, End: int64(len(l.messages)), Messages: []schemas.Message{m},
		Bytes:   int64(len(m.Value)),
		Release: func() { l.leased.Add(-1) }}, ctx.Err()
}

// someIDs are n sequences of one to four ids, every seventh of which no model
// knows.
func someIDs(rng *rand.Rand, n int) [][]int32 {
	rows := make([][]int32, n)
	for i := range rows {
		rows[i] = randomIDs(rng, 1+rng.IntN(4))
		if i%7 == 5 {
			rows[i][0] = 999
		}
	}
	return rows
}

// smallMemory is a pipeline with the least memory, in which some 600 sequences
// are large.
func smallMemory(t *testing.T, o Output, workers int) *Pipeline {
	cfg := tokenConfig(tiny(t, 1), Embed)
	return newPipeline(o, echo(0), func(c *Config) {
		c.Workers, c.Memory = workers, 8<<20
		c.NewTokens = func() *Tokens { return NewTokens(cfg) }
	})
}

// Law: rows and rejects of a large message are those of the message read at
// once, in the same order; it is one commit, and so are those around it.
func TestLargeMessagesAreReadInParts(t *testing.T) {
	cfg := tokenConfig(tiny(t, 1), Embed)
	for _, workers := range []int{1, 3} {
		rng := rand.New(rand.NewPCG(4, uint64(workers)))
		l := &listLog{}
		for i, n := range []int{3, 1500, 4, 700, 1, 2500, 2} {
			l.messages = append(l.messages, idMessage(t, int64(i), someIDs(rng, n)...))
		}
		o := &memoryOutput{}
		p, reg := smallMemory(t, o, workers), prometheus.NewRegistry()
		p.cfg.Metrics = metrics.New(reg, "test")
		if err := p.Partition(t.Context(), "t", 0, l); err != nil {
			t.Fatal(err)
		}
		p.Close()
		if o.parts < 3 || p.budget.used() != 0 || l.leased.Load() != 0 {
			t.Errorf("%d workers: %d parts were staged, %d bytes are still counted, %d fetches held", workers, o.parts,
				p.budget.used(), l.leased.Load())
		}
		var next, sequences, rejects int64
		for _, b := range o.batches {
			var want Outcome
			if b.Start != next || b.Holes != 0 || b.Messages != b.End-b.Start || b.Last.Offset != b.End-1 ||
				b.TopicID != (schemas.TopicID{5}) {
				t.Fatalf("%d workers: batch [%d, %d) after %d, last record %+v", workers, b.Start, b.End, next, b.Last)
			}
			for _, m := range l.messages[b.Start:b.End] {
				out := process(t, cfg, m)
				want.Results, want.Rejects = append(want.Results, out.Results...), append(want.Rejects, out.Rejects...)
			}
			if d := differ(want, Outcome{b.Results, b.Rejects}); d != "" {
				t.Fatalf("%d workers, batch [%d, %d): %s", workers, b.Start, b.End, d)
			}
			if id := l.messages[b.End-1].ID(); *b.Last != id {
				t.Errorf("last record %+v, want %+v", *b.Last, id)
			}
			next, sequences, rejects = b.End, sequences+int64(len(b.Results)), rejects+int64(len(b.Rejects))
		}
		if s := p.Stats(); next != 7 || s.Messages != 7 || s.Sequences != sequences || s.Rejects != rejects ||
			s.Tokens < sequences {
			t.Errorf("%d workers: end %d, stats %+v, want %d sequences and %d rejects", workers, next, s,
				sequences, rejects)
		}
		if got := totalOf(t, reg, "entropipe_dlq_records_total"); got != float64(rejects) {
			t.Errorf("%d workers: metrics count %v rejects, want %d", workers, got, rejects)
		}
	}
}

// totalOf adds up the values of a counter.
func totalOf(t *testing.T, reg *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name {
				sum += m.Counter.GetValue()
			}
		}
	}
	return sum
}

// stopper is an output that does something when the n-th part comes.
type stopper struct {
	memoryOutput
	at   int
	then func()
}

func (o *stopper) Stage(ctx context.Context, b *schemas.Batch) error {
	err := o.memoryOutput.Stage(ctx, b)
	if o.parts == o.at {
		o.then()
	}
	return err
}

// A large message that is interrupted, by a revocation or an output that fails,
// leaves no row and no memory; whoever has the partition next begins with it.
func TestLargeMessageIsAllOrNothing(t *testing.T) {
	l := &listLog{messages: []schemas.Message{idMessage(t, 0, []int32{1}),
		idMessage(t, 1, someIDs(rand.New(rand.NewPCG(1, 1)), 8000)...), idMessage(t, 2, []int32{2})}}
	for _, fails := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		o := &stopper{at: 2}
		broken := errors.New("the disk is full")
		if o.then = cancel; fails {
			o.then = func() { o.failStage = broken }
		}
		p := smallMemory(t, o, 2)
		if err := p.Partition(ctx, "t", 0, l); err != nil != fails || fails && !errors.Is(err, broken) {
			t.Fatalf("fails %v: %v", fails, err)
		}
		cancel()
		if len(o.batches) != 1 || o.batches[0].End != 1 || p.budget.used() != 0 || l.leased.Load() != 0 {
			t.Errorf("fails %v: %d batches, %d bytes are still counted, %d fetches held", fails, len(o.batches),
				p.budget.used(), l.leased.Load())
		}
		o.failStage = nil
		if err := p.Partition(t.Context(), "t", 0, l); err != nil {
			t.Fatal(err)
		}
		p.Close()
		rows := 0
		for _, b := range o.batches {
			rows += len(b.Results) + len(b.Rejects)
		}
		if s := p.Stats(); rows != 8002 || s.Messages != 3 || s.Sequences+s.Rejects != 8002 || p.budget.used() != 0 {
			t.Errorf("fails %v: %d rows, stats %+v", fails, rows, s)
		}
	}
}

// Large messages without a timestamp have no age either.
func TestLargeMessageWithoutTimestamp(t *testing.T) {
	reg := prometheus.NewRegistry()
	l := &listLog{messages: []schemas.Message{idMessage(t, 0, someIDs(rand.New(rand.NewPCG(1, 1)), 1500)...)}}
	if l.messages[0].Time = (time.Time{}); l.messages[0].SentAt() != 0 {
		t.Fatal("nothing is tested")
	}
	cfg, o := tokenConfig(tiny(t, 1), Embed), &memoryOutput{}
	p := newPipeline(o, echo(0), func(c *Config) {
		c.Memory, c.Metrics = 8<<20, metrics.New(reg, "test")
		c.NewTokens = func() *Tokens { return NewTokens(cfg) }
	})
	if err := p.Partition(t.Context(), "t", 0, l); err != nil || o.parts == 0 {
		t.Fatalf("%d parts: %v", o.parts, err)
	}
	p.Close()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		switch f.GetName() {
		case "entropipe_frame_latency_seconds":
			if n := f.Metric[0].Histogram.GetSampleCount(); n != 0 {
				t.Errorf("%d latencies", n)
			}
		case "entropipe_consumer_lag_seconds":
			if lag := f.Metric[0].Gauge.GetValue(); lag != 0 {
				t.Errorf("a lag of %g s", lag)
			}
		}
	}
}

// heapOutput measures what is reachable whenever rows come.
type heapOutput struct {
	memoryOutput
	most uint64
}

func (o *heapOutput) look() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	o.most = max(o.most, m.HeapAlloc)
}

func (o *heapOutput) Stage(ctx context.Context, b *schemas.Batch) error {
	o.look()
	return o.memoryOutput.Stage(ctx, b)
}

func (o *heapOutput) Commit(ctx context.Context, b *schemas.Batch) (schemas.Committed, error) {
	o.look()
	return o.memoryOutput.Commit(ctx, b)
}

// The rows of a message of 30,000 sequences take some 36 MB. With 16 MiB of
// memory no more than that is ever held of it, decoding included. So too where
// each sequence is refused.
func TestHeapOfALargeMessageIsBounded(t *testing.T) {
	const n, memory = 30_000, 16 << 20
	for _, bad := range []int32{0, 999} {
		rows := make([][]int32, n)
		for i := range rows {
			rows[i] = []int32{int32(i%200) + bad}
		}
		l := &listLog{messages: []schemas.Message{idMessage(t, 0, rows...)}}
		clear(rows)
		cfg := tokenConfig(tiny(t, 1), Embed)
		cfg.Budget = 4096
		o := &heapOutput{}
		o.countOnly = true
		p := newPipeline(o, echo(0), func(c *Config) {
			c.Workers, c.Memory = 2, memory
			c.NewTokens = func() *Tokens { return NewTokens(cfg) }
		})
		o.look()
		before := o.most
		if err := p.Partition(t.Context(), "t", 0, l); err != nil {
			t.Fatal(err)
		}
		p.Close()
		if grown := o.most - before; grown > memory {
			t.Errorf("ids + %d: the heap grew by %.1f MB, the limit is %d MiB", bad, float64(grown)/1e6, memory>>20)
		} else {
			t.Logf("ids + %d: %.1f MB in %d parts", bad, float64(grown)/1e6, o.parts)
		}
		if s := p.Stats(); s.Sequences+s.Rejects != n || s.Messages != 1 {
			t.Errorf("%+v", s)
		}
	}
}
