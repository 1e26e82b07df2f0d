package backfill

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"entropipe/ingest/replay"
	"entropipe/schemas"
	"entropipe/sinks"
	"entropipe/sinks/record"
)

// messageCost is the memory of a message beside its value, in bytes.
const messageCost = 512

// Partition is a lane of a plan. It implements what the pipeline needs of a partition:
// offset i is the item at position First + i of the lane's input. One goroutine at a time
// may call Check and Fetch; another one may call Committed meanwhile.
type Partition struct {
	opener *Opener
	number int32
	lane   *record.Lane // nil: not read yet

	source   replay.Source // nil: not open
	messages Messages
	at       int64 // offset that messages goes on at
	skipped  int64 // bad items that source had left out when the last message came
	failed   error // why messages ended; returned by the Fetch that begins at the offset of at

	first     int64        // offset of the first Check; -1: there was none
	committed atomic.Int64 // end of the last commit of this process
}

// TopicID returns the id that the records of a plan have in place of a topic's: the first
// half of the plan's hash.
func TopicID(p *record.Plan) (id schemas.TopicID) {
	hash, _ := hex.DecodeString(p.Hash)
	copy(id[:], hash)
	return id
}

// Check verifies that the lane holds what is committed: the last committed record is made
// again and compared. It returns the TopicID of the plan. The errors are a *BusyError when another
// process has committed to the lane since the first Check, a *SourceChangedError when the
// last record is another one, and a *SourceError when it cannot be read.
func (p *Partition) Check(ctx context.Context, pos schemas.Position) (schemas.TopicID, error) {
	none := schemas.TopicID{}
	if err := p.load(ctx); err != nil {
		return none, err
	}
	if p.first < 0 {
		p.first = pos.Next
	}
	if pos.Next > max(p.first, p.committed.Load()) {
		return none, &BusyError{p.opener.Plan.Name, p.number}
	}
	id := TopicID(p.opener.Plan)
	switch {
	case !pos.TopicID.IsZero() && pos.TopicID != id:
		return none, fmt.Errorf("lane %d of plan %s: the output has items of another plan of this name", p.number,
			p.opener.Plan.Name)
	case pos.Next > p.lane.Items:
		return none, fmt.Errorf("lane %d of plan %s has %d items, and the output has %d of it", p.number,
			p.opener.Plan.Name, p.lane.Items, pos.Next)
	case pos.Next == p.lane.Items || pos.Last == nil:
		return id, nil
	}
	f, err := p.fetch(ctx, pos.Last.Offset, pos.Last.Offset+1, 1)
	switch {
	case errors.Is(err, io.EOF):
		return none, p.changed(p.place(), "its last committed item is gone")
	case err != nil:
		return none, err
	}
	if f.Release != nil {
		defer f.Release()
	}
	if len(f.Messages) == 0 || f.Messages[0].ID() != *pos.Last {
		return none, p.changed(p.place(), fmt.Sprintf("item %d gives another message than the one that was committed",
			p.lane.First+pos.Last.Offset))
	}
	return id, nil
}

// Committed notes how far this process has come.
func (p *Partition) Committed(_ context.Context, next int64) { p.committed.Store(next) }

// Fetch returns the messages of the items from an offset on, about maxBytes of them, but
// at least one. A bad item that the source passes over is a hole. io.EOF: the lane ends
// before from. The files of the items are compared with the plan before the first one is
// read and after the last one. The other errors are a *SourceChangedError and a
// *SourceError.
func (p *Partition) Fetch(ctx context.Context, from int64, maxBytes int32) (schemas.Fetched, error) {
	if err := p.load(ctx); err != nil {
		return schemas.Fetched{}, err
	}
	return p.fetch(ctx, from, p.lane.Items, int64(maxBytes))
}

// Close closes what is open. The Partition may be used again.
func (p *Partition) Close() error {
	if p.source == nil {
		return nil
	}
	err := p.source.Close()
	p.source, p.messages, p.at, p.failed = nil, nil, -1, nil
	return err
}

// load reads the lane from the plan.
func (p *Partition) load(ctx context.Context) (err error) {
	if p.lane == nil {
		p.lane, err = sinks.ReadLane(ctx, p.opener.Store, p.opener.Plan, p.number)
	}
	return err
}

// fetch returns the messages of items in [from, end).
func (p *Partition) fetch(ctx context.Context, from, end, budget int64) (schemas.Fetched, error) {
	if from >= end {
		return schemas.Fetched{}, io.EOF
	}
	if err := p.open(ctx, from); err != nil {
		return schemas.Fetched{}, err
	}
	b := batch{free: &p.opener.free}
	for p.at < end && p.failed == nil && (len(b.messages) == 0 || b.bytes+b.largest <= budget) {
		if err := ctx.Err(); err != nil {
			b.release()
			return schemas.Fetched{}, err
		}
		p.one(&b, from, end)
	}
	next := p.at
	if err := p.compare(ctx, from, next); err != nil {
		b.release()
		p.Close()
		return schemas.Fetched{}, err
	}
	if next == from && p.failed != nil {
		err := p.failed
		if changed := p.compare(ctx, from, from+1); changed != nil { // which explains more
			err = changed
		}
		p.Close()
		return schemas.Fetched{}, err
	}
	return schemas.Fetched{Messages: b.messages, From: from, Next: next, End: p.lane.Items, Bytes: b.bytes,
		Release: b.releaser()}, nil
}

