package token

import "unicode/utf8"

// A scanner cuts text by one of the patterns that most models use, without an
// engine for regular expressions. The words cover the text: each word begins where
// the previous word ends.
type scanner int

const (
	scanNone scanner = iota
	scanGPT2
	scanLLaMA3
	scanQwen2
	scanO200K
	scanTekken
)

// scanPatterns are the patterns that a scanner replaces, as files spell them.
var scanPatterns = map[string]scanner{
	`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`:                                          scanGPT2,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: scanLLaMA3,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:      scanQwen2,

	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`: scanO200K,
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`:                                                                scanTekken,
}

// next returns the length of the word that s begins with. s must not be empty.
func (k scanner) next(class *classTable, s []byte) int {
	switch k {
	case scanGPT2:
		return nextGPT2(class, s)
	case scanLLaMA3:
		return nextLLaMA3(class, s, 3)
	case scanQwen2:
		return nextLLaMA3(class, s, 1)
	case scanO200K:
		return o200k.next(s)
	case scanTekken:
		return tekken.next(s)
	}
	panic("token: unknown scanner")
}

const kinds = classLetter | classNumber | classSpace

func nextGPT2(class *classTable, s []byte) int {
	if s[0] == '\'' {
		if n := contraction(s); n > 0 {
			return n
		}
	}
	at := 0
	if s[0] == ' ' {
		at = 1
	}
	if at < len(s) {
		r, n := decode(s[at:])
		if kind := class.of(r) & kinds; kind != classSpace {
			return run(class, s, at+n, kind)
		}
	}
	return space(class, s)
}

func nextLLaMA3(class *classTable, s []byte, digits int) int {
	if s[0] == '\'' {
		if n := anyContraction(s); n > 0 {
			return n
		}
	}
	r, n := decode(s)
	kind := class.of(r) & kinds
	if kind == classLetter {
		return run(class, s, n, classLetter)
	}
	if kind == classNumber {
		for ; digits > 1 && n < len(s); digits-- {
			r, size := decode(s[n:])
			if class.of(r)&kinds != classNumber {
				break
			}
			n += size
		}
		return n
	}
	if r != '\r' && r != '\n' && n < len(s) { // the pattern lets one other character precede letters
		next, size := decode(s[n:])
		nextKind := class.of(next) & kinds
		if nextKind == classLetter {
			return run(class, s, n+size, classLetter)
		}
		if r == ' ' && nextKind == 0 {
			return breaks(s, run(class, s, n+size, 0))
		}
	}
	if kind == 0 {
		return breaks(s, run(class, s, n, 0))
	}
	return spaceToBreak(class, s)
}

// run returns the end of the run of characters of one kind that continues at at.
func run(class *classTable, s []byte, at int, kind uint8) int {
	for at < len(s) {
		r, n := decode(s[at:])
		if class.of(r)&kinds != kind {
			break
		}
		at += n
	}
	return at
}

// breaks returns the end of the line breaks that begin at at.
func breaks(s []byte, at int) int {
	for at < len(s) && (s[at] == '\r' || s[at] == '\n') {
		at++
	}
	return at
}

// space returns the length of the word of white space that s begins with. At the
// end of the text the word is all of the white space. Before other text it is all
// but the last character, which the next word may include; a single character is a
// word by itself.
func space(class *classTable, s []byte) int {
	at, last := 0, 0
	for at < len(s) {
		r, n := decode(s[at:])
		if class.of(r)&classSpace == 0 {
			if last > 0 {
				return last
			}
			return at
		}
		at, last = at+n, at
	}
	return at
}

// spaceToBreak returns the length of the white space that s begins with, up to its
// last line break. Without a line break it returns space(class, s).
func spaceToBreak(class *classTable, s []byte) int {
	end := 0
	for at := 0; at < len(s); {
		r, n := decode(s[at:])
		if class.of(r)&classSpace == 0 {
			break
		}
		at += n
		if r == '\r' || r == '\n' {
			end = at
		}
	}
	if end > 0 {
		return end
	}
	return space(class, s)
}

// contraction returns the length of the English ending ('s, 've) that s begins
// with, or 0. s must begin with an apostrophe.
func contraction(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(s) < 3 {
		return 0
	}
	switch string(s[1:3]) {
	case "re", "ve", "ll":
		return 3
	}
	return 0
}

// anyContraction is contraction without regard to case. The long s folds to s.
func anyContraction(s []byte) int {
	if len(s) >= 3 && string(s[1:3]) == "ſ" {
		return 3
	}
	lower := [3]byte{'\''}
	n := copy(lower[1:], s[1:]) + 1
	for i := 1; i < n; i++ {
		if lower[i] >= 'A' && lower[i] <= 'Z' {
			lower[i] += 'a' - 'A'
		}
	}
	return contraction(lower[:n])
}

// decode is utf8.DecodeRune with a fast path for ASCII.
func decode(s []byte) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	return utf8.DecodeRune(s)
}
