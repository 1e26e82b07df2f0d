package token

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// translate respells a pattern so that regexp2 matches as the reference's engine
// does. Properties get the code points that Go's Unicode lacks. Letters within
// (?i:…) become classes of the letters that fold to them, with the long s and the
// Kelvin sign. Complements within classes become sets, because regexp2 stops at
// the first that does not match. A pattern without such a spelling is an error.
func translate(expr string) (string, error) {
	t := translator{expr: expr, fold: []bool{false}}
	for t.at < len(expr) && t.err == nil {
		t.next()
	}
	if t.err != nil {
		return "", t.err
	}
	return t.out.String(), nil
}

// A translator reads a pattern that sameMeaning has passed.
type translator struct {
	expr string
	at   int
	fold []bool // for each open group: true if letters match in either case
	last rune   // previous letter if letters fold; 0: none
	out  strings.Builder
	err  error
}

// folds reports whether letters match in either case at the current place.
func (t *translator) folds() bool { return t.fold[len(t.fold)-1] }

// refuse sets the error for the part of the pattern from from on. what is appended
// to the message.
func (t *translator) refuse(from int, what string) {
	if t.err == nil {
		part := t.expr[from:min(max(t.at, from+1), len(t.expr))]
		t.err = fmt.Errorf("pattern %q: %q, at byte %d, is not supported%s", t.expr, part, from, what)
	}
}

// next translates one part: an escape, a class, the beginning or end of a group,
// or a literal.
func (t *translator) next() {
	from := t.at
	rest := t.expr[from:]
	switch c := rest[0]; {
	case c == '\\':
		item := t.item()
		switch {
		case item.set != nil:
			t.last = 0
			t.class("[", []classItem{item}, from)
		default:
			t.literal(item.first, from)
		}
		return
	case c == '[':
		t.last = 0
		t.bracket()
		return
	case c == '(':
		t.last = 0
		open := "("
		if strings.HasPrefix(rest, "(?i:") {
			t.at += len("(?i:")
			t.fold = append(t.fold, true)
			t.out.WriteString("(?:")
			return
		}
		for _, kind := range []string{"(?:", "(?=", "(?!", "(?<=", "(?<!"} {
			if strings.HasPrefix(rest, kind) {
				open = kind
			}
		}
		if open == "(" { // captures are not used
			t.out.WriteString("(?:")
		} else {
			t.out.WriteString(open)
		}
		t.at += len(open)
		t.fold = append(t.fold, t.folds())
		return
	case c == ')' && len(t.fold) > 1:
		t.fold = t.fold[:len(t.fold)-1]
		fallthrough
	case strings.IndexByte(")|*+?{}.", c) >= 0:
		if c == '{' { // a count, or a range of counts
			t.count()
			return
		}
		t.last = 0
		t.at++
		t.out.WriteByte(c)
		return
	}
	r, n := utf8.DecodeRuneInString(rest)
	t.at += n
	t.literal(r, from)
}

// count copies {2}, {2,} and {2,3}. Any other brace is a literal in one engine and
// an error in the other.
func (t *translator) count() {
	from := t.at
	end := strings.IndexByte(t.expr[from:], '}')
	if end < 0 || strings.Trim(t.expr[from+1:from+end], "0123456789,") != "" || end == 1 {
		t.refuse(from, "")
		return
	}
	t.last = 0
	t.at += end + 1
	t.out.WriteString(t.expr[from:t.at])
}

// literal writes one code point.
func (t *translator) literal(r rune, from int) {
	if !t.folds() {
		t.out.WriteString(quoteRune(r))
		return
	}
	if r >= utf8.RuneSelf {
		t.refuse(from, " where case does not count")
		return
	}
	before, lower := t.last, unicode.ToLower(r)
	if slices.Contains([]string{"ff", "fi", "fl", "ss", "st"}, string([]rune{before, lower})) {
		t.refuse(from, " where case does not count: one letter folds to two") // ß, ﬁ
		return
	}
	t.last = lower
	folded := foldASCII(runeSet{r, r})
	if len(folded) == 2 {
		t.out.WriteString(quoteRune(r))
		return
	}
	t.out.WriteString("[" + folded.body() + "]")
}

// foldASCII returns s with the other case of its ASCII letters.
func foldASCII(s runeSet) runeSet {
	for r := 'a'; r <= 'z'; r++ {
		all := runeSet{r - 'a' + 'A', r - 'a' + 'A', r, r}
		switch r {
		case 's':
			all = append(all, 'ſ', 'ſ')
		case 'k':
			all = append(all, 0x212A, 0x212A) // the Kelvin sign
		}
		if s.has(r) || s.has(r-'a'+'A') {
			s = s.union(all)
		}
	}
	return s
}

// A classItem is a code point or a set: an item between brackets, or an escape.
type classItem struct {
	first rune
	set   runeSet // nil if the item is the code point first
	name  string  // name of the property if set is one
}

// item reads a code point or an escape.
func (t *translator) item() (item classItem) {
	from := t.at
	rest := t.expr[from:]
	if rest[0] != '\\' {
		r, n := utf8.DecodeRuneInString(rest)
		t.at += n
		return classItem{first: r}
	}
	if len(rest) < 2 {
		t.refuse(from, "")
		return item
	}
	t.at += 2
	switch c := rest[1]; c {
	case 'n':
		return classItem{first: '\n'}
	case 'r':
		return classItem{first: '\r'}
	case 't':
		return classItem{first: '\t'}
	case 's':
		return classItem{set: whiteSpace()}
	case 'S':
		return classItem{set: whiteSpace().complement()}
	case 'd':
		digits, _ := property("Nd")
		return classItem{set: digits, name: "Nd"}
	case 'D':
		digits, _ := property("Nd")
		return classItem{set: digits.complement()}
	case 'p':
		return t.property(from)
	case 'P':
		return classItem{set: t.property(from).set.complement()}
	case 'x', 'u':
		return t.hexadecimal(from, c)
	default:
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(rest[1:])
			t.at = from + 1 + n
			return classItem{first: r}
		}
		return classItem{first: rune(c)}
	}
}

