package sinks

import (
	"context"

	"entropipe/sinks/record"
)

// seeker is a store where a listing costs by the names that it returns, and may begin in the
// middle of a folder. Names in folders of such a store are in order.
type seeker interface {
	// NamesAfter returns the last elements of the names in folder that are greater than after.
	NamesAfter(ctx context.Context, folder, after string) ([]string, error)

	// ListBegin is List of those files below folder whose paths from there on begin with begin.
	ListBegin(ctx context.Context, folder, begin string, f func(Entry) error) error
}

// TakesHints tells whether hints save anything in the output's store.
func (o *Output) TakesHints() bool {
	_, ok := o.store.(seeker)
	return ok
}

// Hint says that a partition probably has a manifest that starts at start or later, so that
// the newest one is looked for from there on. A hint that is wrong costs a listing, and changes
// nothing: if there is no manifest from start on, all names are listed. It replaces an earlier
// hint. A negative start is none.
func (o *Output) Hint(topic string, id int32, start int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := (partition{Topic: topic, ID: id}); start >= 0 {
		o.hints[p] = start
	} else {
		delete(o.hints, p)
	}
}

// manySteps is how many manifests are opened one after the other before a listing is tried.
const manySteps = 16

// latest returns the largest start of the partition's manifests; -1: it has none. Names order
// manifests by their starts, so a listing from any name on that finds one finds the last.
func (o *Output) latest(ctx context.Context, p partition) (int64, error) {
	o.mu.Lock()
	hint, hinted := o.hints[p]
	o.mu.Unlock()
	if hinted && hint > 0 { // from 0 on are all
		if start, err := o.after(ctx, p, hint-1); err != nil || start >= 0 {
			return start, err
		}
	}
	names, err := o.store.Names(ctx, record.ManifestFolder(p))
	return largestStart(names), err
}

// after returns the largest start of the partition's manifests that is greater than start; -1:
// there is none, or the store lists whole folders only.
func (o *Output) after(ctx context.Context, p partition, start int64) (int64, error) {
	s, ok := o.store.(seeker)
	if !ok {
		return -1, nil
	}
	after := ""
	if start >= 0 {
		after = record.ManifestBase(start)
	}
	names, err := s.NamesAfter(ctx, record.ManifestFolder(p), after)
	return largestStart(names), err
}

// largestStart returns the largest start of the manifests among names; -1: there is none.
func largestStart(names []string) int64 {
	start := int64(-1)
	for _, name := range names {
		if s, ok := record.ManifestStart(name); ok {
			start = max(start, s)
		}
	}
	return start
}

// listStaging lists the files in those staging folders whose names begin with begin.
func (o *Output) listStaging(ctx context.Context, begin string, f func(Entry) error) error {
	if s, ok := o.store.(seeker); ok && begin != "" {
		return s.ListBegin(ctx, record.StagingFolder, begin, f)
	}
	return o.store.List(ctx, record.StagingFolder, f)
}
