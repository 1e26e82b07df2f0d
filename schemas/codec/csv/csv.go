// Package csv reads the rows of text files of numbers: values between commas, semicolons, tabs
// or blanks, with a line of names or without.
//
// A field between commas, semicolons or tabs may be quoted as RFC 4180 has it: a quoted field may
// hold the delimiter, ends of lines, and a quote as two quotes. Fields between blanks are not
// quoted, and any number of blanks separates them. Lines end with \n or \r\n. Empty lines are
// skipped. A mark of UTF-8 before the first line is skipped.
package csv

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"entropipe/schemas/codec"
)

// maxRow bounds the bytes of a row, and maxFields the number of its fields.
const (
	maxRow    = 1 << 20
	maxFields = 4096
)

// Error says where a file is no table. Line counts from 1, Col too; Col is 0 for a whole row.
type Error struct {
	Line, Col int
	Detail    string
}

func (e *Error) Error() string {
	if e.Col == 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Detail)
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Col, e.Detail)
}

// Reader reads a table row by row. Its memory is a row, whatever the size of the file.
type Reader struct {
	r      *bufio.Reader
	delim  byte // ' ' for blanks; 0: not yet known
	line   int  // number of the last line that was read
	first  int  // number of the line in which the last row begins
	fields [][]byte
	cols   []int  // byte of its line at which each field begins, from 0
	row    []byte // a row of several lines
	long   []byte // a line longer than the buffer
	plain  []byte // unquoted fields
	ready  bool   // fields hold a row that Next has yet to return
	names  []string
}

// NewReader returns a reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 256<<10)} }

// Header reads up to the first row of values and returns the names of the columns. chosen are names
// that a user gave. The first line holds names unless all its fields are numbers; a line that
// begins with # or // holds names if a column x and y, or a chosen one, is among them, and is
// skipped else. A line of one whole number is the number of points and is skipped. Without names,
// the columns are x, y, z, intensity and then column5, column6 and so on. An empty file has no
// column. The error is an *Error, or that of the io.Reader.
func (r *Reader) Header(chosen ...string) ([]string, error) {
	if mark, _ := r.r.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = r.r.Discard(3)
	}
	for {
		line, err := r.readRow(true)
		if err == io.EOF {
			return r.names, nil
		}
		if err != nil {
			return nil, err
		}
		bare, comment := uncomment(line)
		r.delim = delimiter(bare)
		if err := r.split(bare); err != nil {
			if comment {
				continue
			}
			return nil, err
		}
		switch {
		case comment && !isNames(r.fields, chosen):
		case comment:
			r.name()
			return r.names, r.skipCount()
		case len(r.fields) == 1 && isCount(r.fields[0]):
		case allNumbers(r.fields):
			r.ready = true
			r.number()
			return r.names, nil
		default:
			r.name()
			return r.names, r.skipCount()
		}
	}
}

// uncomment returns the line without the signs of a comment.
func uncomment(line []byte) ([]byte, bool) {
	for _, sign := range []string{"#", "//"} {
		if rest, ok := bytes.CutPrefix(line, []byte(sign)); ok {
			return bytes.TrimLeft(rest, "# "), true
		}
	}
	return line, false
}

// delimiter returns what separates the fields of a line: the first of tab, semicolon and comma
// that stands outside of quotes, else blanks.
func delimiter(line []byte) byte {
	seen := [256]bool{}
	quoted := false
	for _, c := range line {
		if c == '"' {
			quoted = !quoted
		}
		seen[c] = seen[c] || !quoted
	}
	for _, c := range []byte{'\t', ';', ','} {
		if seen[c] {
			return c
		}
	}
	return ' '
}

// isNames reports whether fields hold the names of coordinates, or a chosen name.
func isNames(fields [][]byte, chosen []string) bool {
	x, y := false, false
	for _, f := range fields {
		role := codec.RoleOf(string(f))
		x, y = x || role == codec.X, y || role == codec.Y
		for _, name := range chosen {
			if name != "" && strings.EqualFold(string(f), name) {
				return true
			}
		}
	}
	return x && y
}

func isCount(field []byte) bool {
	_, err := strconv.ParseUint(string(field), 10, 63)
	return err == nil
}

// allNumbers reports whether the fields are numbers. An empty field stands for none.
func allNumbers(fields [][]byte) bool {
	some := false
	for _, f := range fields {
		if len(f) == 0 {
			continue
		}
		if _, err := strconv.ParseFloat(string(f), 64); err != nil {
			return false
		}
		some = true
	}
	return some
}

// name takes the fields as names.
func (r *Reader) name() {
	r.names = nil
	for _, f := range r.fields {
		r.names = append(r.names, string(bytes.TrimSpace(f)))
	}
}

// number names the columns of a file without names.
func (r *Reader) number() {
	usual := []string{"x", "y", "z", "intensity"}
	for i := range r.fields {
		if i < len(usual) {
			r.names = append(r.names, usual[i])
		} else {
			r.names = append(r.names, "column"+strconv.Itoa(i+1))
		}
	}
}

// skipCount reads the row behind the names, which may be the number of points.
func (r *Reader) skipCount() error {
	if len(r.names) < 2 {
		return nil
	}
	line, err := r.readRow(false)
	if err == io.EOF {
		return nil
	}
	if err == nil {
		err = r.split(line)
	}
	if err != nil {
		return err
	}
	r.ready = len(r.fields) != 1 || !isCount(r.fields[0])
	return nil
}

