package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads the JSON of headers and indices: objects, strings, and arrays
// of whole numbers. encoding/json would accept duplicate keys and lone
// surrogates, and 1e3 where a length is due. Every error says at which byte.
type scanner struct {
	what string // part of the file that errors name
	text []byte // UTF-8
	at   int
}

func (s *scanner) fault(format string, args ...any) error {
	return fmt.Errorf("byte %d of the %s: %s", s.at, s.what, fmt.Sprintf(format, args...))
}

// next skips white space and returns the byte after it, 0 at the end.
func (s *scanner) next() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) expect(c byte) error {
	if got := s.next(); got != c {
		if s.at == len(s.text) {
			return s.fault("ends where %q is due", c)
		}
		return s.fault("%q where %q is due", got, c)
	}
	s.at++
	return nil
}

// end makes sure that nothing but white space is left.
func (s *scanner) end() error {
	if s.next(); s.at < len(s.text) {
		return s.fault("%q after the end", s.text[s.at])
	}
	return nil
}

// list reads open, items between commas, and shut.
func (s *scanner) list(open, shut byte, item func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.next() == shut {
		s.at++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if s.next() != ',' {
			return s.expect(shut)
		}
		s.at++
	}
}

// object reads an object; value reads what follows each key. A key that comes
// twice is an error.
func (s *scanner) object(what string, value func(key string) error) error {
	var few [4]string // the keys, while they are few: a header has an object a tensor
	var seen map[string]bool
	n := 0
	return s.list('{', '}', func() error {
		key, err := s.string()
		if err != nil {
			return err
		}
		if seen[key] || slices.Contains(few[:min(n, len(few))], key) {
			return s.fault("%s has %q twice", what, key)
		}
		switch {
		case n < len(few):
			few[n] = key
		case seen == nil:
			seen = map[string]bool{key: true}
		default:
			seen[key] = true
		}
		n++
		if err := s.expect(':'); err != nil {
			return err
		}
		return value(key)
	})
}

// strings reads an object of strings.
func (s *scanner) strings(what string, into map[string]string) error {
	return s.object(what, func(key string) error {
		if s.next() != '"' {
			return s.fault("%s: %q is not a string", what, key)
		}
		text, err := s.string()
		into[key] = text
		return err
	})
}

// integers reads an array of at most so many whole numbers.
func (s *scanner) integers(most int) ([]int64, error) {
	var values []int64
	err := s.list('[', ']', func() error {
		if len(values) == most {
			return s.fault("more than %d numbers", most)
		}
		v, err := s.integer()
		values = append(values, v)
		return err
	})
	return values, err
}

func (s *scanner) integer() (int64, error) {
	s.next()
	begin, v := s.at, int64(0)
	for ; s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9'; s.at++ {
		digit := int64(s.text[s.at] - '0')
		if v > (math.MaxInt64-digit)/10 {
			return 0, s.fault("a number beyond %d", int64(math.MaxInt64))
		}
		v = v*10 + digit
	}
	if s.at == begin || s.text[begin] == '0' && s.at > begin+1 {
		return 0, s.fault("a whole number is due")
	}
	return v, nil // a fraction or an exponent is refused where a comma is due
}

// string reads a string; what it escapes must be text.
func (s *scanner) string() (string, error) {
	if err := s.expect('"'); err != nil {
		return "", err
	}
	// Most strings escape nothing, and are as they stand.
	if n := bytes.IndexByte(s.text[s.at:], '"'); n >= 0 {
		if text := s.text[s.at : s.at+n]; !slices.ContainsFunc(text,
			func(c byte) bool { return c < 0x20 || c == '\\' }) {
			s.at += n + 1
			return string(text), nil
		}
	}
	var out []byte
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch {
		case c == '"':
			return string(out), nil
		case c < 0x20:
			return "", s.fault("a control character in a string")
		case c == '\\':
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return "", s.fault("ends within a string")
}

// escape reads what follows a backslash.
func (s *scanner) escape() (rune, error) {
	if s.at == len(s.text) {
		return 0, s.fault("ends within a string")
	}
	c := s.text[s.at]
	s.at++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, err := s.hex()
		if err != nil || !utf16.IsSurrogate(r) {
			return r, err
		}
		if s.at+2 <= len(s.text) && string(s.text[s.at:s.at+2]) == `\u` {
			s.at += 2
			low, err := s.hex()
			if r = utf16.DecodeRune(r, low); err == nil && r != utf8.RuneError {
				return r, nil
			}
		}
		return 0, s.fault("half a character in a string")
	}
	return 0, s.fault("a backslash before %q", c)
}

func (s *scanner) hex() (rune, error) {
	var r rune
	for range 4 {
		if s.at == len(s.text) {
			return 0, s.fault("ends within a string")
		}
		switch c := s.text[s.at]; {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, s.fault(`\u wants four hexadecimal digits`)
		}
		s.at++
	}
	return r, nil
}

// maxDepth bounds what skip reads.
const maxDepth = 16

// skip reads a value of any kind.
func (s *scanner) skip(depth int) error {
	if depth > maxDepth {
		return s.fault("more than %d values within one another", maxDepth)
	}
	switch s.next() {
	case '{':
		return s.object("an object", func(string) error { return s.skip(depth + 1) })
	case '[':
		return s.list('[', ']', func() error { return s.skip(depth + 1) })
	case '"':
		_, err := s.string()
		return err
	}
	begin := s.at
	for s.at < len(s.text) && !bytes.ContainsRune([]byte(",]} \t\n\r"), rune(s.text[s.at])) {
		s.at++
	}
	if !json.Valid(s.text[begin:s.at]) {
		return s.fault("a value is due")
	}
	return nil
}
