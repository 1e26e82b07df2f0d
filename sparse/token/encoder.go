package token

import "unicode/utf8"

// An encoder is the scratch memory of one call of Encode.
type encoder struct {
	t     *Tokenizer
	class *classTable
	dst   []int32
	text  []byte    // the text, valid UTF-8
	norm  [2][]byte // a normalized part, and the station before it
	deco  decomposer
	cuts  [2][]cut // cuts of the raw text, cuts of the normalized text
	mix   [][]byte // text that each pre-tokenizer has changed
	word  wordScratch
}

// encode appends the ids of a text, without the tokens of the post-processor.
func (e *encoder) encode(text string) {
	e.text = appendValid(e.text[:0], text)
	e.cuts[0] = e.t.raw.cut(e.cuts[0][:0], e.text)
	for _, c := range e.cuts[0] {
		if c.id >= 0 {
			e.dst = append(e.dst, c.id)
			continue
		}
		e.part(e.text[c.from:c.to], c.from == 0)
	}
}

// part encodes the text between two added tokens of the raw text. first is true
// if s begins the encoded text.
func (e *encoder) part(s []byte, first bool) {
	for i := range e.t.normalizers {
		e.norm[i&1] = e.t.normalizers[i].append(e.norm[i&1][:0], s, e.class, &e.deco)
		s = e.norm[i&1]
	}
	e.cuts[1] = e.t.normalized.cut(e.cuts[1][:0], s)
	for _, c := range e.cuts[1] {
		if c.id >= 0 {
			e.dst = append(e.dst, c.id)
			continue
		}
		e.split(0, s[c.from:c.to], first && c.from == 0)
	}
}

// split passes text to a step of the pre-tokenizer, or to the model after the last
// step. An empty text has no tokens.
func (e *encoder) split(step int, text []byte, first bool) {
	if len(text) == 0 {
		return
	}
	if step == len(e.t.splitters) {
		e.dst = e.t.model.append(e.dst, text, &e.word)
		return
	}
	e.t.splitters[step].split(e, step, text, first)
}

// appendValid appends text with U+FFFD in place of every maximal part of a broken
// UTF-8 sequence (Unicode, section 3.9, best practice). Go's decoder alone would
// give one U+FFFD for every byte.
func appendValid(dst []byte, text string) []byte {
	if utf8.ValidString(text) {
		return append(dst, text...)
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r != utf8.RuneError || n != 1 {
			dst = append(dst, text[i:i+n]...)
		} else {
			n = brokenLength(text[i:])
			dst = utf8.AppendRune(dst, utf8.RuneError)
		}
		i += n
	}
	return dst
}

// brokenLength returns the length of the longest beginning of s, at least one
// byte, that could have begun a sequence of UTF-8.
func brokenLength(s string) int {
	low, high, need := byte(0x80), byte(0xBF), 0
	switch c := s[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
		if c == 0xE0 { // smaller second bytes would be overlong forms
			low = 0xA0
		} else if c == 0xED { // surrogates
			high = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 3
		if c == 0xF0 {
			low = 0x90
		} else if c == 0xF4 { // beyond U+10FFFF
			high = 0x8F
		}
	}
	n := 1
	for ; n <= need && n < len(s) && s[n] >= low && s[n] <= high; n++ {
		low, high = 0x80, 0xBF
	}
	return n
}
