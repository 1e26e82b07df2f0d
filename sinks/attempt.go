package sinks

import (
	"context"
	"errors"
	"fmt"

	"entropipe/schemas"
	"entropipe/sinks/record"
)

// attempt is a commit under way: its manifest, with the files staged so far,
// and what is needed to check the next part of its batch.
type attempt struct {
	m      *record.Manifest
	parts  int    // staged
	last   rowKey // of the last result
	seen   int64  // last offset with a result or reject; -1: none
	traces int64  // offsets with one
}

// rowKey says which frame a row belongs to, within a partition.
type rowKey struct {
	offset int64
	index  int32
}

// Stage takes a part of the results and rejects of a batch ahead of its Commit,
// which brings the rest: for a batch that does not fit into memory at once. The
// parts come in order, and say of the batch as a whole where it starts and ends.
// They become files that nothing names before the manifest does, so until the
// Commit they are no part of the output; Resume, a batch of another range and
// any error forget them. b is not retained. Errors mean what they mean to Commit.
//
// The cost is that of encoding and two fsyncs a file. Each part is a file of its
// own in every table and folder that it has rows for.
func (o *Output) Stage(ctx context.Context, b *schemas.Batch) error {
	p := record.TopicPartition{Topic: b.Topic, ID: b.Partition}
	a, err := o.attempt(ctx, b)
	if err != nil {
		return err
	}
	if err := a.follow(b); err != nil {
		return o.refuse(ctx, p, err)
	}
	if !o.take(p, b.Start) {
		return o.refuse(ctx, p, notReady(p, b.Start))
	}
	if err := o.stage(ctx, a, b); err != nil {
		return unavailable(o.abandon(ctx, a.m, err))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ready[p], o.open[p] = b.Start, a
	return nil
}

// attempt returns the attempt that b goes on with, else a new one.
func (o *Output) attempt(ctx context.Context, b *schemas.Batch) (*attempt, error) {
	p := record.TopicPartition{Topic: b.Topic, ID: b.Partition}
	o.mu.Lock()
	a, id := o.open[p], o.ids[p]
	o.mu.Unlock()
	if !id.IsZero() && b.TopicID != id {
		return nil, o.refuse(ctx, p, fmt.Errorf("a batch is of the topic with id %s, but %s/%d continues that with id %s", b.TopicID, b.Topic, b.Partition, id))
	}
	if a != nil && a.m.Start == b.Start && a.m.End == b.End && a.m.Gap == b.Gap {
		return a, nil
	}
	if err := o.forget(ctx, p); err != nil {
		return nil, unavailable(err)
	}
	return &attempt{m: o.newManifest(b), seen: -1, last: rowKey{-1, -1}}, nil
}

// forget discards the parts of a batch that will not be committed: no manifest
// was ever tried with their uuid.
func (o *Output) forget(ctx context.Context, p record.TopicPartition) error {
	o.mu.Lock()
	a := o.open[p]
	delete(o.open, p)
	o.mu.Unlock()
	if a == nil {
		return nil
	}
	return o.store.Discard(ctx, record.StagingName(p, a.m.Start, a.m.UUID))
}

// refuse forgets the parts of a batch of which something is wrong: what of it was
// counted before that was seen must not be taken for rows that are staged.
func (o *Output) refuse(ctx context.Context, p record.TopicPartition, err error) error {
	return errors.Join(err, o.forget(ctx, p))
}

// follow counts the next part of the batch. It refuses one that does not keep
// the promise that each record leaves a trace, in order: better no commit than a
// wrong one.
func (a *attempt) follow(b *schemas.Batch) error {
	if b.Start < 0 || b.End <= b.Start || b.Messages < 0 || b.Holes < 0 || b.Messages > b.End-b.Start || b.Holes != b.End-b.Start-b.Messages {
		return fmt.Errorf("a batch of [%d, %d) has %d messages and %d holes", b.Start, b.End, b.Messages, b.Holes)
	}
	if b.Gap && b.Messages > 0 || b.Messages > 0 && (b.Last == nil || b.Last.Offset < b.Start || b.Last.Offset >= b.End) {
		return fmt.Errorf("a batch of [%d, %d) with %d messages: gap %t, last record %+v", b.Start, b.End, b.Messages, b.Gap, b.Last)
	}
	rejects := b.Rejects
	for i := 0; i < len(b.Results) || len(rejects) > 0; {
		// Merge the two ordered lists, and count the offsets in them.
		var offset int64
		if i < len(b.Results) && (len(rejects) == 0 || b.Results[i].Offset <= rejects[0].Offset) {
			r := &b.Results[i]
			if offset = r.Offset; r.Topic != b.Topic || r.Partition != b.Partition {
				return fmt.Errorf("a batch of %s/%d has a result of %s/%d", b.Topic, b.Partition, r.Topic, r.Partition)
			}
			if offset == a.last.offset && r.Index <= a.last.index {
				return fmt.Errorf("a batch has result %d of offset %d after result %d", r.Index, offset, a.last.index)
			}
			a.last = rowKey{offset, r.Index}
			i++
		} else {
			offset, rejects = rejects[0].Offset, rejects[1:]
		}
		if offset < b.Start || offset >= b.End || offset < a.seen {
			return fmt.Errorf("a batch of [%d, %d) has offset %d after %d", b.Start, b.End, offset, a.seen)
		}
		if offset > a.seen {
			a.seen, a.traces = offset, a.traces+1
		}
	}
	a.count(b)
	return nil
}

// count adds what becomes of the records of b.
func (a *attempt) count(b *schemas.Batch) {
	c := &a.m.Counts
	c.Rejects += int64(len(b.Rejects))
	for i := range b.Results {
		if b.Results[i].Tokens != nil {
			c.Sequences++
		} else {
			c.Frames++
		}
	}
}

// complete counts the last part of the batch, or all of it, which must then have
// a trace of each of its messages.
func (a *attempt) complete(b *schemas.Batch) error {
	if err := a.follow(b); err != nil {
		return err
	}
	if a.traces != b.Messages {
		return fmt.Errorf("a batch of [%d, %d) has %d messages, but %d of its offsets have rows or rejects", b.Start, b.End, b.Messages, a.traces)
	}
	a.m.Counts.Messages, a.m.Counts.Holes = b.Messages, b.Holes
	if b.Last != nil {
		last := *b.Last
		a.m.Last = &last
	}
	return nil
}
