// Package replay turns data sets and synthetic scenes into Kafka messages: a
// Source yields frames, a Producer numbers, paces, encodes and sends them.
//
// It reads files as they are published (KITTI's velodyne scans, QuickDraw's
// drawings, texts and token ids) and never holds more than one message's worth
// of them. It knows nothing of the tables that come out at the other end.
//
// Vocabulary: an item is what one message carries, one sweep of a LiDAR or a
// pack of drawings or sequences; a frame is one cloud or one sequence of tokens,
// so a sweep is one frame and a pack as many as it holds; a pass is one reading of the whole source, of
// which --loop asks for several; the epoch is the moment at which frames
// without a date of their own begin.
package replay

import (
	"fmt"
	"log/slog"

	"entropipe/algos/geom"
	"entropipe/schemas"
)

// Source yields the items of a data set in order.
//
// Next fills it with the next item and returns io.EOF after the last one. The
// slices in it belong to the source and are valid until the next call of any
// method. A *BadInputError leaves the source usable: the next call goes on
// behind what was broken. Rewind starts again from the first item, which then
// yields the same items. Close releases files. A Source is used by one
// goroutine at a time.
type Source interface {
	Next(it *Item) error
	Rewind() error
	Close() error
}

// Clock says what an item's TimeNs counts from, and whether items follow each
// other in time.
type Clock uint8

const (
	// NoClock: the item has no time. It takes place a tenth of a second after
	// the one before it.
	NoClock Clock = iota
	// SinceEpoch: nanoseconds since the epoch that the producer chooses.
	SinceEpoch
	// UTC: nanoseconds since 1970.
	UTC
	// Unordered: nanoseconds since 1970, but items come in no order of time,
	// so that there is no rate to replay: drawings collected over months.
	Unordered
)

// Item is what one message carries: a cloud, or a pack of drawings or sequences.
type Item struct {
	Dataset  string // kitti, quickdraw, synthetic, tokens
	Sequence string
	Sensor   string
	Number   int64 // frame number within the sequence; of a pack: of the first in it
	TimeNs   int64
	Clock    Clock

	// A sweep. Intensity is nil or has a value a point.
	Cloud     geom.Cloud[float32]
	Intensity []float32

	// A pack of drawings, all with or all without times; nil for others.
	Drawings []Drawing

	// A pack of sequences, all of ids or all of text; nil for others. Of each, ID
	// and IDs, or IsText and Text, are set.
	Sequences  []schemas.Sequence
	Vocabulary *schemas.Vocabulary // of the ids; nil: unknown
}

// Drawing is a sequence of pen strokes. Stroke s holds the points from
// Ends[s-1] (0 for the first) up to Ends[s]. y grows downwards. Coordinates are
// float64 here whatever the message will hold: raw drawings have decimals that
// float32 would round.
type Drawing struct {
	ID     int64
	Label  string
	TimeNs int64 // when it was drawn, since 1970; 0: unknown
	X, Y   []float64
	T      []int32 // milliseconds since the first point; nil: none
	Ends   []int32
}

// Frames returns the number of frames in the item.
func (it *Item) Frames() int64 {
	if it.Drawings != nil || it.Sequences != nil {
		return int64(len(it.Drawings) + len(it.Sequences))
	}
	return 1
}

// Points returns the number of points in the item, or of token ids.
func (it *Item) Points() int64 {
	if it.Sequences != nil {
		n := 0
		for i := range it.Sequences {
			n += len(it.Sequences[i].IDs)
		}
		return int64(n)
	}
	if it.Drawings == nil {
		return int64(it.Cloud.Len())
	}
	n := 0
	for i := range it.Drawings {
		n += len(it.Drawings[i].X)
	}
	return int64(n)
}

// BadInputError says which part of a file cannot be used. Line and Col count
// from 1 and are 0 where they mean nothing.
type BadInputError struct {
	File      string
	Line, Col int
	Detail    string
}

func (e *BadInputError) Error() string {
	switch {
	case e.Line == 0:
		return e.File + ": " + e.Detail
	case e.Col == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Detail)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Detail)
}

// maxLogged is how many bad inputs are named before they are only counted.
const maxLogged = 20

// skips applies the policy for bad input: stop, or count and go on.
type skips struct {
	allowed bool
	log     *slog.Logger
	count   int64
	quiet   bool // a later pass: what is skipped was named in the first
}

// pass returns nil when reading goes on behind err.
func (s *skips) pass(err *BadInputError) error {
	if !s.allowed {
		return fmt.Errorf("%w (--skip-bad goes on without it)", err)
	}
	if s.quiet {
		return nil
	}
	s.count++
	switch {
	case s.log == nil || s.count > maxLogged:
	case s.count == maxLogged:
		s.log.Warn("skipped; more will only be counted", "error", err.Error())
	default:
		s.log.Warn("skipped", "error", err.Error())
	}
	return nil
}

// Skipped returns the number of bad inputs that were left out so far, each
// counted once however often the source is read.
func (s *skips) Skipped() int64 { return s.count }
