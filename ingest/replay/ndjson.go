package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"entropipe/ingest/filesys"
)

// maxLine bounds the memory that one line can ask for.
const maxLine = 64 << 20

// ndjson reads a file line by line, through gzip where the file is compressed.
type ndjson struct {
	name   string
	f      filesys.File
	r      *bufio.Reader
	long   []byte // a line that the reader's buffer cannot hold
	number int    // number of the last line, from 1
	broken bool   // nothing more can be read
}

func openNDJSON(name string) (*ndjson, error) {
	f, err := openPlain(name)
	if err != nil {
		return nil, err
	}
	n := &ndjson{name: name, f: f, r: bufio.NewReaderSize(f, 256<<10)}
	if magic, _ := n.r.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(n.r)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		n.r = bufio.NewReaderSize(z, 256<<10)
	}
	if mark, _ := n.r.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = n.r.Discard(3) // some editors put a byte order mark before UTF-8
	}
	return n, nil
}

func (n *ndjson) close() { n.f.Close() }

// bad says where in the file err is.
func (n *ndjson) bad(err error) *BadInputError {
	e := &BadInputError{File: n.name, Line: n.number, Detail: err.Error(), Err: err}
	var at *syntaxError
	if errors.As(err, &at) {
		e.Col = at.at + 1
	}
	return e
}

// line returns the next line without its end, a view that lasts until the next
// call. A line of more than maxLine bytes is passed over and reported; a file
// that cannot be read on is reported, and ends there.
func (n *ndjson) line() ([]byte, error) {
	if n.broken {
		return nil, io.EOF
	}
	n.number++
	line, err := n.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line, err = n.rest(line)
	}
	switch {
	case err == nil:
		return line[:len(line)-1], nil
	case err == io.EOF && len(line) > 0:
		return line, nil // the last line, without an end
	case err == io.EOF:
		return nil, io.EOF
	case err == errLongLine:
		return nil, n.bad(err)
	}
	n.broken = true
	return nil, n.bad(fmt.Errorf("the file cannot be read on: %w", err))
}

var errLongLine = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// rest collects a long line that begins with start.
func (n *ndjson) rest(start []byte) ([]byte, error) {
	if cap(n.long) > 4<<20 {
		n.long = nil // do not keep the memory of one exception
	}
	n.long = append(n.long[:0], start...)
	tooLong := false
	for {
		part, err := n.r.ReadSlice('\n')
		if tooLong = tooLong || len(n.long)+len(part) > maxLine; !tooLong {
			n.long = append(n.long, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if tooLong && (err == nil || err == io.EOF) {
			return nil, errLongLine
		}
		return n.long, err
	}
}
