package ply

import (
	"bytes"
	"math"

	"entropipe/schemas/codec"
)

// lines yields the lines of a text that are not blank.
type lines struct {
	value []byte
	at    int
	line  int // number of the line that next returned
	begin int // position of that line
}

// next returns the next line; false after the last one.
func (l *lines) next() ([]byte, bool) {
	for l.at < len(l.value) {
		l.begin = l.at
		rest := l.value[l.at:]
		end := bytes.IndexAny(rest[:min(len(rest), shortLine)], "\r\n")
		if end < 0 {
			if end = bytes.IndexAny(rest, "\r\n"); end < 0 {
				end = len(rest)
			}
		}
		l.at += end
		if l.at < len(l.value) {
			if rest[end] == '\r' && end+1 < len(rest) && rest[end+1] == '\n' {
				l.at++
			}
			l.at++
		}
		l.line++
		if text := bytes.Trim(rest[:end], " \t"); len(text) > 0 {
			return text, true
		}
	}
	return nil, false
}

const shortLine = 256

// textRecords returns the vertices of an ascii file as binary records without their lists,
// in scratch memory of c.
func (h *header) textRecords(c *codec.Cloud, value []byte, vertex int) ([]byte, *codec.Error) {
	text := lines{value: value, at: h.data, line: h.lines}
	for i := range h.elements[:vertex] {
		e := &h.elements[i]
		if len(e.properties) == 0 {
			continue
		}
		for k := range e.count {
			if _, ok := text.next(); !ok {
				return nil, short(e, k, value)
			}
		}
	}
	e := &h.elements[vertex]
	if int64(e.count)*int64(len(e.properties)) > int64((len(value)-text.at)/2+1) {
		return nil, codec.Errorf(codec.Truncated, len(value),
			"element vertex of %d with %d properties does not fit into "+
				"%d bytes of text", e.count, len(e.properties), len(value)-text.at)
	}
	records := c.Bytes(e.count * e.fixed)
	for k := range e.count {
		line, ok := text.next()
		if !ok {
			return nil, short(e, k, value)
		}
		if !e.put(records[k*e.fixed:], line) {
			return nil, codec.Errorf(codec.BadValue, text.begin, "line %d has not the values of a vertex: %.80q",
				text.line, line)
		}
	}
	return records, nil
}

func short(e *element, k int, value []byte) *codec.Error {
	return codec.Errorf(codec.Truncated, len(value), "element %s of %d has %d lines", e.name, e.count, k)
}

// put writes the scalar values of a line to dst; false: the line has other values.
func (e *element) put(dst, line []byte) bool {
	var word []byte
	for i := range e.properties {
		q := &e.properties[i]
		word, line = cutWord(line)
		if q.list == 0 {
			if !codec.PutText(dst, q.kind, word) {
				return false
			}
			dst = dst[q.kind.Size():]
			continue
		}
		var length [8]byte
		if !codec.PutText(length[:], codec.Int64, word) {
			return false
		}
		n := int64(0)
		for i, b := range length {
			n |= int64(b) << (8 * i)
		}
		if n < 0 || n > math.MaxInt32 {
			return false
		}
		for range n {
			if word, line = cutWord(line); len(word) == 0 {
				return false
			}
		}
	}
	return len(line) == 0
}

// cutWord returns the first word of text, and the text from the second word.
func cutWord(text []byte) (word, rest []byte) {
	to := 0
	for to < len(text) && text[to] != ' ' && text[to] != '\t' {
		to++
	}
	from := to
	for from < len(text) && (text[from] == ' ' || text[from] == '\t') {
		from++
	}
	return text[:to], text[from:]
}
