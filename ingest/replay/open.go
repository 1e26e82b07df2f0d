package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"

	"entropipe/ingest/filesys"
)

// Files configures a Source of whatever lies at Paths: files and folders whose formats are
// found by their content. Paths is required; the zero value of the other fields takes
// every format and stops at the first fault.
type Files struct {
	// Paths are files, folders and patterns such as scans/*.pcd.
	Paths []string
	// Format is one of Formats and takes the place of a look at the content; empty: the
	// content decides.
	Format string
	// Topics are the topics of recordings to read; nil: all that hold point clouds.
	Topics []string
	// Time is the time of a cloud in a recording: HeaderTime, LogTime or PublishTime; empty:
	// HeaderTime.
	Time string
	// Lasers, Returns and PerLaser are those of Waymo.
	Lasers   []string
	Returns  []int
	PerLaser bool
	// Tables and Scenes are those of NuScenes.
	Tables string
	Scenes []string
	// Columns names the columns of tables where their names do not say what they hold.
	Columns Columns
	// GroupBy is that of Table.
	GroupBy []string
	// SkipBad counts files, folders and frames that cannot be read, instead of stopping.
	SkipBad bool
	// MaxFrameBytes bounds the size of a frame; 0: 64 MiB.
	MaxFrameBytes int64
	// Pack is the most drawings that a message holds; 0: 256.
	Pack int
	// First ends an Archive's search at so many inputs, which may lack files that come later;
	// 0: all are found.
	First int
	// Log names what was found, and what was skipped; nil: no log.
	Log *slog.Logger
}

// Input is what one Source reads: a data set's folder, a recording, or the files of one
// format in one folder.
//
// An Input of an Archive survives JSON: it is opened without a search, by any process.
type Input struct {
	Format string `json:"format"` // one of Formats, or FormatTokens
	Path   string `json:"path"`   // a folder or a file
	// Files are the names of the files in Path, in natural order; nil: Path is read as a whole.
	Files []string `json:"files,omitempty"`
	// Sequence replaces the name of the sequence; empty: the Source names it. It is set
	// where two inputs would have the same name, or a folder gives the name.
	Sequence string `json:"sequence,omitempty"`

	name string // sequence, where it is known before the files are read
}

// Names of formats, those of tables and of CloudFormat beside them.
const (
	FormatKITTI      = "kitti"
	FormatNuScenes   = "nuscenes"
	FormatWaymo      = "waymo"
	FormatArgoverse2 = "argoverse2"
	FormatMCAP       = "mcap"
	FormatRosbag     = "rosbag"
	FormatQuickDraw  = "quickdraw"
	FormatTokens     = "tokens" // inputs of Tokens, which Files does not find
)

// single reports whether each file of the format is an input of its own, with its own name.
func (in *Input) single() bool { return in.Format == FormatQuickDraw || in.Format == FormatTokens }

// Inputs is a Source that reads several inputs one after the other. Each input has
// numbers and times of its own.
type Inputs struct {
	skips
	files  Files
	open   func(in *Input) (Source, error)
	inputs []Input
	at     int    // index of the input that is read
	source Source // nil between inputs
	past   int64  // bad inputs of the sources that were read to their end
}

// Open finds the inputs at f.Paths and opens the first one. It reads folders and the first
// 4 KiB of each file. The errors are: a path that does not exist or cannot be read, content
// of no format that is read, and paths without any input.
func (f Files) Open() (*Inputs, error) {
	found, err := f.find(context.Background(), new(atomic.Int64))
	if err != nil {
		return nil, err
	}
	s := &Inputs{skips: found.skips, files: f, inputs: found.inputs}
	s.open = func(in *Input) (Source, error) { return s.files.openInput(in) }
	return s, nil
}

// openInput opens an input.
func (f *Files) openInput(in *Input) (Source, error) {
	of := formatNamed(in.Format)
	if of == nil {
		return nil, fmt.Errorf("format %q is not known; the formats are %s", in.Format, strings.Join(Formats(), ", "))
	}
	return of.open(f, in)
}

// List returns the inputs in the order in which they are read.
func (s *Inputs) List() []Input { return s.inputs }

// OpenInput opens one of the inputs of List.
func (s *Inputs) OpenInput(in Input) (Source, error) {
	src, err := s.open(&in)
	if err != nil {
		return nil, err
	}
	return withName(src, in.Sequence), nil
}

