package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"entropipe/ingest/broker"
	"entropipe/schemas"
)

func openOutbox(t *testing.T, addr string, change func(*OutboxConfig)) *Outbox {
	t.Helper()
	cfg := OutboxConfig{Brokers: []string{addr}, Topic: "survivors", Create: TopicSpec{Partitions: 3}}
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	o, err := OpenOutbox(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func tellingBroker(t *testing.T) *broker.Broker {
	t.Helper()
	b, err := broker.Start(broker.Config{Listen: ownHost() + ":0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// Records of many goroutines are all there, each acknowledged once, and those
// of one goroutine in their order: in the partition of their key, or of the
// partition that they come from.
func TestOutboxKeepsTheOrderOfEverySender(t *testing.T) {
	b := tellingBroker(t)
	o := openOutbox(t, b.Addr(), func(c *OutboxConfig) { c.Window = 2000 })
	const senders, each = 5, 200
	var acked atomic.Int64
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				r := &schemas.Record{From: int32(s), Value: fmt.Appendf(nil, "%d %d", s, i),
					Headers: []schemas.Header{{Key: "a", Value: []byte("b")}}}
				if s%2 == 0 {
					r.Key = fmt.Appendf(nil, "key %d", s)
				}
				if err := o.Send(t.Context(), r, func() { acked.Add(1) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := o.Close(); err != nil || acked.Load() != senders*each {
		t.Fatalf("%d of %d acknowledged, %v", acked.Load(), senders*each, err)
	}
	d, err := Describe(deadline(t), []string{b.Addr()}, Security{}, "survivors")
	if err != nil || len(d.Partitions) != 3 {
		t.Fatalf("%+v, %v", d, err)
	}
	next, at := map[int]int{}, map[int]int32{}
	for _, part := range d.Partitions {
		p := consumer(t, b.Addr(), []string{"survivors"}).partition("survivors", part.ID, &generation{})
		for _, g := range readUntil(t, p, 0, part.End, 1<<20) {
			var s, i int
			if _, err := fmt.Sscan(g.Value, &s, &i); err != nil || i != next[s] || (g.Key != "") != (s%2 == 0) {
				t.Fatalf("%+v follows %d of sender %d (%v)", g, next[s]-1, s, err)
			}
			if at[s] = part.ID; s%2 == 1 && part.ID != int32(s)%3 {
				t.Fatalf("a record without key of partition %d is in partition %d", s, part.ID)
			}
			next[s]++
		}
	}
	for s := range senders {
		if next[s] != each {
			t.Errorf("%d records of sender %d", next[s], s)
		}
	}
}

// A broker that is gone is waited for as long as patience lasts; then whoever
// sends is told, and whoever waits for an acknowledgement.
func TestOutboxFails(t *testing.T) {
	t.Parallel()
	b := tellingBroker(t)
	var retries atomic.Int64
	o := openOutbox(t, b.Addr(), func(c *OutboxConfig) {
		c.Patience, c.OnRetry = 300*time.Millisecond, func() { retries.Add(1) }
	})
	if o.Err() != nil {
		t.Fatal(o.Err())
	}
	b.Close()
	acked := atomic.Bool{}
	if err := o.Send(t.Context(), &schemas.Record{Value: []byte("x")}, func() { acked.Store(true) }); err != nil {
		t.Fatal(err)
	}
	select {
	case <-o.Done():
	case <-time.After(hangs):
		t.Fatal("it goes on")
	}
	for name, err := range map[string]error{"Err": o.Err(),
		"Send":  o.Send(context.Background(), &schemas.Record{Value: make([]byte, 1<<20)}, func() {}),
		"Close": o.Close()} {
		if err == nil || !strings.Contains(err.Error(),
			"survivors/0: the brokers at "+b.Addr()+" took nothing for 300ms") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if acked.Load() || retries.Load() == 0 {
		t.Errorf("acknowledged: %v, %d retries", acked.Load(), retries.Load())
	}
}

// Who waits for room stops waiting when its context ends; the outbox and
// others go on.
func TestSendEndsWithItsContext(t *testing.T) {
	b := tellingBroker(t)
	o := openOutbox(t, b.Addr(), func(c *OutboxConfig) { c.Window = 100 })
	defer o.Abort()
	if err := o.window.acquire(t.Context(), t.Context(), 100); err != nil { // as if on its way
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for range 3 { // one waits for the window, two for the first
		wg.Go(func() {
			if err := o.Send(ctx, &schemas.Record{Value: []byte("x")}, func() {}); !errors.Is(err,
				context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	o.window.release(100)
	done := make(chan struct{})
	if err := o.Send(t.Context(), &schemas.Record{Value: []byte("x")}, func() { close(done) }); err != nil {
		t.Fatal(err)
	}
	<-done
	var large *TooLargeError
	if err := o.Send(t.Context(), &schemas.Record{Key: []byte("drive"), Value: make([]byte, 17<<20)},
		func() {}); !errors.As(err, &large) || large.Sequence != "drive" {
		t.Errorf("17 MiB: %v", err)
	}
	// A message of texts has no key, and says all the same where it is from.
	err := o.Send(t.Context(), &schemas.Record{Value: make([]byte, 17<<20), Headers: []schemas.Header{
		{Key: schemas.HeaderSchema, Value: []byte(schemas.SchemaText)},
		{Key: schemas.HeaderSequence, Value: []byte("wiki")}, {Key: schemas.HeaderFrameID, Value: []byte("3")},
	}}, func() {})
	if want := "text 3 of wiki makes a message of "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
}
