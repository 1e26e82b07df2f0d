package pipeline

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"entropipe/ops/metrics"
	"entropipe/schemas"
)

// session is the time between resuming a partition from the output and losing
// it. A reader and a collector run it, each in one goroutine with state of its
// own:
//
//	reader    --slots-->    collector    every record's place, in offset order
//	reader    --submit-->   workers      the same records, in any order of completion
//	workers   --task.done-> collector    closed when the task's results are set
//	Pipeline  --rollNow-->  collector    memory is short: commit the batch now
//	reader.err              collector    set before slots is closed, read after
//
// The session's own fields are what reader, collector and workers share: they
// never change after newSession, or they are atomic.
type session struct {
	p     *Pipeline
	topic string
	id    int32
	part  Partition // Check and Fetch are called by the reader's side, Committed by the collector
	src   *metrics.Source

	slots   *slotQueue  // pushed and closed by the reader, popped by the collector
	stopped atomic.Bool // set when the session ends; workers then skip tasks that have not begun

	logEnd  atomic.Int64 // end of the log at the last fetch, -1 before it; written by the reader
	durable atomic.Int64 // every offset before it is committed; written by the collector

	// hidden is the number of offsets behind the end of the log that an open transaction holds
	// back; hiddenSince is since when, in ticks; 0: none. Both are written by the reader.
	hidden, hiddenSince atomic.Int64

	// newest is the Kafka timestamp, in Unix ns, of the last committed record;
	// before the first commit, of the first record read; 0 if neither has one.
	// The reader only replaces 0.
	newest atomic.Int64

	// Unix ns when the first record entered the open batch, 0: it is empty; written by the collector
	opened  atomic.Int64
	open    atomic.Int64 // leases that have not ended; changed by reader, workers and collector
	batched atomic.Int64 // records in the open batch; written by the collector
	stalled atomic.Bool  // the collector waits for a message of chunks, and wrote this and the next two
	waits   atomic.Int64 // when it began to wait, Unix ns
	waitsAt atomic.Int64 // offset of the message
}

// slot is a place in a partition's order: a task, or nil for offsets that hold
// no data and for the further chunks of a message. next is the offset after the place.
type slot struct {
	task  *task
	next  int64
	chunk *schemas.RecordID // the record at next-1 is a further chunk; nil: it is none
}

// task is one record, or a part of a large one, on its way through a worker. The
// reader (or the collector, for a part) sets the first group of fields before it
// submits the task, the worker sets the second group and closes done, and only
// then may the collector read it.
type task struct {
	msg      schemas.Message
	s        *session
	lease    *lease    // nil for a part: the task of its whole message has the lease
	parts    *assembly // nil: the message came in one record
	tokens   bool      // the message holds token sequences
	from, to int       // rows [from, to) of a part; to is 0 for a whole message

	submitted bool // a worker has it, or will have it

	rows    int // rows of a large message, whose lease the collector ends after the last part; else 0
	each    int // rows of each part of a large message
	results []schemas.Result
	rejects []schemas.Reject
	origin  *schemas.Original // a copy of the message; nil: none is asked for
	letter  *schemas.Record   // the dead letter of the rejects; nil: there is none, or it was sent
	id      schemas.RecordID
	bytes   int64 // memory of results, rejects, copy and letter
	skipped bool  // the session ended before the work began
	done    chan struct{}
}

// session runs one session to its end. It returns nil when ctx ended and
// everything read is committed.
func (p *Pipeline) session(ctx context.Context, topic string, id int32, part Partition, again *retry) error {
	pos, err := p.cfg.Output.Resume(ctx, topic, id)
	again.resumed(err)
	if err == nil {
		pos.TopicID, err = part.Check(ctx, pos)
	}
	if err != nil {
		return err
	}
	s := newSession(p, topic, id, part, pos.Next)
	c := newCollector(ctx, s, pos, again)
	p.attach(c)
	defer p.detach(c)
	r := &reader{session: s, next: pos.Next, chunks: newAssembler(p.cfg.Chunks, pos.Chunks)}
	r.chunks.memory = &p.buffers
	return s.run(ctx, r, c)
}

func newSession(p *Pipeline, topic string, id int32, part Partition, next int64) *session {
	s := &session{p: p, topic: topic, id: id, part: part,
		src: p.cfg.Metrics.ForPartition(topic, id), slots: newSlotQueue()}
	s.logEnd.Store(-1)
	s.durable.Store(next)
	return s
}

// run starts the reader, and collects in the caller's goroutine. When it returns,
// the reader has ended too: the collector takes slots until they are closed.
func (s *session) run(ctx context.Context, r *reader, c *collector) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { s.stopped.Store(true) })()
	draining, end := drain(ctx)
	defer end()
	go r.run(ctx)
	if err := c.run(draining); err != nil {
		cancel()
		c.discard()
		return err
	}
	if errors.Is(r.err, context.Canceled) {
		return nil
	}
	return r.err
}

// sentAt returns when m was sent, in Unix ns; 0 if it was recorded before and not sent.
func (s *session) sentAt(m *schemas.Message) int64 {
	if s.p.cfg.Archive {
		return 0
	}
	return m.SentAt()
}

// lag reports how far the commits are behind. Reader and collector both call it:
// a partition whose commits are stuck is seen to fall behind with every fetch.
func (s *session) lag() {
	var newest time.Time
	if ns := s.newest.Load(); ns != 0 {
		newest = time.Unix(0, ns)
	}
	s.src.Lag(max(s.logEnd.Load()-s.durable.Load(), 0), newest)
}
