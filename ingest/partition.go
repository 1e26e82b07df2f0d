package ingest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/fetch"

	"entropipe/schemas"
)

// Partition is one partition of the assignment, for one generation. One goroutine at
// a time may call Check and Fetch; another may call Committed meanwhile. A Partition
// has no position: each Fetch names its first offset.
type Partition struct {
	Topic string
	ID    int32

	c       *Consumer
	gen     *generation
	target  int64 // first offset not to hand over
	dec     decoder
	br      *bufio.Reader
	scale   float64 // memory that a byte of the wire becomes; at least 1
	hollow  int     // empty answers in a row that should not have been
	logged  time.Time
	backoff backoff

	topicID schemas.TopicID  // id of the topic that p reads; zero: the brokers have no ids
	pinned  bool             // topicID is settled
	others  int              // answers in a row that named another id
	doubt   bool             // the topic was away, or seemed to be
	last    schemas.RecordID // handed over last, where nothing fences records; from Check before that
	hasLast bool
	request []byte // memory for fetches

	durable atomic.Int64 // end of the committed records, as Check and Committed were told
}

func (c *Consumer) partition(topic string, id int32, gen *generation) *Partition {
	return &Partition{
		Topic: topic, ID: id, c: c, gen: gen, target: math.MaxInt64, scale: 1,
		dec: decoder{topic: topic, partition: id, maxValue: c.cfg.MaxFrameBytes},
		br:  bufio.NewReaderSize(nil, readBuffer),
	}
}

