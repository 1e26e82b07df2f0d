package schemas

import "strconv"

// Headers of a replayed record: a refused message that was sent again.
const (
	HeaderReplayedFrom = "replayed-from" // DeadLetterID; two records with one id are the same message, sent twice
	HeaderReplayCount  = "replay-count"  // how often the message was sent again, this time included
)

// ReplayedRecord returns the record that sends the refused message m again, the count-th time.
// It has the value and the key of m, which it takes over, and its headers without those of
// chunks and dead letters. Headers that m leaves to defaults are written, because the defaults
// would differ at another place: a replayed frame has the keys that it would have had. A
// malformed header stays as it is.
func ReplayedRecord(m *Message, id DeadLetterID, count int64) *Record {
	r := &Record{Key: m.Key, Value: m.Value, From: m.Partition}
	for _, h := range WithoutChunk(StripDeadLetter(m.Headers)) {
		if !sameName(h.Key, HeaderReplayedFrom) && !sameName(h.Key, HeaderReplayCount) {
			r.Headers = append(r.Headers, h)
		}
	}
	spell := func(name, value string) {
		if len(headerValue(m.Headers, name)) == 0 {
			r.Headers = append(r.Headers, Header{name, []byte(value)})
		}
	}
	spell(HeaderDataset, id.Topic)
	if len(m.Key) == 0 {
		spell(HeaderSequence, id.Topic)
	}
	spell(HeaderFrameID, strconv.FormatInt(id.Offset, 10))
	if at := m.SentAt(); at != 0 {
		spell(HeaderTimeNs, strconv.FormatInt(at, 10))
	}
	r.Headers = append(r.Headers, Header{HeaderReplayedFrom, []byte(id.String())},
		Header{HeaderReplayCount, strconv.AppendInt(nil, count, 10)})
	return r
}

// ReplayOf returns what the headers of a record say: the message that was sent again, and the
// count. ok is false, and the count 0, if the record is none that was sent again.
func ReplayOf(hs []Header) (id DeadLetterID, count int64, ok bool) {
	from := headerValue(hs, HeaderReplayedFrom)
	if from == nil {
		return id, 0, false
	}
	id, err := ParseDeadLetterID(string(from))
	if err != nil {
		return DeadLetterID{}, 0, false
	}
	count, good := parseInt(headerValue(hs, HeaderReplayCount))
	if !good || count < 1 {
		count = 1
	}
	return id, count, true
}
