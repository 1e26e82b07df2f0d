package main

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"entropipe/ingest"
)

// commitOffset does what a coordinator does that is thought dead: it commits an offset of
// partition 0 to the group.
func commitOffset(t *testing.T, brokers, group, topic string, offset int64) {
	t.Helper()
	found, err := ingest.Describe(t.Context(), []string{brokers}, ingest.Security{}, topic)
	if err != nil {
		t.Fatal(err)
	}
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = offset
	of := kmsg.NewOffsetCommitRequestTopic()
	of.Topic, of.TopicID = topic, found.ID
	of.Partitions = []kmsg.OffsetCommitRequestTopicPartition{p}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Topics = group, []kmsg.OffsetCommitRequestTopic{of}
	r := request(t, brokers, func(ctx context.Context, c *kgo.Client) (*kmsg.OffsetCommitResponse, error) {
		return req.RequestWith(ctx, c)
	})
	if code := r.Topics[0].Partitions[0].ErrorCode; code != 0 {
		t.Fatalf("commit offset %d of group %s: Kafka error %d", offset, group, code)
	}
}

func deleteGroup(t *testing.T, brokers, group string) {
	t.Helper()
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = []string{group}
	r := request(t, brokers, func(ctx context.Context, c *kgo.Client) (*kmsg.DeleteGroupsResponse, error) {
		return req.RequestWith(ctx, c)
	})
	if code := r.Groups[0].ErrorCode; code != 0 {
		t.Fatalf("delete group %s: Kafka error %d", group, code)
	}
}

// Whatever becomes of the group's offsets between two runs, and if others write them last, the
// second run goes on where the output ends.
func TestOffsetsOfTheGroupDecideNothing(t *testing.T) {
	t.Parallel()
	brokers := startBroker(t)
	const forgotten = -1
	for name, offset := range map[string]int64{
		"a zombie sets them back":           2,
		"they are ahead of the output":      25,
		"they are beyond the log":           1000,
		"they are forgotten":                forgotten,
		"a zombie's are no longer in a log": 3,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, topic := t.TempDir(), topicOf(t)
			group := "group-" + topic
			run := []string{"run", "--brokers", brokers, "--topic", topic, "--out", "out", "--until-end",
				"--group", group}
			onePartition(t, dir, brokers, topic, 10)
			must(t, dir, run...)
			onePartition(t, dir, brokers, topic, 20)
			if offset == 3 {
				deleteRecords(t, brokers, topic, 10) // up to what the output has
			}
			if offset == forgotten {
				deleteGroup(t, brokers, group)
			} else {
				commitOffset(t, brokers, group, topic, offset)
			}
			must(t, dir, run...)
			holds(t, filepath.Join(dir, "out"), 30)
		})
	}
}