// CorruptError says that the broker serves a batch that cannot be read: its checksum
// or one of its lengths is wrong.
type CorruptError struct {
	Topic     string
	Partition int32
	Offset    int64 // the first offset that could not be read
	Err       error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s/%d@%d: the broker's log is damaged: %v; restore the partition from a replica, or delete "+
		"the records up to a later offset with kafka-delete-records.sh",
		e.Topic, e.Partition, e.Offset, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// Fetch returns the data records from offset from on: at most about maxBytes of
// memory, but at least one whole record; no record if none came within the poll time.
// The records are views of pooled memory until Release is called. Values of 1 KiB and
// more that are first in their batch, or were compressed, begin at a multiple of 64.
//
// While the broker is away or no longer the leader, Fetch retries with growing pauses
// until ctx ends. Its errors are final: io.EOF at the target of --until-end,
// *schemas.GapError, *schemas.RecreatedError, *CorruptError, or a refusal such as a
// missing permission. Fetch never returns records of another topic of the same name,
// if the brokers have topic ids or the topic's absence was noticed.
func (p *Partition) Fetch(ctx context.Context, from int64, maxBytes int32) (schemas.Fetched, error) {
	for tries, need := 0, int64(0); ; tries++ {
		if from >= p.target {
			return schemas.Fetched{}, io.EOF
		}
		if err := p.pin(ctx, from); err != nil {
			return schemas.Fetched{}, err
		}
		a, err := p.ask(ctx, from, p.target, int64(maxBytes), need)
		if err == nil && a.code == 0 && a.need > 0 && need < a.need {
			need = a.need // an old broker cut the first batch
			p.dec.arena.release()
			continue
		}
		if err == nil && p.usable(a) {
			if err := p.trust(ctx, a); err != nil {
				p.dec.arena.release()
				return schemas.Fetched{}, err
			}
			return p.hand(a, from), nil
		}
		p.dec.arena.release()
		if err := p.failed(ctx, a, err, from, tries); err != nil {
			return schemas.Fetched{}, err
		}
		need = 0
	}
}

// FetchPast is Fetch without the target of --until-end: for the chunks of messages that begin
// before it. It never returns io.EOF; at the log's end it returns no record.
func (p *Partition) FetchPast(ctx context.Context, from int64, maxBytes int32) (schemas.Fetched, error) {
	p.target = math.MaxInt64
	return p.Fetch(ctx, from, maxBytes)
}

// usable tells whether a brings records, progress, or at least the news that
// there is nothing.
func (p *Partition) usable(a *answer) bool {
	return a.code == 0 && (a.next > p.dec.from || a.err == nil && a.need == 0)
}

// hand passes the records of a on.
func (p *Partition) hand(a *answer, from int64) schemas.Fetched {
	p.backoff.reset()
	if a.wire > 0 && a.next > from {
		// A full answer was not read to its end: next time less is asked for.
		share := float64(a.used) / float64(max(a.wire-p.dec.left, 1))
		p.scale = max(1, min(share, 1000))
	}
	p.skipHollow(a, from)
	c := &p.c.stats
	c.fetches.Add(1)
	c.bytes.Add(a.wire)
	c.records.Add(int64(len(a.messages)))
	f := schemas.Fetched{Messages: a.messages, From: from, Next: a.next, End: a.stable, High: a.high,
		Bytes: p.dec.arena.held() + a.extra + int64(len(a.messages))*messageCost}
	if len(a.messages) == 0 {
		p.dec.arena.release()
		f.Bytes = 0
		return f
	}
	f.Release = p.c.releaser(p.dec.arena.blocks)
	p.dec.arena = arena{}
	return f
}

// releaser returns a function that hands blocks back, once.
func (c *Consumer) releaser(blocks [][]byte) func() {
	var released atomic.Bool
	return func() {
		if released.Swap(true) {
			panic("ingest: a fetch was released twice")
		}
		c.free.put(blocks...)
	}
}

// skipHollow ends a partition whose last offsets before the target hold
// nothing, not even a batch: compaction can remove all of a log's tail. A
// broker that has data sends them at once, so several empty answers below the
// last stable offset mean that there are none.
func (p *Partition) skipHollow(a *answer, from int64) {
	const enough = 3
	switch {
	case p.target == math.MaxInt64 || a.next > from || a.throttled || a.stable < p.target:
		p.hollow = 0
	default:
		if p.hollow++; p.hollow >= enough {
			a.next = p.target
		}
	}
}

// ask fetches [from, limit) once. The arena of p.dec is the caller's.
func (p *Partition) ask(ctx context.Context, from, limit, budget, need int64) (*answer, error) {
	wire := int32(min(max(int64(float64(budget)/p.scale), need, 1), math.MaxInt32))
	p.dec.prepare(new(answer), &p.c.free, from, limit, budget)
	// Only the partition's limit counts: the embedded broker forgets the aborted
	// transactions of an answer that the request's limit cuts.
	f := &fetchCall{
		Request: &fetch.Request{
			ReplicaID: -1, MaxWaitTime: int32(p.c.cfg.Timing.Poll.Milliseconds()), MinBytes: 1, MaxBytes: math.MaxInt32,
			IsolationLevel: readCommitted, SessionEpoch: -1,
			Topics: []fetch.RequestTopic{{Topic: p.Topic, Partitions: []fetch.RequestPartition{{
				Partition: p.ID, CurrentLeaderEpoch: -1, FetchOffset: from, LogStartOffset: -1,
				PartitionMaxBytes: wire}}}},
		},
		topicID: p.topicID, buf: p.request, ctx: ctx, clientID: p.c.cfg.ClientID, wait: p.c.cfg.Timing.Poll,
		dec: &p.dec, br: p.br, done: make(chan struct{}), ans: p.dec.out,
	}
	_, err := p.c.cluster.transport.RoundTrip(ctx, p.c.cluster.addr, f)
	if !f.state.CompareAndSwap(callWaiting, callAbandoned) {
		<-f.done // at once: its connection fails when ctx ends
		err, p.request = f.err, f.buf
	}
	p.c.cluster.heard(ctx, err)
	return f.ans, err
}

// failed decides about a fetch that brought nothing: nil to try again.
func (p *Partition) failed(ctx context.Context, a *answer, err error, from int64, tries int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.c.stats.fetchErrors.Add(1)
	code := kafka.Error(a.code)
	switch {
	case lost(err) || err == nil && lost(code):
		if err := p.doubted(ctx, from); err != nil {
			return err
		}
		if err == nil {
			err = code
		}
	case err != nil:
	case code == kafka.OffsetOutOfRange:
		if _, err := p.within(ctx, from); err != nil {
			return err
		}
		err = code
	case a.code != 0:
		if err = code; !passes(code) {
			return p.fatal(from, code)
		}
	default:
		if err = a.err; err == nil {
			err = corrupt("the answer ends within a batch of %d bytes", a.need)
		}
		if tries >= 2 { // a third time the same: it is not the network
			return &CorruptError{Topic: p.Topic, Partition: p.ID, Offset: from, Err: err}
		}
	}
	p.complain("fetch fails, trying again", from, err)
	return p.backoff.wait(ctx)
}

// passes tells errors that go away by themselves.
func passes(e kafka.Error) bool {
	switch e {
	case kafka.Unknown, kafka.BrokerNotAvailable, kafka.ReplicaNotAvailable, kafka.OffsetOutOfRange:
		return true
	}
	return e.Temporary()
}

func (p *Partition) fatal(from int64, err error) error {
	return p.c.cluster.denied(fmt.Errorf("%s/%d@%d: the broker refuses to serve the partition: %w", p.Topic, p.ID, from,
		err), "Read", p.Topic)
}

// compare tells why from is not in a log that begins and ends at these offsets.
// nil: it is.
func (p *Partition) compare(from, start, end int64) error {
	switch {
	case start > from:
		return &schemas.GapError{Topic: p.Topic, Partition: p.ID, Next: from, LogStart: start}
	case end < from:
		return &schemas.RecreatedError{Topic: p.Topic, Partition: p.ID,
			Detail: fmt.Sprintf("its log ends at offset %d, before %d", end, from)}
	}
	return nil
}

// bounds asks for the log's first and next offset. A log that seems to end
// before want is asked again: a new leader may lag for a moment behind what
// the old one had confirmed.
func (p *Partition) bounds(ctx context.Context, want int64) (start, end int64, err error) {
	const enough = 3
	for short := 0; ; {
		o, err := p.c.cluster.offsets(ctx, p.Topic, []int32{p.ID}, false)
		if err == nil && o[p.ID].end < want {
			short++
		}
		if err == nil && (o[p.ID].end >= want || short >= enough) {
			p.backoff.reset()
			return o[p.ID].start, o[p.ID].end, nil
		}
		if code := kafka.Error(0); errors.As(err, &code) && !passes(code) {
			return 0, 0, p.fatal(want, code)
		}
		if lost(err) {
			if err := p.doubted(ctx, want); err != nil {
				return 0, 0, err
			}
		}
		if err != nil {
			p.complain("the offsets of a partition cannot be read, trying again", want, err)
		}
		if err := p.backoff.wait(ctx); err != nil {
			return 0, 0, err
		}
	}
}

// reread returns the identity of the record that was last; nil if it is not there. A record that
// exceeds Config.MaxFrameBytes is known by its beginning only, and that limit may have changed
// since last was committed: both identities of such a record are compared.
func (p *Partition) reread(ctx context.Context, last schemas.RecordID) (*schemas.RecordID, error) {
	got, err := p.identify(ctx, last.Offset, p.dec.maxValue, (*schemas.Message).ID)
	if err != nil || got == nil || *got == last {
		return got, err
	}
	return p.identify(ctx, last.Offset, maxLookup, func(m *schemas.Message) schemas.RecordID {
		if id := m.ID(); id == last {
			return id
		}
		cut := *m
		cut.Key, cut.Value = m.Key[:min(len(m.Key), oversizeKept)], m.Value[:min(len(m.Value), oversizeKept)]
		cut.Summed = false
		return cut.ID()
	})
}

// identify returns what of says of the record at offset; nil if there is none.
func (p *Partition) identify(ctx context.Context, offset, maxValue int64,
	of func(*schemas.Message) schemas.RecordID) (*schemas.RecordID, error) {
	q := p.c.partition(p.Topic, p.ID, p.gen)
	q.target, q.topicID, q.pinned, q.dec.maxValue = offset+1, p.topicID, p.pinned, maxValue
	for {
		f, err := q.Fetch(ctx, offset, minBlock)
		if gap := (*schemas.GapError)(nil); errors.Is(err, io.EOF) || errors.As(err, &gap) {
			return nil, nil // retention went on meanwhile
		}
		if err != nil {
			return nil, err
		}
		if len(f.Messages) > 0 {
			id := of(&f.Messages[0])
			f.Release()
			return &id, nil
		}
		if f.Next > offset {
			return nil, nil
		}
	}
}

// Committed tells the group's coordinator that all records before next are durable.
// Nothing depends on that offset, so a failure is only counted and logged. Committed
// takes at most two seconds, also after ctx has ended. Beside the offset it leaves where the
// commit begins, for Consumer.Hints.
func (p *Partition) Committed(ctx context.Context, next int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	r, err := p.c.cluster.client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
		GroupID: p.c.cfg.Group, GenerationID: int(p.gen.id), MemberID: p.gen.member,
		Topics: map[string][]kafka.OffsetCommit{p.Topic: {{Partition: int(p.ID), Offset: next,
			Metadata: beginOf(p.durable.Swap(next))}}},
	})
	if err == nil {
		for _, c := range r.Topics[p.Topic] {
			err = errors.Join(err, c.Error)
		}
	}
	if err != nil {
		p.c.stats.commitErrors.Add(1)
		p.c.log.Debug("offset commit failed", "topic", p.Topic, "partition", p.ID, "offset", next, "error", err)
	}
}
