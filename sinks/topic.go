package sinks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"entropipe/schemas"
	"entropipe/sinks/record"
)

// A topic that is deleted and created again is another topic with another id, and
// none of its records may follow the committed ones. base.json and every manifest
// have the id; the reader of the topic compares it with that of the brokers.
//
// Accept is the one way to continue in a topic with another id, for a mirror on
// another cluster. It creates base-2.json beside base.json (base-3.json the next
// time): the same kind of record with the new id and the offsets at which the
// partitions continued. Like every commit record it is never changed.

// topicID returns the id that a record names. ParseBase and ParseManifest have
// checked its form.
func topicID(text string) schemas.TopicID {
	id, _ := schemas.ParseTopicID(text)
	return id
}

// newestBase returns the number of the topic's newest base, and that base.
func (o *Output) newestBase(ctx context.Context, topic string, first *record.Base) (n int,
	newest *record.Base, err error) {
	newest = first
	for n = 1; n < record.MaxBases; n++ {
		next, err := o.readBase(ctx, topic, n+1)
		if errors.Is(err, ErrNotFound) {
			break
		}
		if err != nil {
			return n, newest, err
		}
		newest = next
	}
	return n, newest, nil
}

// readBase reads base number n of the topic.
func (o *Output) readBase(ctx context.Context, topic string, n int) (*record.Base, error) {
	name := record.TopicFolder(topic) + "/" + record.BaseName(n)
	data, err := o.store.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	b, err := record.ParseBase(name, data, topic)
	if err == nil && b.Format != record.FormatVersion {
		err = &record.FormatError{Name: name, Format: b.Format} // copied here from another output
	}
	return b, err
}

// TopicID returns the topic id that was accepted last, or the id in base.json. It is
// zero if there is no base, or if the brokers had no ids when the base was made; then
// the positions of partitions may have one.
func (o *Output) TopicID(ctx context.Context, topic string) (schemas.TopicID, error) {
	first, err := o.base(ctx, topic)
	if errors.Is(err, ErrNotFound) {
		return schemas.TopicID{}, nil
	}
	if err != nil {
		return schemas.TopicID{}, err
	}
	_, newest, err := o.newestBase(ctx, topic, first)
	if err != nil {
		return schemas.TopicID{}, err
	}
	return topicID(newest.TopicID), nil
}

// TopicIDIn returns the same id as Output.TopicID, for the output in store, without
// opening it for writing.
func TopicIDIn(ctx context.Context, store Reader, topic string) (id schemas.TopicID, err error) {
	for n := 1; n <= record.MaxBases; n++ {
		name := record.TopicFolder(topic) + "/" + record.BaseName(n)
		data, err := ReadRecord(ctx, store, name)
		if errors.Is(err, ErrNotFound) {
			break
		}
		if err != nil {
			return id, err
		}
		b, err := record.ParseBase(name, data, topic)
		if err != nil {
			return id, err
		}
		id = topicID(b.TopicID)
	}
	return id, nil
}

// position returns the position after the newest manifest m of partition p; nil: p
// has none. Its id is the one that was accepted last, otherwise that of m, otherwise
// that of the base: brokers may have got ids after the base was made.
func (o *Output) position(ctx context.Context, p partition, m *record.Manifest) (schemas.Position, error) {
	base, err := o.base(ctx, p.Topic)
	if err != nil {
		return schemas.Position{}, err
	}
	n, newest, err := o.newestBase(ctx, p.Topic, base)
	pos := schemas.Position{Next: base.Start(p.ID), TopicID: topicID(newest.TopicID)}
	if m == nil || err != nil {
		return pos, err
	}
	pos.Next, pos.Last = m.End, m.Last
	if m.Chunks != nil {
		pos.Chunks = &schemas.Chunked{Ahead: m.Chunks.Ahead, Closed: m.Chunks.Closed}
	}
	if id := topicID(m.TopicID); n == 1 && !id.IsZero() {
		pos.TopicID = id
	}
	return pos, nil
}

// Positions returns the position of every partition of the topic that has a manifest
// or a start in the base. Unlike Resume it changes nothing. It may be called beside
// writers.
func (o *Output) Positions(ctx context.Context, topic string) (map[int32]schemas.Position, error) {
	base, err := o.base(ctx, topic)
	if err != nil {
		return nil, err
	}
	names, err := o.store.Names(ctx, record.TopicFolder(topic))
	if err != nil {
		return nil, err
	}
	positions := map[int32]schemas.Position{}
	for _, name := range append(names, slices.Collect(maps.Keys(base.Starts))...) {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil || id < 0 {
			continue // a base
		}
		p := partition{Topic: topic, ID: int32(id)}
		m, err := o.newest(ctx, p)
		if err == nil {
			positions[p.ID], err = o.position(ctx, p, m)
		}
		if err != nil {
			return nil, err
		}
	}
	return positions, nil
}

// Accept makes id the topic's id from the given positions on, durably and for all
// writers. The caller must have checked that the topic with this id continues the
// committed records. When two writers accept different ids at once, one of them fails.
func (o *Output) Accept(ctx context.Context, topic string, id schemas.TopicID,
	positions map[int32]schemas.Position) error {
	first, err := o.base(ctx, topic)
	if err != nil {
		return err
	}
	n, newest, err := o.newestBase(ctx, topic, first)
	if err != nil || topicID(newest.TopicID) == id {
		return err
	}
	b := record.Base{Format: record.FormatVersion, UUID: record.NewUUID(), Topic: topic, TopicID: id.String(),
		Created: time.Now().UTC(), Starts: map[string]int64{}}
	for p, pos := range positions {
		b.Starts[strconv.Itoa(int(p))] = pos.Next
	}
	name := record.TopicFolder(topic) + "/" + record.BaseName(n+1)
	found, _, err := createOrAdopt(ctx, o.store, name, record.Encode(b))
	if err != nil {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	winner, err := record.ParseBase(name, found, topic)
	if err == nil && topicID(winner.TopicID) != id {
		err = fmt.Errorf("topic %s: another process has accepted id %s at the same moment", topic, winner.TopicID)
	}
	return err
}
