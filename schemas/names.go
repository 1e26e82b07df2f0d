package schemas

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// maxName bounds the names that a message gives: dataset, sequence, sensor,
// label. They become strings of every row.
const maxName = 4096

// names keeps the strings of recent messages, so that a stream of frames of
// one sequence does not allocate its name again with every frame.
type names struct {
	known map[string]string
	grown int64 // bytes added, for whoever limits them
}

const maxNames = 4096

// get returns view as a string that owns its memory.
func (n *names) get(view string) string {
	if s, ok := n.known[view]; ok {
		return s
	}
	if n.known == nil || len(n.known) >= maxNames {
		n.known = map[string]string{}
	}
	s := strings.Clone(view)
	n.known[s] = s
	n.grown += int64(len(s))
	return s
}

// getBytes is get for bytes; it allocates only what get does.
func (n *names) getBytes(b []byte) string {
	if s, ok := n.known[string(b)]; ok {
		return s
	}
	return n.get(string(b))
}

// key reads from the headers what the message says of its frame.
func (d *Decoder) key(m *Message) (k FrameKey, err *FormatError) {
	k = FrameKey{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset,
		Dataset: m.Topic, Sequence: m.Topic, FrameID: m.Offset, TimeNs: m.SentAt(),
	}
	if len(m.Key) > 0 {
		k.Sequence = "" // set below, from the header if there is one
	}
	for i := range m.Headers { // the last one of a name counts
		h := &m.Headers[i]
		switch {
		case len(h.Value) == 0: // as if it were missing
		case sameName(h.Key, HeaderDataset):
			k.Dataset, err = d.name(h)
		case sameName(h.Key, HeaderSequence):
			k.Sequence, err = d.name(h)
		case sameName(h.Key, HeaderSensor):
			k.Sensor, err = d.name(h)
		case sameName(h.Key, HeaderFrameID):
			k.FrameID, err = d.integer(h)
		case sameName(h.Key, HeaderTimeNs):
			k.TimeNs, err = d.integer(h)
		case sameName(h.Key, HeaderPose):
			k.Pose, err = pose(h)
		}
		if err != nil {
			return k, err
		}
	}
	if k.Sequence == "" {
		k.Sequence, err = d.keyName(m.Key)
	}
	return k, err
}

// keyName returns the sequence that a Kafka key names: its text, or 0x and
// hexadecimal digits for a key that is no text, such as a binary integer.
func (d *Decoder) keyName(key []byte) (string, *FormatError) {
	if len(key) > maxName/2-1 {
		return "", formatErr(ReasonBadHeader, -1,
			"the key has %d bytes and there is no header %s; a key that names a sequence has at most %d", len(key),
			HeaderSequence, maxName/2-1)
	}
	if isText(key) {
		return d.names.getBytes(key), nil
	}
	return "0x" + hex.EncodeToString(key), nil
}

// isText tells whether b is UTF-8 without control characters.
func isText(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(b)
}

func (d *Decoder) name(h *Header) (string, *FormatError) {
	if len(h.Value) > maxName {
		return "", formatErr(ReasonBadHeader, -1, "%s has %d bytes; a name has at most %d", h.Key,
			len(h.Value), maxName)
	}
	if !utf8.Valid(h.Value) {
		return "", formatErr(ReasonBadHeader, -1, "%s is %.40q, which is not UTF-8", h.Key, h.Value)
	}
	return d.names.getBytes(h.Value), nil
}

func (d *Decoder) integer(h *Header) (int64, *FormatError) {
	n, ok := parseInt(h.Value)
	if !ok {
		return 0, formatErr(ReasonBadHeader, -1, "header %s is %.40q; it must be a decimal integer of 64 bits", h.Key,
			h.Value)
	}
	return n, nil
}
