package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"entropipe/schemas"
)

// Lookup reads single records of a topic, which it never takes for those of another topic of
// the same name. It joins no group. One goroutine at a time may use it.
type Lookup struct {
	Topic // as it was when the Lookup was opened

	brokers  []string
	security Security
	consumer *Consumer
	held     map[int32]*heldFetch
}

// heldFetch is the last fetch of a partition: the next record that is asked for is often in it.
type heldFetch struct {
	p *Partition
	schemas.Fetched
}

// GoneError says that a record is not in its topic any more, or not in this one.
type GoneError struct{ Why string }

func (e *GoneError) Error() string { return e.Why }

// lookupBytes is what a Lookup fetches at a time.
const lookupBytes = 1 << 20

// lookupPatience is how long brokers may be silent.
const lookupPatience = time.Minute

// maxLookup is the largest value that is returned whole.
const maxLookup = 1 << 30

// OpenLookup describes a topic. The error is ErrNoTopic if it does not exist. log may be nil.
func OpenLookup(ctx context.Context, brokers []string, security Security, topic string, log *slog.Logger) (*Lookup,
	error) {
	t, err := Describe(ctx, brokers, security, topic)
	if err != nil {
		return nil, err
	}
	c, err := NewConsumer(Config{Brokers: brokers, Security: security, Topics: []string{topic},
		Group: "entropipe-lookup", MaxFrameBytes: maxLookup, Log: log})
	if err != nil {
		return nil, err
	}
	return &Lookup{Topic: t, brokers: brokers, security: security, consumer: c, held: map[int32]*heldFetch{}}, nil
}

// Close closes connections and frees memory.
func (l *Lookup) Close() {
	for _, h := range l.held {
		h.release()
	}
	l.consumer.Close()
}

func (h *heldFetch) release() {
	if h.Release != nil {
		h.Release()
	}
	h.Fetched = schemas.Fetched{}
}

// partition returns what is known of a partition; nil: the topic has none of this number.
func (l *Lookup) partition(id int32) *TopicPartition {
	for i := range l.Partitions {
		if l.Partitions[i].ID == id {
			return &l.Partitions[i]
		}
	}
	return nil
}

// Each gives use the records of a partition from offset from up to offset to, exclusive, in
// their order, until use returns false. A record is valid during the call. It waits for
// transactions that are open before to. *GoneError: the log does not have from any more, or
// the topic is another one or was deleted. Other errors are those of use, of ctx, and of
// brokers that do not answer.
func (l *Lookup) Each(ctx context.Context, id int32, from, to int64, use func(*schemas.Message) (bool, error)) error {
	part := l.partition(id)
	if part == nil {
		return &GoneError{fmt.Sprintf("topic %s has no partition %d", l.Name, id)}
	}
	if from < part.Start {
		return &GoneError{fmt.Sprintf("the log of %s/%d begins at offset %d", l.Name, id, part.Start)}
	}
	h := l.held[id]
	if h == nil {
		h = &heldFetch{p: l.consumer.partition(l.Name, id, &generation{})}
		h.p.topicID, h.p.pinned = l.ID, true
		l.held[id] = h
	}
	for at := from; at < to; at = h.Next {
		if at < h.From || at >= h.Next {
			if err := l.fetch(ctx, h, at, to); err != nil {
				return err
			}
		}
		for i := range h.Messages {
			if m := &h.Messages[i]; m.Offset >= at && m.Offset < to {
				if more, err := use(m); !more || err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// At returns a copy of the record at an offset. *GoneError: there is none; and Each's.
func (l *Lookup) At(ctx context.Context, id int32, offset int64) (*schemas.Message, error) {
	var found *schemas.Message
	err := l.Each(ctx, id, offset, offset+1, func(m *schemas.Message) (bool, error) {
		found = m.Clone()
		return false, nil
	})
	if err == nil && found == nil {
		err = &GoneError{fmt.Sprintf("there is no record at %s/%d@%d", l.Name, id, offset)}
	}
	return found, err
}

// fetch replaces what is held by records from at on.
func (l *Lookup) fetch(ctx context.Context, h *heldFetch, at, to int64) error {
	h.release()
	h.p.target = to
	within, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	for {
		f, err := h.p.Fetch(within, at, lookupBytes)
		switch gap, other := (*schemas.GapError)(nil), (*schemas.RecreatedError)(nil); {
		case err == nil && f.Next > at:
			h.Fetched = f
			return nil
		case err == nil && within.Err() == nil: // an open transaction
			if f.Release != nil {
				f.Release()
			}
			continue
		case errors.Is(err, io.EOF):
			h.From, h.Next = at, to
			return nil
		case errors.As(err, &gap), errors.As(err, &other):
			return &GoneError{err.Error()}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case within.Err() == nil:
			return err
		}
		return l.silent(ctx, h.p, at)
	}
}

// silent says why nothing came within the patience.
func (l *Lookup) silent(ctx context.Context, p *Partition, at int64) error {
	t, err := Describe(ctx, l.brokers, l.security, l.Name)
	switch {
	case errors.Is(err, ErrNoTopic), err == nil && t.ID != l.ID:
		return &GoneError{fmt.Sprintf("topic %s was deleted", l.Name)}
	case err != nil:
		return err
	}
	return fmt.Errorf("%s/%d@%d: no record came within %v: the brokers are away, or a transaction of a producer is "+
		"open", p.Topic, p.ID, at, lookupPatience)
}

// OffsetsAt returns for each partition the first offset whose record was sent at or after at,
// or the end of the log where there is none.
func OffsetsAt(ctx context.Context, brokers []string, security Security, t *Topic, at time.Time) (map[int32]int64,
	error) {
	var found map[int32]int64
	err := administer(ctx, brokers, security, t.Name, func(k *cluster) (err error) {
		var ids []int32
		for _, p := range t.Partitions {
			ids = append(ids, p.ID)
		}
		found, err = k.listOffsets(ctx, t.Name, ids, max(at.UnixMilli(), 0), false)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, p := range t.Partitions {
		if found[p.ID] < 0 {
			found[p.ID] = p.End
		}
	}
	return found, nil
}