// one adds the next message to a batch, or sets p.failed.
func (p *Partition) one(b *batch, from, end int64) {
	sent, err := p.messages.Next(b.free.get())
	if err != nil {
		p.ended(err, end)
		return
	}
	offset := sent.Position - p.lane.First
	p.skipped = skippedBy(p.source)
	switch {
	case offset < p.at:
		p.failed = &SourceError{File: p.place(), Err: fmt.Errorf("item %d came after item %d", sent.Position,
			p.lane.First+p.at-1)}
	case offset >= end && end < p.lane.Items: // a single record was asked for
		p.at = offset
		p.failed = errMoved
	case offset >= end: // the lane's last items are bad
		p.at = end
	default:
		p.at = offset + 1
		b.add(p.opener.Plan.Name, p.number, offset, &sent)
	}
}

// errMoved marks a reader that has yielded a message which nobody took.
var errMoved = errors.New("a message was passed over")

// ended notes why there is no next message.
func (p *Partition) ended(err error, end int64) {
	if !errors.Is(err, io.EOF) {
		p.failed = &SourceError{Err: err}
		return
	}
	if bad := skippedBy(p.source) - p.skipped; bad >= end-p.at {
		p.at = end // the last items are bad
		return
	}
	p.failed = p.changed(p.place(), fmt.Sprintf("it ends at item %d, and the lane at item %d", p.lane.First+p.at,
		p.lane.First+p.lane.Items))
}

// skippedBy returns the bad items that a source has left out.
func skippedBy(src replay.Source) int64 {
	if k, ok := src.(interface{ Skipped() int64 }); ok {
		return k.Skipped()
	}
	return 0
}

// place names the lane's input.
func (p *Partition) place() string { return above(p.opener.Plan.Roots[p.lane.Root], p.lane.Input.Path) }

func (p *Partition) changed(file, detail string) error {
	return &SourceChangedError{Plan: p.opener.Plan.Name, Lane: p.number, File: file, Detail: detail}
}

// open makes the source go on at an offset, and compares the files of that item first.
func (p *Partition) open(ctx context.Context, from int64) error {
	if p.source != nil && p.at == from && p.failed == nil {
		return p.compare(ctx, from, from+1)
	}
	if p.source != nil && p.at == from && !errors.Is(p.failed, errMoved) {
		return nil // the caller returns p.failed
	}
	if err := p.Close(); err != nil {
		return &SourceError{Err: err}
	}
	if err := p.compare(ctx, from, from+1); err != nil {
		return err
	}
	in, err := p.opener.input(ctx, p.lane)
	if err != nil {
		return err
	}
	src, err := p.opener.Archive.Open(ctx, in, p.lane.First+from)
	if err != nil {
		return p.unreadable(ctx, from, err)
	}
	p.source, p.at, p.skipped, p.failed = src, from, skippedBy(src), nil
	if err = p.listed(from); err == nil {
		p.messages, err = p.opener.Messages(src)
	}
	if err != nil {
		p.Close()
	}
	return err
}

// unreadable says why an input cannot be opened: its files may have changed.
func (p *Partition) unreadable(ctx context.Context, from int64, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if changed := p.compare(ctx, from, p.lane.Items); changed != nil {
		return changed
	}
	return &SourceError{Err: err}
}

// batch collects messages.
type batch struct {
	free     *blocks
	messages []schemas.Message
	blocks   [][]byte
	bytes    int64
	largest  int64
}

// add takes a message. Its value lies in a block; key and headers are copied.
func (b *batch) add(topic string, lane int32, offset int64, sent *replay.Sent) {
	r := sent.Record
	m := schemas.Message{Topic: topic, Partition: lane, Offset: offset, Time: time.Unix(0, sent.TimeNs).UTC(),
		Key: bytes.Clone(r.Key), Value: r.Value, Headers: make([]schemas.Header, len(r.Headers))}
	size := int64(cap(r.Value) + len(r.Key) + messageCost)
	for i, h := range r.Headers {
		m.Headers[i] = schemas.Header{Key: h.Key, Value: bytes.Clone(h.Value)}
		size += int64(len(h.Value))
	}
	b.messages = append(b.messages, m)
	b.blocks = append(b.blocks, r.Value)
	b.bytes += size
	b.largest = max(b.largest, size)
}

func (b *batch) release() { b.free.put(b.blocks) }

// releaser returns a function that hands the memory back, once; nil: there is none.
func (b *batch) releaser() func() {
	if len(b.messages) == 0 {
		return nil
	}
	var released atomic.Bool
	return func() {
		if released.Swap(true) {
			panic("backfill: a fetch was released twice")
		}
		b.release()
	}
}
