package token

import (
	"bytes"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// matchTime bounds the search for one match of a pattern from a file. The slowest
// patterns in use need milliseconds.
const matchTime = 10 * time.Second

// A pattern is the pattern of a Split step: a string, or a regular expression that
// translate has respelled for regexp2.
type pattern struct {
	text []byte
	re   *regexp2.Regexp
}

// behavior is the treatment of a match.
type behavior int

const (
	isolated           behavior = iota // the match is a word
	removed                            // the match is dropped
	contiguous                         // adjacent matches form one word
	mergedWithPrevious                 // the match ends the word before it
	mergedWithNext                     // the match begins the word after it
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

// A span is a part of a text: a match, or the text between two matches.
type span struct {
	from, to int
	match    bool
}

// spans cuts s into matches and the text between them.
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

// search calls found with every match. If a match takes longer than matchTime, the
// search ends, and the rest of s has no matches.
func (p *pattern) search(s []byte, found func(from, to int)) {
	runes := bytes.Runes(s)
	at, bytesAt := 0, 0 // the same place, in code points and in bytes
	advance := func(to int) int {
		for ; at < to; at++ {
			bytesAt += utf8.RuneLen(runes[at])
		}
		return bytesAt
	}
	end := -1 // end of the previous match; the reference finds no empty match there
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

// pieces returns the words of s.
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

// joinSpans returns the words that spans form: a span extends the previous word if
// join is true for the previous span and itself, and begins a word if not.
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
