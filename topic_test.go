package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"entropipe/ingest"
	"entropipe/ops/metrics"
	"entropipe/ops/pipeline"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/read"
	"entropipe/sinks/tables"
)

// eachBroker runs f on the embedded broker, and on the real one that
// ENTROPIPE_KAFKA names.
func eachBroker(t *testing.T, f func(t *testing.T, brokers string)) {
	t.Run("embedded", func(t *testing.T) { t.Parallel(); f(t, startBroker(t)) })
	if real := os.Getenv("ENTROPIPE_KAFKA"); real != "" {
		t.Run("kafka", func(t *testing.T) { t.Parallel(); f(t, real) })
	}
}

// topicOf names a topic that no other test has.
func topicOf(t *testing.T) string {
	name, _, _ := strings.Cut(strings.ToLower(t.Name()), "/")
	return fmt.Sprintf("%s-%x", name, time.Now().UnixNano())
}

// fill makes a topic, unless it is there, and sends n values of 4 KiB to each
// partition.
func fill(t *testing.T, brokers, topic, what string, partitions int32, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := ingest.EnsureTopic(ctx, []string{brokers}, ingest.Security{}, topic,
		ingest.TopicSpec{Partitions: int(partitions)}); err != nil {
		t.Fatal(err)
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var rs []*kgo.Record
	for i := range n {
		for p := range partitions {
			rs = append(rs, &kgo.Record{Topic: topic, Partition: p,
				Value: fmt.Appendf(nil, "%-4096s", fmt.Sprint(what, " ", i))})
		}
	}
	if err := c.ProduceSync(ctx, rs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// gone waits until a topic is deleted.
func gone(t *testing.T, brokers, topic string) {
	t.Helper()
	deleteTopic(t, brokers, topic)
	waitFor(t, "the topic to be gone", func() bool {
		_, err := ingest.Describe(t.Context(), []string{brokers}, ingest.Security{}, topic)
		return errors.Is(err, ingest.ErrNoTopic)
	})
}

// The workers are busy and the memory is spent, so the readers ask for nothing.
// Meanwhile the topic is deleted, created and filled with more than there was:
// no request of theirs ever finds it missing.
func TestTopicRemadeWhileReadersWaitForMemory(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, brokers string) {
		topic := topicOf(t)
		fill(t, brokers, topic, "old", 2, 500)
		store, err := sinks.OpenLocal(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		encoder, err := tables.New(tables.Config{})
		if err != nil {
			t.Fatal(err)
		}
		out, err := sinks.Open(t.Context(), store, encoder, sinks.Config{})
		if err != nil {
			t.Fatal(err)
		}
		consumer, err := ingest.NewConsumer(ingest.Config{Brokers: []string{brokers},
			Topics: []string{topic}, Group: topic})
		if err != nil {
			t.Fatal(err)
		}
		defer consumer.Close()
		starts, err := consumer.Starts(t.Context(), topic, "earliest")
		if err == nil {
			err = out.Base(t.Context(), topic, consumer.TopicID(topic), starts)
		}
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		values := map[string]int{}
		begun, gate := make(chan struct{}, 1), make(chan struct{})
		process := func(m schemas.Message) ([]schemas.Result, []schemas.Reject) {
			mu.Lock()
			values[string(m.Value[:3])]++
			mu.Unlock()
			select {
			case begun <- struct{}{}:
			default:
			}
			<-gate
			return nil, []schemas.Reject{{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Index: -1,
				Reason: "test", Stage: "decode", ValueSize: int64(len(m.Value))}}
		}
		p := pipeline.New(pipeline.Config{Output: out, NewProcess: func() pipeline.Process {
			return process
		}, Workers: 2, Memory: 64 << 10,
			Roll: pipeline.Roll{Bytes: 1 << 30, Records: 100}, Metrics: metrics.New(prometheus.NewRegistry(), "test"),
			Log: slog.New(slog.DiscardHandler)})
		defer p.Close()
		ended := make(chan error, 1)
		go func() {
			ended <- consumer.Run(t.Context(), func(ctx context.Context, part *ingest.Partition) error {
				return p.Partition(ctx, part.Topic, part.ID, part)
			})
		}()
		<-begun
		gone(t, brokers, topic)
		fill(t, brokers, topic, "new", 2, 900)
		close(gate)
		var other *schemas.RecreatedError
		select {
		case err = <-ended:
		case <-time.After(patience):
			t.Fatal("the new topic went unnoticed")
		}
		if !errors.As(err, &other) || other.Is.IsZero() || other.Was != consumer.TopicID(topic) {
			t.Errorf("the run ended with %v", err)
		}
		if values["old"] == 0 || values["new"] > 0 {
			t.Errorf("workers got %v", values)
		}
		r, err := read.Verify(t.Context(), store, read.VerifyOptions{})
		if err != nil || !r.OK {
			t.Errorf("%v\n%s", err, r)
		}
	})
}

// mirror copies a topic to other brokers, with its offsets and timestamps.
func mirror(t *testing.T, from, to, topic string, partitions int32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := ingest.EnsureTopic(ctx, []string{to}, ingest.Security{}, topic,
		ingest.TopicSpec{Partitions: int(partitions)}); err != nil {
		t.Fatal(err)
	}
	info, err := ingest.Describe(ctx, []string{from}, ingest.Security{}, topic)
	if err != nil {
		t.Fatal(err)
	}
	in, err := kgo.NewClient(kgo.SeedBrokers(from), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := kgo.NewClient(kgo.SeedBrokers(to), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	left := int64(0)
	for _, p := range info.Partitions {
		left += p.Stable
	}
	for left > 0 {
		for _, r := range in.PollFetches(ctx).Records() {
			c := &kgo.Record{Topic: topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers,
				Timestamp: r.Timestamp}
			if err := out.ProduceSync(ctx, c).FirstErr(); err != nil || c.Offset != r.Offset {
				t.Fatalf("offset %d became %d, %v", r.Offset, c.Offset, err)
			}
			left--
		}
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
}

// An output goes on in a mirror on another cluster when it is told to, once, and
// only if the mirror holds what was read.
func TestMirrorIsAccepted(t *testing.T) {
	t.Parallel()
	first, second, dir := startBroker(t), startBroker(t), t.TempDir()
	out := filepath.Join(dir, "out")
	run := func(brokers string, more ...string) *process {
		return launch(t, dir, append([]string{"run", "--brokers", brokers, "--topic", "points,quiet", "--out", "out",
			"--ops", "hull2d", "--until-end"}, more...)...)
	}
	for _, topic := range []string{"points", "quiet"} {
		must(t, dir, spread(first, topic, "a", "--partitions", "2", "--frames", "10", "--rate", "max")...)
		must(t, dir, spread(first, topic, "b", "--partitions", "2", "--frames", "10", "--rate", "max")...)
	}
	run(first).exits(0, patience)
	holds(t, out, 40)
	mirror(t, first, second, "points", 2)
	mirror(t, first, second, "quiet", 2)
	must(t, dir, spread(second, "points", "a", "--frames", "7", "--rate", "max", "--seed", "5")...)

	stopped := run(second)
	stopped.exits(1, patience)
	stopped.says(
		`^entropipe: points: the topic was deleted and created again .* start once with --accept-topic points$`)
	stopped = run(second, "--accept-topic", "points")
	stopped.exits(1, patience)
	stopped.says(`^entropipe: quiet: .* start once with --accept-topic quiet$`)
	holds(t, out, 40)

	accepted := run(second, "--accept-topic", "points,quiet")
	accepted.exits(0, patience)
	accepted.says(`msg="the topic has another id and is accepted: .*topic=quiet`)
	holds(t, out, 47)
	run(second).exits(0, patience) // nothing is new in quiet, and it stays accepted
	holds(t, out, 47)
	idle := run(second, "--accept-topic", "points", "--accept-topic", "quiet")
	idle.exits(0, patience)
	idle.says(`msg="--accept-topic has nothing to do`)

	back := run(first)
	back.exits(1, patience)
	back.says(`^entropipe: points: the topic was deleted and created again .* start once with --accept-topic points$`)
	back = run(first, "--accept-topic", "points,quiet") // the first cluster lacks what the second got
	back.exits(1, patience)
	back.says(`^entropipe: --accept-topic points: points/\d: .*; write to a new --out$`)
	holds(t, out, 47)

	stranger := run(second, "--accept-topic", "lidar")
	stranger.exits(2, patience)
	stranger.says(`^entropipe: --accept-topic lidar: it is not among --topic$`)
}

// An output that holds nothing of the topic has nothing to compare.
func TestNothingToCompareIsNotAccepted(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	onePartition(t, dir, brokers, "points", 3)
	run := []string{"run", "--brokers", brokers, "--out", "out", "--until-end", "--from", "latest"}
	must(t, dir, run...)
	gone(t, brokers, "points")
	onePartition(t, dir, brokers, "points", 5)
	r := launch(t, dir, append(run, "--accept-topic", "points")...)
	r.exits(1, patience)
	r.says(`^entropipe: --accept-topic points: the output has no record of it that could be compared; write to a new --out$`)
}

// What a user looks at before a start knows the topic's id, too.
func TestInfoAndValidateNameTheTopic(t *testing.T) {
	t.Parallel()
	brokers, dir := startBroker(t), t.TempDir()
	onePartition(t, dir, brokers, "points", 3)
	must(t, dir, "run", "--brokers", brokers, "--out", "out", "--until-end")
	config := filepath.Join(dir, "run.yaml")
	if err := os.WriteFile(config, []byte("brokers: "+brokers+"\nout: "+filepath.Join(dir, "out")+"\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "validate", config, "--connect")
	id := func() string {
		_, after, _ := strings.Cut(must(t, dir, "info", "kafka://"+brokers+"/points"), "\n  id ")
		line, _, _ := strings.Cut(after, "\n")
		return line
	}
	was := id()
	if len(was) != 22 {
		t.Errorf("the topic's id is %q", was)
	}
	gone(t, brokers, "points")
	onePartition(t, dir, brokers, "points", 3)
	if is := id(); is == was || len(is) != 22 {
		t.Errorf("the topic's id was %q and is %q", was, is)
	}
	r := launch(t, dir, "validate", config, "--connect")
	r.exits(1, patience)
	r.until(`points: the topic was deleted and created again since this output was written \(its id was ` + was)
}

// What brokers and their operators do to a log behind the output's back.

// onePartition makes a topic of n small frames in its only partition.
func onePartition(t *testing.T, dir, brokers, topic string, n int, more ...string) {
	t.Helper()
	must(t, dir, spread(brokers, topic, "a",
		append(more, "--partitions", "1", "--frames", strconv.Itoa(n), "--rate", "max")...)...)
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
	stopped.says(
		`^entropipe: points/0: retention deleted offsets 40 to 54 before they were read; --on-gap skip continues without them$`)
	holds(t, out, 40)

	must(t, dir, append(run, "--on-gap", "skip")...)
	r := verified(t, out)
	if p := r.Partitions[0]; p.End != 60 || p.Messages != 45 || p.Holes != 15 || len(p.Gaps) != 1 ||
		p.Gaps[0].Start != 40 || p.Gaps[0].End != 55 {
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
	// one commit or several
	waitFor(t, "the records", func() bool { return reached(t, filepath.Join(dir, "out")) >= 10 })
	deleteTopic(t, brokers, "points")
	r.exits(1, patience)
	r.says(`^entropipe: topic "points" was deleted while it was read; a topic that is created again needs a new --out$`)
	holds(t, filepath.Join(dir, "out"), 10)
}
