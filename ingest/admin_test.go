package ingest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestEnsureTopic(t *testing.T) {
	addr, _ := start(t)
	brokers, topic := []string{addr}, name(t)
	ctx := deadline(t)
	spec := TopicSpec{Partitions: 3, ReplicationFactor: 1, MaxMessageBytes: 3 << 20}
	for range 2 { // the second time it is there already
		if err := EnsureTopic(ctx, brokers, Security{}, topic, spec); err != nil {
			t.Fatal(err)
		}
	}
	if limit, err := topicLimit(ctx, brokers, topic); err != nil || limit != 3<<20 {
		t.Errorf("limit is %d, %v", limit, err)
	}
	if err := EnsureTopic(ctx, brokers, Security{}, topic, TopicSpec{}); err != nil {
		t.Errorf("asked for nothing: %v", err)
	}
	spec.MaxMessageBytes++
	var low *LimitError
	err := EnsureTopic(ctx, brokers, Security{}, topic, spec)
	if !errors.As(err, &low) || low.Limit != 3<<20 || low.Needed != 3<<20+1 {
		t.Fatalf("a limit that is too low: %v", err)
	}
	for _, part := range []string{"3145728", "3145729", "kafka-configs.sh --bootstrap-server " + addr,
		"--entity-name " + topic, "--add-config max.message.bytes=3145729"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
}

func TestTopicThatCannotBeCreated(t *testing.T) {
	addr, _ := start(t)
	ctx := deadline(t)
	topic := name(t)
	err := EnsureTopic(ctx, []string{addr}, Security{}, topic,
		TopicSpec{Partitions: 2, ReplicationFactor: 9, MaxMessageBytes: 5000})
	if err == nil || !strings.Contains(err.Error(),
		"--partitions 2 --replication-factor 9 --config max.message.bytes=5000") {
		t.Errorf("nine replicas on one broker: %v", err)
	}
	if err := EnsureTopic(ctx, []string{addr}, Security{}, "", TopicSpec{}); err == nil {
		t.Error("a topic without a name was accepted")
	}
	if _, err := topicLimit(ctx, []string{addr}, topic); !errors.Is(err, ErrNoTopic) {
		t.Errorf("limit of no topic: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	addr, _ := start(t)
	topic := makeTopic(t, addr, 2)
	c := producer(t, addr)
	send(t, c, topic, values("a", "b", "c")...)
	send(t, c, topic, &kgo.Record{Partition: 1, Value: []byte("x")})
	deleteRecords(t, c, topic, 2)
	tx := producer(t, addr, kgo.TransactionalID(topic))
	if err := tx.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	send(t, tx, topic, values("open")...)
	ctx := deadline(t)
	got, err := Describe(ctx, []string{addr}, Security{}, topic)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID.IsZero() {
		t.Error("no id, though the broker has them")
	}
	want := Topic{Name: topic, ID: got.ID, MaxMessageBytes: 16 << 20,
		Partitions: []TopicPartition{{ID: 0, Start: 2, Stable: 3, End: 4}, {ID: 1, Start: 0, Stable: 1, End: 1}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f, err := partition0(t, addr, topic).Fetch(ctx, 2, 1<<20)
	if err != nil || f.End != 3 || f.High != 4 {
		t.Errorf("a fetch beside an open transaction ends at %d of %d, want 3 of 4: %v", f.End, f.High, err)
	}
	if f.Release != nil {
		f.Release()
	}
	if err := tx.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	if _, err := Describe(ctx, []string{addr}, Security{}, name(t)); !errors.Is(err, ErrNoTopic) {
		t.Errorf("no topic: %v", err)
	}
}

// Who stops while offsets are asked for gets no error of the brokers: what they said
// last may be of the end, too.
func TestFindStops(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	ctx, cancel := context.WithCancel(deadline(t))
	fake.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		resp := r.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, topic := range r.(*kmsg.ListOffsetsRequest).Topics {
			rt := kmsg.NewListOffsetsResponseTopic()
			rt.Topic = topic.Topic
			for _, p := range topic.Partitions {
				rp := kmsg.NewListOffsetsResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, kerr.UnknownServerError.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		time.AfterFunc(50*time.Millisecond, cancel)
		return resp, nil, true
	})
	if err := Find(ctx, fake.ListenAddrs(), Security{}, []string{"t"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want one of a stopped call", err)
	}
}
