package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"entropipe/ingest/filesys"
)

// QuickDraw configures a Source of drawings. Files is required; the zero value of the
// other fields stops at the first fault.
type QuickDraw struct {
	// Files are .ndjson, raw or simplified, one category each. Files may be
	// compressed with gzip.
	Files []string
	// SkipBad counts lines that cannot be read, instead of stopping.
	SkipBad bool
	// Pack is the most drawings that a message holds; 0: 256. Half a megabyte of
	// points ends a pack, too.
	Pack int
	// Log names skipped lines; nil: no log.
	Log *slog.Logger
}

const (
	defaultPack = 256
	packPoints  = 512 << 10 / 20 // x, y, stroke, drawing and label take some 20 bytes, with float64 28
	// keptPoints is how large a drawing's memory may be to be used again.
	keptPoints = 1 << 16
)

// quickdraw reads files one after the other.
type quickdraw struct {
	skips
	files []string
	next  int     // index of the next file
	file  *ndjson // nil between files
	cat   category

	numbers  map[string]int64 // drawings so far, by sequence
	drawings []Drawing        // one pack
	held     int              // a drawing that was read, but belongs to the next pack; 0: none
	pending  error            // met behind the drawings of the last pack
	empty    int64            // drawings without a point
	parser   drawingParser
}

// category is what the first drawing of a file says of all of them.
type category struct {
	known bool
	word  string
	timed bool
}

// Open checks that the files are there. Several files are an *Inputs: each has numbers and times
// of its own.
func (q QuickDraw) Open() (Source, error) {
	inputs, err := q.inputs()
	if err != nil {
		return nil, err
	}
	if len(inputs) > 1 {
		f := Files{SkipBad: q.SkipBad, Pack: q.Pack, Log: q.Log}
		return inTurn(inputs, q.Log, q.SkipBad, f.openInput), nil
	}
	return q.source(), nil
}

// source opens the files as one input.
func (q QuickDraw) source() Source {
	if q.Pack <= 0 {
		q.Pack = defaultPack
	}
	return &quickdraw{
		skips:    skips{allowed: q.SkipBad, log: q.Log},
		files:    q.Files,
		numbers:  map[string]int64{},
		drawings: make([]Drawing, q.Pack),
	}
}

// check checks that the files are there.
func (q QuickDraw) check() error {
	if len(q.Files) == 0 {
		return errors.New("quickdraw: no file named")
	}
	for _, f := range q.Files {
		if info, err := filesys.Stat(f); err != nil {
			return fmt.Errorf("quickdraw: %w", err)
		} else if !info.Mode().IsRegular() {
			return fmt.Errorf("quickdraw: %s is not a file; name .ndjson files", f)
		}
	}
	return nil
}

// errFileEnd ends a pack: a message holds drawings of one category.
var errFileEnd = errors.New("end of file")

// Next implements Source.
func (s *quickdraw) Next(it *Item) error {
	if err := s.pending; err != nil {
		s.pending = nil
		return err
	}
	n, points := 0, 0
	if s.held > 0 {
		s.drawings[0], s.drawings[s.held] = s.drawings[s.held], s.drawings[0]
		n, points, s.held = 1, len(s.drawings[0].X), 0
	}
	for n < len(s.drawings) && points < packPoints {
		d := &s.drawings[n]
		err := s.read(d)
		if err == nil {
			if n > 0 && d.ID == s.drawings[n-1].ID {
				s.held = n // rows of equal ids beside each other would be one drawing
				break
			}
			n++
			points += len(d.X)
			continue
		}
		if n == 0 && err == errFileEnd {
			continue
		}
		if n == 0 {
			return err
		}
		if err != errFileEnd {
			s.pending = err
		}
		break
	}
	s.fill(it, n)
	return nil
}

func (s *quickdraw) fill(it *Item, n int) {
	sequence := s.cat.word
	*it = Item{
		Dataset:  "quickdraw",
		Sequence: sequence,
		Number:   s.numbers[sequence],
		Position: s.place(),
		Drawings: s.drawings[:n],
	}
	if t := s.drawings[0].TimeNs; t != 0 {
		it.Clock, it.TimeNs = Unordered, t
	}
	s.numbers[sequence] += int64(n)
}

// read fills d with the next drawing that has a point. io.EOF: there is no
// file any more.
func (s *quickdraw) read(d *Drawing) error {
	if cap(d.X) > keptPoints {
		*d = Drawing{} // a monster must not stay in memory
	}
	if s.file == nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	for {
		line, err := s.file.line()
		if err == io.EOF {
			s.file.close()
			s.file = nil
			return errFileEnd
		}
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err == nil {
			err = s.parse(line, d)
		}
		var bad *BadInputError
		switch {
		case errors.As(err, &bad):
			if err := s.pass(bad); err != nil {
				return err
			}
		case err != nil:
			return err
		case len(d.X) > 0:
			return nil
		case !s.quiet:
			s.empty++
		}
	}
}

func (s *quickdraw) open() (err error) {
	if s.next == len(s.files) {
		s.reportEmpty()
		return io.EOF
	}
	name := s.files[s.next]
	s.next++
	s.cat = category{word: stem(name)}
	if s.file, err = openNDJSON(name); err != nil {
		return fmt.Errorf("quickdraw: %w", err)
	}
	return nil
}

// stem is the category that a file's name tells: "full_simplified_cat.ndjson.gz"
// holds cats.
func stem(name string) string {
	name = filesys.Base(name)
	name = strings.TrimSuffix(name, ".gz")
	name = strings.TrimSuffix(name, ".ndjson")
	for _, prefix := range []string{"full_simplified_", "full_raw_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return name
}

// parse reads a line, and holds it against what the file began with.
func (s *quickdraw) parse(line []byte, d *Drawing) error {
	if err := s.parser.parse(line, d); err != nil {
		return s.file.bad(err)
	}
	if len(d.X) == 0 {
		return nil
	}
	if !s.cat.known {
		s.cat.known, s.cat.timed = true, d.T != nil
		if d.Label != "" {
			s.cat.word = d.Label
		}
	}
	if d.Label == "" {
		d.Label = s.cat.word
	}
	if s.cat.timed != (d.T != nil) {
		return s.file.bad(errors.New("raw and simplified drawings are mixed in one file"))
	}
	return nil
}

// reportEmpty says once how many drawings leave no row: the columns of a
// message have a row a point.
func (s *quickdraw) reportEmpty() {
	if s.empty > 0 && s.log != nil && !s.quiet {
		s.log.Warn("drawings without a point were left out", "count", s.empty)
	}
}

// Empty returns the number of drawings without a point, which were left out.
func (s *quickdraw) Empty() int64 { return s.empty }

// Rewind implements Source.
func (s *quickdraw) Rewind() error {
	err := s.Close()
	s.next, s.held, s.pending = 0, 0, nil
	s.again()
	clear(s.numbers)
	return err
}

// Close implements Source.
func (s *quickdraw) Close() error {
	if s.file != nil {
		s.file.close()
		s.file = nil
	}
	return nil
}
