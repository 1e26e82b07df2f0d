package schemas

import (
	"errors"
	"fmt"
)

// Position is where a partition goes on: the end of its newest manifest, or
// its base when there is none.
type Position struct {
	Next    int64
	Last    *RecordID // last data record before Next; nil: none known
	TopicID TopicID   // of the topic that the records before Next came from, or that the base was made for; zero: not known
}

// Fetched is one answer of the source: data records in offset order, and the
// offset to ask for next. Offsets between From and Next that have no message
// hold no data (compaction, control records, aborted transactions).
//
// The messages' bytes belong to the source. Release hands them back; it is
// called once, when the last of them is no longer read. It may be nil.
type Fetched struct {
	Messages []Message
	From     int64
	Next     int64
	End      int64 // the partition's last stable offset when this was fetched; -1: unknown
	Bytes    int64 // memory that the messages hold
	Release  func()
}

// ErrLost says that another writer committed the range first: what was staged
// is discarded, and the partition resumes from the store.
var ErrLost = errors.New("another writer has committed this range")

// UnavailableError says that the output cannot be written for a reason that may
// pass, such as a full disk. Whether what was being written is in the output is
// for Resume to say.
type UnavailableError struct{ Err error }

// Error is the reason.
func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *UnavailableError) Unwrap() error { return e.Err }

// GapError says that records were deleted by retention before they were read.
type GapError struct {
	Topic     string
	Partition int32
	Next      int64 // first offset wanted
	LogStart  int64 // first offset there is
}

func (e *GapError) Error() string {
	return fmt.Sprintf("%s/%d: offsets %d to %d were deleted by retention before they were read; to go on without them use --on-gap skip",
		e.Topic, e.Partition, e.Next, e.LogStart-1)
}

// RecreatedError says that the topic is not the one that the output was
// written from: it was deleted and created again, or another cluster is asked.
type RecreatedError struct {
	Topic     string
	Partition int32   // -1: the whole topic
	Was, Is   TopicID // zero where the brokers have no ids: then Detail tells how it was noticed
	Detail    string
}

func (e *RecreatedError) Error() string {
	place := e.Topic
	if e.Partition >= 0 {
		place = fmt.Sprintf("%s/%d", e.Topic, e.Partition)
	}
	if e.Is.IsZero() {
		return fmt.Sprintf("%s: the topic was deleted and created again since this output was written (%s); write to a new --out", place, e.Detail)
	}
	return fmt.Sprintf("%s: the topic was deleted and created again since this output was written (its id was %s, now it is %s); write to a new --out. "+
		"If this is a mirror of the same topic on another cluster, with equal offsets, start once with --accept-topic %s", place, e.Was, e.Is, e.Topic)
}
