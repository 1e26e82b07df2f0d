package token

import (
	"bytes"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// matchTime bounds the search for one match of a pattern that a file brings
// along, of which the longest in use need milliseconds.
const matchTime = 10 * time.Second

// A pattern is what a Split step looks for: a string or a regular expression, in
// the spelling by which regexp2 means what the reference's machine does
// (translate).
type pattern struct {
	text []byte
	re   *regexp2.Regexp
}

// behavior says what becomes of a match.
type behavior int

const (
	isolated           behavior = iota // a word of its own
	removed                            // dropped
	contiguous                         // one word with the matches beside it
	mergedWithPrevious                 // the end of the word before
	mergedWithNext                     // the beginning of the word behind
)

var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "Contiguous": contiguous,
	"MergedWithPrevious": mergedWithPrevious, "MergedWithNext": mergedWithNext,
}

func compilePattern(expr string) (pattern, error) {
	if err := sameMeaning(expr); err != nil {
		return pattern{}, err
	}
	if err := noNestedRepeats(expr); err != nil {
		return pattern{}, err
	}
	same, err := translate(expr)
	if err != nil {
		return pattern{}, err
	}
	re, err := regexp2.Compile(same, regexp2.Unicode)
	if err != nil {
		return pattern{}, fmt.Errorf("pattern %q: %w", expr, err)
	}
	re.MatchTimeout = matchTime
	return pattern{re: re}, nil
}

// A span is a part of a text that matches or that lies between matches.
type span struct {
	from, to int
	match    bool
}

// spans returns all of s, matches and what lies between them.
func (p *pattern) spans(s []byte) []span {
	var out []span
	done := 0
	add := func(from, to int) {
		if done < from {
			out = append(out, span{done, from, false})
		}
		out = append(out, span{from, to, true})
		done = to
	}
	if p.re == nil {
		for at := 0; ; {
			i := bytes.Index(s[at:], p.text)
			if i < 0 {
				break
			}
			add(at+i, at+i+len(p.text))
			at += i + len(p.text)
		}
	} else {
		p.search(s, add)
	}
	if done < len(s) {
		out = append(out, span{done, len(s), false})
	}
	return out
}

// search calls found with every match. A match that takes too long ends the
// search: the rest of s is no match.
func (p *pattern) search(s []byte, found func(from, to int)) {
	runes := bytes.Runes(s)
	at, bytesAt := 0, 0 // the same place, in code points and in bytes
	advance := func(to int) int {
		for ; at < to; at++ {
			bytesAt += utf8.RuneLen(runes[at])
		}
		return bytesAt
	}
	end := -1 // of the match before, where the reference finds no empty one
	m, err := p.re.FindRunesMatch(runes)
	for err == nil && m != nil {
		if m.Length > 0 || m.Index != end {
			from := advance(m.Index)
			found(from, advance(m.Index+m.Length))
		}
		end = m.Index + m.Length
		m, err = p.re.FindNextMatch(m)
	}
}

// pieces returns the words that the splitter makes of s.
func (p *splitter) pieces(s []byte) []span {
	spans := p.pattern.spans(s)
	if p.invert {
		for i := range spans {
			spans[i].match = !spans[i].match
		}
	}
	switch p.behavior {
	case removed:
		return slices.DeleteFunc(spans, func(s span) bool { return s.match })
	case contiguous:
		return joinSpans(spans, func(before, s span) bool { return before.match == s.match })
	case mergedWithPrevious:
		return joinSpans(spans, func(before, s span) bool { return s.match && !before.match })
	case mergedWithNext:
		return mergeWithNext(spans)
	}
	return spans
}

// joinSpans sets a span to the end of the word before where join says so. before
// is the span before, not the word.
func joinSpans(spans []span, join func(before, s span) bool) []span {
	var words []span
	for i, s := range spans {
		if i > 0 && join(spans[i-1], s) {
			words[len(words)-1].to = s.to
		} else {
			words = append(words, s)
		}
	}
	return words
}

func mergeWithNext(spans []span) []span {
	var words []span
	for i, s := range spans {
		if i > 0 && spans[i-1].match && !s.match {
			words[len(words)-1].to = s.to
		} else {
			words = append(words, s)
		}
	}
	return words
}
