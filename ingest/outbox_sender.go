package ingest

import (
	"errors"
	"fmt"
	"math"
	"time"

	"entropipe/schemas"

	kafka "github.com/segmentio/kafka-go"
)

// message is one record on its way.
type message struct {
	*schemas.Record
	acked func()
	frame *frame // the record that this is a chunk of; nil: it is whole
	tried bool   // a request with it was cut off: its memory may still be read
}

// batchOverhead and recordOverhead are at least what Kafka's format adds to a
// batch and to a record, headerOverhead to a header.
const (
	batchOverhead  = 61
	recordOverhead = 40
	headerOverhead = 10
)

// size returns at least the bytes of the record in a batch.
func (m *message) size() int64 {
	n := recordOverhead + len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		n += headerOverhead + len(h.Key) + len(h.Value)
	}
	return int64(n)
}

// TooLargeError says that a message is larger than its topic takes.
type TooLargeError struct {
	Topic    string
	Sequence string
	Frame    string // the frame that is too large: "frame 12", or "text 12"
	Size     int64  // bytes of the message
	Limit    int64  // bytes of the largest message that the topic takes
	Brokers  string
}

func (e *TooLargeError) Error() string {
	want := int64(1) << max(20, int64(math.Ceil(math.Log2(float64(e.Size)+batchOverhead))))
	return fmt.Sprintf(
		"%s of %s makes a message of %d bytes, but topic %s takes at most %d; send it in chunks, or raise it: "+
			"kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config "+
			"max.message.bytes=%d",
		e.Frame,
		e.Sequence,
		e.Size,
		e.Topic,
		e.Limit,
		e.Brokers,
		e.Topic,
		want,
	)
}

const (
	// grace is how long a request under way may take when everything ends.
	grace = time.Second
	// requestTime is what a request may take, beside a second a megabyte.
	requestTime = 15 * time.Second
	// batchBytes is how large a batch of small messages grows.
	batchBytes = 1 << 20
	queueSize  = 256
	firstPause = 100 * time.Millisecond
	mostPause  = 2 * time.Second
)

// sender sends the messages of one partition, in order.
func (o *Outbox) sender(partition int, queue <-chan message) {
	var batch []message
	var carry *message
	for {
		batch, carry = o.collect(batch[:0], carry, queue)
		if len(batch) == 0 {
			return
		}
		if err := o.deliver(partition, batch); err != nil {
			o.stop(err)
			o.frames.finished()
			return
		}
		for i := range batch {
			batch[i].acked()
			o.window.release(int64(len(batch[i].Value)))
			if !batch[i].tried {
				o.window.recycle(batch[i].Value)
			}
			batch[i] = message{}
		}
	}
}

// collect waits for a message, adds what is queued already as far as it fits
// into a batch, and returns the first that does not. An empty batch: it is over. When the outbox
// ends, it takes the chunks of frames that have begun alone.
func (o *Outbox) collect(batch []message, carry *message, queue <-chan message) ([]message, *message) {
	for carry == nil || !o.wanted(carry) {
		if carry != nil {
			o.window.release(int64(len(carry.Value)))
			carry = nil
		}
		select {
		case m, ok := <-queue:
			if !ok {
				return nil, nil
			}
			carry = &m
		case <-o.finish.Done():
			return nil, nil
		}
	}
	if o.finish.Err() != nil {
		return nil, nil
	}
	batch = append(batch, *carry)
	total := batchOverhead + carry.size()
	for total < batchBytes {
		select {
		case m, ok := <-queue:
			if !ok {
				return batch, nil
			}
			if total += m.size(); total > min(batchBytes, o.limit) {
				return batch, &m
			}
			if !o.wanted(&m) {
				return batch, &m
			}
			batch = append(batch, m)
		default:
			return batch, nil
		}
	}
	return batch, nil
}

// deliver sends a batch until it is acknowledged, patience ends, or an answer
// says that it never will be.
func (o *Outbox) deliver(partition int, batch []message) error {
	sent := time.Now() // Kafka's timestamp, the same in every attempt
	by := o.place(partition)
	var failing, logged time.Time
	for wait := firstPause; ; wait = min(2*wait, mostPause) {
		err := o.enlist(partition)
		if err == nil {
			err = o.produce(partition, batch, sent, by)
		}
		if err == nil || by != nil && errors.Is(err, kafka.DuplicateSequenceNumber) { // an earlier attempt arrived
			o.delivered(partition, len(batch))
			return nil
		}
		if o.finish.Err() != nil {
			return o.Err()
		}
		for i := range batch {
			batch[i].tried = true
		}
		if err := o.permanent(err, batch); err != nil {
			return err
		}
		now := time.Now()
		if failing.IsZero() {
			failing = now
		}
		if now.Sub(failing) > o.cfg.Patience {
			return fmt.Errorf("send to %s/%d: the brokers at %s took nothing for %s: %w", o.cfg.Topic, partition,
				o.brokers, o.cfg.Patience, err)
		}
		if now.Sub(logged) > debugEvery {
			logged = now
			o.cfg.Complaints.warn(o.cfg.Log, "brokers do not take messages; trying again", err, "topic", o.cfg.Topic,
				"partition", partition, "for", o.cfg.Patience-now.Sub(failing))
		}
		o.cfg.OnRetry()
		if sleep(o.finish, wait) != nil {
			return o.Err()
		}
	}
}

// permanent returns what to report if sending again cannot help.
func (o *Outbox) permanent(err error, batch []message) error {
	var code kafka.Error
	if !errors.As(err, &code) || code.Temporary() || code == kafka.Unknown || code == kafka.ConcurrentTransactions {
		return nil
	}
	if o.transactions != nil {
		if fenced := o.fenced(code); fenced != nil {
			return fenced
		}
	}
	if code == kafka.MessageSizeTooLarge {
		size := int64(batchOverhead)
		for i := range batch {
			size += batch[i].size()
		}
		return fmt.Errorf("%w (the brokers refused it)", o.tooLarge(&batch[0], size))
	}
	return o.cfg.Security.denied(fmt.Errorf("send to topic %s: %w", o.cfg.Topic, err), "Write",
		o.cfg.Topic, o.cfg.Brokers[0])
}
