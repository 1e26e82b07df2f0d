package compact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"entropipe/sinks"
	"entropipe/sinks/record"
)

// topic is a topic of the source.
type topic struct {
	name       string
	partitions []int32 // ascending
}

// copyRecord gives the target a commit record of the source, byte for byte. Records never
// change, so any compactor may be first.
func (c *Compactor) copyRecord(ctx context.Context, name string) error {
	if c.done[name] {
		return nil
	}
	data, err := sinks.ReadRecord(ctx, c.from, name)
	if err == nil {
		err = c.create(ctx, name, data)
	}
	if err != nil {
		return sinks.Unavailable(fmt.Errorf("record of the source: %w", err))
	}
	c.done[name] = true
	return nil
}

func (c *Compactor) create(ctx context.Context, name string, data []byte) error {
	found, _, err := sinks.CreateRecord(ctx, c.into, name, data)
	if err == nil && !bytes.Equal(found, data) {
		err = fmt.Errorf("%s differs from that of the source, and no record ever changes: one of them is damaged", name)
	}
	return err
}

// topics lists the topics of the source, and gives the target their bases and plans.
func (c *Compactor) topics(ctx context.Context) ([]topic, error) {
	folders, err := c.from.Names(ctx, record.TopicsFolder)
	if err != nil && !errors.Is(err, sinks.ErrNotFound) {
		return nil, err
	}
	slices.Sort(folders)
	var all []topic
	for _, folder := range folders {
		folder = record.TopicsFolder + "/" + folder
		names, err := c.from.Names(ctx, folder)
		if err != nil {
			return nil, err
		}
		var t topic
		for _, name := range names {
			if id, ok := record.PartitionID(name); ok {
				t.partitions = append(t.partitions, id)
			}
		}
		slices.Sort(t.partitions)
		if slices.Contains(names, record.PlanFile) {
			if err := c.plan(ctx, folder); err != nil {
				return nil, err
			}
		}
		if t.name, err = c.bases(ctx, folder, names); err != nil {
			return nil, err
		}
		if t.name != "" {
			all = append(all, t)
		}
	}
	return all, nil
}

// bases gives the target the bases of a topic, the first one first, and returns its name; empty:
// the topic has no base yet.
func (c *Compactor) bases(ctx context.Context, folder string, names []string) (name string, err error) {
	first := folder + "/" + record.BaseFile
	data, err := sinks.ReadRecord(ctx, c.from, first)
	if errors.Is(err, sinks.ErrNotFound) {
		return "", nil
	}
	var head record.Base
	if err == nil {
		err = record.Parse(first, data, &head)
	}
	if err == nil && record.TopicFolder(head.Topic) != folder {
		err = fmt.Errorf("%s is the base of topic %q, which belongs elsewhere", first, head.Topic)
	}
	for n := 1; err == nil && n <= record.MaxBases && slices.Contains(names, record.BaseName(n)); n++ {
		err = c.copyRecord(ctx, folder+"/"+record.BaseName(n))
	}
	return head.Topic, err
}

// plan gives the target the plan of a folder, after its parts. Places in the order of plans
// are not copied: they say who works on a plan, and nobody does in a compaction.
func (c *Compactor) plan(ctx context.Context, folder string) error {
	name := folder + "/" + record.PlanFile
	if c.done[name] {
		return nil
	}
	data, err := sinks.ReadRecord(ctx, c.from, name)
	if errors.Is(err, sinks.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	p, err := record.ParsePlan(name, data)
	if err != nil {
		return err
	}
	parts := slices.Clone(p.Lists)
	for i := range p.Segments {
		parts = append(parts, record.PlanPart{SHA256: p.Segments[i].SHA256})
	}
	for _, part := range parts {
		if err := c.copyRecord(ctx, record.PartName(part.SHA256)); err != nil {
			return err
		}
	}
	return c.copyRecord(ctx, name)
}

// replays gives the target the records of replays, so that a replay from the target does not
// send again what one from the source has sent. Where a replay from the target has made a record
// of the same name, that one stays.
func (c *Compactor) replays(ctx context.Context) error {
	names, err := c.from.Names(ctx, record.ReplaysFolder)
	if err != nil && !errors.Is(err, sinks.ErrNotFound) {
		return err
	}
	slices.Sort(names)
	for _, base := range names {
		name := path.Join(record.ReplaysFolder, base)
		if _, _, ok := record.ParseReplayName(name); !ok || c.done[name] {
			continue
		}
		data, err := sinks.ReadRecord(ctx, c.from, name)
		if err == nil {
			_, _, err = sinks.CreateRecord(ctx, c.into, name, data)
		}
		if err != nil {
			return err
		}
		c.done[name] = true
	}
	return nil
}

// explained returns err with what is known of the cause: files of retired commits are gone.
func (c *Compactor) explained(ctx context.Context, r *span, err error) error {
	if !errors.Is(err, sinks.ErrNotFound) {
		return err
	}
	for _, m := range r.manifests {
		retired, readErr := sinks.ReadRetired(ctx, c.from, m.TopicPartition(), m.Start)
		if readErr == nil {
			return fmt.Errorf("offsets %d to %d of the source were retired: output %s has their rows; compact "+
				"that one instead: %w", m.Start, m.End-1, retired.CoveredBy, err)
		}
	}
	return err
}