// Next returns the fields of the next row, as many as there are names; io.EOF behind the last. The
// fields are valid until the next call. Call Header first.
func (r *Reader) Next() ([][]byte, error) {
	if !r.ready {
		line, err := r.readRow(false)
		if err == nil {
			err = r.split(line)
		}
		if err != nil {
			return nil, err
		}
	}
	r.ready = false
	if len(r.fields) != len(r.names) {
		return nil, &Error{Line: r.first, Detail: fmt.Sprintf("the row has %d fields, but there are %d columns",
			len(r.fields), len(r.names))}
	}
	return r.fields, nil
}

// Wrong returns the error for field i of the last row.
func (r *Reader) Wrong(i int, format string, args ...any) *Error {
	return &Error{Line: r.first, Col: r.cols[i] + 1, Detail: fmt.Sprintf(format, args...)}
}

// readRow returns the next row that is not empty, without its end: a line, or more where a quoted
// field holds ends of lines. any: the delimiter is not yet known.
func (r *Reader) readRow(any bool) ([]byte, error) {
	for {
		line, err := r.readLine()
		if err != nil {
			return nil, err
		}
		r.first = r.line
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if !any && r.delim == ' ' || bytes.IndexByte(line, '"') < 0 || bytes.Count(line, []byte{'"'})%2 == 0 {
			return line, nil
		}
		if any && line[0] != '"' && delimiter(line) == ' ' {
			return line, nil
		}
		return r.lines(line)
	}
}

// lines continues a row whose last field is quoted and not closed in its line.
func (r *Reader) lines(line []byte) ([]byte, error) {
	r.row = append(r.row[:0], line...)
	for open := true; open; {
		more, err := r.readLine()
		if err == io.EOF {
			return nil, &Error{Line: r.first, Detail: "the file ends in a quoted field"}
		}
		if err != nil {
			return nil, err
		}
		open = open != (bytes.Count(more, []byte{'"'})%2 == 1)
		if r.row = append(append(r.row, '\n'), more...); len(r.row) > maxRow {
			return nil, r.tooLong()
		}
	}
	return r.row, nil
}

func (r *Reader) tooLong() error {
	return &Error{Line: r.first, Detail: fmt.Sprintf("the row is longer than %d bytes: this is no table", maxRow)}
}

// readLine returns the next line without its end.
func (r *Reader) readLine() ([]byte, error) {
	r.line++
	line, err := r.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		r.long = append(r.long[:0], line...)
		for err == bufio.ErrBufferFull {
			line, err = r.r.ReadSlice('\n')
			if r.long = append(r.long, line...); len(r.long) > maxRow {
				r.first = r.line
				return nil, r.tooLong()
			}
		}
		line = r.long
	}
	if err != nil && (err != io.EOF || len(line) == 0) {
		return nil, err
	}
	line = bytes.TrimSuffix(line, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'}), nil
}

// split cuts a row into fields.
func (r *Reader) split(row []byte) error {
	r.fields, r.cols, r.plain = r.fields[:0], r.cols[:0], r.plain[:0]
	if r.delim == ' ' {
		return r.splitBlanks(row)
	}
	for at := 0; ; {
		if len(r.fields) == maxFields {
			return &Error{Line: r.first, Detail: fmt.Sprintf("the row has more than %d fields", maxFields)}
		}
		r.cols = append(r.cols, at)
		if at < len(row) && row[at] == '"' {
			end, err := r.quoted(row, at)
			if err != nil {
				return err
			}
			if at = end; at == len(row) {
				return nil
			}
			at++
			continue
		}
		end := bytes.IndexByte(row[at:], r.delim)
		if end < 0 {
			r.fields = append(r.fields, trim(row[at:]))
			return nil
		}
		r.fields = append(r.fields, trim(row[at:at+end]))
		at += end + 1
	}
}

// trim returns b without blanks at its ends.
func trim(b []byte) []byte {
	if len(b) > 0 && b[0] != ' ' && b[len(b)-1] != ' ' {
		return b
	}
	return bytes.Trim(b, " ")
}

// quoted appends the quoted field at row[at:] and returns where it ends.
func (r *Reader) quoted(row []byte, at int) (int, error) {
	begin, start := at, len(r.plain)
	for at++; ; at++ {
		n := bytes.IndexByte(row[at:], '"')
		if n < 0 {
			return 0, &Error{Line: r.first, Col: begin + 1, Detail: "a quoted field has no end"}
		}
		r.plain = append(r.plain, row[at:at+n]...)
		at += n + 1
		if at == len(row) || row[at] != '"' {
			break
		}
		r.plain = append(r.plain, '"')
	}
	if at < len(row) && row[at] != r.delim {
		return 0, &Error{Line: r.first, Col: at + 1, Detail: fmt.Sprintf("want %q behind a quoted field, got %q",
			r.delim, row[at])}
	}
	r.fields = append(r.fields, r.plain[start:len(r.plain):len(r.plain)])
	return at, nil
}

func (r *Reader) splitBlanks(row []byte) error {
	for at := 0; ; {
		for at < len(row) && (row[at] == ' ' || row[at] == '\t' || row[at] == '\r') {
			at++
		}
		if at == len(row) {
			return nil
		}
		if len(r.fields) == maxFields {
			return &Error{Line: r.first, Detail: fmt.Sprintf("the row has more than %d fields", maxFields)}
		}
		begin := at
		for at < len(row) && row[at] != ' ' && row[at] != '\t' && row[at] != '\r' {
			at++
		}
		r.cols = append(r.cols, begin)
		r.fields = append(r.fields, row[begin:at])
	}
}
