package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// rowKeys are the keys of a row of tokens; encoding/json takes them in any case.
var rowKeys = []string{"id", "text", "input_ids", "attention_mask"}

// checkMembers looks for what encoding/json passes over in a valid object: a key
// that comes twice, of which it keeps the last value, and half a character of
// UTF-16 in a text or an id, for which it puts U+FFFD. Both would send another
// text than the file has.
func checkMembers(line []byte) error {
	var few [8]string
	keys := few[:0]
	i := bytes.IndexByte(line, '{') + 1
	for {
		for i < len(line) && line[i] != '"' {
			if line[i] == '}' {
				return nil
			}
			i++
		}
		start := i
		i = endOfJSON(line, i)
		var key string
		if i > len(line) || json.Unmarshal(line[start:i], &key) != nil {
			return nil // the parser has said so
		}
		if lower := strings.ToLower(key); slices.Contains(rowKeys, lower) {
			key = lower
		}
		if slices.Contains(keys, key) {
			return &syntaxError{at: start, detail: fmt.Sprintf("the key %.80q comes twice", key)}
		}
		keys = append(keys, key)
		i += bytes.IndexByte(line[i:], ':') + 1
		for i < len(line) && line[i] <= ' ' {
			i++
		}
		value := i
		i = endOfJSON(line, i)
		if key == "text" || key == "id" {
			if at := loneSurrogate(line[value:min(i, len(line))]); at >= 0 {
				return &syntaxError{at: value + at, detail: key + " has half a character: " +
					string(line[value+at:value+at+6])}
			}
		}
	}
}

// endOfJSON returns where the value ends that begins at i of valid JSON.
func endOfJSON(s []byte, i int) int {
	for depth := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
			if depth < 0 {
				return i // the bracket closes the object around the members
			}
		case ',':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

// loneSurrogate returns where a string has an escape of half a character, -1 if
// nowhere.
func loneSurrogate(s []byte) int {
	unit := func(i int) (rune, bool) {
		if i+6 > len(s) || s[i] != '\\' || s[i+1] != 'u' {
			return 0, false
		}
		v, err := strconv.ParseUint(string(s[i+2:i+6]), 16, 16)
		return rune(v), err == nil
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		u, ok := unit(i)
		if !ok {
			i++ // the escaped byte
			continue
		}
		if utf16.IsSurrogate(u) {
			low, ok := unit(i + 6)
			if !ok || utf16.DecodeRune(u, low) == 0xfffd {
				return i
			}
			i += 6
		}
		i += 5
	}
	return -1
}
