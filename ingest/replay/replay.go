// Package replay turns data sets and synthetic scenes into Kafka messages: a
// Source yields items, a Producer numbers, paces, encodes and sends them.
//
// It reads files as they are published (KITTI's velodyne scans, QuickDraw's
// drawings, texts and token ids) and never holds more than one message's worth
// of them. It does not consume messages, and does not know the tables.
//
// Vocabulary: an item is the content of one message: one sweep of a LiDAR, or a pack
// of drawings or sequences. A frame is one cloud, one drawing or one token sequence,
// so a sweep is one frame and a pack has several. A pass is one reading of the whole
// source; --loop asks for several. The epoch is the time of the first frame of a
// source without dates.
package replay

import (
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	"entropipe/ingest/bucket"
	"entropipe/schemas"
	"entropipe/schemas/codec"
)

// Source yields the items of a data set in order.
//
// Next sets it to the next item, and returns io.EOF after the last one. The slices of
// the item belong to the source and are valid until the next call of any method.
// After a *BadInputError the source is still usable: the next call continues behind
// the fault. Rewind returns to the first item; the source then yields the same items
// again. Close closes files. One goroutine at a time may use a Source.
type Source interface {
	Next(it *Item) error
	Rewind() error
	Close() error
}

// Clock defines the zero of an item's TimeNs, and whether items come in the order of
// their times.
type Clock uint8

const (
	// NoClock: the item has no time. Its position in tenths of a second since the
	// epoch takes its place.
	NoClock Clock = iota
	// SinceEpoch: nanoseconds since the epoch that the producer chooses.
	SinceEpoch
	// UTC: nanoseconds since 1970.
	UTC
	// Unordered: nanoseconds since 1970, but items come in no order of time,
	// so that there is no rate to replay: drawings collected over months.
	Unordered
)

// Item is the content of one message: a cloud, or a pack of drawings or sequences.
type Item struct {
	Dataset  string // kitti, quickdraw, synthetic, tokens
	Sequence string
	Sensor   string
	Number   int64 // number of the item's first frame within the sequence
	Position int64 // number of the item within its input, items that cannot be read counted
	TimeNs   int64
	Clock    Clock

	// A sweep, where the sensor stood, and the names of the fields that were left out.
	Cloud   codec.Points
	Pose    *codec.Pose // nil: unknown
	Ignored []string

	// A pack of drawings, all with or all without times; nil for others.
	Drawings []Drawing

	// A pack of sequences, all of ids or all of text; nil for others. Each has either
	// ID and IDs or ID, IsText and Text.
	Sequences  []schemas.Sequence
	Vocabulary *schemas.Vocabulary // vocabulary of the ids; nil: unknown

	named   bool          // Sequence stands in the data: where they lie does not change it
	encoded *encodedCloud // the sweep as a value; nil: it was not encoded yet
}

// Drawing is a sequence of pen strokes. Stroke s holds the points from
// Ends[s-1] (0 for the first) up to Ends[s]. y grows downwards. Coordinates are
// float64 here whatever the message will hold: raw drawings have decimals that
// float32 would round.
type Drawing struct {
	ID     int64
	Label  string
	TimeNs int64 // time of the drawing, nanoseconds since 1970; 0: unknown
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

// Points returns the number of points, or of token ids, in the item.
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

// BadInputError says which part of a file cannot be used. Line and Col count from 1;
// they are 0 if the file has no lines or the fault no column.
type BadInputError struct {
	File      string
	Line, Col int
	Detail    string
	Err       error // error behind Detail; nil: there is none
}

// Unwrap returns the error behind the fault, such as that of the system.
func (e *BadInputError) Unwrap() error { return e.Err }

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

	position int64 // position of the next item
}

// place returns the position of an item that was read, or that cannot be read.
func (s *skips) place() int64 {
	s.position++
	return s.position - 1
}

// positions returns the position of the next item: at the end, the number of items.
func (s *skips) positions() int64 { return s.position }

// again begins another pass.
func (s *skips) again() { s.quiet, s.position = true, 0 }

// pass returns nil when reading goes on behind err.
func (s *skips) pass(err *BadInputError) error {
	if !s.allowed {
		return fmt.Errorf("%w (--skip-bad goes on without it)", err)
	}
	if failing(err.Err) {
		return fmt.Errorf("%w (--skip-bad does not pass over what the system cannot read now)", err)
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

// failing tells whether an error says nothing about a file: the disk, the server or the process
// failed, and the file may be there and good.
func failing(err error) bool {
	for _, e := range []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.ENOTCONN,
		syscall.EHOSTDOWN, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	fault := (*bucket.Fault)(nil)
	return errors.As(err, &fault)
}

// Skipped returns the number of bad inputs that were left out so far, each
// counted once however often the source is read.
func (s *skips) Skipped() int64 { return s.count }
