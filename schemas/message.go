// Package schemas defines what flows through the pipeline: the Kafka record as
// the source hands it over (Message), the point cloud decoded from it (Frame),
// what the operators found (Result), what could not be used (Reject), and the
// unit of commit (Batch). It also holds the wire format: Arrow IPC streams and
// header names, documented byte by byte in schemas/docs.
//
// It knows nothing of Kafka clients, files or metrics.
package schemas

import (
	"hash/crc32"
	"math"
	"time"
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

	// ValueSum is the CRC-32C of Value, if Summed: a source that has summed up
	// every byte for a check of its own passes on what it knows.
	ValueSum uint32
	Summed   bool
}

// SentAt returns Time in Unix nanoseconds, 0 where there is none (the oldest
// record format has no room for it, in the others -1 ms stands for it) or where
// an int64 cannot say it (beyond 2262).
func (m *Message) SentAt() int64 {
	if s := m.Time.Unix(); s < 0 || s >= math.MaxInt64/int64(time.Second) {
		return 0
	}
	return m.Time.UnixNano()
}

// RecordID identifies a data record beyond its offset, so that a topic deleted
// and created again under the same name is noticed: another record at the same
// offset has another timestamp or checksum.
type RecordID struct {
	Offset    int64  `json:"offset"`
	Timestamp int64  `json:"timestamp_ms"`
	CRC32C    uint32 `json:"crc32c"` // of the key's bytes followed by the value's
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ID returns the identity of the record that m holds. It reads every byte of
// the key, and of the value unless its sum is known.
func (m *Message) ID() RecordID {
	sum := crc32.Checksum(m.Key, castagnoli)
	if m.Summed {
		sum = ShiftCRC(sum, len(m.Value)) ^ m.ValueSum
	} else {
		sum = crc32.Update(sum, castagnoli, m.Value)
	}
	return RecordID{Offset: m.Offset, Timestamp: m.Time.UnixMilli(), CRC32C: sum}
}
