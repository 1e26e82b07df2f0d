package manual

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// option matches words that are typed, whose hyphens must survive copying.
var option = regexp.MustCompile(`(^|[ (=|,])-[-a-zA-Z0-9…]*`)

// escaped returns text as roff prints it: no backslash, leading dot or apostrophe is a
// command of roff, characters beyond ASCII are named, and flags keep their hyphens.
func escaped(text string) string {
	text = plain(text)
	return option.ReplaceAllStringFunc(text, func(word string) string { return strings.ReplaceAll(word, "-", `\-`) })
}

// hyphens is escaped for text that is typed as it stands.
func hyphens(text string) string { return strings.ReplaceAll(plain(text), "-", `\-`) }

func plain(text string) string {
	var b strings.Builder
	if text != "" && (text[0] == '.' || text[0] == '\'') {
		b.WriteString(`\&`)
	}
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '\'':
			b.WriteString(`\(aq`)
		case r == '~':
			b.WriteString(`\(ti`)
		case r == '^':
			b.WriteString(`\(ha`)
		case r == '`':
			b.WriteString(`\(ga`)
		case r > unicode.MaxASCII:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// quoted returns an argument of a macro.
func quoted(text string) string {
	return `"` + strings.ReplaceAll(hyphens(text), `"`, `\(dq`) + `"`
}

// firstLower returns text with a small first letter, as the line of whatis has it.
func firstLower(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToLower(first)) + text[size:]
}

// wrapped breaks text between words after at most 78 bytes. A dot or apostrophe that would
// begin a line stays in the line before.
func wrapped(text string) string {
	var b strings.Builder
	width := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case width+1+len(word) > 78 && word[0] != '.' && word[0] != '\'':
			b.WriteByte('\n')
			width = 0
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String()
}
