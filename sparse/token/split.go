package token

import (
	"bytes"
	"unicode/utf8"
)

// A splitter is one step of the file's pre-tokenizer.
type splitter struct {
	kind   splitterKind
	scan   scanner // scan, byteLevel
	prefix bool    // byteLevel: a space before a part that has none

	pattern  pattern // pattern
	invert   bool
	behavior behavior

	mark   []byte // metaspace: what stands for a space
	scheme prependScheme
	cut    bool // metaspace: cuts before every mark; digits: between digits too
}

type splitterKind int

const (
	splitBERT      splitterKind = iota
	splitScan                   // a pattern known by heart, every match a word
	splitPattern                // any other pattern
	splitByteLevel              // last; words are bytes from here on
	splitMetaspace
	splitDigits
)

type prependScheme int

const (
	prependAlways prependScheme = iota
	prependFirst
	prependNever
)

// split cuts s and hands the words to the step behind the i-th, which it is.
func (p *splitter) split(e *encoder, i int, s []byte, first bool) {
	switch p.kind {
	case splitBERT:
		splitWords(e, i, s, first)
	case splitScan:
		for at := 0; at < len(s); {
			n := p.scan.next(e.class, s[at:])
			e.split(i+1, s[at:at+n], first && at == 0)
			at += n
		}
	case splitPattern:
		for _, c := range p.pieces(s) {
			e.split(i+1, s[c.from:c.to], first && c.from == 0)
		}
	case splitByteLevel:
		if p.prefix && s[0] != ' ' {
			e.mix[i] = append(append(e.mix[i][:0], ' '), s...)
			s = e.mix[i]
		}
		if p.scan == scanNone {
			e.split(i+1, s, first)
			return
		}
		for at := 0; at < len(s); {
			n := p.scan.next(e.class, s[at:])
			e.split(i+1, s[at:at+n], first)
			at += n
		}
	case splitMetaspace:
		p.metaspace(e, i, s, first)
	case splitDigits:
		p.digits(e, i, s, first)
	}
}

// laterNumbers are those of Unicode 17, which Digits of the reference knows,
// though its patterns do not.
var laterNumbers = []rune{0x11de0, 0x11de9, 0x16ff4, 0x16ff6}

// digits sets numbers apart, or each digit.
func (p *splitter) digits(e *encoder, i int, s []byte, first bool) {
	from, number := 0, false // of the word that goes on
	for at := 0; at < len(s); {
		r, n := utf8.DecodeRune(s[at:])
		is := e.class.of(r)&classNumber != 0 || inRanges(r, laterNumbers)
		if at > from && (is != number || is && p.cut) {
			e.split(i+1, s[from:at], first && from == 0)
			from = at
		}
		number = is
		at += n
	}
	e.split(i+1, s[from:], first && from == 0)
}

// splitWords drops white space and sets punctuation apart, as BERT does.
func splitWords(e *encoder, i int, s []byte, first bool) {
	class := e.class
	from := 0 // of the word that goes on
	for at := 0; at < len(s); {
		r, n := rune(s[at]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(s[at:])
		}
		if bits := class.of(r); bits&(classSpace|classPunct) != 0 {
			e.split(i+1, s[from:at], first && from == 0)
			if bits&classPunct != 0 {
				e.split(i+1, s[at:at+n], first && at == 0)
			}
			from = at + n
		}
		at += n
	}
	e.split(i+1, s[from:], first && from == 0)
}

func (p *splitter) metaspace(e *encoder, i int, s []byte, first bool) {
	out := e.mix[i][:0]
	prefix := p.scheme == prependAlways || p.scheme == prependFirst && first
	if prefix && s[0] != ' ' && !bytes.HasPrefix(s, p.mark) {
		out = append(out, p.mark...)
	}
	out = appendReplaced(out, s, []byte(" "), p.mark)
	e.mix[i] = out
	if !p.cut {
		e.split(i+1, out, first)
		return
	}
	for from := 0; from < len(out); {
		to := len(out)
		_, n := utf8.DecodeRune(out[from:])
		if next := bytes.Index(out[from+n:], p.mark); next >= 0 {
			to = from + n + next
		}
		e.split(i+1, out[from:to], first && from == 0)
		from = to
	}
}
