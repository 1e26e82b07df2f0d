//go:build prometheus && linux

package main

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"entropipe/ingest"
	"entropipe/ops/metrics"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/tables"
)

// bench is what run is made of, wired within the test: a store that can be slow, and
// workers that can be held.
type bench struct {
	address string
	delay   atomic.Int64 // nanoseconds that the opening of a staged file takes

	mu   sync.Mutex
	gate chan struct{} // closed: workers go on

	end  func()
	done chan error
}

func startBench(t *testing.T, brokers, topic, out string) *bench {
	t.Helper()
	b := &bench{gate: make(chan struct{}), done: make(chan error, 1)}
	close(b.gate)
	log, registry := slog.New(slog.DiscardHandler), client.NewRegistry()
	m := metrics.New(registry, "test")
	m.Configured(time.Second, 64<<20)
	local, err := sinks.OpenLocal(out)
	if err != nil {
		t.Fatal(err)
	}
	encoder, err := tables.New(tables.Config{Tables: []string{tables.Frames, tables.Hulls}, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	output, err := sinks.Open(t.Context(), slowDisk{local, &b.delay}, encoder, sinks.Config{ConfigHash: "test",
		Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := ingest.NewConsumer(ingest.Config{Brokers: []string{brokers}, Topics: []string{topic},
		Group: output.DefaultGroup(), Output: output.UUID(), Log: log,
		Timing: ingest.Timing{Session: 6 * time.Second, Rebalance: 6 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	starts, err := consumer.Starts(t.Context(), topic, "earliest")
	if err == nil {
		err = output.Base(t.Context(), topic, consumer.TopicID(topic), starts)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := pipeline.New(pipeline.Config{Output: output, NewProcess: b.process, Workers: 2, Memory: 64 << 20,
		Roll:    pipeline.Roll{Bytes: 1 << 30, Records: 1 << 20, Age: time.Second},
		Metrics: m, Log: log})
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	b.address = server.Listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	b.end = cancel
	var sampling sync.WaitGroup
	sampling.Go(func() {
		for tick := time.NewTicker(time.Second); ctx.Err() == nil; {
			m.Ready(true, true, true)
			p.Sample()
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	go func() {
		b.done <- consumer.Run(ctx, func(ctx context.Context, part *ingest.Partition) error {
			return p.Partition(ctx, part.Topic, part.ID, part)
		})
	}()
	t.Cleanup(func() {
		b.release()
		b.stop()
		sampling.Wait()
		p.Close()
		consumer.Close()
		server.Close()
		local.Close()
	})
	return b
}

// stop ends the bench, once, and returns what the consumer returned.
func (b *bench) stop() error {
	b.end()
	err := <-b.done
	b.done <- nil
	return err
}

// process is hull2d behind the gate.
func (b *bench) process() pipeline.Process {
	frames := pipeline.NewFrames(pipeline.FrameConfig{Ops: []schemas.Op{schemas.Hull2D}})
	return func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
		b.mu.Lock()
		gate := b.gate
		b.mu.Unlock()
		<-gate
		return frames.Process(m)
	}
}

func (b *bench) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gate = make(chan struct{})
}

// release lets workers go on. It may be called again.
func (b *bench) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.gate:
	default:
		close(b.gate)
	}
}

// slowDisk is a store whose staged files take a while.
type slowDisk struct {
	sinks.Store
	delay *atomic.Int64
}

func (s slowDisk) Stage(ctx context.Context, name string) (io.WriteCloser, error) {
	time.Sleep(time.Duration(s.delay.Load()))
	return s.Store.Stage(ctx, name)
}
