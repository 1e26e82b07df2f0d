package replay

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"

	"entropipe/ingest/filesys"
	"entropipe/schemas"
)

// Tokens configures a Source of texts or token ids. Files is required; the zero value
// of the other fields yields one text a line and stops at the first fault.
type Tokens struct {
	// Files are .txt (a line a text), .jsonl or .ndjson (objects with text, or
	// input_ids and attention_mask, and id) and .parquet (columns of these
	// names). The first two may be compressed with gzip.
	Files []string
	// Paragraphs makes each paragraph of a .txt, up to an empty line, one text.
	Paragraphs bool
	// Encode appends the ids of a text; nil: texts are sent as texts. Ids in a file
	// are sent unchanged.
	Encode func(dst []int32, text string) []int32
	// Vocabulary is the vocabulary of all ids; an id beyond its Size is a fault.
	// Unknown fields are zero.
	Vocabulary schemas.Vocabulary
	// Lengths are the lengths of the sequences: the ids of all files are joined and
	// cut to these lengths, in turn and over again, until there are Sequences (0: as
	// many as Lengths). nil: each row of a file is one sequence.
	Lengths   []int32
	Sequences int64
	// SkipBad counts rows that cannot be used, instead of stopping.
	SkipBad bool
	// Pack is the most sequences that a message holds; 0: 64. Half a megabyte ends a
	// pack, too.
	Pack int
	// Log names skipped rows; nil: no log.
	Log *slog.Logger
}

const (
	defaultTokenPack = 64
	packBytes        = 512 << 10 // bytes of ids or text in a message
)

// rows reads the sequences of a file. next fills s, whose IDs it reuses; an
// error that is a *BadInputError leaves the reader at the row behind.
type rows interface {
	next(s *schemas.Sequence) error
	close() error
}

// tokens packs the sequences of its files.
type tokens struct {
	skips
	Tokens
	at      int  // index of the next file
	file    rows // nil between files
	name    string
	cut     *cutter // nil: rows are sequences
	numbers map[string]int64
	pack    []schemas.Sequence
	held    int   // a row that was read, but belongs to the next pack; 0: none
	pending error // met behind the rows of the last pack
}

// Open checks that the files are there and of a kind that is known. Several files without Lengths
// are an *Inputs: each has numbers and times of its own.
func (t Tokens) Open() (Source, error) {
	inputs, err := t.inputs()
	if err != nil {
		return nil, err
	}
	if len(inputs) > 1 {
		return inTurn(inputs, t.Log, t.SkipBad, t.openInput), nil
	}
	return t.source()
}

// check checks that the files are there and of a kind that is known.
func (t *Tokens) check() error {
	if len(t.Files) == 0 {
		return errors.New("tokens: no file named")
	}
	for _, f := range t.Files {
		if info, err := filesys.Stat(f); err != nil {
			return fmt.Errorf("tokens: %w", err)
		} else if !info.Mode().IsRegular() {
			return fmt.Errorf("tokens: %s is not a file", f)
		} else if kindOfFile(f) == "" {
			return fmt.Errorf("tokens: %s: want .txt, .jsonl, .ndjson (or one of these with .gz) or .parquet", f)
		}
	}
	return nil
}

