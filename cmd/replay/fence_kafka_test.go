//go:build kafka

package replay

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"testing"
	"time"

	"entropipe/ingest"
)

// realTarget makes a topic on a real broker.
func realTarget(t *testing.T) (addr, topic string) {
	t.Helper()
	addr, topic = os.Getenv("ENTROPIPE_KAFKA"), "replays-"+rand.Text()
	if addr == "" {
		t.Skip("ENTROPIPE_KAFKA does not name a broker (HOST:PORT)")
	}
	if err := ingest.EnsureTopic(t.Context(), []string{addr}, ingest.Security{}, topic,
		ingest.TopicSpec{Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	return addr, topic
}

// A real coordinator of transactions fences the first of two replays.
func TestTwoReplaysAtOnceOnARealBroker(t *testing.T) {
	t.Parallel()
	addr, topic := realTarget(t)
	twoAtOnce(t, addr, topic)
}

// A replay whose context ends at any of several points says so, and the next one sends the rest.
func TestReplaysThatAreStoppedOnARealBroker(t *testing.T) {
	t.Parallel()
	addr, topic := realTarget(t)
	const n = 3*batchMessages + 50
	sent := int64(0)
	for _, point := range []int64{0, 1, batchMessages, 2*batchMessages + 1, n - 1} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		s := &listSource{n: n, to: topic, before: func(i int64) {
			if i == point {
				cancel()
			}
		}}
		sum, err := replayWithin(ctx, addr, s)
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("stopped before message %d: %v with %s", point, err, sum)
		}
		sent += sum.Sent
	}
	for range 2 {
		sum, err := replayTo(t, addr, &listSource{n: n, to: topic, before: func(int64) {}})
		if err != nil || sum.Before != sent || sum.Sent != n-sent {
			t.Errorf("%v with %s after %d were sent", err, sum, sent)
		}
		sent = n
	}
}
