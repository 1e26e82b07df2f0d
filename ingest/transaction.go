package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"entropipe/schemas"
)

// Records of an Outbox that was fenced are there exactly once. Fence makes this outbox the
// only one that may send under a name: the brokers refuse what an earlier one of this name
// still has under way, from another process too. Whoever reads the topic after Fence knows
// all that was sent under the name.
//
// Transact sends records so that consumers of committed records see all of them or none, and
// a request whose answer was lost makes no second record, because batches are place.

// transactionTime is how long the brokers wait for the end of a transaction whose process
// died. Consumers wait as long, unless another process fences it.
const transactionTime = time.Minute

// transactions is the state of an Outbox that was fenced.
type transactions struct {
	name     string
	producer int
	epoch    int

	mu       sync.Mutex
	enlisted map[int]bool  // partitions of the open transaction
	next     map[int]int32 // number of the next record, by partition
}

// place is the place of a batch in what a producer sends to a partition. nil: it has none.
type place struct {
	*transactions
	sequence int32
}

// name returns the id of the transaction.
func (n *place) name() string {
	if n == nil {
		return ""
	}
	return n.transactions.name
}

// number writes the place into the header of a batch.
func (n *place) number(b []byte) {
	if n == nil {
		return
	}
	const transactional = 0x10
	b[22] |= transactional
	binary.BigEndian.PutUint64(b[43:], uint64(n.producer))
	binary.BigEndian.PutUint16(b[51:], uint16(n.epoch))
	binary.BigEndian.PutUint32(b[53:], uint32(n.sequence))
}

// FencedError says that another process has fenced the outboxes of a name.
type FencedError struct{ Name string }

func (e *FencedError) Error() string {
	return fmt.Sprintf("another process sends as %s now, or this one took longer than a minute for a transaction; "+
		"what was not committed is not in the topic", e.Name)
}

// Fence makes o the one outbox of this name. It waits until transactions of earlier ones have
// ended. It comes before the first Transact, and Send is not used beside. *DeniedError: the
// user may not write under the name.
func (o *Outbox) Fence(ctx context.Context, name string) error {
	t := &transactions{name: name, enlisted: map[int]bool{}, next: map[int]int32{}}
	err := o.coordinate(ctx, func(ctx context.Context) error {
		r, err := o.client.InitProducerID(ctx, &kafka.InitProducerIDRequest{TransactionalID: name,
			TransactionTimeoutMs: int(transactionTime.Milliseconds()), ProducerID: -1, ProducerEpoch: -1})
		if err != nil {
			return err
		}
		if r.Error == nil {
			t.producer, t.epoch = r.Producer.ProducerID, r.Producer.ProducerEpoch
		}
		return r.Error
	})
	if err != nil {
		return fmt.Errorf("send as %s: %w", name, o.cfg.Security.denied(err, "Write", name, o.cfg.Brokers[0]))
	}
	o.transactions = t
	return nil
}

// Transact sends records in one transaction, and returns when it is committed. After an error
// the outbox cannot be used again, and none of the records is in the topic, unless the error is
// about the last step and the brokers do not answer: then all are there, or none.
func (o *Outbox) Transact(ctx context.Context, records []*schemas.Record) error {
	if len(records) == 0 {
		return nil
	}
	var left atomic.Int64
	left.Store(int64(len(records)))
	all := make(chan struct{})
	for _, r := range records {
		err := o.Send(ctx, r, func() {
			if left.Add(-1) == 0 {
				close(all)
			}
		})
		if err != nil {
			o.giveUp()
			return err
		}
	}
	select {
	case <-all:
	case <-o.ctx.Done():
		o.giveUp()
		return o.Err()
	case <-ctx.Done():
		o.giveUp()
		return context.Cause(ctx)
	}
	if err := o.commit(ctx); err != nil {
		return fmt.Errorf("commit to topic %s: %w", o.cfg.Topic, err)
	}
	return nil
}

// giveUp fences o itself, so that consumers need not wait until the brokers end the
// transaction, and that requests under way are refused. Its failure changes nothing else.
func (o *Outbox) giveUp() {
	if fenced := (*FencedError)(nil); errors.As(o.Err(), &fenced) {
		return // it is another's turn
	}
	ctx, cancel := context.WithTimeout(o.hard, 2*time.Second)
	defer cancel()
	t := o.transactions
	o.client.InitProducerID(ctx, &kafka.InitProducerIDRequest{TransactionalID: t.name,
		TransactionTimeoutMs: int(transactionTime.Milliseconds()), ProducerID: t.producer, ProducerEpoch: t.epoch})
}

// commit commits the open transaction.
func (o *Outbox) commit(ctx context.Context) error {
	t := o.transactions
	t.mu.Lock()
	defer t.mu.Unlock()
	err := o.coordinate(ctx, func(ctx context.Context) error {
		r, err := o.client.EndTxn(ctx, &kafka.EndTxnRequest{TransactionalID: t.name, ProducerID: t.producer,
			ProducerEpoch: t.epoch, Committed: true})
		if err != nil {
			return err
		}
		return r.Error
	})
	clear(t.enlisted)
	return err
}

// place returns the place of the next batch of a partition.
func (o *Outbox) place(partition int) *place {
	t := o.transactions
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return &place{t, t.next[partition]}
}

// delivered counts the records of a batch that has arrived.
func (o *Outbox) delivered(partition, records int) {
	if t := o.transactions; t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.next[partition] += int32(records)
	}
}

// enlist makes a partition part of the open transaction.
func (o *Outbox) enlist(partition int) error {
	t := o.transactions
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.enlisted[partition] {
		return nil
	}
	ctx, cancel := context.WithTimeout(o.hard, callTimeout)
	defer cancel()
	r, err := o.client.AddPartitionsToTxn(ctx, &kafka.AddPartitionsToTxnRequest{TransactionalID: t.name,
		ProducerID: t.producer, ProducerEpoch: t.epoch,
		Topics: map[string][]kafka.AddPartitionToTxn{o.cfg.Topic: {{Partition: partition}}}})
	if err != nil {
		return err
	}
	for _, p := range r.Topics[o.cfg.Topic] {
		if p.Error != nil {
			return p.Error
		}
	}
	t.enlisted[partition] = true
	return nil
}

// coordinate calls f until the coordinator of transactions has done it, patience or ctx ends,
// or an error is final.
func (o *Outbox) coordinate(ctx context.Context, f func(context.Context) error) error {
	begun := time.Now()
	for wait := firstPause; ; wait = min(2*wait, mostPause) {
		within, cancel := context.WithTimeout(ctx, callTimeout)
		err := f(within)
		cancel()
		code := kafka.Error(0)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &code) && !code.Temporary() && code != kafka.Unknown &&
			code != kafka.ConcurrentTransactions:
			if fenced := o.fenced(code); fenced != nil {
				return fenced
			}
			return err
		case time.Since(begun) > o.cfg.Patience:
			return err
		}
		if sleep(ctx, wait) != nil {
			return context.Cause(ctx)
		}
	}
}

// fenced returns the error of an outbox that another one has fenced; nil: code is another one.
func (o *Outbox) fenced(code kafka.Error) error {
	switch code {
	case kafka.ProducerFenced, kafka.InvalidProducerEpoch, kafka.InvalidTransactionState,
		kafka.InvalidProducerIDMapping:
		if o.transactions != nil {
			return &FencedError{o.transactions.name}
		}
	}
	return nil
}
