package schemas

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Record is a message to be sent. The receiver of a Record owns its memory.
type Record struct {
	Key, Value []byte
	Headers    []Header
	From       int32 // partition of the source record; records of one partition stay in order
	Points     int   // points of a pruned frame; 0 for other records
}

// Bytes estimates the memory that r holds.
func (r *Record) Bytes() int64 {
	n := 128 + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += 48 + len(r.Headers[i].Value)
	}
	return int64(n)
}

// HeaderPublishedFrom names the source record of a published record, as
// topic/partition/offset, followed by /index for the results of a drawing. Two records
// with the same value are the same record, sent twice.
const HeaderPublishedFrom = "published-from"

// PrunedRecord returns the record of the survivors of frame k of m; value is their
// encoded points, which the record owns. It has the key and the headers of m. Event
// time, data set and frame number are written as headers even if m leaves them to
// defaults, because the defaults would differ in another topic.
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

// ForwardedRecord returns a copy of m for another topic, for a message whose frames
// are not pruned. Headers that m leaves to defaults are written with the values of k,
// the key of its first frame.
func ForwardedRecord(m *Message, k FrameKey) *Record {
	r := publishedRecord(m, bytes.Clone(m.Value))
	spelled := []Header{
		{HeaderDataset, []byte(k.Dataset)}, {HeaderSequence, []byte(k.Sequence)},
		{HeaderFrameID, strconv.AppendInt(nil, k.FrameID, 10)},
		{HeaderTimeNs, strconv.AppendInt(nil, eventTime(m), 10)}}
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
	return &Record{Key: bytes.Clone(m.Key), Value: value, From: m.Partition,
		Headers: []Header{{HeaderPublishedFrom, []byte(from)}}}
}

// replaced tells whether a pruned record has a header of that name of its own.
func replaced(key string) bool {
	for _, name := range [...]string{"ce-specversion", "ce-id", "ce-type", "ce-source", "ce-time", HeaderContentType,
		HeaderFormat, HeaderSchema,
		HeaderDataset, HeaderSequence, HeaderSensor, HeaderFrameID, HeaderTimeNs, HeaderPose,
		HeaderPrunedFor, HeaderNPoints,
		HeaderNDropped, HeaderPublishedFrom} {
		if sameName(key, name) {
			return true
		}
	}
	return false
}
