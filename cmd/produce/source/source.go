// Package source is the grammar of what is read from files: for each format its arguments
// and flags, their help, their checks, and the opening of the files. It sends and computes
// nothing. The command produce sends what it opens to a topic; backfill computes tables of
// it.
//
// Each format is a struct of flags that is a Source.
package source

import (
	"log/slog"
	"time"

	"entropipe/ingest/replay"
)

// Source is what a format's flags name.
type Source interface {
	// Check returns all mistakes of the flags, joined, each a mistake.Usage. It opens nothing.
	Check() error

	// Open opens the source. The caller closes it.
	Open(o Options) (replay.Source, error)
}

// Options are what the command adds to the flags of a Source.
type Options struct {
	Rate          replay.Rate  // packs are small where items are sent at a slow frequency
	MaxFrameBytes int64        // size limit of a frame; 0: 64 MiB
	First         int          // inputs at which the search of files of any format ends; 0: all are found
	Log           *slog.Logger // names what was found and skipped
}

// Names say what frames are called, in place of the names that their source gives them,
// and when frames without times of their own begin.
type Names struct {
	Dataset  string    `group:"Names" setting:"yes"`
	Sequence string    `group:"Names" setting:"yes"`
	Sensor   string    `group:"Names" more:"yes" setting:"yes"`
	Epoch    time.Time `default:"2020-01-01T00:00:00Z" group:"Names" more:"yes" setting:"yes"`
}

// Replay returns the names for messages.
func (n *Names) Replay() replay.Names {
	return replay.Names{Dataset: n.Dataset, Sequence: n.Sequence, Sensor: n.Sensor}
}

// HelpLines describes the names.
func (Names) HelpLines() map[string]string {
	return map[string]string{
		"dataset":  "Name of the data set, instead of its own.",
		"sequence": "Name of the sequence, instead of its own.",
		"sensor":   "Name of the sensor, instead of its own.",
		"epoch":    "Time of the first frame, where frames have no times of their own.",
	}
}
