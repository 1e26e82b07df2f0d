package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"entropipe/cmd/command"
	"entropipe/cmd/mistake"
	"entropipe/sinks"
)

// CheckContent compares what this process writes with the newest manifest of
// topics. With --strict-config a difference is a *mistake.Config, unless
// --new-config says that it is meant.
func (s *Service) CheckContent(ctx context.Context, topics []string) error {
	var problems []mistake.Problem
	for _, topic := range topics {
		change, err := s.Output.Changed(ctx, topic)
		if err != nil {
			return err
		}
		if change == nil || !s.flags.Output.StrictConfig || s.flags.Output.NewConfig {
			continue
		}
		problems = append(problems, mistake.Problem{Path: "strict-config",
			What: fmt.Sprintf("%s goes on with topic %s from offset %d of partition %d, where another configuration "+
				"ended: %s; --new-config allows this change",
				s.flags.Output.Out, topic, change.Offset, change.Partition, change)})
	}
	if len(problems) > 0 {
		return &mistake.Config{Problems: problems}
	}
	return nil
}

// contentChanged logs that rows change along a partition's chain.
func (s *Service) contentChanged(c *sinks.ContentChange) {
	s.log.Info(fmt.Sprintf("from offset %d: %s", c.Offset, c), "topic", c.Topic, "partition", c.Partition, "note",
		"other partitions change where they go on")
}

// foreignWatch looks for other processes that write to the output with another
// configuration, and at the space of its disk, until done is closed. It has a goroutine
// of its own: a network file system whose server is away blocks it.
func (s *Service) foreignWatch(done <-chan struct{}) {
	look, told := s.Output.Foreign(s.feed.Topics()), map[string]time.Time{}
	every := foreignEvery
	if command.IsBucket(s.flags.Output.Out) { // a look costs a listing of each topic
		every = foreignInBucket
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if free, size, ok := s.store.Space(); ok {
			s.metrics.Disk(free, size)
		}
		found, err := look.Look(context.Background())
		if err != nil {
			s.log.Debug("the manifests of other processes cannot be looked at", "error", err)
		}
		for i := range found {
			s.foreignFound(&found[i], told)
		}
		select {
		case <-tick.C:
		case <-done:
			return
		}
	}
}

// foreignFound counts and tells of a manifest of another configuration.
func (s *Service) foreignFound(c *sinks.ContentChange, told map[string]time.Time) {
	if s.model != nil && len(c.Changes) == 1 && strings.HasPrefix(c.Changes[0], "model_sha256: ") {
		// Processes find a model's new file at different moments, and hints change no row.
		s.log.Debug("another process has another version of the model's file", "change", c.String())
		return
	}
	s.metrics.ForeignConfiguration(c.Topic)
	if time.Since(told[c.Is]) < foreignRemind {
		return
	}
	told[c.Is] = time.Now()
	s.log.Warn("another process writes to this output with another configuration: rows of both lie side by side",
		"topic", c.Topic, "partition", c.Partition, "offset", c.Offset, "here_and_there", c.String())
	if s.flags.Output.StrictConfig {
		s.fail(&mistake.Config{Problems: []mistake.Problem{{Path: "strict-config",
			What: fmt.Sprintf("another process writes topic %s to %s with another configuration (partition %d, "+
				"offset %d): %s",
				c.Topic, s.flags.Output.Out, c.Partition, c.Offset, c)}}})
	}
}

// Of other processes with another configuration.
const (
	foreignEvery  = 3 * time.Second // between two looks at their manifests
	foreignRemind = time.Minute     // between two lines about the same difference
	// between two looks at a bucket, whose requests are charged for
	foreignInBucket = time.Minute
)
