package token

import (
	"bytes"
	"unicode/utf8"
)

// A splitter is one step of the file's pre-tokenizer.
type splitter struct {
	kind   splitterKind
	scan   scanner // splitScan, splitByteLevel
	prefix bool    // splitByteLevel: puts a space before a part that begins with another character

	pattern  pattern // splitPattern
	invert   bool
	behavior behavior

	mark   []byte // splitMetaspace: the character that replaces a space
	scheme prependScheme
	cut    bool // splitMetaspace: cuts before every mark; splitDigits: cuts between digits, too
}

type splitterKind int

const (
	splitBERT      splitterKind = iota
	splitScan                   // a pattern that has a scanner; every match is a word
	splitPattern                // any other pattern
	splitByteLevel              // the last step; words are bytes from here on
	splitMetaspace
	splitDigits
)

type prependScheme int

const (
	prependAlways prependScheme = iota
	prependFirst
	prependNever
)

// split is step number step of the pre-tokenizer: it cuts text and passes each
// word to the next step. first is true if text begins the encoded text.
func (p *splitter) split(e *encoder, step int, text []byte, first bool) {
	switch p.kind {
	case splitBERT:
		splitWords(e, step, text, first)
	case splitScan:
		for at := 0; at < len(text); {
			size := p.scan.next(e.class, text[at:])
			e.split(step+1, text[at:at+size], first && at == 0)
			at += size
		}
	case splitPattern:
		for _, word := range p.pieces(text) {
			e.split(step+1, text[word.from:word.to], first && word.from == 0)
		}
	case splitByteLevel:
		if p.prefix && text[0] != ' ' {
			e.mix[step] = append(append(e.mix[step][:0], ' '), text...)
			text = e.mix[step]
		}
		if p.scan == scanNone {
			e.split(step+1, text, first)
			return
		}
		for at := 0; at < len(text); {
			size := p.scan.next(e.class, text[at:])
			e.split(step+1, text[at:at+size], first)
			at += size
		}
	case splitMetaspace:
		p.metaspace(e, step, text, first)
	case splitDigits:
		p.digits(e, step, text, first)
	}
}

// laterNumbers are numbers of Unicode 17. The component Digits of the reference
// knows them, although the reference's patterns do not.
var laterNumbers = []rune{0x11de0, 0x11de9, 0x16ff4, 0x16ff6}

// digits cuts text before and after each run of digits, or each digit if p.cut.
func (p *splitter) digits(e *encoder, step int, text []byte, first bool) {
	from, inNumber := 0, false // start of the current word, and whether it is a number
	for at := 0; at < len(text); {
		char, size := utf8.DecodeRune(text[at:])
		isDigit := e.class.of(char)&classNumber != 0 || inRanges(char, laterNumbers)
		if at > from && (isDigit != inNumber || isDigit && p.cut) {
			e.split(step+1, text[from:at], first && from == 0)
			from = at
		}
		inNumber = isDigit
		at += size
	}
	e.split(step+1, text[from:], first && from == 0)
}

// splitWords cuts text at white space, which it drops, and makes each punctuation
// character a word, as BERT does.
func splitWords(e *encoder, step int, text []byte, first bool) {
	class := e.class
	from := 0 // start of the current word
	for at := 0; at < len(text); {
		char, size := rune(text[at]), 1
		if char >= utf8.RuneSelf {
			char, size = utf8.DecodeRune(text[at:])
		}
		if bits := class.of(char); bits&(classSpace|classPunct) != 0 {
			e.split(step+1, text[from:at], first && from == 0)
			if bits&classPunct != 0 {
				e.split(step+1, text[at:at+size], first && at == 0)
			}
			from = at + size
		}
		at += size
	}
	e.split(step+1, text[from:], first && from == 0)
}

// metaspace replaces spaces by p.mark, puts p.mark before text if p.scheme says
// so, and cuts before every mark if p.cut.
func (p *splitter) metaspace(e *encoder, step int, text []byte, first bool) {
	out := e.mix[step][:0]
	prefix := p.scheme == prependAlways || p.scheme == prependFirst && first
	if prefix && text[0] != ' ' && !bytes.HasPrefix(text, p.mark) {
		out = append(out, p.mark...)
	}
	out = appendReplaced(out, text, []byte(" "), p.mark)
	e.mix[step] = out
	if !p.cut {
		e.split(step+1, out, first)
		return
	}
	for from := 0; from < len(out); {
		to := len(out)
		_, size := utf8.DecodeRune(out[from:])
		if next := bytes.Index(out[from+size:], p.mark); next >= 0 {
			to = from + size + next
		}
		e.split(step+1, out[from:to], first && from == 0)
		from = to
	}
}
