package replay

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"entropipe/schemas"
)

// maxLengths bounds the memory for a trace.
const maxLengths = 1 << 24

// lengthNames are what traces of requests call the number of input tokens.
var lengthNames = []string{"contexttokens", "input_length", "input_tokens", "n_tokens", "length"}

// ReadLengths reads the lengths of a trace's requests, in tokens, from a .csv with a
// column ContextTokens (Azure's traces), or from lines of JSON with input_length
// (Mooncake's); it accepts the names input_tokens, n_tokens and length, too. Lengths
// above clip become clip, unless clip is 0. Lengths below 1 are left out; a trace
// without any other is an error.
func ReadLengths(name string, clip int) ([]int32, error) {
	f, err := openPlain(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lengths []int32
	add := func(n int64) error {
		if clip > 0 {
			n = min(n, int64(clip))
		}
		switch {
		case n > keptTrace:
			return fmt.Errorf("%s: a request has %d tokens; clip the lengths", name, n)
		case len(lengths) == maxLengths:
			return fmt.Errorf("%s: the trace has more than %d requests", name, maxLengths)
		case n > 0:
			lengths = append(lengths, int32(n))
		}
		return nil
	}
	if strings.HasSuffix(strings.ToLower(name), ".csv") {
		err = lengthsOfCSV(f, name, add)
	} else {
		err = lengthsOfJSON(name, add)
	}
	if err == nil && len(lengths) == 0 {
		err = fmt.Errorf("%s: the trace has no request with a token", name)
	}
	return lengths, err
}

// keptTrace is the longest sequence that a trace may ask for.
const keptTrace = 1 << 24

func lengthsOfCSV(f io.Reader, name string, add func(int64) error) error {
	r := csv.NewReader(f)
	r.ReuseRecord = true
	head, err := r.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	column := slices.IndexFunc(head, func(h string) bool {
		return slices.Contains(lengthNames, strings.ToLower(strings.TrimSpace(strings.TrimPrefix(h, "\ufeff"))))
	})
	if column < 0 {
		return fmt.Errorf("%s: none of its columns %q is one of %q", name, head, lengthNames)
	}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(row[column]), 10, 64)
		if err != nil {
			line, _ := r.FieldPos(column)
			return fmt.Errorf("%s:%d: %.40q is no number of tokens", name, line, row[column])
		}
		if err := add(n); err != nil {
			return err
		}
	}
}

func lengthsOfJSON(name string, add func(int64) error) error {
	lines, err := openNDJSON(name)
	if err != nil {
		return err
	}
	defer lines.close()
	for {
		line, err := lines.line()
		if err == io.EOF {
			return nil
		}
		var row map[string]json.RawMessage
		if err == nil && len(strings.TrimSpace(string(line))) == 0 {
			continue
		}
		if err == nil {
			err = json.Unmarshal(line, &row)
		}
		n, found := int64(0), false
		for _, key := range lengthNames {
			if value, ok := row[key]; ok && err == nil && !found {
				found = true
				err = json.Unmarshal(value, &n)
			}
		}
		if err == nil && !found {
			err = fmt.Errorf("there is none of %q", lengthNames)
		}
		if err != nil {
			return lines.bad(err)
		}
		if err := add(n); err != nil {
			return err
		}
	}
}

// cutter cuts the ids of a source's files at given lengths.
type cutter struct {
	src     *tokens
	lengths []int32
	total   int64 // sequences to make
	made    int64
	name    string
	row     schemas.Sequence
	buffer  []int32
	used    int   // ids of the buffer that are used
	pass    int64 // ids in this pass over the files
}

func newCutter(src *tokens, lengths []int32, total int64) (*cutter, error) {
	if len(lengths) == 0 || slices.Min(lengths) < 1 {
		return nil, errors.New("tokens: lengths of sequences are 1 or more")
	}
	if total == 0 {
		total = int64(len(lengths))
	}
	return &cutter{src: src, lengths: lengths, total: total, name: stemOfTokens(src.Files[0])}, nil
}

// next makes q the next sequence.
func (c *cutter) next(q *schemas.Sequence) error {
	if c.made == c.total {
		return io.EOF
	}
	n := int(c.lengths[c.made%int64(len(c.lengths))])
	for len(c.buffer)-c.used < n {
		if err := c.read(); err != nil {
			return err
		}
	}
	*q = schemas.Sequence{ID: c.name + "-" + strconv.FormatInt(c.made, 10),
		IDs: append(q.IDs[:0], c.buffer[c.used:c.used+n]...)}
	c.used += n
	c.made++
	c.src.name = c.name
	return nil
}

// read appends the ids of one more row; behind the last one comes the first
// again.
func (c *cutter) read() error {
	c.buffer = append(c.buffer[:0], c.buffer[c.used:]...)
	c.used = 0
	err := c.src.row(&c.row)
	switch {
	case err == io.EOF && c.pass == 0:
		return fmt.Errorf("tokens: %s: there is no token to cut", strings.Join(c.src.Files, ", "))
	case err == io.EOF:
		c.pass = 0
		return c.src.restart()
	case err != nil:
		return err
	case c.row.IsText:
		return fmt.Errorf("tokens: %s holds texts: lengths count tokens, so they need a tokenizer",
			c.src.Files[c.src.at-1])
	}
	c.pass += int64(len(c.row.IDs))
	c.buffer = append(c.buffer, c.row.IDs...)
	return nil
}

func (c *cutter) rewind() { c.made, c.used, c.buffer, c.pass = 0, 0, c.buffer[:0], 0 }
