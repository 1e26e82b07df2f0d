package schemas

import (
	"errors"
	"fmt"
	"slices"

	"entropipe/schemas/codec/identity"
)

// Position is where a partition resumes: the end of its newest manifest, or its base
// if there is no manifest.
type Position struct {
	Next    int64     // offset of the first record to read
	Last    *RecordID // last data record before Next; nil if none is known
	TopicID TopicID   // id of the topic that was read before Next, or that the base was made for; zero: unknown
	Chunks  *Chunked  // nil: no message before Next came in chunks
}

// Chunked says at an offset of a partition what became of chunks: enough for a reader that
// goes on there to decide about later chunks as a reader without a break does.
type Chunked struct {
	Ahead  []int64  // offsets from there on that hold chunks of messages before, ascending
	Closed []string // ids of the last messages that began before, oldest first, at most MaxClosed
}

// From returns what c says at a later offset, if no chunk before it is read. c may be nil.
func (c *Chunked) From(offset int64) *Chunked {
	if c == nil {
		return nil
	}
	return &Chunked{Ahead: slices.DeleteFunc(slices.Clone(c.Ahead), func(o int64) bool { return o < offset }),
		Closed: c.Closed}
}

// MaxClosed bounds the ids of a Chunked.
const MaxClosed = identity.MaxClosed

// Fetched is one answer of the source: data records in offset order, and the
// offset to ask for next. Offsets in [From, Next) that have no message hold no data:
// they were compacted away, or are control records or aborted transactions.
//
// The messages' bytes belong to the source. The receiver calls Release once, when it
// has read the last of them, to hand them back. Release may be nil.
type Fetched struct {
	Messages []Message
	From     int64
	Next     int64
	End      int64 // the partition's last stable offset at the time of the fetch; -1: unknown
	High     int64 // its high watermark: an open transaction holds back [End, High); 0: unknown
	Bytes    int64 // memory that the messages hold
	Release  func()
}

// ErrLost says that another writer committed the range first. The staged files are
// discarded, and the partition resumes from the store.
var ErrLost = errors.New("another writer has committed this range")

// UnavailableError says that the output cannot be written for a reason that may
// pass, such as a full disk. The failed write may or may not be in the output; the
// next Resume tells.
type UnavailableError struct{ Err error }

// Error returns the text of the reason.
func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *UnavailableError) Unwrap() error { return e.Err }

// GapError says that retention deleted records before they were read.
type GapError struct {
	Topic     string
	Partition int32
	Next      int64 // the offset to be read
	LogStart  int64 // the first offset that the log still has
}

func (e *GapError) Error() string {
	return fmt.Sprintf("%s/%d: retention deleted offsets %d to %d before they were read; --on-gap skip continues "+
		"without them",
		e.Topic, e.Partition, e.Next, e.LogStart-1)
}

// RecreatedError says that the topic is not the one that the output was written
// from: it was deleted and created again, or the brokers belong to another cluster.
type RecreatedError struct {
	Topic     string
	Partition int32   // -1: the whole topic
	Was, Is   TopicID // the output's and the brokers' id; zero if the brokers have no ids
	Detail    string  // how the difference was noticed, if there are no ids
}

func (e *RecreatedError) Error() string {
	place := e.Topic
	if e.Partition >= 0 {
		place = fmt.Sprintf("%s/%d", e.Topic, e.Partition)
	}
	if e.Is.IsZero() {
		return fmt.Sprintf("%s: the topic was deleted and created again since this output was written (%s); write "+
			"to a new --out", place, e.Detail)
	}
	return fmt.Sprintf("%s: the topic was deleted and created again since this output was written (its id was %s, "+
		"now it is %s); write to a new --out. "+
		"If this is a mirror of the same topic on another cluster, with equal offsets, start once with "+
		"--accept-topic %s", place, e.Was, e.Is, e.Topic)
}
