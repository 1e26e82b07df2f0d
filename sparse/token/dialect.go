package token

import (
	"fmt"
	"strings"
)

// sameMeaning refuses what the reference's machine (Oniguruma) and regexp2 read
// differently, or what one of them reads and the other does not: anchors, which
// are of lines there; words (\w, \b), whose marks differ; classes within
// classes and their intersection; the shorthands of one machine only. What is
// left is what files hold: properties, space, literals, groups, repetition and
// looking around.
func sameMeaning(expr string) error {
	inClass := false
	for i := 0; i < len(expr); i++ {
		rest := expr[i:]
		part := rest[:1]
		bad := false
		switch c := expr[i]; {
		case c == '\\':
			part = rest[:min(2, len(rest))]
			bad = len(rest) < 2 || isLetterOrDigit(rest[1]) && !strings.ContainsRune("sSdDpPrntux", rune(rest[1]))
			i++
			if hasAnyPrefix(rest, `\p{`, `\P{`, `\x{`) { // to the end of the name
				i += max(0, strings.IndexByte(rest, '}')-1)
			}
		case inClass:
			if strings.HasPrefix(rest, "&&") {
				part, bad = "&&", true
			}
			bad = bad || c == '['
			inClass = c != ']'
		case c == '[':
			inClass = true
			bad = hasAnyPrefix(rest, "[]", "[^]")
		case c == '^' || c == '$' || c == '#':
			bad = true
		case strings.HasPrefix(rest, "(?"):
			part = rest[:min(4, len(rest))]
			bad = !hasAnyPrefix(rest, "(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!")
		case strings.HasPrefix(rest, "{,") || strings.HasPrefix(rest, "}?") || strings.HasPrefix(rest, "}+"):
			part, bad = rest[:2], true
		}
		if bad {
			return fmt.Errorf("pattern %q: %q, at byte %d, is not supported", expr, part, len(expr)-len(rest))
		}
	}
	return nil
}

// noNestedRepeats refuses a repeated group that repeats or chooses within: the
// machine goes back and tries again, and such a group can take a time that
// doubles with every character. Texts come from strangers. Without it a match
// takes a power of the length, in patterns in use the first.
func noNestedRepeats(expr string) error {
	open := []bool{false} // for each open group: repeats or chooses within
	inClass := false
	for i := 0; i < len(expr); i++ {
		last := len(open) - 1
		switch c := expr[i]; {
		case c == '\\':
			i++
		case inClass:
			inClass = c != ']'
		case c == '[':
			inClass = true
		case c == '(':
			open = append(open, false)
			if strings.HasPrefix(expr[i:], "(?") {
				i++
			}
		case c == ')' && last > 0:
			within := open[last]
			open = open[:last]
			open[last-1] = open[last-1] || within
			if i+1 < len(expr) && within && strings.IndexByte("*+{", expr[i+1]) >= 0 {
				return fmt.Errorf("pattern %q: a repeated group that repeats or chooses within, at byte %d, is not supported", expr, i)
			}
		case strings.IndexByte("*+?{|", c) >= 0:
			open[last] = true
		}
	}
	return nil
}

func isLetterOrDigit(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
