package token

import (
	"sync"
	"unicode"
)

// What a code point is to the patterns of o200k (GPT-4o, gpt-oss, LLaMA-4) and
// tekken (Mistral NeMo), as bits. A letter or mark has one of the first three.
const (
	caseUpper  = 1 << iota // \p{Lu} and \p{Lt}: they begin a word
	caseLower              // \p{Ll}: they go on
	caseBoth               // \p{Lm}, \p{Lo} and \p{M}: either
	caseLetter             // \p{L}, so that a mark is told from letters
	caseNumber
	caseSpace
)

// caseClasses is filled when the first text is cut so.
var caseClasses = sync.OnceValue(func() *classTable {
	bits := make([]uint8, unicode.MaxRune+1)
	for name, bit := range map[string]uint8{
		"Lu": caseUpper | caseLetter, "Lt": caseUpper | caseLetter, "Ll": caseLower | caseLetter, "Lm": caseBoth | caseLetter, "Lo": caseBoth | caseLetter,
		"M": caseBoth, "N": caseNumber,
	} {
		set, _ := property(name)
		setBits(bits, bit, set)
	}
	setBits(bits, caseSpace, whiteSpace())
	return pack(bits)
})

// nextCased returns the length of the word that s begins with. A word with letters
// is, of the pattern's first two branches, any one sign, upper case and then lower
// case: the first branch wants a letter that may stand at the end, the second is
// for capitals alone. A contraction behind it belongs to it.
func nextCased(s []byte, digits int, contractions bool) int {
	class := caseClasses()
	r, n := decode(s)
	kind := class.of(r)
	if kind&(caseLetter|caseNumber) == 0 && r != '\r' && r != '\n' && n < len(s) {
		if end := cased(class, s, n); end > 0 { // the sign and letters behind it
			return behind(s, end, contractions)
		}
	}
	if end := cased(class, s, 0); end > 0 {
		return behind(s, end, contractions)
	}
	if end := capitals(class, s, n, kind); end > 0 {
		return behind(s, end, contractions)
	}
	if kind&caseNumber != 0 {
		for ; digits > 1 && n < len(s); digits-- {
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

// cased returns where letters and marks from at on end that the pattern's first
// branch takes, or 0: capitals and what may be either, as many as there are, and
// then lower case. Where no lower case follows, the last that may be either ends
// the word, because the machine goes back to it.
func cased(class *classTable, s []byte, at int) int {
	either := 0 // behind the last that may be either
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

// capitals returns where the capitals that s begins with end, behind one sign or
// none, or 0. What may be either is among none of them: cased would have taken it.
// first is the length of the first code point, kind its bits.
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

// behind adds a contraction.
func behind(s []byte, end int, contractions bool) int {
	if contractions && end < len(s) && s[end] == '\'' {
		end += anyContraction(s[end:])
	}
	return end
}

// signs returns where signs that are no letters, numbers or space end, behind one
// space or none, with line breaks and slashes behind them; 0: there are none.
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