// property reads the name after \p or \P and returns that property.
func (t *translator) property(from int) classItem {
	rest := t.expr[t.at:]
	end := strings.IndexByte(rest, '}')
	if !strings.HasPrefix(rest, "{") || end < 0 {
		t.refuse(from, "")
		return classItem{}
	}
	t.at += end + 1
	name := rest[1:end]
	set, ok := property(name)
	if !ok {
		t.refuse(from, "")
		return classItem{}
	}
	return classItem{set: set, name: name}
}

// hexadecimal reads \x41, \x{1F600} and \u0041. In the reference, two digits above
// 7f are a byte, which valid text never has by itself.
func (t *translator) hexadecimal(from int, kind byte) classItem {
	rest := t.expr[t.at:]
	digits := rest[:min(map[byte]int{'x': 2, 'u': 4}[kind], len(rest))]
	size, most := len(digits), int64(unicode.MaxRune)
	if end := strings.IndexByte(rest, '}'); kind == 'x' && strings.HasPrefix(rest, "{") && end > 0 {
		digits, size = rest[1:end], end+1
	} else if kind == 'x' {
		most = 0x7f
	}
	r, err := strconv.ParseInt(digits, 16, 32)
	t.at += size
	if err != nil || r < 0 || r > most || len(digits) < 2 || !utf8.ValidRune(rune(r)) ||
		strings.ContainsAny(digits, "+-_") {
		t.refuse(from, "")
	}
	return classItem{first: rune(r)}
}

// bracket translates a class between brackets.
func (t *translator) bracket() {
	from := t.at
	open := "["
	if strings.HasPrefix(t.expr[from:], "[^") {
		open = "[^"
	}
	t.at += len(open)
	var items []classItem
	for t.err == nil {
		rest := t.expr[t.at:]
		switch {
		case rest == "":
			t.refuse(from, "")
			return
		case rest[0] == ']':
			t.at++
			if t.folds() {
				t.foldItems(items, from)
			}
			t.class(open, items, from)
			return
		}
		items = append(items, t.classRange())
	}
}

// classRange reads one member of a class: a code point, a range, or an escape.
func (t *translator) classRange() classItem {
	from := t.at
	first := t.item()
	rest := t.expr[t.at:]
	if t.err != nil || !strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "-]") {
		return first
	}
	t.at++
	if t.at == len(t.expr) {
		t.refuse(from, "")
		return first
	}
	last := t.item()
	another := strings.HasPrefix(t.expr[t.at:], "-") && !strings.HasPrefix(t.expr[t.at:], "-]")
	if first.set != nil || last.set != nil || last.first < first.first || another {
		t.refuse(from, "")
	}
	return classItem{set: runeSet{first.first, last.first}.withoutSurrogates()}
}

// foldItems adds the other case of the letters of a class. It refuses letters
// beyond ASCII.
func (t *translator) foldItems(items []classItem, from int) {
	for i := range items {
		s := items[i].set
		if s == nil {
			s = runeSet{items[i].first, items[i].first}
		}
		if s[len(s)-1] >= utf8.RuneSelf {
			t.refuse(from, " where case does not count")
			return
		}
		items[i] = classItem{set: foldASCII(s)}
	}
}

// class writes a class that begins with open, "[" or "[^". It writes properties by
// name, because regexp2 finds a code point in them by binary search, unless Go's
// Unicode has a code point in them that the reference lacks.
func (t *translator) class(open string, items []classItem, from int) {
	var all, native runeSet
	var names []string
	for _, item := range items {
		set := item.set
		if set == nil {
			set = runeSet{item.first, item.first}
		}
		all = all.union(set)
		if item.name != "" && !slices.Contains(names, item.name) {
			names, native = append(names, item.name), native.union(goSet(item.name))
		}
	}
	if len(native.minus(all)) > 0 {
		names, native = nil, nil
	}
	if len(all) == 0 {
		t.refuse(from, "")
		return
	}
	t.out.WriteString(open)
	for _, name := range names {
		t.out.WriteString(`\p{` + name + `}`)
	}
	t.out.WriteString(all.minus(native).body() + "]")
}

// body returns a set as the text between the brackets of a class.
func (s runeSet) body() string {
	var b strings.Builder
	for i := 0; i < len(s); i += 2 {
		b.WriteString(quoteRune(s[i]))
		if s[i+1] > s[i] {
			b.WriteString("-" + quoteRune(s[i+1]))
		}
	}
	return b.String()
}

// quoteRune returns the pattern that matches one code point.
func quoteRune(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r > ' ' && r < utf8.RuneSelf && !isLetterOrDigit(byte(r)) && r != 0x7f:
		return `\` + string(r)
	}
	return string(r)
}

// whiteSpace returns the set \s of the reference.
func whiteSpace() runeSet {
	var out runeSet
	for _, r := range unicode.White_Space.R16 {
		for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
			out = append(out, c, c)
		}
	}
	return out.union(nil)
}