// source opens the files as one input.
func (t Tokens) source() (Source, error) {
	if t.Pack <= 0 {
		t.Pack = defaultTokenPack
	}
	s := &tokens{skips: skips{allowed: t.SkipBad, log: t.Log}, Tokens: t, numbers: map[string]int64{},
		pack: make([]schemas.Sequence, t.Pack+1)}
	if t.Lengths != nil {
		var err error
		if s.cut, err = newCutter(s, t.Lengths, t.Sequences); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// kindOfFile returns the extension that says how to read a file, "" for none.
func kindOfFile(name string) string {
	name = strings.ToLower(name)
	ext := filepath.Ext(name)
	if ext == ".gz" {
		ext = filepath.Ext(strings.TrimSuffix(name, ext))
		if ext == ".parquet" {
			return ""
		}
	}
	switch ext {
	case ".jsonl":
		return ".ndjson"
	case ".txt", ".ndjson", ".parquet":
		return ext
	}
	return ""
}

// Len returns the number of sequences; 0 if it is unknown before reading.
func (s *tokens) Len() int64 {
	if s.cut == nil {
		return 0
	}
	return s.cut.total
}

// Next implements Source.
func (s *tokens) Next(it *Item) error {
	if err := s.pending; err != nil {
		s.pending = nil
		return err
	}
	n, bytes, name := 0, 0, ""
	if s.held > 0 {
		s.pack[0], s.pack[s.held] = s.pack[s.held], s.pack[0]
		n, bytes, s.held, name = 1, sizeOf(&s.pack[0]), 0, s.name
	}
	for n < s.Pack && bytes < packBytes {
		q := &s.pack[n]
		if err := s.sequence(q); err != nil {
			if n == 0 {
				return err
			}
			s.pending = err
			break
		}
		if n > 0 && (s.name != name || q.IsText != s.pack[0].IsText) {
			s.held = n // a message has one name and one schema
			break
		}
		n, bytes, name = n+1, bytes+sizeOf(q), s.name
	}
	*it = Item{Dataset: "tokens", Sequence: name, Number: s.numbers[name], Position: s.place(),
		Sequences: s.pack[:n], Vocabulary: &s.Vocabulary}
	s.numbers[name] += int64(n)
	return nil
}

func sizeOf(q *schemas.Sequence) int { return 4*len(q.IDs) + len(q.Text) + len(q.ID) }

// keptIDs is how large a row's memory may be to be used again.
const keptIDs = 1 << 16

// sequence fills q with the next one to send.
func (s *tokens) sequence(q *schemas.Sequence) error {
	if cap(q.IDs) > keptIDs {
		q.IDs = nil // a monster must not stay in memory
	}
	if s.cut != nil {
		return s.cut.next(q)
	}
	return s.row(q)
}

// row fills q with the next row of a file that can be used. io.EOF: there is no
// file any more.
func (s *tokens) row(q *schemas.Sequence) error {
	var bad *BadInputError
	for {
		if s.file == nil {
			switch err := s.open(); {
			case errors.As(err, &bad):
				if err := s.pass(bad); err != nil {
					return err
				}
				continue
			case err != nil:
				return err
			}
		}
		*q = schemas.Sequence{IDs: q.IDs[:0]}
		err := s.file.next(q)
		if err == io.EOF {
			s.file.close()
			s.file = nil
			continue
		}
		if err == nil {
			err = s.check(q)
		}
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &bad):
			return err
		}
		if err := s.pass(bad); err != nil {
			return err
		}
	}
}

// open opens the next file.
func (s *tokens) open() error {
	if s.at == len(s.Files) {
		return io.EOF
	}
	path := s.Files[s.at]
	s.at++
	s.name = stemOfTokens(path)
	kind := kindOfFile(path)
	if kind == ".parquet" {
		p, err := openParquetRows(path)
		if err == nil {
			s.file = p
		}
		return err
	}
	lines, err := openNDJSON(path)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	if kind == ".ndjson" {
		s.file = &jsonRows{ndjson: lines}
	} else {
		s.file = &textRows{ndjson: lines, paragraphs: s.Paragraphs}
	}
	return nil
}

// stemOfTokens is the name of a file without its kind: "wiki.train.txt.gz" is
// wiki.train.
func stemOfTokens(path string) string {
	name := strings.TrimSuffix(filesys.Base(path), ".gz")
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// check turns a text into ids, if that was asked for, and looks at the ids.
func (s *tokens) check(q *schemas.Sequence) error {
	if q.IsText {
		if s.Encode == nil {
			return nil
		}
		q.IDs = s.Encode(q.IDs[:0], q.Text)
		q.Text, q.IsText = "", false
	}
	bad := func(format string, args ...any) error {
		return &BadInputError{File: s.Files[s.at-1],
			Detail: fmt.Sprintf("sequence %.80q: ", q.ID) + fmt.Sprintf(format, args...)}
	}
	if len(q.IDs) == 0 {
		return bad("it has no token")
	}
	for i, id := range q.IDs {
		if id < 0 || s.Vocabulary.Size > 0 && int(id) >= s.Vocabulary.Size {
			return bad("token %d is %d; ids are from 0, and below %d", i, id, s.Vocabulary.Size)
		}
	}
	return nil
}

// restart goes back to the first row of the first file.
func (s *tokens) restart() error {
	s.quiet = true
	err := s.Close()
	s.at = 0
	return err
}

// Rewind implements Source.
func (s *tokens) Rewind() error {
	s.held, s.pending, s.position = 0, nil, 0
	clear(s.numbers)
	if s.cut != nil {
		s.cut.rewind()
	}
	return s.restart()
}

// Close implements Source.
func (s *tokens) Close() (err error) {
	if s.file != nil {
		err = s.file.close()
		s.file = nil
	}
	return err
}
