package run

import (
	"context"
	"errors"
	"maps"
	"slices"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/ingest"
	"entropipe/ops/metrics"
)

// Topics returns the Feed of the topics of --topic: a member of a consumer group.
func Topics() Feed { return &kafkaFeed{} }

// kafkaFeed is the Feed of topics.
type kafkaFeed struct {
	s        *Service
	consumer *ingest.Consumer // nil before Open
	group    string
	seen     ingest.Stats // as Count reported them
}

// Look finds the brokers and the topics.
func (k *kafkaFeed) Look(ctx context.Context, s *Service) error {
	k.s = s
	c := &s.flags.Source
	if err := ingest.Find(ctx, c.Brokers, s.security, c.Topic); err != nil {
		return err
	}
	return k.lookForTexts(ctx)
}

// Open makes the consumer and writes down where every partition begins.
func (k *kafkaFeed) Open(ctx context.Context, s *Service) (partitions int, err error) {
	c := &s.flags.Source
	if k.group = c.Group; k.group == "" {
		k.group = s.Output.DefaultGroup()
	}
	k.consumer, err = ingest.NewConsumer(ingest.Config{Brokers: c.Brokers, Security: s.security, Topics: c.Topic,
		Group: k.group, Instance: c.GroupInstance, Output: s.Output.UUID(), OutputInode: s.Output.Inode(),
		Page: s.page(), UntilEnd: c.UntilEnd, Reached: s.reached,
		MaxFrameBytes: int64(s.flags.Frames.MaxFrameBytes), Log: s.log, Complaints: &s.complaints,
		Timing: ingest.Timing{Session: c.Session, Rebalance: c.Rebalance}})
	if err != nil {
		return 0, err
	}
	s.metrics.Group(k.group)
	starts := map[string]map[int32]int64{}
	for _, topic := range c.Topic {
		if starts[topic], err = k.consumer.Starts(ctx, topic, c.From); err != nil {
			return 0, err
		}
		k.hint(ctx, topic, slices.Collect(maps.Keys(starts[topic]))...)
	}
	if err := s.CheckContent(ctx, c.Topic); err != nil {
		return 0, err
	}
	return k.fixBase(ctx, starts)
}

// hint passes on where the newest commits of partitions probably begin, if that spares the
// output's store a listing.
func (k *kafkaFeed) hint(ctx context.Context, topic string, ids ...int32) {
	if !k.s.Output.TakesHints() {
		return
	}
	for id, start := range k.consumer.Hints(ctx, topic, ids) {
		k.s.Output.Hint(topic, id, start)
	}
}

// fixBase writes down where every partition begins, before the first fetch. An
// output that knows the topic already keeps what it has. It returns how many
// partitions the largest topic has.
func (k *kafkaFeed) fixBase(ctx context.Context, all map[string]map[int32]int64) (partitions int, err error) {
	s, c := k.s, &k.s.flags.Source
	for _, topic := range c.Topic {
		starts := all[topic]
		known, err := s.Output.HasBase(ctx, topic)
		if err != nil {
			return 0, err
		}
		if !known {
			if err := k.checkTexts(ctx, k.consumer, topic, starts); err != nil {
				return 0, err
			}
		}
		if known { // other rows of the same records need another folder
			s.log.Info("the output has this topic: it goes on behind the records that it holds", "topic", topic)
		}
		if err := s.Output.Base(ctx, topic, k.consumer.TopicID(topic), starts); err != nil {
			return 0, err
		}
		if err := k.continues(ctx, topic, starts); err != nil {
			return 0, err
		}
		partitions = max(partitions, len(starts))
	}
	return partitions, nil
}

// Run reads the partitions that the group assigns.
func (k *kafkaFeed) Run(ctx context.Context, handle Handle) error {
	err := k.consumer.Run(ctx, func(ctx context.Context, p *ingest.Partition) error {
		k.hint(ctx, p.Topic, p.ID)
		return handle(ctx, p.Topic, p.ID, p)
	})
	if other := (*ingest.OutputError)(nil); errors.As(err, &other) {
		return &mistake.Config{Problems: []mistake.Problem{{What: other.Error()}}}
	}
	if fenced := (*ingest.InstanceError)(nil); errors.As(err, &fenced) {
		return &mistake.Config{Problems: []mistake.Problem{{What: fenced.Error()}}}
	}
	return err
}

// Verdict is an error if the run was to go on to the end and was interrupted.
func (k *kafkaFeed) Verdict(ctx context.Context) error {
	if ctx.Err() == nil || !k.s.flags.Source.UntilEnd {
		return nil
	}
	left, err := k.consumer.Left(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	if left != "" {
		return &command.InterruptedError{Left: left}
	}
	return nil
}

// Topics are those of --topic.
func (k *kafkaFeed) Topics() []string { return k.s.flags.Source.Topic }

// Name is what the feed reads from.
func (k *kafkaFeed) Name() string { return "brokers" }

// Ready says whether a broker answers.
func (k *kafkaFeed) Ready() error {
	if !k.consumer.Stats().Connected {
		return errors.New("no broker answers")
	}
	return nil
}

// View asks the brokers for the consumer group.
func (k *kafkaFeed) View(ctx context.Context) (*ingest.View, error) { return k.consumer.View(ctx) }

// Generation returns the number of the group's generation, which changes with its members.
func (k *kafkaFeed) Generation() int32 { return k.consumer.Stats().Generation }

// Count reports rebalances, failures and partitions.
func (k *kafkaFeed) Count(m *metrics.Metrics) {
	now := k.consumer.Stats()
	m.Consumer(now.Rebalances-k.seen.Rebalances,
		now.FetchErrors+now.JoinErrors-k.seen.FetchErrors-k.seen.JoinErrors, now.Assigned)
	k.seen = now
}

// Close closes the consumer.
func (k *kafkaFeed) Close() {
	if k.consumer != nil {
		k.consumer.Close()
	}
}
