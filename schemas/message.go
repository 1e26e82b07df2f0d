// Package schemas defines the values that flow through the pipeline, and the wire
// format of messages: Arrow IPC streams and header names, documented byte by byte
// in schemas/docs. It does not know Kafka clients, files or metrics.
//
// Vocabulary:
//   - Message: one Kafka record, as the source returns it;
//   - Frame: one point cloud, decoded from a message;
//   - Sequence: one row of a message of token ids or texts;
//   - Result: what operators or a model computed for one frame or sequence;
//   - Reject: a message, frame or sequence that could not be used, with the reason;
//   - Batch: the results and rejects of one commit;
//   - Position: where a partition resumes.
package schemas

import (
	"bytes"
	"hash/crc32"
	"math"
	"strings"
	"time"

	"entropipe/schemas/codec/identity"
)

// Header is one header of a Kafka record. Names are lower case on the wire;
// readers accept hyphens and underscores alike.
type Header struct {
	Key   string
	Value []byte
}

// Message is one Kafka record. Value is nil for a tombstone. Key, Value and
// the headers' values are views of memory that the source owns: they are valid
// until the message's fetch is released.
type Message struct {
	Topic     string
	Partition int32
	Offset    int64
	Time      time.Time // Kafka's timestamp: when the record was sent or appended
	Key       []byte
	Value     []byte
	Headers   []Header

	// Oversize is the length of a value that exceeds the source's limit: Value
	// then holds only its beginning and the headers may be missing. Such a
	// record is a reject. Otherwise it is 0.
	Oversize int64

	// ValueSum is the CRC-32C of Value if Summed is set. A source that computed the
	// sum for a check of its own sets it, so that ID need not read the value again.
	ValueSum uint32
	Summed   bool
}

// Bytes returns the bytes of key, value and headers, names included.
func (m *Message) Bytes() int64 {
	n := len(m.Key) + len(m.Value)
	for i := range m.Headers {
		n += len(m.Headers[i].Key) + len(m.Headers[i].Value)
	}
	return int64(n)
}

// SentAt returns Time in Unix nanoseconds. It returns 0 if the record has no time
// (the oldest record format has no field for it, the others write -1 ms) or if the
// time, beyond the year 2262, does not fit into an int64.
func (m *Message) SentAt() int64 {
	if s := m.Time.Unix(); s < 0 || s >= math.MaxInt64/int64(time.Second) {
		return 0
	}
	return m.Time.UnixNano()
}

// RecordID identifies a data record by more than its offset.
type RecordID = identity.RecordID

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ID returns the identity of the record. It reads every byte of the key, and of the
// value unless Summed is set.
func (m *Message) ID() RecordID {
	sum := crc32.Checksum(m.Key, castagnoli)
	if m.Summed {
		sum = ShiftCRC(sum, len(m.Value)) ^ m.ValueSum
	} else {
		sum = crc32.Update(sum, castagnoli, m.Value)
	}
	return RecordID{Offset: m.Offset, Timestamp: m.Time.UnixMilli(), CRC32C: sum}
}

// Clone returns a copy of the record in memory of its own.
func (m *Message) Clone() *Message {
	c := *m
	c.Key, c.Value = bytes.Clone(m.Key), bytes.Clone(m.Value)
	c.Headers = make([]Header, len(m.Headers))
	for i, h := range m.Headers {
		c.Headers[i] = Header{Key: strings.Clone(h.Key), Value: bytes.Clone(h.Value)}
	}
	return &c
}
