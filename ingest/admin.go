package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"entropipe/schemas"
)

const (
	adminClient  = "entropipe-admin"
	adminConnect = 10 * time.Second

	limitConfig = "max.message.bytes"
)

// TopicSpec describes a topic. A zero field leaves the choice to the brokers.
type TopicSpec struct {
	Partitions        int
	ReplicationFactor int
	MaxMessageBytes   int64 // bytes of the largest batch, which Kafka calls a message
}

// LimitError says that a topic refuses messages of the needed size.
type LimitError struct {
	Topic  string
	Limit  int64 // max.message.bytes of the topic
	Needed int64
	Broker string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("topic %q takes messages of up to %d bytes, but %d are needed; raise its limit with: "+
		"kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config %s=%d",
		e.Topic, e.Limit, e.Needed, e.Broker, e.Topic, limitConfig, e.Needed)
}

// EnsureTopic creates the topic if it does not exist, and waits until it can be
// used. It does not change an existing topic; if the limit of an existing topic is
// below spec.MaxMessageBytes, the error is a *LimitError.
func EnsureTopic(ctx context.Context, brokers []string, security Security, topic string, spec TopicSpec) error {
	return administer(ctx, brokers, security, topic, func(k *cluster) error {
		counts, err := k.partitions(ctx, []string{topic})
		if no := (*DeniedError)(nil); errors.As(err, &no) {
			return err
		}
		if err != nil {
			return fmt.Errorf("topic %q: %w", topic, err)
		}
		if counts[topic] > 0 {
			return k.accepts(ctx, topic, spec)
		}
		if err := k.create(ctx, topic, spec); err != nil {
			return err
		}
		// A broker may answer for a moment as if the topic were not there yet.
		for deadline := time.Now().Add(adminConnect); ; {
			err := k.accepts(ctx, topic, spec)
			if !errors.Is(err, ErrNoTopic) || time.Now().After(deadline) {
				return err
			}
			if err := sleep(ctx, 50*time.Millisecond); err != nil {
				return err
			}
		}
	})
}

// accepts says whether the topic answers and takes messages as large as needed.
func (k *cluster) accepts(ctx context.Context, topic string, spec TopicSpec) error {
	if _, err := k.extents(ctx, topic, adminConnect); err != nil {
		return err
	}
	if spec.MaxMessageBytes == 0 {
		return nil
	}
	limit, err := k.limit(ctx, topic)
	if err != nil {
		return err
	}
	if limit < spec.MaxMessageBytes {
		return &LimitError{Topic: topic, Limit: limit, Needed: spec.MaxMessageBytes, Broker: k.brokers[0]}
	}
	return nil
}

// Topic describes a topic.
type Topic struct {
	Name            string
	ID              schemas.TopicID // zero: the brokers have no ids
	MaxMessageBytes int64           // -1: the brokers do not tell
	Partitions      []TopicPartition
}

// TopicPartition describes a partition's log: it holds the offsets [Start, End), and
// no open transaction has records in [Start, Stable).
type TopicPartition struct {
	ID                 int32
	Start, Stable, End int64
}

// Describe returns the id, the limit and the partitions of a topic. The error is
// ErrNoTopic if the topic does not exist.
func Describe(ctx context.Context, brokers []string, security Security, topic string) (Topic, error) {
	t := Topic{Name: topic}
	err := administer(ctx, brokers, security, topic, func(k *cluster) error {
		stable, who, err := k.identified(ctx, topic, adminConnect)
		if err != nil {
			return err
		}
		t.ID = who.id
		var ids []int32
		for id := range stable {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		ends, err := k.listOffsets(ctx, topic, ids, kafka.LastOffset, false)
		if err != nil {
			return err
		}
		for _, id := range ids {
			t.Partitions = append(t.Partitions, TopicPartition{ID: id, Start: stable[id].start,
				Stable: stable[id].end, End: ends[id]})
		}
		if t.MaxMessageBytes, err = k.limit(ctx, topic); err != nil {
			t.MaxMessageBytes = -1 // reading settings needs a further permission
		}
		return nil
	})
	return t, err
}

// Find returns nil when the brokers answer and have all of the topics, of which there
// must be at least one. It waits for brokers as Consumer.Starts does, and returns the
// same errors.
func Find(ctx context.Context, brokers []string, security Security, topics []string) error {
	if len(topics) == 0 {
		return errors.New("no topic given")
	}
	for _, topic := range topics {
		err := administer(ctx, brokers, security, topic, func(k *cluster) error {
			_, err := k.extents(ctx, topic, adminConnect)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// administer calls f with a cluster that answers.
func administer(ctx context.Context, brokers []string, security Security, topic string, f func(*cluster) error) error {
	if topic == "" {
		return errors.New("no topic given")
	}
	k, err := newCluster(brokers, security, adminClient, []string{topic})
	if err != nil {
		return err
	}
	defer k.close()
	if err := k.reach(ctx, adminConnect); err != nil {
		return err
	}
	return f(k)
}

func (k *cluster) create(ctx context.Context, topic string, spec TopicSpec) error {
	config := kafka.TopicConfig{Topic: topic, NumPartitions: spec.Partitions, ReplicationFactor: spec.ReplicationFactor}
	if config.NumPartitions == 0 {
		config.NumPartitions = -1
	}
	if config.ReplicationFactor == 0 {
		config.ReplicationFactor = -1
	}
	if spec.MaxMessageBytes > 0 {
		config.ConfigEntries = []kafka.ConfigEntry{{ConfigName: limitConfig,
			ConfigValue: strconv.FormatInt(spec.MaxMessageBytes, 10)}}
	}
	r, err := k.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{config}})
	if err == nil {
		err = r.Errors[topic]
	}
	if err == nil || errors.Is(err, kafka.TopicAlreadyExists) { // another producer was quicker
		return nil
	}
	if no := k.denied(err, "Create", topic); no != err {
		return fmt.Errorf("topic %q does not exist and cannot be created: %w", topic, no)
	}
	return fmt.Errorf("topic %q does not exist and cannot be created: %w; create it with: kafka-topics.sh "+
		"--bootstrap-server %s --create --topic %s%s",
		topic, err, k.brokers[0], topic, spec.flags())
}

// flags are those of kafka-topics.sh.
func (s TopicSpec) flags() string {
	var b strings.Builder
	if s.Partitions > 0 {
		fmt.Fprintf(&b, " --partitions %d", s.Partitions)
	}
	if s.ReplicationFactor > 0 {
		fmt.Fprintf(&b, " --replication-factor %d", s.ReplicationFactor)
	}
	if s.MaxMessageBytes > 0 {
		fmt.Fprintf(&b, " --config %s=%d", limitConfig, s.MaxMessageBytes)
	}
	return b.String()
}

func (k *cluster) limit(ctx context.Context, topic string) (int64, error) {
	r, err := k.client.DescribeConfigs(ctx,
		&kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
			{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{limitConfig}}}})
	if err == nil && len(r.Resources) > 0 {
		err = r.Resources[0].Error
	}
	if errors.Is(err, kafka.UnknownTopicOrPartition) {
		return 0, k.noTopic(topic)
	}
	if err != nil {
		return 0, fmt.Errorf("topic %q: its settings cannot be read: %w", topic, err)
	}
	for _, resource := range r.Resources {
		for _, e := range resource.ConfigEntries {
			if n, err := strconv.ParseInt(e.ConfigValue, 10, 64); e.ConfigName == limitConfig && err == nil {
				return n, nil
			}
		}
	}
	return 0, fmt.Errorf("topic %q: the broker does not tell its %s", topic, limitConfig)
}
