package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// The parts of drawingParser that are about JSON, not about drawings.

func (p *drawingParser) fault(format string, args ...any) error {
	return &syntaxError{at: p.i, detail: fmt.Sprintf(format, args...)}
}

func (p *drawingParser) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\r', '\n':
			p.i++
		default:
			return
		}
	}
}

// peek returns the next byte that is not space, 0 at the end.
func (p *drawingParser) peek() byte {
	p.space()
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *drawingParser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.i++
	return true
}

func (p *drawingParser) expect(c byte, what string) error {
	if p.take(c) {
		return nil
	}
	if p.i >= len(p.s) {
		return p.fault("the line ends where %s should stand", what)
	}
	return p.fault("want %s, got %q", what, p.s[p.i])
}

// text reads a string. The result is a view of the line unless it holds an
// escape or is not ASCII.
func (p *drawingParser) text() ([]byte, error) {
	if err := p.expect('"', "a string"); err != nil {
		return nil, err
	}
	start, plain := p.i, true
	for ; p.i < len(p.s); p.i++ {
		switch c := p.s[p.i]; {
		case c == '"':
			p.i++
			if plain {
				return p.s[start : p.i-1], nil
			}
			return p.unescape(start - 1)
		case c == '\\':
			plain = false
			p.i++ // an escaped character never ends the string
		case c < ' ':
			return nil, p.fault("a control character in a string")
		case c >= 0x80:
			plain = false
		}
	}
	p.i = len(p.s)
	return nil, p.fault("the line ends in a string")
}

func (p *drawingParser) unescape(start int) ([]byte, error) {
	var s string
	if err := json.Unmarshal(p.s[start:p.i], &s); err != nil {
		p.i = start
		return nil, p.fault("a string with an escape that JSON does not know")
	}
	if at := loneSurrogate(p.s[start:p.i]); at >= 0 {
		p.i = start + at
		return nil, p.fault("half a character: %s", p.s[p.i:p.i+6])
	}
	return []byte(s), nil
}

// small reads a whole number of at most seven digits, as nearly all are.
// Anything else is left where it is.
func (p *drawingParser) small() (int32, bool) {
	s, i := p.s, p.i
	v, start := int32(0), i
	for i < len(s) && s[i]-'0' <= 9 {
		v = v*10 + int32(s[i]-'0')
		if i++; i-start > 7 {
			return 0, false
		}
	}
	if i == start || i == len(s) || s[i] != ',' && s[i] != ']' || s[start] == '0' && i > start+1 {
		return 0, false
	}
	p.i = i
	return v, true
}

// number reads any JSON number as the nearest float64.
func (p *drawingParser) number() (float64, error) {
	p.space()
	end := numberEnd(p.s, p.i)
	if end < 0 {
		return 0, p.fault("want a number")
	}
	v, err := strconv.ParseFloat(string(p.s[p.i:end]), 64)
	if err != nil {
		return 0, p.fault("%.40s does not fit a float64", p.s[p.i:end])
	}
	p.i = end
	return v, nil
}

// numberEnd returns where the JSON number at s[i:] ends, -1 if there is none.
func numberEnd(s []byte, i int) int {
	digits := func() bool {
		start := i
		for i < len(s) && s[i]-'0' <= 9 {
			i++
		}
		return i > start
	}
	at := func(set string) bool { return i < len(s) && strings.IndexByte(set, s[i]) >= 0 }
	if at("-") {
		i++
	}
	if at("0") {
		i++ // nothing may follow a leading zero
	} else if !digits() {
		return -1
	}
	if at(".") {
		if i++; !digits() {
			return -1
		}
	}
	if at("eE") {
		i++
		if at("+-") {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}

// skip passes over a value of any kind.
func (p *drawingParser) skip(depth int) error {
	if depth > maxDepth {
		return p.fault("nested more than %d deep", maxDepth)
	}
	switch c := p.peek(); c {
	case '"':
		_, err := p.text()
		return err
	case '{', '[':
		p.i++
		return p.skipAll(c+2, depth) // '}' and ']' follow two behind
	case 't', 'f', 'n':
		for _, word := range [...]string{"true", "false", "null"} {
			if bytes.HasPrefix(p.s[p.i:], []byte(word)) {
				p.i += len(word)
				return nil
			}
		}
		return p.fault("want a value")
	}
	end := numberEnd(p.s, p.i)
	if end < 0 {
		return p.fault("want a value")
	}
	p.i = end
	return nil
}

// skipAll passes over the members of an object or the elements of an array.
func (p *drawingParser) skipAll(end byte, depth int) error {
	if p.take(end) {
		return nil
	}
	for {
		if end == '}' {
			if _, err := p.text(); err != nil {
				return err
			}
			if err := p.expect(':', "a colon"); err != nil {
				return err
			}
		}
		if err := p.skip(depth + 1); err != nil {
			return err
		}
		if !p.take(',') {
			return p.expect(end, "a comma or the end")
		}
	}
}
