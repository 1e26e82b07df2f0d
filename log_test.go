package main

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What brokers and their operators do to a log behind the output's back.

// onePartition makes a topic of n small frames in its only partition.
func onePartition(t *testing.T, dir, brokers, topic string, n int, more ...string) {
	t.Helper()
	must(t, dir, spread(brokers, topic, "a", append(more, "--partitions", "1", "--frames", strconv.Itoa(n), "--rate", "max")...)...)
}

func request[R any](t *testing.T, brokers string, do func(context.Context, *kgo.Client) (R, error)) R {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := do(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// deleteRecords does what retention does: partition 0 begins at offset then.
func deleteRecords(t *testing.T, brokers, topic string, offset int64) {
	t.Helper()
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Offset = offset
	of := kmsg.NewDeleteRecordsRequestTopic()
	of.Topic, of.Partitions = topic, []kmsg.DeleteRecordsRequestTopicPartition{p}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics, req.TimeoutMillis = []kmsg.DeleteRecordsRequestTopic{of}, 5000
	r := request(t, brokers, func(ctx context.Context, c *kgo.Client) (*kmsg.DeleteRecordsResponse, error) {
		shard := c.RequestSharded(ctx, req)[0]
		if shard.Err != nil {
			return nil, shard.Err
		}
		return shard.Resp.(*kmsg.DeleteRecordsResponse), nil
	})
	if code := r.Topics[0].Partitions[0].ErrorCode; code != 0 {
		t.Fatalf("delete records of %s: Kafka error %d", topic, code)
	}
}

func deleteTopic(t *testing.T, brokers, topic string) {
	t.Helper()
	of := kmsg.NewDeleteTopicsRequestTopic()
	of.Topic = &topic
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Topics, req.TopicNames, req.TimeoutMillis = []kmsg.DeleteTopicsRequestTopic{of}, []string{topic}, 5000
	r := request(t, brokers, func(ctx context.Context, c *kgo.Client) (*kmsg.DeleteTopicsResponse, error) {
		return req.RequestWith(ctx, c)
	})
	if code := r.Topics[0].ErrorCode; code != 0 {
		t.Fatalf("delete topic %s: Kafka error %d", topic, code)
	}
}

// Records that retention deleted before they were read are lost, and nobody
// but the user may accept that.
func TestGapOfRetention(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	out := filepath.Join(dir, "out")
	run := []string{"run", "--brokers", brokers, "--out", "out", "--until-end"}
	onePartition(t, dir, brokers, "points", 10)
	must(t, dir, run...)
	onePartition(t, dir, brokers, "points", 30)

	// Up to what is committed nothing is lost.
	deleteRecords(t, brokers, "points", 10)
	must(t, dir, run...)
	holds(t, out, 40)

	onePartition(t, dir, brokers, "points", 20)
	deleteRecords(t, brokers, "points", 55)
	stopped := launch(t, dir, run...)
	stopped.exits(1, patience)
	stopped.says(`^entropipe: points/0: offsets 40 to 54 were deleted by retention before they were read; to go on without them use --on-gap skip$`)
	holds(t, out, 40)

	must(t, dir, append(run, "--on-gap", "skip")...)
	r := verified(t, out)
	if p := r.Partitions[0]; p.End != 60 || p.Messages != 45 || p.Holes != 15 || len(p.Gaps) != 1 || p.Gaps[0].Start != 40 || p.Gaps[0].End != 55 {
		t.Errorf("want 45 messages and a gap from 40 to 55:\n%s", r)
	}
	verify := launch(t, dir, "verify", "out")
	verify.exits(0, patience)
	verify.until(`^points/0: gap: offsets 40 to 55 were deleted before they could be read$`)

	// Once accepted it is no news.
	must(t, dir, run...)
}

// The output holds offsets of a log that is not there any more. To go on would
// mix two logs under one name.
func TestTopicMadeAgain(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"shorter": 4, "as long": 10, "longer": 25, "empty": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers, dir := startBroker(t), t.TempDir()
			onePartition(t, dir, brokers, "points", 10)
			must(t, dir, "run", "--brokers", brokers, "--out", "out", "--until-end")
			deleteTopic(t, brokers, "points")
			if n > 0 {
				onePartition(t, dir, brokers, "points", n, "--seed", "99")
			} else {
				onePartition(t, dir, brokers, "points", 1)
				deleteRecords(t, brokers, "points", 1)
			}
			r := launch(t, dir, "run", "--brokers", brokers, "--out", "out", "--until-end")
			r.exits(1, patience)
			r.says(`^entropipe: points: the topic was deleted and created again since this output was written \(its id was \S{22}, now it is \S{22}\); write to a new --out\. .*--accept-topic points$`)
			holds(t, filepath.Join(dir, "out"), 10)
			// What the message advises works.
			must(t, dir, "run", "--brokers", brokers, "--out", "fresh", "--until-end")
			holds(t, filepath.Join(dir, "fresh"), int64(n))
		})
	}
}

// Whoever deletes a topic means it: run says so instead of waiting for ever,
// and keeps what it has.
func TestTopicDeletedWhileItIsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the ten seconds that a topic may be gone")
	}
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	onePartition(t, dir, brokers, "points", 10)
	r := launch(t, dir, fast(brokers, "points")...)
	waitFor(t, "the records", func() bool { return reached(t, filepath.Join(dir, "out")) >= 10 }) // one commit or several
	deleteTopic(t, brokers, "points")
	r.exits(1, patience)
	r.says(`^entropipe: topic "points" was deleted while it was read; a topic that is created again needs a new --out$`)
	holds(t, filepath.Join(dir, "out"), 10)
}
