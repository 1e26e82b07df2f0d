package schemas

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Record is a message to be sent. Its memory belongs to whoever it is handed to.
type Record struct {
	Key, Value []byte
	Headers    []Header
	// From is the partition that it comes from: its records stay in order.
	From int32
	// Points is how many points a pruned frame has; 0 of other records.
	Points int
}

// Bytes estimates the memory that r holds.
func (r *Record) Bytes() int64 {
	n := 128 + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += 48 + len(r.Headers[i].Value)
	}
	return int64(n)
}

// HeaderPublishedFrom names the record that a published one was made of, as
// topic/partition/offset: what is sent twice has it twice.
const HeaderPublishedFrom = "published-from"

// PrunedRecord returns the message of the survivors c of a frame of m; value is
// c encoded. The key and the headers are those of m. What m leaves to defaults
// is spelled out, since they would be others in another topic: the event time,
// the data set, the number of the frame.
func PrunedRecord(m *Message, k FrameKey, p *Pruned, value []byte) *Record {
	r := publishedRecord(m, value)
	r.Points = len(p.Index)
	r.Headers = append(r.Headers, Headers(k, SchemaPoints, "/run/"+m.Topic)...)
	r.Headers = append(r.Headers, p.Headers()...)
	for i := range m.Headers {
		if h := &m.Headers[i]; !replaced(h.Key) {
			r.Headers = append(r.Headers, Header{strings.Clone(h.Key), bytes.Clone(h.Value)})
		}
	}
	return r
}

// ForwardedRecord returns m as it is, for another topic: a message whose frames
// are not pruned. What it leaves to defaults is spelled out, as the key of its
// first frame has it.
func ForwardedRecord(m *Message, k FrameKey) *Record {
	r := publishedRecord(m, bytes.Clone(m.Value))
	spelled := []Header{
		{HeaderDataset, []byte(k.Dataset)}, {HeaderSequence, []byte(k.Sequence)},
		{HeaderFrameID, strconv.AppendInt(nil, k.FrameID, 10)}, {HeaderTimeNs, strconv.AppendInt(nil, eventTime(m), 10)}}
	for _, h := range spelled {
		if len(headerValue(m.Headers, h.Key)) == 0 {
			r.Headers = append(r.Headers, h)
		}
	}
	for i := range m.Headers {
		if h := &m.Headers[i]; !sameName(h.Key, HeaderPublishedFrom) {
			r.Headers = append(r.Headers, Header{strings.Clone(h.Key), bytes.Clone(h.Value)})
		}
	}
	return r
}

func publishedRecord(m *Message, value []byte) *Record {
	from := fmt.Sprintf("%s/%d/%d", m.Topic, m.Partition, m.Offset)
	return &Record{Key: bytes.Clone(m.Key), Value: value, From: m.Partition, Headers: []Header{{HeaderPublishedFrom, []byte(from)}}}
}

// replaced tells whether a pruned record has a header of that name of its own.
func replaced(key string) bool {
	for _, name := range [...]string{"ce-specversion", "ce-id", "ce-type", "ce-source", "ce-time", HeaderContentType, HeaderFormat, HeaderSchema,
		HeaderDataset, HeaderSequence, HeaderSensor, HeaderFrameID, HeaderTimeNs, HeaderPrunedFor, HeaderNPoints, HeaderNDropped, HeaderPublishedFrom} {
		if sameName(key, name) {
			return true
		}
	}
	return false
}
