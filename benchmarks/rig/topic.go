package rig

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	kafka "github.com/segmentio/kafka-go"
)

// Range is the part of a partition that its log holds: [Start, End).
type Range struct{ Start, End int64 }

// Client talks to the broker at addr. Close drops its connections.
type Client struct {
	*kafka.Client
	transport *kafka.Transport
}

// NewClient returns a client whose calls take at most 30 s.
func NewClient(addr string) *Client {
	t := &kafka.Transport{DialTimeout: 3 * time.Second, MetadataTTL: time.Second}
	return &Client{&kafka.Client{Addr: kafka.TCP(addr), Transport: t, Timeout: 30 * time.Second}, t}
}

// Close drops the idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// CreateTopic creates a topic of one replica for messages of up to maxBytes, 0: the broker's
// limit, and waits until every partition has a leader.
func (c *Client) CreateTopic(ctx context.Context, topic string, partitions int, maxBytes int64) error {
	config := kafka.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}
	if maxBytes > 0 {
		config.ConfigEntries = []kafka.ConfigEntry{{ConfigName: "max.message.bytes",
			ConfigValue: strconv.FormatInt(maxBytes, 10)}}
	}
	err := c.again(ctx, func(ctx context.Context) error {
		r, err := c.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{config}})
		if err == nil {
			err = r.Errors[topic]
		}
		if errors.Is(err, kafka.TopicAlreadyExists) {
			return nil // by a try whose answer was lost
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	_, err = c.Ranges(ctx, topic, partitions)
	return err
}

// Ranges returns what the log holds of the first n partitions of a topic.
func (c *Client) Ranges(ctx context.Context, topic string, n int) (map[int32]Range, error) {
	var asked []kafka.OffsetRequest
	for p := range n {
		asked = append(asked, kafka.FirstOffsetOf(p), kafka.LastOffsetOf(p))
	}
	ranges := map[int32]Range{}
	err := c.again(ctx, func(ctx context.Context) error {
		r, err := c.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: asked}})
		if err != nil {
			return err
		}
		for _, p := range r.Topics[topic] {
			if p.Error != nil {
				return p.Error
			}
			ranges[int32(p.Partition)] = Range{p.FirstOffset, p.LastOffset}
		}
		if len(ranges) != n {
			return fmt.Errorf("%d of %d partitions answered", len(ranges), n)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("offsets of topic %s: %w", topic, err)
	}
	return ranges, nil
}

// again calls f until it succeeds, for at most two minutes: a broker that has just
// started answers that it knows no controller or no leader yet.
func (c *Client) again(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