// Next implements Source.
func (s *Inputs) Next(it *Item) error {
	for {
		if s.source == nil {
			if s.at == len(s.inputs) {
				return io.EOF
			}
			src, err := s.OpenInput(s.inputs[s.at])
			if err != nil {
				s.at++
				if err := s.unopened(s.inputs[s.at-1], err); err != nil {
					return err
				}
				continue
			}
			s.source = src
		}
		err := s.source.Next(it)
		if err != io.EOF {
			return err
		}
		if err := s.end(); err != nil {
			return err
		}
	}
}

// unopened passes over an input that cannot be opened, if that is allowed.
func (s *skips) unopened(in Input, err error) error {
	var bad *BadInputError
	if !s.allowed {
		return err
	}
	if !errors.As(err, &bad) {
		bad = &BadInputError{File: in.Path, Detail: err.Error(), Err: err}
	}
	return s.pass(bad)
}

// end closes the input that is read.
func (s *Inputs) end() error {
	if !s.quiet {
		s.past += skippedBy(s.source)
	}
	err := s.source.Close()
	s.source = nil
	s.at++
	return err
}

// skippedBy returns the bad inputs that src has left out.
func skippedBy(src Source) int64 {
	if k, ok := src.(interface{ Skipped() int64 }); ok {
		return k.Skipped()
	}
	return 0
}

// Skipped returns the number of bad inputs that were left out so far.
func (s *Inputs) Skipped() int64 {
	n := s.count + s.past
	if s.source != nil && !s.quiet {
		n += skippedBy(s.source)
	}
	return n
}

// Len returns the number of frames of all inputs, 0 if one of them does not tell it
// without being read.
func (s *Inputs) Len() int64 {
	if len(s.inputs) != 1 {
		return 0
	}
	if s.source == nil {
		src, err := s.OpenInput(s.inputs[0])
		if err != nil {
			return 0 // the first call of Next says so
		}
		s.source = src
	}
	if k, ok := s.source.(interface{ Len() int64 }); ok {
		return k.Len()
	}
	return 0
}

// Rewind implements Source.
func (s *Inputs) Rewind() error {
	err := s.Close()
	s.at, s.quiet = 0, true
	return err
}

// Close implements Source.
func (s *Inputs) Close() error {
	if s.source == nil {
		return nil
	}
	if !s.quiet {
		s.past += skippedBy(s.source)
	}
	err := s.source.Close()
	s.source = nil
	return err
}

// withName returns src with another name of its sequence; empty: its own.
func withName(src Source, sequence string) Source {
	if sequence == "" {
		return src
	}
	r := renamed{Source: src, sequence: sequence}
	if _, ok := filesIn(src); ok {
		return &filedRenamed{r}
	}
	return &r
}

// unnamed returns the source of src that has its own names, and the other name.
func unnamed(src Source) (Source, string) {
	switch s := src.(type) {
	case *renamed:
		return s.Source, s.sequence
	case *filedRenamed:
		return s.Source, s.sequence
	}
	return src, ""
}

// renamed is a Source with another name of its sequence.
type renamed struct {
	Source
	sequence string
}

// Next implements Source.
func (r *renamed) Next(it *Item) error {
	err := r.Source.Next(it)
	if !it.named {
		it.Sequence = r.sequence
	}
	return err
}

// Skipped returns the number of bad inputs that were left out so far.
func (r *renamed) Skipped() int64 { return skippedBy(r.Source) }

// Len returns the number of frames; 0: unknown.
func (r *renamed) Len() int64 {
	if k, ok := r.Source.(interface{ Len() int64 }); ok {
		return k.Len()
	}
	return 0
}

// whole returns the path of an input that is read as a whole.
func (in *Input) whole() []string {
	if in.Files != nil {
		return nil
	}
	return []string{in.Path}
}

// paths returns the files of an input with their folder.
func (in *Input) paths() []string {
	if in.Files == nil {
		return []string{in.Path}
	}
	all := make([]string, len(in.Files))
	for i, name := range in.Files {
		all[i] = filesys.Join(in.Path, name)
	}
	return all
}

// String names the input with its format.
func (in Input) String() string {
	switch {
	case in.Files == nil:
		return fmt.Sprintf("%s: %s", in.Path, in.Format)
	case len(in.Files) == 1:
		return fmt.Sprintf("%s: %s", filesys.Join(in.Path, in.Files[0]), in.Format)
	}
	return fmt.Sprintf("%s: %s, %d files", in.Path, in.Format, len(in.Files))
}
