package schemas

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Vocabulary names the tokenizer that made the ids of a message. Unknown fields are
// zero.
type Vocabulary struct {
	Tokenizer string // name of the tokenizer
	Size      int    // every id is below Size
	SHA256    string // hex SHA-256 of tokenizer.json
}

// AppendTokens appends a tokens/1 stream of the sequences to dst: columns id,
// input_ids and, if any sequence has a TimeNs, ts in microseconds, rounded down. The
// schema's metadata tokenizer, vocab_size and tokenizer_sha256 hold v. AppendTokens
// reads ID, IDs and TimeNs of the sequences.
//
// No sequence, a sequence without tokens, an id that is negative or beyond the
// vocabulary, and an ID that is not UTF-8 are errors, because consumers would refuse
// the message. dst is then returned unchanged.
func (e *Encoder) AppendTokens(dst []byte, rows []Sequence, v Vocabulary) ([]byte, error) {
	e.ids32, e.ends = e.ids32[:0], append(e.ends[:0], 0)
	for i := range rows {
		s := &rows[i]
		if len(s.IDs) == 0 {
			return dst, fmt.Errorf("sequence %d (id %q) has no token", i, s.ID)
		}
		for k, id := range s.IDs {
			if id < 0 || v.Size > 0 && int(id) >= v.Size {
				return dst, fmt.Errorf("sequence %d (id %q): token %d is %d, which is not in the vocabulary of %d", i,
					s.ID, k, id, v.Size)
			}
		}
		if len(e.ids32) > math.MaxInt32-len(s.IDs) {
			return dst, fmt.Errorf("the sequences have more than %d tokens, the most that a message can hold",
				math.MaxInt32)
		}
		e.ids32 = append(e.ids32, s.IDs...)
		e.ends = append(e.ends, int32(len(e.ids32)))
	}
	cols, err := e.sequenceColumns(rows)
	if err != nil {
		return dst, err
	}
	cols.addLists("input_ids", e.ends, e.ids32)
	e.addTimes(cols, rows)
	keys, values := []string{"schema"}, []string{SchemaTokens}
	add := func(key, value string) {
		if value != "" && value != "0" {
			keys, values = append(keys, key), append(values, value)
		}
	}
	add("tokenizer", v.Tokenizer)
	add("vocab_size", strconv.Itoa(v.Size))
	add("tokenizer_sha256", v.SHA256)
	return e.append(dst, cols, arrow.NewMetadata(keys, values))
}

// AppendText appends a text/1 stream of the sequences to dst: columns id, text and
// ts, with id and ts as AppendTokens writes them. It reads ID, Text and TimeNs of the
// sequences. No sequence, and text or an ID that is not UTF-8, are errors, and dst is
// returned unchanged.
func (e *Encoder) AppendText(dst []byte, rows []Sequence) ([]byte, error) {
	cols, err := e.sequenceColumns(rows)
	if err != nil {
		return dst, err
	}
	cols.addStrings("text", rows, func(s *Sequence) string { return s.Text })
	e.addTimes(cols, rows)
	return e.append(dst, cols, arrow.NewMetadata([]string{"schema"}, []string{SchemaText}))
}

// sequenceColumns begins the columns of a message of sequences.
func (e *Encoder) sequenceColumns(rows []Sequence) (*columns, error) {
	if len(rows) == 0 {
		return nil, errors.New("the message has no sequence; it needs at least one")
	}
	cols := &columns{rows: len(rows)}
	cols.addStrings("id", rows, func(s *Sequence) string { return s.ID })
	return cols, nil
}

// addTimes appends column ts if any row has a time; a row without one is null.
func (e *Encoder) addTimes(cols *columns, rows []Sequence) {
	b := array.NewTimestampBuilder(memory.DefaultAllocator, arrow.FixedWidthTypes.Timestamp_us.(*arrow.TimestampType))
	timed := false
	for i := range rows {
		t := rows[i].TimeNs
		if t == 0 {
			b.AppendNull()
			continue
		}
		timed = true
		us := t / 1e3
		if t%1e3 < 0 {
			us--
		}
		b.Append(arrow.Timestamp(us))
	}
	if timed {
		cols.addArray("ts", b.NewArray())
	}
}

func (c *columns) addArray(name string, a arrow.Array) {
	c.fields = append(c.fields, arrow.Field{Name: name, Type: a.DataType(), Nullable: a.NullN() > 0})
	c.arrays = append(c.arrays, a)
}

func (c *columns) addStrings(name string, rows []Sequence, text func(*Sequence) string) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	total := 0
	for i := range rows {
		s := text(&rows[i])
		if !utf8.ValidString(s) {
			c.err = fmt.Errorf("column %s of sequence %d (id %q) is not UTF-8", name, i, rows[i].ID)
			return
		}
		if total += len(s); total > math.MaxInt32 {
			c.err = fmt.Errorf("column %s has more than %d bytes", name, math.MaxInt32)
			return
		}
		b.Append(s)
	}
	c.addArray(name, b.NewArray())
}

// addLists appends a column of lists: row i holds values[ends[i]:ends[i+1]].
func (c *columns) addLists(name string, ends, values []int32) {
	elem := array.NewData(arrow.PrimitiveTypes.Int32, len(values),
		[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(values))}, nil, 0, 0)
	dt := arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int32)
	c.addArray(name, array.NewListData(array.NewData(dt, len(ends)-1,
		[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(ends))},
		[]arrow.ArrayData{elem}, 0, 0)))
}
