package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/produce"

	"entropipe/schemas"
)

const (
	minProduceVersion = 3 // Kafka 0.11: batches with headers
	// wholeValue is the size from which a value is written from its own memory. Smaller
	// ones are copied, because a call for each would cost more.
	wholeValue = 32 << 10
	// replicaTime is how long a broker waits for the replicas in sync.
	replicaTime = 10 * time.Second
)

// produceCall is a request with one batch of records. kafka-go routes it to the leader and
// lends a connection; the exchange is done here, so that values go from their own memory to
// the connection.
type produceCall struct {
	*produce.Request // topic and partition, for the route
	clientID         string
	parts            [][]byte // the batch; views of the values of large records
	version          int16
	transaction      string // its id; empty: the batch is part of none
}

// newProduceCall returns a request for a batch of at least one record, whose sum it takes. The
// values must stay as they are until the connection has ended with the request.
func newProduceCall(topic string, partition int, clientID string, batch []message, sent time.Time,
	by *place) *produceCall {
	return &produceCall{clientID: clientID, parts: batchParts(batch, sent, by), transaction: by.name(),
		Request: &produce.Request{Topics: []produce.RequestTopic{{Topic: topic,
			Partitions: []produce.RequestPartition{{Partition: int32(partition)}}}}}}
}

// batchParts returns a record batch of version 2, in parts that belong together. by may be nil.
func batchParts(batch []message, sent time.Time, by *place) [][]byte {
	b := make([]byte, batchHeader, 1024)
	type cut struct {
		at    int // length of b
		value []byte
	}
	var cuts []cut
	var head, fields []byte // of a record, before and behind its value
	total := 0
	for i := range batch {
		m := &batch[i]
		fields = appendFields(fields[:0], m.Headers)
		head = append(head[:0], 0, 0) // attributes, time after the first record
		head = appendNullable(binary.AppendVarint(head, int64(i)), m.Key)
		head = binary.AppendVarint(head, lengthOf(m.Value))
		b = binary.AppendVarint(b, int64(len(head)+len(m.Value)+len(fields)))
		b = append(b, head...)
		if len(m.Value) < wholeValue {
			b = append(b, m.Value...)
		} else {
			cuts = append(cuts, cut{len(b), m.Value})
			total += len(m.Value)
		}
		b = append(b, fields...)
	}
	total += len(b)
	ms := uint64(sent.UnixMilli())
	binary.BigEndian.PutUint32(b[8:], uint32(total-12)) // bytes behind this number
	binary.BigEndian.PutUint32(b[12:], ^uint32(0))      // leader's epoch: unknown
	b[16] = 2                                           // version of the format
	binary.BigEndian.PutUint32(b[23:], uint32(len(batch)-1))
	binary.BigEndian.PutUint64(b[27:], ms) // time of the first record
	binary.BigEndian.PutUint64(b[35:], ms) // latest time
	for i := 43; i < 57; i++ {
		b[i] = 0xff // no id, epoch and sequence of a producer
	}
	by.number(b)
	binary.BigEndian.PutUint32(b[57:], uint32(len(batch)))
	var parts [][]byte
	from := 0
	for _, c := range cuts {
		parts = append(parts, b[from:c.at], c.value)
		from = c.at
	}
	parts = append(parts, b[from:])
	sum := crc32.Update(0, castagnoli, parts[0][crcStart:])
	for _, part := range parts[1:] {
		sum = crc32.Update(sum, castagnoli, part)
	}
	binary.BigEndian.PutUint32(b[17:], sum)
	return parts
}

// appendFields appends the headers of a record.
func appendFields(b []byte, headers []schemas.Header) []byte {
	b = binary.AppendVarint(b, int64(len(headers)))
	for _, h := range headers {
		b = binary.AppendVarint(b, int64(len(h.Key)))
		b = appendNullable(append(b, h.Key...), h.Value)
	}
	return b
}

// lengthOf returns -1 for null.
func lengthOf(v []byte) int64 {
	if v == nil {
		return -1
	}
	return int64(len(v))
}

func appendNullable(b, v []byte) []byte { return append(binary.AppendVarint(b, lengthOf(v)), v...) }

// Required tells kafka-go to leave the exchange to RawExchange.
func (p *produceCall) Required(versions map[protocol.ApiKey]int16) bool {
	p.version = versions[protocol.Produce]
	return true
}

// RawExchange sends the request and reads the answer. It runs in a goroutine of the
// connection; an error closes the connection.
func (p *produceCall) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	answer, err := p.exchange(rw)
	if conn, ok := rw.(net.Conn); ok {
		err = from(conn, err)
	}
	return answer, err
}

func (p *produceCall) exchange(rw io.ReadWriter) (protocol.Message, error) {
	if p.version < minProduceVersion {
		return nil, fmt.Errorf("the broker is older than Kafka 0.11 (produce version %d)", p.version)
	}
	first := append(p.head(), p.parts[0]...)
	for i, part := range p.parts {
		if i == 0 {
			part = first
		}
		if len(part) == 0 {
			continue
		}
		if _, err := rw.Write(part); err != nil {
			return nil, err
		}
	}
	id, answer, err := protocol.ReadResponse(rw, protocol.Produce, p.version)
	if err == nil && id != correlation {
		err = fmt.Errorf("the answer is to request %d, not %d", id, correlation)
	}
	return answer, err
}

// head returns the request up to its batch, in a version before 9.
func (p *produceCall) head() []byte {
	size := 0
	for _, part := range p.parts {
		size += len(part)
	}
	topic := &p.Topics[0]
	b := appendHead(nil, protocol.Produce, p.version, correlation, p.clientID)
	if p.transaction == "" {
		b = binary.BigEndian.AppendUint16(b, ^uint16(0))
	} else {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(p.transaction))), p.transaction...)
	}
	b = binary.BigEndian.AppendUint16(b, ^uint16(0)) // all replicas in sync acknowledge
	b = binary.BigEndian.AppendUint32(b, uint32(replicaTime.Milliseconds()))
	b = binary.BigEndian.AppendUint32(b, 1)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(topic.Topic))), topic.Topic...)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(topic.Partitions[0].Partition))
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	binary.BigEndian.PutUint32(b, uint32(len(b)-4+size))
	return b
}

// produce sends the batch once.
func (o *Outbox) produce(partition int, batch []message, sent time.Time, by *place) error {
	bytes := 0
	for i := range batch {
		bytes += len(batch[i].Value)
	}
	ctx, cancel := context.WithTimeout(o.hard, requestTime+time.Duration(bytes>>20)*time.Second)
	defer cancel()
	r, err := o.client.Transport.RoundTrip(ctx, o.client.Addr,
		newProduceCall(o.cfg.Topic, partition, o.cfg.ClientID, batch, sent, by))
	if err != nil {
		return err
	}
	answer, ok := r.(*produce.Response)
	if !ok || len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		return errors.New("the answer to the messages is not of their partition")
	}
	switch a := &answer.Topics[0].Partitions[0]; {
	case a.ErrorCode == 0:
		return nil
	case a.ErrorMessage == "":
		return kafka.Error(a.ErrorCode)
	default:
		return fmt.Errorf("%w: %s", kafka.Error(a.ErrorCode), a.ErrorMessage)
	}
}
