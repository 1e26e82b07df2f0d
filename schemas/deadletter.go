package schemas

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A dead letter is a copy of a refused message in a topic of its own: key, value and headers
// of the message, followed by the headers below, which say what was refused and why. A message
// has one letter, however many of its frames or sequences are refused. schemas/docs/messages.md
// describes letters for users.
const (
	HeaderErrorID         = "entropipe.error.id" // DeadLetterID
	HeaderErrorTopic      = "entropipe.error.topic"
	HeaderErrorPartition  = "entropipe.error.partition"
	HeaderErrorOffset     = "entropipe.error.offset"
	HeaderErrorIndex      = "entropipe.error.index"
	HeaderErrorRejects    = "entropipe.error.rejects" // rows of the message in table rejects
	HeaderErrorStage      = "entropipe.error.stage"
	HeaderErrorReason     = "entropipe.error.reason"
	HeaderErrorClass      = "entropipe.error.exception.class.name" // stage/reason
	HeaderErrorMessage    = "entropipe.error.exception.message"
	HeaderErrorRetriable  = "entropipe.error.retriable" // true or false
	HeaderErrorGroup      = "entropipe.error.connector.name"
	HeaderErrorWorker     = "entropipe.error.task.id"
	HeaderErrorValueBytes = "entropipe.error.value.bytes" // only of a letter without the message's value
	HeaderErrorChunkID    = "entropipe.error.chunk.id"    // as HeaderErrorValueBytes, of a message in chunks
)

const (
	errorPrefix     = "entropipe.error."
	maxErrorMessage = 4096
	maxErrorChunkID = 64
)

// DeadLetterID identifies a dead letter. It depends on the log and on the content of the
// output, and on nothing else: two letters with one id are one letter, sent twice.
type DeadLetterID struct {
	Output    string // uuid of the output whose table rejects has the rows
	Topic     string
	Partition int32
	Offset    int64
	Index     int32 // of the first row; -1: the whole message is refused
}

// String returns output/topic/partition/offset/index.
func (id DeadLetterID) String() string {
	return fmt.Sprintf("%s/%s/%d/%d/%d", id.Output, id.Topic, id.Partition, id.Offset, id.Index)
}

// ParseDeadLetterID is the inverse of DeadLetterID.String.
func ParseDeadLetterID(s string) (id DeadLetterID, err error) {
	parts := strings.Split(s, "/")
	if len(parts) != 5 || parts[0] == "" || parts[1] == "" {
		return id, fmt.Errorf("%.200q is no output/topic/partition/offset/index", s)
	}
	partition, err := strconv.ParseInt(parts[2], 10, 32)
	offset, failed := strconv.ParseInt(parts[3], 10, 64)
	index, wrong := strconv.ParseInt(parts[4], 10, 32)
	if err := cmp.Or(err, failed, wrong); err != nil {
		return id, fmt.Errorf("%.200q: %w", s, err)
	}
	id = DeadLetterID{parts[0], parts[1], int32(partition), offset, int32(index)}
	if partition < 0 || offset < 0 || index < -1 || id.String() != s {
		return DeadLetterID{}, fmt.Errorf("%.200q: a number is none of a record", s)
	}
	return id, nil
}

// DeadLetter is what the headers of a dead letter say.
type DeadLetter struct {
	DeadLetterID
	Rejects               int64 // rows of the message in table rejects, at least 1
	Stage, Reason, Detail string
	// Retriable tells whether the same bytes may be accepted after a change of settings, of the
	// model, or of the program. Otherwise the bytes themselves are wrong.
	Retriable bool
	Group     string // consumer group
	Worker    string // host of the process
	// ValueBytes is -1 if the letter has the message's value. Otherwise it is the size of the
	// value, which the letter does not have: the message exceeds the size limit, or its chunks
	// were not assembled.
	ValueBytes int64
	ChunkID    string // set only without the value, of a message in chunks
}

// NewDeadLetter returns the letter of a message whose rejects, of which there are n, begin with
// first. chunk is the id of the message's chunks; empty: it came in one record.
func NewDeadLetter(m *Message, first *Reject, n int64, chunk string) DeadLetter {
	d := DeadLetter{DeadLetterID: DeadLetterID{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset,
		Index: first.Index}, Rejects: n, Stage: first.Stage, Reason: first.Reason, Detail: first.Message,
		Retriable: retriable(first), ValueBytes: -1}
	if m.Oversize > 0 || first.Stage == StageAssemble {
		d.ValueBytes, d.ChunkID = first.ValueSize, chunk
		if chunk == "" {
			d.ChunkID = string(headerValue(m.Headers, HeaderChunkID))
		}
		d.ChunkID = strings.ToValidUTF8(d.ChunkID[:min(len(d.ChunkID), maxErrorChunkID)], "")
	}
	return d
}

