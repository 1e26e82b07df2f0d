package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"entropipe/schemas"
)

// chunksOfFrame is how many chunks a frame of these tests has.
const chunksOfFrame = 4

// chunkedRecord returns a record that outboxes with Chunk: 10 send in chunksOfFrame chunks.
func chunkedRecord(i int) *schemas.Record {
	return &schemas.Record{Key: []byte("k"), Value: fmt.Appendf(nil, "%0*d", chunksOfFrame*10, i)}
}

// atRequest calls f before the broker takes each request with records, with its number from 1
// on. An error of f is the answer.
func atRequest(fake *kfake.Cluster, f func(n int64) *kerr.Error) {
	var n atomic.Int64
	fake.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		refused := f(n.Add(1))
		if refused == nil {
			return nil, nil, false
		}
		req := r.(*kmsg.ProduceRequest)
		answer := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range req.Topics {
			to := kmsg.NewProduceResponseTopic()
			to.Topic, to.TopicID = topic.Topic, topic.TopicID
			for _, part := range topic.Partitions {
				p := kmsg.NewProduceResponseTopicPartition()
				p.Partition, p.ErrorCode = part.Partition, refused.Code
				to.Partitions = append(to.Partitions, p)
			}
			answer.Topics = append(answer.Topics, to)
		}
		return answer, nil, true
	})
}

// A stop after any chunk, of the sender alone or of the outbox, leaves whole frames in the log.
// What was acknowledged is what is there.
func TestStopSendsTheRestOfAFrame(t *testing.T) {
	addr, fake := start(t)
	if fake == nil {
		t.Skip("the broker is one that tests do not slow down")
	}
	var cancelAt atomic.Pointer[func()]
	atRequest(fake, func(int64) *kerr.Error {
		(*cancelAt.Load())()
		return nil
	})
	for _, window := range []int64{10, 25, 1 << 20} { // a chunk, two, or all of them are on their way
		for stop := int64(1); stop <= 2*chunksOfFrame; stop++ {
			for _, whole := range []bool{false, true} { // what ends: the context of Send, or of the outbox
				at := fmt.Sprintf("window %d, request %d, outbox %v", window, stop, whole)
				topic := fmt.Sprintf("%d-%d-%v", window, stop, whole)
				ctx, cancel := context.WithCancel(deadline(t))
				lasting := deadline(t)
				if whole {
					lasting = ctx
				}
				o, err := OpenOutbox(lasting, OutboxConfig{Brokers: []string{addr}, Topic: topic, Window: window,
					Chunk: 10, Create: TopicSpec{Partitions: 1}, ending: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				var requests atomic.Int64
				look := func() {
					if requests.Add(1) >= stop {
						cancel()
						time.Sleep(time.Millisecond) // what waits for the answer hears of the end first
					}
				}
				cancelAt.Store(&look)
				var acked atomic.Int64
				for i := 0; err == nil; i++ {
					err = o.Send(ctx, chunkedRecord(i), func() { acked.Add(1) })
				}
				if closed := o.Close(); !errors.Is(err, context.Canceled) || !whole && closed != nil {
					t.Errorf("%s: %v, %v", at, err, closed)
				}
				cancel()
				if end := settled(t, addr, topic); end != chunksOfFrame*acked.Load() || end == 0 {
					t.Errorf("%s: the log has %d chunks, and %d frames of %d are acknowledged", at, end, acked.Load(),
						chunksOfFrame)
				}
			}
		}
	}
}

// Brokers that take no more chunks do not hold up the end: the frame is cut, and the log says so.
func TestStopCutsAFrameWhenItsTimeIsOver(t *testing.T) {
	addr, fake := start(t)
	if fake == nil {
		t.Skip("the broker is one that tests do not slow down")
	}
	ctx, cancel := context.WithCancel(deadline(t))
	var log bytes.Buffer
	o, err := OpenOutbox(ctx, OutboxConfig{Brokers: []string{addr}, Topic: "cut", Window: 10, Chunk: 10,
		Create: TopicSpec{Partitions: 1}, ending: 50 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	atRequest(fake, func(n int64) *kerr.Error {
		if n < 3 {
			return nil
		}
		cancel()
		return kerr.NotLeaderForPartition
	})
	err = o.Send(ctx, chunkedRecord(0), func() { t.Error("acknowledged") })
	if closed := o.Close(); !errors.Is(err, context.Canceled) || !errors.Is(closed, context.Canceled) {
		t.Errorf("%v, %v", err, closed)
	}
	if got := log.String(); !strings.Contains(got, "produce --resume") || !strings.Contains(got, "frames=1") {
		t.Errorf("the log says %q", got)
	}
	if end := settled(t, addr, "cut"); end != 2 {
		t.Errorf("the log has %d chunks", end)
	}
}
