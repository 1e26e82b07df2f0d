package token

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"entropipe/models/plainfile"
)

// TooManyError reports that a tokenizer.json has an id for which its model has no
// row of embeddings. ID is the largest id, Most the number of rows.
type TooManyError struct{ ID, Most int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("tokenizer.json has ids up to %d, but the embedding of the model has %d rows: they do not "+
		"belong together",
		e.ID, e.Most)
}

// checkIDs scans a tokenizer.json and returns a *TooManyError if an id of its
// vocabulary or of its added tokens is not below most. It stores nothing of the
// file, whose tables would take twenty times its size. It ignores other faults of
// the file: the parser reports them.
func checkIDs(path string, most int) error {
	f, err := plainfile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s := idScanner{r: bufio.NewReaderSize(f, 64<<10)}
	_ = s.value(nil, 0)
	if s.largest >= most {
		return &TooManyError{s.largest, most}
	}
	return nil
}

// idScanner walks JSON by its brackets and strings.
type idScanner struct {
	r       *bufio.Reader
	largest int    // largest id so far
	text    []byte // last key or number, cut at 64 bytes
}

// maxNesting bounds the walk; encoding/json allows 10,000.
const maxNesting = 1000

var errNotJSON = errors.New("the file is not the JSON of a tokenizer")

// value scans a value. path holds the keys that lead to it, if they can lead to an
// id: "model", "vocab" and a token; or "added_tokens", "" for a list, and "id".
func (s *idScanner) value(path []string, depth int) error {
	if depth > maxNesting {
		return errNotJSON
	}
	c, err := s.next()
	if err != nil {
		return err
	}
	switch c {
	case '{':
		return s.members(path, depth, '}')
	case '[':
		return s.members(path, depth, ']')
	case '"':
		return s.quoted()
	}
	s.text = append(s.text[:0], c)
	for {
		c, err := s.r.ReadByte()
		if err != nil || c == ',' || c == ']' || c == '}' || c <= ' ' {
			if err == nil {
				err = s.r.UnreadByte()
			}
			s.number(path)
			return err
		}
		if len(s.text) < 64 {
			s.text = append(s.text, c)
		}
	}
}

// number raises s.largest if the number just read is an id.
func (s *idScanner) number(path []string) {
	if len(path) != 3 || !(path[0] == "model" && path[1] == "vocab" || path[0] == "added_tokens" && path[2] == "id") {
		return
	}
	if id, err := strconv.Atoi(string(s.text)); err == nil && id < maxID { // the parser refuses larger ids
		s.largest = max(s.largest, id)
	}
}

// members scans an object or a list after its first bracket.
func (s *idScanner) members(path []string, depth int, end byte) error {
	var inner [3]string
	for {
		c, err := s.next()
		switch {
		case err != nil:
			return err
		case c == end:
			return nil
		case c == ',':
			continue
		}
		at := path
		if end == '}' {
			if c != '"' {
				return errNotJSON
			}
			if err := s.quoted(); err != nil {
				return err
			}
			if c, err = s.next(); err != nil || c != ':' {
				return errNotJSON
			}
		} else if err := s.r.UnreadByte(); err != nil {
			return err
		}
		if at = nil; len(path) < 3 && depth == len(path) {
			copy(inner[:], path)
			inner[len(path)] = s.key(path, end)
			at = inner[:len(path)+1]
		}
		if err := s.value(at, depth+1); err != nil {
			return err
		}
	}
}

// key returns the last key. It returns "" for items of a list and for tokens of
// the vocabulary: their path needs no name, and strings would cost memory.
func (s *idScanner) key(path []string, end byte) string {
	if end == ']' || len(path) == 2 && path[0] == "model" {
		return ""
	}
	var key string
	if json.Unmarshal(s.text, &key) != nil {
		return ""
	}
	return key
}

func (s *idScanner) next() (byte, error) {
	for {
		c, err := s.r.ReadByte()
		if err != nil || c > ' ' {
			return c, err
		}
	}
}

// quoted scans a string after its first quote.
func (s *idScanner) quoted() error {
	s.text = append(s.text[:0], '"')
	for escaped := false; ; {
		c, err := s.r.ReadByte()
		if err != nil {
			return err
		}
		if len(s.text) < 64 {
			s.text = append(s.text, c)
		}
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			return nil
		}
	}
}
