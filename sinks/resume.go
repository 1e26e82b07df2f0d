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

// Base fixes the offset at which the output begins in each partition of a topic. The
// starts of the first writer hold for all writers and for good; later calls change
// nothing. Writers call it before they fetch: with different beginnings both would
// commit, and some records would be in the output twice. id is the id of the topic
// whose offsets starts are; zero: unknown. A partition without a start begins at 0.
func (o *Output) Base(ctx context.Context, topic string, id schemas.TopicID, starts map[int32]int64) error {
	if found, err := o.HasBase(ctx, topic); found || err != nil {
		return err
	}
	b := record.Base{Format: record.FormatVersion, UUID: record.NewUUID(), Topic: topic, TopicID: id.String(),
		Created: time.Now().UTC(), Starts: map[string]int64{}}
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

// HasBase tells whether the output has a base for the topic.
func (o *Output) HasBase(ctx context.Context, topic string) (bool, error) {
	_, err := o.base(ctx, topic)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// base returns the first base of a topic. It never changes, so it is read once.
func (o *Output) base(ctx context.Context, topic string) (*record.Base, error) {
	o.mu.Lock()
	b := o.bases[topic]
	o.mu.Unlock()
	if b != nil {
		return b, nil
	}
	b, err := o.readBase(ctx, topic, 1)
	if err == nil {
		o.mu.Lock()
		o.bases[topic] = b
		o.mu.Unlock()
	}
	return b, err
}

// Resume publishes the newest manifest of a partition, discards the staging of lost
// attempts and returns the position at which the partition continues: the end of that
// manifest, or the start in the base. Only a resumed partition can be committed to,
// from that offset on.
//
// Staged files of the manifest are compared with their checksums first.
// *DamagedFileError: a file has changed; then nothing is moved or removed. Published
// files are not read (package read verifies them). ErrNotFound: the topic has no base.
//
// Cost: the first call lists the names of all manifests of the partition, or, in a store that
// can, those from its Hint on; later calls open the new ones. At most one commit is staged, and
// is read once.
func (o *Output) Resume(ctx context.Context, topic string, id int32) (schemas.Position, error) {
	p := partition{Topic: topic, ID: id}
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

// Reached tells whether all offsets of a partition before end are committed, by any
// writer. If so, it publishes the newest manifest, whose writer may have died before
// it did; staged files are compared with their checksums as in Resume. It may be
// called beside writers.
func (o *Output) Reached(ctx context.Context, topic string, id int32, end int64) (bool, error) {
	m, err := o.newest(ctx, partition{Topic: topic, ID: id})
	if err != nil {
		return false, err
	}
	if m == nil {
		base, err := o.base(ctx, topic)
		return err == nil && base.Start(id) >= end, err
	}
	if m.End < end {
		return false, nil
	}
	if err := o.publish(ctx, m, foundStaged); err != nil {
		return false, unavailable(err)
	}
	return true, nil
}

func (o *Output) resume(ctx context.Context, p partition) (schemas.Position, error) {
	m, err := o.newest(ctx, p)
	if err != nil {
		return schemas.Position{}, err
	}
	pos, err := o.position(ctx, p, m)
	if err == nil && m != nil {
		err = o.publish(ctx, m, foundStaged)
	}
	if err != nil {
		return pos, err
	}
	o.resumed(ctx, m)
	return pos, o.clean(ctx, p)
}

// newest returns the partition's manifest with the highest start, or nil. It
// remembers that start: manifests are never removed, so the next call continues from
// there, manifest by manifest.
func (o *Output) newest(ctx context.Context, p partition) (*record.Manifest, error) {
	o.mu.Lock()
	start, known := o.seen[p]
	o.mu.Unlock()
	if !known {
		var err error
		if start, err = o.latest(ctx, p); err != nil || start < 0 {
			return nil, err
		}
	}
	m, err := o.listed(ctx, record.ManifestName(p, start), known)
	for steps := 0; err == nil; steps++ {
		var next *record.Manifest
		if steps == manySteps { // others have gone far: a store in a bucket lists cheaper than it opens
			if start, err = o.after(ctx, p, m.Start); err == nil && start > m.Start {
				m, err = o.listed(ctx, record.ManifestName(p, start), false)
				continue
			}
		}
		if err == nil {
			next, err = ReadManifest(ctx, o.store, record.ManifestName(p, m.End))
		}
		if err == nil {
			m = next
		}
	}
	if m == nil || !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	if m, err = o.readManifest(ctx, record.ManifestName(p, m.Start)); err != nil { // Read makes it durable
		return nil, err
	}
	o.saw(p, m.Start)
	return m, nil
}

// listed reads a manifest that is there. A network file system may list a name and not open
// its file for a while, unless this process has opened it before.
func (o *Output) listed(ctx context.Context, name string, opened bool) (*record.Manifest, error) {
	for try := 0; ; try++ {
		m, err := ReadManifest(ctx, o.store, name)
		if opened || !errors.Is(err, ErrNotFound) {
			return m, err
		}
		if try == hiddenTries {
			return nil, fmt.Errorf("%s is listed and cannot be read: %w", name, ErrExists)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(createWait << try):
		}
	}
}

// saw remembers that the partition has a manifest at start.
func (o *Output) saw(p partition, start int64) {
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

// Sweep discards the staging of attempts on all partitions of a topic that can never be
// committed. Resume does it for one partition; Sweep is for partitions that nobody resumes
// again, since they are complete. It may be called beside writers.
func (o *Output) Sweep(ctx context.Context, topic string) error {
	err := o.discard(ctx, "", func(name string) (partition, bool) {
		id, ok := record.StagedPartition(topic, name)
		return partition{Topic: topic, ID: id}, ok
	})
	return unavailable(err)
}

// clean discards the staging of attempts on this partition that can never be committed.
func (o *Output) clean(ctx context.Context, p partition) error {
	return o.discard(ctx, record.StagingPrefix(p), func(string) (partition, bool) { return p, true })
}

// discard discards the staging of attempts that can never be committed, since the manifest
// with their start has another uuid. An attempt whose start has no manifest may belong to
// a living writer; its age proves nothing. Names of the staging folders begin with begin. of
// returns the partition of a staging folder, if it is to be looked at.
func (o *Output) discard(ctx context.Context, begin string, of func(name string) (partition, bool)) error {
	attempts := map[string]bool{}
	note := func(e Entry) error {
		attempts[strings.SplitN(e.Name, "/", 3)[1]] = true
		return nil
	}
	err := o.listStaging(ctx, begin, note)
	if err != nil {
		return err
	}
	for name := range attempts {
		p, ok := of(name)
		start, uuid, ours := record.ParseStagingName(p, name)
		if !ok || !ours {
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