// retriable tells whether other settings, another model, or a program without a bug may accept
// what r refuses.
func retriable(r *Reject) bool {
	return slices.Contains([]string{ReasonTooLarge, ReasonNotArrow, ReasonArrowPanic, ReasonPanic, ReasonInternal,
		ReasonIDOutOfRange, ReasonTooLong, ReasonNoModel, ReasonNoTokenizer, ReasonNotFinite, ReasonOtherTokenizer,
		ReasonOtherVocabulary}, r.Reason)
}

// Record returns the letter of m, in memory of its own. Error headers that m has already, as a
// letter that was read again, are replaced. A letter without the value has a null value, and
// none of the chunk headers.
func (d *DeadLetter) Record(m *Message) *Record {
	own := StripDeadLetter(m.Headers)
	r := &Record{Key: bytes.Clone(m.Key), From: m.Partition}
	if d.ValueBytes < 0 {
		r.Value = bytes.Clone(m.Value)
	} else if d.Stage == StageAssemble {
		own = WithoutChunk(own)
	}
	r.Headers = make([]Header, 0, len(own)+15)
	for i := range own {
		r.Headers = append(r.Headers, Header{strings.Clone(own[i].Key), bytes.Clone(own[i].Value)})
	}
	add := func(name, value string) { r.Headers = append(r.Headers, Header{name, []byte(value)}) }
	add(HeaderErrorID, d.String())
	add(HeaderErrorTopic, d.Topic)
	add(HeaderErrorPartition, strconv.Itoa(int(d.Partition)))
	add(HeaderErrorOffset, strconv.FormatInt(d.Offset, 10))
	add(HeaderErrorIndex, strconv.Itoa(int(d.Index)))
	add(HeaderErrorRejects, strconv.FormatInt(d.Rejects, 10))
	add(HeaderErrorStage, d.Stage)
	add(HeaderErrorReason, d.Reason)
	add(HeaderErrorClass, d.Stage+"/"+d.Reason)
	add(HeaderErrorMessage, strings.ToValidUTF8(d.Detail[:min(len(d.Detail), maxErrorMessage)], ""))
	add(HeaderErrorRetriable, strconv.FormatBool(d.Retriable))
	add(HeaderErrorGroup, d.Group)
	add(HeaderErrorWorker, d.Worker)
	if d.ValueBytes >= 0 {
		add(HeaderErrorValueBytes, strconv.FormatInt(d.ValueBytes, 10))
		if d.ChunkID != "" {
			add(HeaderErrorChunkID, d.ChunkID)
		}
	}
	return r
}

// ErrNoDeadLetter says that a record is no dead letter: it has no HeaderErrorID.
var ErrNoDeadLetter = errors.New("the record is no dead letter: it has no header " + HeaderErrorID)

// ParseDeadLetter reads the headers of a dead letter. The error is ErrNoDeadLetter if there is
// no id; it names the header that is malformed.
func ParseDeadLetter(hs []Header) (d DeadLetter, err error) {
	at := func(name string) string { return string(headerValue(hs, name)) }
	id := headerValue(hs, HeaderErrorID)
	if id == nil {
		return d, ErrNoDeadLetter
	}
	d = DeadLetter{Rejects: 1, Stage: at(HeaderErrorStage), Reason: at(HeaderErrorReason),
		Detail: at(HeaderErrorMessage), Retriable: at(HeaderErrorRetriable) == "true", Group: at(HeaderErrorGroup),
		Worker: at(HeaderErrorWorker), ValueBytes: -1, ChunkID: at(HeaderErrorChunkID)}
	if d.DeadLetterID, err = ParseDeadLetterID(string(id)); err != nil {
		return DeadLetter{}, fmt.Errorf("header %s: %w", HeaderErrorID, err)
	}
	for _, f := range []struct {
		name  string
		to    *int64
		least int64
	}{{HeaderErrorRejects, &d.Rejects, 1}, {HeaderErrorValueBytes, &d.ValueBytes, 0}} {
		text := headerValue(hs, f.name)
		if text == nil {
			continue
		}
		n, ok := parseInt(text)
		if !ok || n < f.least {
			return DeadLetter{}, fmt.Errorf("header %s is %.40q; it has a number from %d on", f.name, text, f.least)
		}
		*f.to = n
	}
	return d, nil
}

// StripDeadLetter returns the headers of the message that a dead letter is about: hs without
// every header of dead letters, in a slice of its own.
func StripDeadLetter(hs []Header) []Header {
	return slices.DeleteFunc(slices.Clone(hs), func(h Header) bool { return strings.HasPrefix(h.Key, errorPrefix) })
}
