package token

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// A runeSet is a set of code points as pairs of first and last, ascending and
// disjoint. No set contains surrogates, because valid text has none.
type runeSet []rune

// The properties of patterns (\p{Lu}, \p{Han}) are the properties of the
// reference's engine, whose Unicode is newer than Go's. property_tables.go holds
// the general categories of two letters, and the scripts that Go knows, too.

// categories holds the unions of categories: those of one letter, and LC.
var categories = map[string][]string{
	"L": {"Lu", "Ll", "Lt", "Lm", "Lo"}, "LC": {"Lu", "Ll", "Lt"}, "M": {"Mn", "Mc", "Me"}, "N": {"Nd", "Nl", "No"},
	"P": {"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"}, "S": {"Sm", "Sc", "Sk", "So"}, "Z": {"Zs", "Zl", "Zp"},
}

// property returns the code points of \p{name}, or false if this package does not
// know the name. The reference may know it.
func property(name string) (runeSet, bool) {
	s, ok := properties()[name]
	return s, ok
}

// properties parses the tables when the first tokenizer is read. It takes a few
// milliseconds.
var properties = sync.OnceValue(func() map[string]runeSet {
	sets := make(map[string]runeSet, len(propertyRuns)+len(categories)+2)
	for name, runs := range propertyRuns {
		sets[name] = parseRuns(runs)
	}
	var assigned runeSet
	for name, parts := range categories {
		var all runeSet
		for _, part := range parts {
			all = all.union(sets[part])
		}
		sets[name] = all
		assigned = assigned.union(all)
	}
	sets["C"] = assigned.complement()
	sets["Cn"] = sets["C"].minus(sets["Cc"].union(sets["Cf"]).union(sets["Co"]))
	return sets
})

// parseRuns parses the runs of property_tables.go. A run is the distance of its
// first code point from the end of the previous run, and, after a plus sign, the
// number of further code points, both in hexadecimal.
func parseRuns(runs string) (s runeSet) {
	next := int64(0)
	for run := range strings.FieldsSeq(runs) {
		gap, more, _ := strings.Cut(run, "+")
		first := next + hexadecimal(gap)
		next = first + hexadecimal(more) + 1
		s = append(s, rune(first), rune(next-1))
	}
	return s
}

func hexadecimal(digits string) int64 {
	if digits == "" {
		return 0
	}
	n, err := strconv.ParseInt(digits, 16, 32)
	if err != nil {
		panic("token: a table of properties is broken: " + digits)
	}
	return n
}

// has reports whether r is in s.
func (s runeSet) has(r rune) bool { return inRanges(r, s) }

// union returns the code points of either set.
func (s runeSet) union(t runeSet) runeSet {
	type pair struct{ first, last rune }
	all := make([]pair, 0, (len(s)+len(t))/2)
	for _, set := range []runeSet{s, t} {
		for i := 0; i < len(set); i += 2 {
			all = append(all, pair{set[i], set[i+1]})
		}
	}
	slices.SortFunc(all, func(a, b pair) int { return int(a.first) - int(b.first) })
	var out runeSet
	for _, p := range all {
		if n := len(out); n > 0 && p.first <= out[n-1]+1 {
			out[n-1] = max(out[n-1], p.last)
		} else {
			out = append(out, p.first, p.last)
		}
	}
	return out.withoutSurrogates()
}

const firstSurrogate, lastSurrogate = 0xD800, 0xDFFF

// withoutSurrogates returns s without surrogates. union may have joined two ranges
// across them.
func (s runeSet) withoutSurrogates() runeSet {
	var out runeSet
	for i := 0; i < len(s); i += 2 {
		if s[i] < firstSurrogate {
			out = append(out, s[i], min(s[i+1], firstSurrogate-1))
		}
		if s[i+1] > lastSurrogate {
			out = append(out, max(s[i], lastSurrogate+1), s[i+1])
		}
	}
	return out
}

// complement returns the code points that are not in s.
func (s runeSet) complement() runeSet {
	var out runeSet
	next := rune(0)
	for i := 0; i < len(s); i += 2 {
		if next < s[i] {
			out = append(out, next, s[i]-1)
		}
		next = s[i+1] + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, next, unicode.MaxRune)
	}
	return out.withoutSurrogates()
}

// minus returns the code points of s that are not in t.
func (s runeSet) minus(t runeSet) runeSet {
	return s.complement().union(t).complement()
}

// goSet returns the code points of a property in Go's own Unicode, which regexp2
// uses; nil if Go does not know the property.
func goSet(name string) runeSet {
	table := unicode.Categories[name]
	if table == nil {
		table = unicode.Scripts[name]
	}
	if table == nil {
		return nil
	}
	var out runeSet
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			out = append(out, lo, hi)
			return
		}
		for r := lo; r <= hi; r += stride {
			out = append(out, r, r)
		}
	}
	for _, r := range table.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range table.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return out.union(nil)
}
