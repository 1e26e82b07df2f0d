package token

import (
	"sync"
	"unicode"
)

// Classes of code points, as bits, in the patterns of o200k (GPT-4o, gpt-oss,
// LLaMA-4) and tekken (Mistral NeMo). A letter or mark has one of the first three.
const (
	caseUpper  = 1 << iota // \p{Lu} and \p{Lt}, which begin a word
	caseLower              // \p{Ll}, which continue a word
	caseBoth               // \p{Lm}, \p{Lo} and \p{M}, which begin or continue a word
	caseLetter             // \p{L}, which distinguishes letters from marks
	caseNumber
	caseSpace
)

// cased holds the options of a pattern that cuts words by their case.
type cased struct {
	digits       int  // longest word of digits
	contractions bool // an English ending belongs to the word before it
}

var (
	o200k  = cased{digits: 3, contractions: true}
	tekken = cased{digits: 1}
)

// caseClasses is computed when the first text is cut by such a pattern.
var caseClasses = sync.OnceValue(func() *classTable {
	bits := make([]uint8, unicode.MaxRune+1)
	for name, bit := range map[string]uint8{
		"Lu": caseUpper | caseLetter, "Lt": caseUpper | caseLetter, "Ll": caseLower | caseLetter,
		"Lm": caseBoth | caseLetter, "Lo": caseBoth | caseLetter, "M": caseBoth, "N": caseNumber,
	} {
		set, _ := property(name)
		setBits(bits, bit, set)
	}
	setBits(bits, caseSpace, whiteSpace())
	return pack(bits)
})

// next returns the length of the word that s begins with. The first two branches
// of the pattern match a word with letters: at most one other character, then
// upper case, then lower case. The first branch requires a letter that may end the
// word, the second matches capitals alone.
func (c cased) next(s []byte) int {
	class := caseClasses()
	r, n := decode(s)
	kind := class.of(r)
	if kind&(caseLetter|caseNumber) == 0 && r != '\r' && r != '\n' && n < len(s) {
		if end := mixed(class, s, n); end > 0 { // one other character, then letters
			return c.contracted(s, end)
		}
	}
	if end := mixed(class, s, 0); end > 0 {
		return c.contracted(s, end)
	}
	if end := capitals(class, s, n, kind); end > 0 {
		return c.contracted(s, end)
	}
	if kind&caseNumber != 0 {
		for digits := c.digits; digits > 1 && n < len(s); digits-- {
			r, size := decode(s[n:])
			if class.of(r)&caseNumber == 0 {
				break
			}
			n += size
		}
		return n
	}
	if end := signs(class, s); end > 0 {
		return end
	}
	return spaceToBreak(classes(), s)
}

// mixed returns the end of the letters and marks from at on that the pattern's
// first branch matches, or 0. The branch matches as many capitals and characters
// of either case as there are, and then lower case. Without lower case behind
// them, the last character of either case ends the word, because a backtracking
// engine returns to it.
func mixed(class *classTable, s []byte, at int) int {
	either := 0 // end of the last character of either case
	for at < len(s) {
		r, n := decode(s[at:])
		kind := class.of(r)
		if kind&(caseUpper|caseBoth) == 0 {
			if kind&caseLower == 0 {
				return either
			}
			break
		}
		if at += n; kind&caseBoth != 0 {
			either = at
		}
	}
	if at == len(s) {
		return either
	}
	for at < len(s) {
		r, n := decode(s[at:])
		if class.of(r)&(caseLower|caseBoth) == 0 {
			break
		}
		at += n
	}
	return at
}

// capitals returns the end of the capitals that s begins with, after at most one
// other character, or 0. Characters of either case cannot occur among them: mixed
// would have matched. first is the length of the first code point, kind its bits.
func capitals(class *classTable, s []byte, first int, kind uint8) int {
	run := func(at int) int {
		from := at
		for at < len(s) {
			r, n := decode(s[at:])
			if class.of(r)&caseUpper == 0 {
				break
			}
			at += n
		}
		if at == from {
			return 0
		}
		return at
	}
	if kind&(caseLetter|caseNumber) == 0 && s[0] != '\r' && s[0] != '\n' {
		if end := run(first); end > 0 {
			return end
		}
	}
	return run(0)
}

// contracted returns the end of the word s[:end] together with a contraction.
func (c cased) contracted(s []byte, end int) int {
	if c.contractions && end < len(s) && s[end] == '\'' {
		end += anyContraction(s[end:])
	}
	return end
}

// signs returns the end of the characters other than letters, numbers and space
// that s begins with, after at most one space, and including the line breaks and
// slashes that follow. It returns 0 if there are none.
func signs(class *classTable, s []byte) int {
	at := 0
	if s[0] == ' ' {
		at = 1
	}
	from := at
	for at < len(s) {
		r, n := decode(s[at:])
		if class.of(r)&(caseLetter|caseNumber|caseSpace) != 0 {
			break
		}
		at += n
	}
	if at == from {
		return 0
	}
	for at < len(s) && (s[at] == '\r' || s[at] == '\n' || s[at] == '/') {
		at++
	}
	return at
}
