package pcd

import (
	"bytes"

	"entropipe/schemas/codec"
)

// records returns the points of an ascii file as binary records, in scratch memory of c.
func (h *header) records(c *codec.Cloud, value []byte) ([]byte, *codec.Error) {
	// A value takes two bytes of text at least, its separator included, and eight at most here.
	values := 0
	for _, f := range h.fields {
		values += f.count
	}
	rest := value[h.data:]
	if int64(h.points)*int64(values) > int64(len(rest)/2+1) {
		return nil, codec.Errorf(codec.Truncated, len(value),
			"POINTS %d of %d values each do not fit into %d bytes of "+
				"text", h.points, values, len(rest))
	}
	records := c.Bytes(h.points * h.stride)
	at, line, points := 0, h.lines, 0
	for len(rest) > 0 {
		text, after, _ := bytes.Cut(rest, []byte{'\n'})
		begin := len(value) - len(rest)
		rest = after
		line++
		if word, _ := cutWord(text); len(word) == 0 || word[0] == '#' {
			continue
		}
		if points == h.points {
			return nil, codec.Errorf(codec.BadLength, begin, "line %d follows after the %d points that POINTS says",
				line,
				h.points)
		}
		points++
		if !h.record(records[at:], text) {
			return nil, codec.Errorf(codec.BadValue, begin,
				"line %d has no %d values of the types of the fields: %.80q",
				line, values, text)
		}
		at += h.stride
	}
	if points < h.points {
		return nil, codec.Errorf(codec.Truncated, len(value), "POINTS says %d, but there are %d lines of points",
			h.points,
			points)
	}
	return records, nil
}

// record writes the values of a line to dst.
func (h *header) record(dst, text []byte) bool {
	var word []byte
	for i := range h.fields {
		f := &h.fields[i]
		t := typeOf(f.kind, f.size)
		for range f.count {
			if word, text = cutWord(text); !codec.PutText(dst, t, word) {
				return false
			}
			dst = dst[f.size:]
		}
	}
	word, _ = cutWord(text)
	return len(word) == 0
}

// cutWord returns the first word of text, and the text after it. Words stand between
// blanks, tabs and commas.
func cutWord(text []byte) (word, rest []byte) {
	from := 0
	for from < len(text) && separates(text[from]) {
		from++
	}
	to := from
	for to < len(text) && !separates(text[to]) {
		to++
	}
	return text[from:to], text[to:]
}

func separates(b byte) bool { return b == ' ' || b == '\t' || b == ',' || b == '\r' }
