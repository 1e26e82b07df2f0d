// Package identity holds the identities of topics and of records, in the forms that commit
// records have them. It needs neither Arrow nor Kafka, so programs that read commit records
// without package schemas import it.
package identity

import (
	"encoding/base64"
	"fmt"
)

// TopicID is the id that a Kafka cluster gives a topic at its creation. A topic that
// is deleted and created again gets another id, and a cluster never uses an id twice.
// The zero value means that no id is known: brokers before Kafka 2.8 have none.
type TopicID [16]byte

// IsZero tells whether no id is known.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// String returns the id as Kafka's tools print it: 22 characters of base64 in
// the alphabet of URLs. Without an id it is empty.
func (id TopicID) String() string {
	if id.IsZero() {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// ParseTopicID is the inverse of String. It accepts no other form.
func ParseTopicID(s string) (id TopicID, err error) {
	if s == "" {
		return id, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != len(id) || TopicID(b).IsZero() {
		return id, fmt.Errorf("topic id %q is malformed; it must be 22 characters of base64", s)
	}
	return TopicID(b), nil
}

// RecordID identifies a data record by more than its offset. It detects a topic that
// was deleted and created again under the same name: another record at the same
// offset has another timestamp or checksum.
type RecordID struct {
	Offset    int64  `json:"offset"`
	Timestamp int64  `json:"timestamp_ms"`
	CRC32C    uint32 `json:"crc32c"` // sum of the key's bytes followed by the value's bytes
}

// MaxClosed bounds the ids of chunked messages that a commit record keeps.
const MaxClosed = 256
