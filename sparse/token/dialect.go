package token

import (
	"fmt"
	"strings"
)

// sameMeaning returns an error if the reference's engine (Oniguruma) and regexp2
// read a part of the pattern differently, or if only one of them accepts it:
// anchors, which match at lines in Oniguruma; words (\w, \b), whose marks differ;
// classes within classes and their intersection; shorthands of one engine. It
// accepts properties, space, literals, groups, repetition and look-around, and so
// the patterns of all files in use.
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
			if hasAnyPrefix(rest, `\p{`, `\P{`, `\x{`) { // skip the name
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

// noNestedRepeats returns an error if a repeated group contains a repetition or an
// alternative. A backtracking engine can need a time for such a group that doubles
// with every character, and texts are not trusted. Without such groups a match
// takes time polynomial in the length; the patterns in use take linear time.
func noNestedRepeats(expr string) error {
	open := []bool{false} // for each open group: true if it contains a repetition or an alternative
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
				return fmt.Errorf("pattern %q: a repeated group that repeats or chooses within, at byte %d, is "+
					"not supported",
					expr, i)
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
