package run

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"entropipe/schemas"
)

// continues compares the topic that the consumer has found with the one that the
// output was written from. It is asked before this process joins the group: one
// that gets no partition would not notice, and may find every end reached.
//
// With --accept-topic the topic may have another id, if it holds what was read of
// the old one.
func (k *kafkaFeed) continues(ctx context.Context, topic string, starts map[int32]int64) error {
	is := k.consumer.TopicID(topic)
	if slices.Contains(k.s.flags.Source.AcceptTopic, topic) {
		return k.accept(ctx, topic, is, starts)
	}
	was, err := k.s.Output.TopicID(ctx, topic)
	if err != nil || was.IsZero() || is.IsZero() || was == is {
		return err
	}
	return &schemas.RecreatedError{Topic: topic, Partition: -1, Was: was, Is: is}
}

// accept makes the topic's id the one that the output goes on with, if that was
// another and every partition holds the last record that was committed of it.
func (k *kafkaFeed) accept(ctx context.Context, topic string, is schemas.TopicID, starts map[int32]int64) error {
	positions, err := k.s.Output.Positions(ctx, topic)
	if err != nil {
		return err
	}
	known := func(p schemas.Position) bool { return p.TopicID.IsZero() || p.TopicID == is }
	all := slices.Collect(maps.Values(positions))
	if is.IsZero() || !slices.ContainsFunc(all, func(p schemas.Position) bool { return !known(p) }) {
		k.s.log.Info("--accept-topic has nothing to do: the topic is the one that the output was written from, or "+
			"the brokers have no ids", "topic", topic, "topic_id", is.String())
		return nil
	}
	refused := func(why error) error { return fmt.Errorf("--accept-topic %s: %w; write to a new --out", topic, why) }
	if !slices.ContainsFunc(all, func(p schemas.Position) bool { return p.Last != nil }) {
		return refused(fmt.Errorf("the output has no record of it that could be compared"))
	}
	for _, id := range slices.Sorted(maps.Keys(positions)) {
		if _, there := starts[id]; !there {
			return refused(fmt.Errorf("the topic has no partition %d any more", id))
		}
		if err := k.consumer.Holds(ctx, topic, id, positions[id]); err != nil {
			return refused(err)
		}
	}
	if err := k.s.Output.Accept(ctx, topic, is, positions); err != nil {
		return err
	}
	k.s.log.Warn("the topic has another id and is accepted: the last committed record of every partition is there "+
		"and equal", "topic", topic, "topic_id", is.String(), "partitions", len(positions))
	return nil
}
