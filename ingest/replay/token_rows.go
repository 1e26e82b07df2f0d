package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"entropipe/ingest/filesys"
	"entropipe/schemas"
)

// textRows reads texts: lines that are not blank, or what stands between those
// that are.
type textRows struct {
	*ndjson
	paragraphs bool
	block      []byte
}

func (t *textRows) close() error { t.ndjson.close(); return nil }

func (t *textRows) next(s *schemas.Sequence) error {
	t.block = t.block[:0]
	first := 0
	for {
		line, err := t.line()
		if err != nil && (err != io.EOF || first == 0) {
			return err
		}
		blank := err == io.EOF || len(bytes.TrimSpace(line)) == 0
		switch {
		case blank && first == 0:
			continue
		case blank:
			return t.fill(s, t.block, first)
		case !t.paragraphs:
			return t.fill(s, bytes.TrimSuffix(line, []byte{'\r'}), t.number)
		}
		if first == 0 {
			first = t.number
		} else {
			t.block = append(t.block, '\n')
		}
		if len(t.block)+len(line) > maxLine {
			return t.skipBlock()
		}
		t.block = append(t.block, bytes.TrimSuffix(line, []byte{'\r'})...)
	}
}

// skipBlock passes over the rest of a paragraph that is too long.
func (t *textRows) skipBlock() error {
	bad := t.bad(fmt.Errorf("the paragraph is longer than %d MiB", maxLine>>20))
	for {
		line, err := t.line()
		if err != nil || len(bytes.TrimSpace(line)) == 0 {
			t.block = nil
			return bad
		}
	}
}

// fill makes s the text that begins in a line.
func (t *textRows) fill(s *schemas.Sequence, text []byte, line int) error {
	if !utf8.Valid(text) {
		bad := t.bad(errors.New("the text is not UTF-8"))
		bad.Line = line
		return bad
	}
	s.ID, s.Text, s.IsText = rowName(t.name, line), string(text), true
	return nil
}

// rowName is the id of a row that has none.
func rowName(file string, row int) string { return filesys.Base(file) + ":" + strconv.Itoa(row) }

// jsonRows reads an object a line.
type jsonRows struct{ *ndjson }

func (j *jsonRows) close() error { j.ndjson.close(); return nil }

// jsonRow is one line.
type jsonRow struct {
	ID   json.RawMessage `json:"id"`
	Text *string         `json:"text"`
	IDs  integers        `json:"input_ids"`
	Mask integers        `json:"attention_mask"`
}

func (j *jsonRows) next(s *schemas.Sequence) error {
	for {
		line, err := j.line()
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := j.parse(line, s); err != nil {
			return j.bad(err)
		}
		return nil
	}
}

func (j *jsonRows) parse(line []byte, s *schemas.Sequence) error {
	if !utf8.Valid(line) {
		return errors.New("the line is not UTF-8")
	}
	var row jsonRow
	if err := json.Unmarshal(line, &row); err != nil {
		var at *json.SyntaxError
		if errors.As(err, &at) {
			return &syntaxError{at: int(at.Offset) - 1, detail: err.Error()}
		}
		var wrong *json.UnmarshalTypeError
		switch {
		case errors.As(err, &wrong) && wrong.Field == "":
			return fmt.Errorf("the line is a JSON %s, want an object", wrong.Value)
		case wrong != nil:
			return fmt.Errorf("%s is a JSON %s, want a %s", wrong.Field, wrong.Value, wrong.Type)
		}
		return err
	}
	if err := checkMembers(line); err != nil {
		return err
	}
	s.ID = rowName(j.name, j.number)
	if err := row.name(&s.ID); err != nil {
		return err
	}
	switch {
	case row.IDs != nil:
		return fillIDs(s, row.IDs, row.Mask)
	case row.Text != nil:
		s.Text, s.IsText = *row.Text, true
		return nil
	}
	return errors.New("there is neither input_ids nor text")
}

// name sets the id that the row has: a string or a number.
func (r *jsonRow) name(id *string) error {
	if len(r.ID) == 0 || string(r.ID) == "null" {
		return nil
	}
	if r.ID[0] != '"' {
		var n json.Number
		if err := json.Unmarshal(r.ID, &n); err != nil {
			return errors.New("id is neither a string nor a number")
		}
		*id = n.String()
		return nil
	}
	var name string
	if err := json.Unmarshal(r.ID, &name); err != nil {
		return err
	}
	if name != "" {
		*id = name
	}
	return nil
}

// integers are an array of JSON. Unlike []int64, it takes no null for 0.
type integers []int64

func (v *integers) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	data = bytes.TrimSpace(data)
	if len(data) < 2 || data[0] != '[' {
		return errors.New("input_ids and attention_mask are arrays of integers")
	}
	*v = (*v)[:0]
	if *v == nil {
		*v = integers{}
	}
	data = bytes.TrimSpace(data[1 : len(data)-1])
	for more := len(data) > 0; more; {
		var one []byte
		one, data, more = bytes.Cut(data, []byte{','})
		n, err := strconv.ParseInt(string(bytes.TrimSpace(one)), 10, 64)
		if err != nil {
			return fmt.Errorf("element %d of an array of integers is %.40s", len(*v), bytes.TrimSpace(one))
		}
		*v = append(*v, n)
	}
	return nil
}

// fillIDs makes s the ids that the mask leaves, nil leaves all: padding at the
// end is cut off.
func fillIDs(s *schemas.Sequence, ids, mask []int64) error {
	n := len(ids)
	if mask != nil {
		if len(mask) != n {
			return fmt.Errorf("attention_mask has %d values, input_ids %d", len(mask), n)
		}
		n = 0
		for i, m := range mask {
			if m != 0 && m != 1 || m == 1 && n < i {
				return errors.New("attention_mask is not ones before zeros: only padding at the end can be left out")
			}
			n += int(m)
		}
	}
	s.IDs = s.IDs[:0]
	for i, id := range ids[:n] {
		if id < 0 || id > math.MaxInt32 {
			return fmt.Errorf("token %d is %d; ids are from 0 to %d", i, id, math.MaxInt32)
		}
		s.IDs = append(s.IDs, int32(id))
	}
	return nil
}
