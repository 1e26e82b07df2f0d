package token

import (
	"bytes"
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// An addedToken is a token that is matched in the text before the model.
type addedToken struct {
	Content    string `json:"content"`
	ID         int32  `json:"id"`
	SingleWord bool   `json:"single_word"` // no match inside a word
	LStrip     bool   `json:"lstrip"`      // a match includes the white space before it
	RStrip     bool   `json:"rstrip"`      // a match includes the white space after it
	Normalized bool   `json:"normalized"`  // matched in the normalized text, not in the raw text
	Special    bool   `json:"special"`

	pattern []byte // text that matches
}

// A cut is a part of a text: an added token, or the text between two of them.
type cut struct {
	from, to int
	id       int32 // id of the added token; -1 for text
}

// An addedSet finds added tokens: the leftmost match, and the longest of several
// that begin there.
type addedSet struct {
	tokens []addedToken // in ascending order of their patterns
	first  [257]int32   // first[b] is the index of the first token whose pattern begins with b or a larger byte
	only   int          // first byte of all patterns, or -1 if they differ
}

func newAddedSet(tokens []addedToken) addedSet {
	// Of two equal patterns the earlier token must be found, so the sort is stable.
	slices.SortStableFunc(tokens, func(a, b addedToken) int { return bytes.Compare(a.pattern, b.pattern) })
	s := addedSet{tokens: tokens, only: -1}
	for _, t := range tokens {
		s.first[int(t.pattern[0])+1]++
	}
	for b := range 256 {
		if n := s.first[b+1]; n > 0 && int(n) == len(tokens) {
			s.only = b
		}
		s.first[b+1] += s.first[b]
	}
	return s
}

// cut appends the parts of s in order. No part is empty; an empty s has none. Time
// is O(len(s)·longest pattern) at worst.
func (a *addedSet) cut(dst []cut, s []byte) []cut {
	done, stripped := 0, 0
	for at := 0; at < len(s) && len(a.tokens) > 0; {
		from, token := a.find(s, at)
		if token == nil {
			break
		}
		to := from + len(token.pattern)
		at = to // no further match begins within this one, even if it is discarded
		if token.SingleWord && (wordBefore(s[:from]) || wordAfter(s[to:])) {
			continue
		}
		if token.LStrip {
			from = min(from, done) + len(bytes.TrimRightFunc(s[min(from, done):from], isSpace))
		}
		if token.RStrip {
			if to >= stripped { // below stripped, to lies within white space that is measured already
				stripped = len(s) - len(bytes.TrimLeftFunc(s[to:], isSpace))
			}
			to = stripped
		}
		if done < from {
			dst = append(dst, cut{done, from, -1})
		}
		dst = append(dst, cut{from, to, token.ID})
		done = to
	}
	if done != len(s) {
		dst = append(dst, cut{done, len(s), -1})
	}
	return dst
}

// find returns the place and token of the first match that begins at at or later,
// or nil if there is none.
func (a *addedSet) find(s []byte, at int) (int, *addedToken) {
	for ; at < len(s); at++ {
		if a.only >= 0 {
			skip := bytes.IndexByte(s[at:], byte(a.only))
			if skip < 0 {
				break
			}
			at += skip
		}
		if token := a.longest(s[at:]); token != nil {
			return at, token
		}
	}
	return 0, nil
}

// longest returns the token with the longest pattern that s begins with, or nil.
// The candidates are a range of the sorted patterns, which every byte narrows.
func (a *addedSet) longest(s []byte) *addedToken {
	candidates := a.tokens[a.first[s[0]]:a.first[int(s[0])+1]]
	var found *addedToken
	for n := 1; len(candidates) > 0; n++ {
		if len(candidates[0].pattern) == n {
			found = &candidates[0]
		}
		if n == len(s) {
			break
		}
		candidates = narrow(candidates, n, s[n])
	}
	return found
}

// narrow returns the tokens whose pattern has byte b at position n. The first n
// bytes of all patterns must be equal.
func narrow(tokens []addedToken, n int, b byte) []addedToken {
	compare := func(t addedToken, want int) int {
		if len(t.pattern) <= n {
			return -1
		}
		return cmp.Compare(int(t.pattern[n]), want)
	}
	from, _ := slices.BinarySearchFunc(tokens, int(b), compare)
	to, _ := slices.BinarySearchFunc(tokens[from:], int(b)+1, compare)
	return tokens[from : from+to]
}

func wordBefore(s []byte) bool {
	r, n := utf8.DecodeLastRune(s)
	return n > 0 && isWord(r)
}

func wordAfter(s []byte) bool {
	r, n := utf8.DecodeRune(s)
	return n > 0 && isWord(r)
}

func isSpace(r rune) bool { return unicode.Is(unicode.White_Space, r) }

// isWord reports whether r is in \w of UTS 18: alphabetic characters, marks,
// decimal digits, connectors, joiners.
func isWord(r rune) bool {
	return inRanges(r, moreWordSigns) || unicode.In(r, unicode.L, unicode.Nl,
		unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc, unicode.Join_Control)
}
