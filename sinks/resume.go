package sinks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"entropipe/schemas"
	"entropipe/sinks/record"
)

// Base fixes where the output begins in each partition of a topic, unless that
// has been done: the first writer's starts hold for all, for ever. It comes
// before the first fetch. Two writers with different ideas of the beginning
// would otherwise both commit, one more than the other. id is that of the topic
// which the starts were read from; zero: not known.
func (o *Output) Base(ctx context.Context, topic string, id schemas.TopicID, starts map[int32]int64) error {
	if found, err := o.HasBase(ctx, topic); found || err != nil {
		return err
	}
	b := record.Base{Format: record.FormatVersion, UUID: record.NewUUID(), Topic: topic, TopicID: id.String(), Created: time.Now().UTC(), Starts: map[string]int64{}}
	for p, start := range starts {
		if p < 0 || start < 0 {
			return fmt.Errorf("topic %s: partition %d cannot begin at %d", topic, p, start)
		}
		b.Starts[strconv.Itoa(int(p))] = start
	}
	name := record.TopicFolder(topic) + "/" + record.BaseFile
	found, _, err := createOrAdopt(ctx, o.store, name, record.Encode(b))
	if err != nil {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	_, err = record.ParseBase(name, found, topic)
	return err
}

// HasBase tells whether the output knows the topic already.
func (o *Output) HasBase(ctx context.Context, topic string) (bool, error) {
	_, err := o.base(ctx, topic)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (o *Output) base(ctx context.Context, topic string) (*record.Base, error) {
	return o.readBase(ctx, topic, 1)
}

// Resume publishes the newest manifest of the partition, if there is one, and
// returns where to go on. It removes what lost attempts have staged. Only a
// partition that was resumed can be committed to, from the returned offset.
//
// Files of that manifest that are still staged are compared with their
// checksums first. *DamagedFileError: one has changed; nothing is moved or
// removed then. Files that are in their place already are not read: Verify does
// that.
//
// The cost grows with the number of manifests the first time, when their names
// are listed; later with the number of those that are new. What is still staged,
// one commit at most, is read once.
func (o *Output) Resume(ctx context.Context, topic string, id int32) (schemas.Position, error) {
	p := record.TopicPartition{Topic: topic, ID: id}
	err := o.forget(ctx, p)
	o.take(p, -1)
	var pos schemas.Position
	if err == nil {
		pos, err = o.resume(ctx, p)
	}
	if err != nil {
		return pos, unavailable(fmt.Errorf("%s/%d: resume: %w", topic, id, err))
	}
	o.give(p, pos.Next)
	o.mu.Lock()
	o.ids[p] = pos.TopicID
	o.mu.Unlock()
	return pos, nil
}

// Reached tells whether all of the partition before end is committed, whoever
// did it, and then sees to it that its files are where readers look: the writer
// of the newest manifest may have died before it published them. Staged files
// are compared as Resume does. It may be asked beside writers.
func (o *Output) Reached(ctx context.Context, topic string, id int32, end int64) (bool, error) {
	base, err := o.base(ctx, topic)
	if err != nil {
		return false, err
	}
	m, err := o.newest(ctx, record.TopicPartition{Topic: topic, ID: id})
	if err != nil || m == nil {
		return err == nil && base.Start(id) >= end, err
	}
	if m.End < end {
		return false, nil
	}
	if err := o.publish(ctx, m, true); err != nil {
		return false, unavailable(err)
	}
	return true, nil
}

func (o *Output) resume(ctx context.Context, p record.TopicPartition) (schemas.Position, error) {
	m, err := o.newest(ctx, p)
	if err != nil {
		return schemas.Position{}, err
	}
	pos, err := o.position(ctx, p, m)
	if err == nil && m != nil {
		err = o.publish(ctx, m, true)
	}
	if err != nil {
		return pos, err
	}
	o.resumed(ctx, m)
	return pos, o.clean(ctx, p)
}

// newest returns the partition's manifest with the highest start, nil if there is
// none, and remembers it: manifests are never removed, so the next call goes on
// from there, manifest by manifest.
func (o *Output) newest(ctx context.Context, p record.TopicPartition) (*record.Manifest, error) {
	o.mu.Lock()
	start, known := o.seen[p]
	o.mu.Unlock()
	if !known {
		names, err := o.store.Names(ctx, record.ManifestFolder(p))
		if err != nil {
			return nil, err
		}
		start = -1
		for _, name := range names {
			if s, ok := record.ManifestStart(name); ok {
				start = max(start, s)
			}
		}
		if start < 0 {
			return nil, nil
		}
	}
	m, err := ReadManifest(ctx, o.store, record.ManifestName(p, start))
	for err == nil {
		var next *record.Manifest
		if next, err = ReadManifest(ctx, o.store, record.ManifestName(p, m.End)); err == nil {
			m = next
		}
	}
	if m == nil || !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	if m, err = o.readManifest(ctx, record.ManifestName(p, m.Start)); err != nil { // durable from here on
		return nil, err
	}
	o.saw(p, m.Start)
	return m, nil
}

// saw remembers that the partition has a manifest at start.
func (o *Output) saw(p record.TopicPartition, start int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[p] = max(o.seen[p], start)
}

func (o *Output) readManifest(ctx context.Context, name string) (*record.Manifest, error) {
	data, err := o.store.Read(ctx, name)
	if err != nil {
		return nil, err
	}
	m, err := record.ParseManifest(name, data)
	if err == nil && m.Format != record.FormatVersion {
		err = &record.FormatError{Name: name, Format: m.Format}
	}
	return m, err
}

// clean discards what attempts on this partition have staged that can never be
// committed: a manifest with their start names another uuid. An attempt whose
// start is still free may be another writer's, alive; its age says nothing.
func (o *Output) clean(ctx context.Context, p record.TopicPartition) error {
	attempts := map[string]bool{}
	err := o.store.List(ctx, record.StagingFolder, func(e Entry) error {
		attempts[strings.SplitN(e.Name, "/", 3)[1]] = true
		return nil
	})
	if err != nil {
		return err
	}
	for name := range attempts {
		start, uuid, ours := record.ParseStagingName(p, name)
		if !ours {
			continue
		}
		m, err := o.readManifest(ctx, record.ManifestName(p, start))
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if m.UUID != uuid {
			if err := o.store.Discard(ctx, record.StagingFolder+"/"+name); err != nil {
				return err
			}
		}
	}
	return nil
}
