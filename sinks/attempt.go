package sinks

import (
	"context"
	"errors"
	"fmt"

	"entropipe/schemas"
	"entropipe/sinks/record"
)

// attempt is a commit under way: its manifest, which lists the files staged so far,
// and the state that the check of its batch's next part needs.
type attempt struct {
	m      *record.Manifest
	parts  int    // number of parts staged
	last   rowKey // key of the last result
	seen   int64  // last offset with a result or reject; -1: none
	traces int64  // number of offsets with a result or reject

	originals int64 // number of messages that were given themselves
	original  int64 // offset of the last one; -1: none
}

// rowKey identifies a frame or sequence within a partition.
type rowKey struct {
	offset int64
	index  int32
}

// Stage writes a part of a batch's results and rejects before its Commit, which
// brings the rest: for a batch that does not fit into memory at once. Parts come in
// order of their offsets; Start, End, Messages and Holes of each part are those of
// the whole batch. Until Commit no manifest names the staged files, so they are not
// part of the output. Resume, a batch of another range and any error discard them.
// Stage does not retain b. Its errors mean the same as those of Commit.
//
// Cost: encoding and two fsyncs a file. Each part is a separate file in every table
// and folder for which it has rows.
func (o *Output) Stage(ctx context.Context, b *schemas.Batch) error {
	p := partition{Topic: b.Topic, ID: b.Partition}
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

// attempt returns the attempt that b continues, or a new one.
func (o *Output) attempt(ctx context.Context, b *schemas.Batch) (*attempt, error) {
	p := partition{Topic: b.Topic, ID: b.Partition}
	o.mu.Lock()
	a, id := o.open[p], o.ids[p]
	o.mu.Unlock()
	if !id.IsZero() && b.TopicID != id {
		return nil, o.refuse(ctx, p, fmt.Errorf("a batch has records of the topic with id %s, but %s/%d continues "+
			"the topic with id %s", b.TopicID, b.Topic, b.Partition, id))
	}
	if a != nil && a.m.Start == b.Start && a.m.End == b.End && a.m.Gap == b.Gap {
		return a, nil
	}
	if err := o.forget(ctx, p); err != nil {
		return nil, unavailable(err)
	}
	return &attempt{m: o.newManifest(b), seen: -1, original: -1, last: rowKey{-1, -1}}, nil
}

// forget discards the staged parts of a batch that will not be committed. No process
// has tried to create a manifest with their uuid.
func (o *Output) forget(ctx context.Context, p partition) error {
	o.mu.Lock()
	a := o.open[p]
	delete(o.open, p)
	o.mu.Unlock()
	if a == nil {
		return nil
	}
	return o.store.Discard(ctx, record.StagingName(p, a.m.Start, a.m.UUID))
}

// refuse discards the staged parts of an invalid batch and returns err. Rows that
// were counted before the fault was noticed were never staged, so the attempt's
// counts are wrong.
func (o *Output) refuse(ctx context.Context, p partition, err error) error {
	return errors.Join(err, o.forget(ctx, p))
}

// follow checks and counts the next part of the batch. It refuses a part whose
// counts, offsets, order or keys are inconsistent: no commit is better than a wrong
// one.
func (a *attempt) follow(b *schemas.Batch) error {
	if b.Start < 0 || b.End <= b.Start || b.Messages < 0 || b.Holes < 0 || b.Chunks < 0 ||
		b.Messages > b.End-b.Start || b.Chunks > b.End-b.Start-b.Messages ||
		b.Holes != b.End-b.Start-b.Messages-b.Chunks {
		return fmt.Errorf(
			"a batch of [%d, %d) has %d messages, %d further chunks and %d holes",
			b.Start,
			b.End,
			b.Messages,
			b.Chunks,
			b.Holes,
		)
	}
	if b.Gap && b.Messages+b.Chunks > 0 || b.Messages+b.Chunks > 0 &&
		(b.Last == nil || b.Last.Offset < b.Start || b.Last.Offset >= b.End) {
		return fmt.Errorf("a batch of [%d, %d) with %d messages: gap %t, last record %+v", b.Start, b.End,
			b.Messages, b.Gap, b.Last)
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
	if err := a.copies(b); err != nil {
		return err
	}
	a.count(b)
	return nil
}

// copies checks and counts the messages that b has themselves.
func (a *attempt) copies(b *schemas.Batch) error {
	for i := range b.Originals {
		m := &b.Originals[i]
		if m.Topic != b.Topic || m.Partition != b.Partition {
			return fmt.Errorf("a batch of %s/%d has a message of %s/%d", b.Topic, b.Partition, m.Topic, m.Partition)
		}
		if m.Offset < b.Start || m.Offset >= b.End || m.Offset <= a.original {
			return fmt.Errorf("a batch of [%d, %d) has the message of offset %d after that of %d", b.Start, b.End,
				m.Offset, a.original)
		}
		a.original = m.Offset
	}
	a.originals += int64(len(b.Originals))
	return nil
}

// count adds the frames, sequences and rejects of b to the manifest's counts.
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

// complete checks and counts the last part of the batch, or the whole of it. Every
// message must then have a row or a reject.
func (a *attempt) complete(b *schemas.Batch) error {
	if err := a.follow(b); err != nil {
		return err
	}
	if a.traces != b.Messages {
		return fmt.Errorf("a batch of [%d, %d) has %d messages, but %d of its offsets have rows or rejects", b.Start,
			b.End, b.Messages, a.traces)
	}
	if a.originals > 0 && a.originals != b.Messages {
		return fmt.Errorf("a batch of [%d, %d) has %d messages, and %d of them themselves", b.Start, b.End, b.Messages,
			a.originals)
	}
	a.m.Counts.Messages, a.m.Counts.Chunks, a.m.Counts.Holes = b.Messages, b.Chunks, b.Holes
	if c := b.Chunked; c != nil {
		a.m.Chunks = &record.Chunks{Ahead: append([]int64{}, c.Ahead...), Closed: append([]string{}, c.Closed...)}
	}
	if b.Last != nil {
		last := *b.Last
		a.m.Last = &last
	}
	return nil
}
