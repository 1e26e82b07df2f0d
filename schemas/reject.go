package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Reasons of a FormatError, and of table rejects. docs/rejects.md gives the meaning
// of each and the remedy.
const (
	ReasonBadChunk           = "bad_chunk"      // a chunk (stage assemble), as the next three
	ReasonIncomplete         = "incomplete"     // chunks of the message are missing
	ReasonChunkConflict      = "chunk_conflict" // two chunks of one place differ
	ReasonBadChecksum        = "bad_checksum"   // the chunks are not the message that was sent
	ReasonEmpty              = "empty"
	ReasonTooLarge           = "too_large"
	ReasonTruncated          = "truncated"
	ReasonNotArrow           = "not_arrow"
	ReasonFileFormat         = "file_format"
	ReasonTrailingBytes      = "trailing_bytes"
	ReasonCorrupt            = "corrupt"
	ReasonUnsupported        = "unsupported"
	ReasonMissingColumn      = "missing_column"
	ReasonDuplicateColumn    = "duplicate_column"
	ReasonBadType            = "bad_type"
	ReasonBadLength          = "bad_length"
	ReasonBadValue           = "bad_value"
	ReasonBadHeader          = "bad_header"
	ReasonUnknownSchema      = "unknown_schema"
	ReasonUnknownContentType = "unknown_content_type"
	ReasonWrongMagic         = "wrong_magic"     // the value has the magic number of another format
	ReasonContainer          = "container"       // a file of many clouds, or a compressed one
	ReasonSchemaRegistry     = "schema_registry" // the wire format of Confluent's schema registry
	ReasonArrowPanic         = "arrow_panic"
	ReasonIDOutOfRange       = "id_out_of_range" // a sequence (stage model), as the next seven
	ReasonEmptySequence      = "empty_sequence"
	ReasonTooLong            = "too_long"
	ReasonNoModel            = "no_model"
	ReasonNoTokenizer        = "no_tokenizer"
	ReasonNotFinite          = "not_finite"
	ReasonOtherTokenizer     = "other_tokenizer" // a message of sequences (stage model), as the next
	ReasonOtherVocabulary    = "other_vocabulary"
	ReasonBadMask            = "bad_mask"
	ReasonPanic              = "panic"    // an operator has a bug (stage operate)
	ReasonInternal           = "internal" // an error that is not a FormatError
)

// FormatError says why a record, or one frame or sequence of it, cannot be used. The
// fault is in the record: the same bytes fail again.
type FormatError struct {
	Stage  string // StageDecode, …
	Reason string // one of the Reason constants
	Detail string // a sentence for people, with names and sizes
	At     int64  // position of the fault in the message's value; -1: unknown
}

func (e *FormatError) Error() string {
	if e.At < 0 {
		return fmt.Sprintf("%s: %s: %s", e.Stage, e.Reason, e.Detail)
	}
	return fmt.Sprintf("%s: %s: %s (at byte %d)", e.Stage, e.Reason, e.Detail, e.At)
}

// formatErr returns a FormatError of the decoder.
func formatErr(reason string, at int, format string, args ...any) *FormatError {
	return &FormatError{Stage: StageDecode, Reason: reason, Detail: fmt.Sprintf(format, args...), At: int64(at)}
}

// NewReject returns the reject of the record m, which err refuses. The reject owns
// its memory: it copies at most MaxRejectValue bytes each of the value, of the key
// and of the headers (the first ones that fit, names included). Index is -1, the
// whole message; a caller that refuses one frame sets it. A reject of StageAssemble has no
// value and no checksum: the bytes of some chunks are none.
//
// NewReject reads every byte of the value, for the checksum.
func NewReject(m *Message, err error) Reject {
	r := Reject{
		Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Index: -1,
		TimeNs:    eventTime(m),
		Key:       bytes.Clone(m.Key[:min(len(m.Key), MaxRejectValue)]),
		Headers:   cloneHeaders(m.Headers),
		ValueSize: int64(len(m.Value)),
	}
	r.because(err)
	if r.Stage == StageAssemble { // what is here is a part of a value, or no value at all
		r.ValueSize = max(r.ValueSize, m.Oversize)
	} else if m.Oversize > 0 { // the rest of the value was never here: no checksum
		r.ValueSize = m.Oversize
		r.Value = bytes.Clone(m.Value[:min(len(m.Value), MaxRejectValue)])
	} else if m.Value != nil {
		sum := sha256.Sum256(m.Value)
		r.ValueSHA = hex.EncodeToString(sum[:])
		r.Value = bytes.Clone(m.Value[:min(len(m.Value), MaxRejectValue)])
	}
	return r
}

// Another returns the reject of another frame or sequence of the same message. When
// one message yields several rejects, only the first carries key, headers and value,
// because a message may yield hundreds of thousands.
func (r *Reject) Another(index int32, err error) Reject {
	a := *r
	a.Index = index
	a.Share()
	a.because(err)
	return a
}

// Share drops key, headers and value, which an earlier reject of the same message
// holds.
func (r *Reject) Share() { r.Key, r.Headers, r.Value = nil, nil, nil }

// because sets stage, reason and message from err.
func (r *Reject) because(err error) {
	r.Stage, r.Reason, r.Message = StageDecode, ReasonInternal, err.Error()
	var fe *FormatError
	if errors.As(err, &fe) {
		r.Stage, r.Reason, r.Message = fe.Stage, fe.Reason, fe.Detail
		if fe.At >= 0 {
			r.Message = fmt.Sprintf("%s (at byte %d)", fe.Detail, fe.At)
		}
	}
}

// eventTime returns the header ts-ns if it can be read, else Kafka's time.
func eventTime(m *Message) int64 {
	if v := headerValue(m.Headers, HeaderTimeNs); v != nil {
		if ns, ok := parseInt(v); ok {
			return ns
		}
	}
	return m.SentAt()
}

func cloneHeaders(hs []Header) []Header {
	var out []Header
	left := MaxRejectValue
	for _, h := range hs {
		if left -= len(h.Key) + len(h.Value); left < 0 {
			break
		}
		out = append(out, Header{Key: string([]byte(h.Key)), Value: bytes.Clone(h.Value)})
	}
	return out
}
