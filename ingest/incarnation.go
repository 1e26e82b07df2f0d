package ingest

import (
	"context"
	"errors"
	"fmt"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"entropipe/schemas"
)

// A topic that is deleted and created again has its old name, and offsets that
// begin anew. What was read of the old one must not be continued with the new.
//
// The fence is the topic's id, which every fetch names (exchange.go), so that no
// timing matters. All other requests name the topic only: what they tell counts
// when the id is asked for behind them and still is the same, since ids never
// come back. Brokers that know no ids leave the record that was read last: after
// the topic was away it is compared before anything more is handed over.

// otherEnough is how many answers in a row must name another id. A broker may
// lag behind the one that told the first id, so one answer proves nothing.
const otherEnough = 4

// pin fixes which topic p reads, unless that is done: the one whose start the
// consumer has told, else the one that its name means now.
func (p *Partition) pin(ctx context.Context, from int64) error {
	if p.pinned {
		return nil
	}
	p.topicID = p.c.TopicID(p.Topic)
	return p.confirm(ctx, from)
}

// confirm waits until a broker tells which topic the name means. nil: the one
// that p reads, or the brokers have no ids. What was told about the name before
// then is about this topic.
func (p *Partition) confirm(ctx context.Context, from int64) error {
	for {
		settled, err := p.askID(ctx, from)
		if settled || err != nil {
			return err
		}
		if err := p.backoff.wait(ctx); err != nil {
			return err
		}
	}
}

// doubted is called when a request failed as it does when the topic is gone. It
// asks which topic the name means; its errors are final. A topic that is not
// there is waited for: it may have moved, and watch ends the run when it stays
// away.
func (p *Partition) doubted(ctx context.Context, from int64) error {
	p.doubt = true
	_, err := p.askID(ctx, from)
	return err
}

// askID asks once for the topic's id. settled: it is the one that p reads, or
// becomes it, or no id is known.
func (p *Partition) askID(ctx context.Context, from int64) (settled bool, err error) {
	found, err := p.c.cluster.identify(ctx, p.Topic)
	code := kafka.Error(0)
	switch {
	case errors.As(err, &code) && !passes(code):
		return false, p.fatal(from, code)
	case err != nil:
		p.complain("the id of a topic cannot be read, trying again", from, err)
		return false, nil
	case !found.exists:
		p.complain("the topic is not there, waiting for it", from, kafka.UnknownTopicOrPartition)
		return false, nil
	case found.id.IsZero(): // nobody can tell
		if !p.pinned {
			p.topicID = found.id
		}
	case !p.pinned && p.topicID.IsZero():
		p.topicID = found.id
	case found.id != p.topicID:
		if p.others++; p.others >= otherEnough {
			return false, &schemas.RecreatedError{Topic: p.Topic, Partition: p.ID, Was: p.topicID, Is: found.id}
		}
		return false, nil
	}
	p.pinned, p.others = true, 0
	return true, nil
}

// lost tells whether a request failed as it does when the topic or the partition
// is gone, or another topic has the name.
func lost(err error) bool {
	for _, e := range []error{kafka.UnknownTopicOrPartition, kafka.UnknownTopicID, kafka.InconsistentTopicID,
		protocol.ErrNoTopic, protocol.ErrNoPartition} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// trust is called before what a brings is handed over. Where nothing fences the
// records, a topic that was away may have come back as another one: the last
// record that was handed over must still be there. Its errors are final.
func (p *Partition) trust(ctx context.Context, a *answer) error {
	if a.fenced {
		p.doubt = false
		return nil
	}
	if p.doubt && p.hasLast {
		if err := p.holds(ctx, schemas.Position{Next: p.last.Offset + 1, Last: &p.last}); err != nil {
			return err
		}
	}
	p.doubt = false
	if n := len(a.messages); n > 0 {
		p.last, p.hasLast = a.messages[n-1].ID(), true
	}
	return nil
}

// Check tells whether the log still continues what was committed up to pos, and
// returns the id of the topic that p reads from then on; zero: not known. The
// topic must have the id of pos, if that has one. Then the last committed record
// is read again and compared. It waits for brokers that are away, like Fetch.
// *schemas.GapError: retention has deleted pos.Next. *schemas.RecreatedError: the
// topic has another id, another record is at that offset, or the log ends before
// pos.Next. A record that compaction has removed proves nothing.
func (p *Partition) Check(ctx context.Context, pos schemas.Position) (schemas.TopicID, error) {
	p.topicID, p.pinned, p.others, p.doubt, p.hasLast = pos.TopicID, false, 0, false, pos.Last != nil
	p.durable.Store(pos.Next)
	if p.topicID.IsZero() {
		p.topicID = p.c.TopicID(p.Topic)
	}
	if p.hasLast {
		p.last = *pos.Last
	}
	if err := p.holds(ctx, pos); err != nil {
		return schemas.TopicID{}, err
	}
	if p.topicID.IsZero() {
		return pos.TopicID, nil
	}
	return p.topicID, nil
}

// holds compares the log with what was read of it up to pos.
func (p *Partition) holds(ctx context.Context, pos schemas.Position) error {
	start, err := p.within(ctx, pos.Next)
	if err != nil || pos.Last == nil || pos.Last.Offset < start {
		return err
	}
	got, err := p.reread(ctx, *pos.Last)
	if err != nil || got == nil || *got == *pos.Last {
		return err
	}
	return &schemas.RecreatedError{Topic: p.Topic, Partition: p.ID,
		Detail: fmt.Sprintf("the record at offset %d is another one", pos.Last.Offset)}
}

// within tells whether from is in the log of the topic that p reads, and returns
// the log's first offset.
func (p *Partition) within(ctx context.Context, from int64) (start int64, err error) {
	start, end, err := p.bounds(ctx, from)
	if err == nil {
		err = p.confirm(ctx, from)
	}
	if err == nil {
		err = p.compare(from, start, end)
	}
	return start, err
}

// Holds tells whether partition id of the topic that Starts has found is the
// same, record for record, as the one that was read up to pos, whatever id that
// had: nil only if the last record before pos.Next is there and equal. Where
// nothing was read yet, pos.Next must be in the log.
func (c *Consumer) Holds(ctx context.Context, topic string, id int32, pos schemas.Position) error {
	p := c.partition(topic, id, &generation{})
	p.topicID = c.TopicID(topic)
	if _, err := p.within(ctx, pos.Next); err != nil || pos.Last == nil {
		return err
	}
	got, err := p.reread(ctx, *pos.Last)
	switch {
	case err != nil:
		return err
	case got == nil:
		return fmt.Errorf("%s/%d: the last record of the output, at offset %d, is not there", topic,
			id, pos.Last.Offset)
	case *got != *pos.Last:
		return fmt.Errorf("%s/%d: the record at offset %d is not the last one of the output", topic,
			id, pos.Last.Offset)
	}
	return nil
}
