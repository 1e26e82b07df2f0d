package token

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// translate spells a pattern so that regexp2 means by it what the reference's
// machine does. Properties get the code points that Go's Unicode lacks; letters
// within (?i:…) become classes of what they fold to, the long s and the Kelvin sign
// among them; complements within classes become what they hold, because regexp2
// stops at the first that does not match. What has no such spelling is refused.
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
	fold []bool // of each open group: letters match in either case
	last rune   // the letter before, where letters fold; 0: none
	out  strings.Builder
	err  error
}

func (t *translator) refuse(from int, what string) {
	if t.err == nil {
		t.err = fmt.Errorf("pattern %q: %q, at byte %d, is not supported%s", t.expr, t.expr[from:min(max(t.at, from+1), len(t.expr))], from, what)
	}
}

// next translates one part: an escape, a class, the beginning or end of a group,
// or a literal.
func (t *translator) next() {
	from := t.at
	rest := t.expr[from:]
	folds := t.fold[len(t.fold)-1]
	switch c := rest[0]; {
	case c == '\\':
		item := t.item()
		switch {
		case item.set != nil:
			t.last = 0
			t.class([]classItem{item}, false, from)
		default:
			t.literal(item.first, folds, from)
		}
		return
	case c == '[':
		t.last = 0
		t.bracket(folds)
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
		if open == "(" { // a group that captures: nobody asks for it
			t.out.WriteString("(?:")
		} else {
			t.out.WriteString(open)
		}
		t.at += len(open)
		t.fold = append(t.fold, folds)
		return
	case c == ')' && len(t.fold) > 1:
		t.fold = t.fold[:len(t.fold)-1]
		fallthrough
	case strings.IndexByte(")|*+?{}.", c) >= 0:
		if c == '{' { // a number of times, or two
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
	t.literal(r, folds, from)
}

// count copies {2}, {2,} and {2,3}. Another brace is a literal to one machine and
// an error to the other.
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
func (t *translator) literal(r rune, folds bool, from int) {
	if !folds {
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

// foldASCII adds what the ASCII letters of s are in the other case.
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

// A classItem is a code point or a set: what stands between brackets, or an escape.
type classItem struct {
	first rune
	set   runeSet // nil: the code point alone
	name  string  // of the property that set is; empty: not one
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
	case 's', 'S':
		return classItem{set: complementIf(c == 'S', whiteSpace())}
	case 'd', 'D':
		digits, _ := property("Nd")
		if c == 'd' {
			return classItem{set: digits, name: "Nd"}
		}
		return classItem{set: digits.complement()}
	case 'p', 'P':
		return t.property(from, c == 'P')
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

func complementIf(yes bool, s runeSet) runeSet {
	if yes {
		return s.complement()
	}
	return s
}

// property reads the name behind \p or \P.
func (t *translator) property(from int, not bool) classItem {
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
	if not {
		return classItem{set: set.complement()}
	}
	return classItem{set: set, name: name}
}

// hexadecimal reads \x41, \x{1F600} and \u0041. Two digits above 7f are a byte to
// the reference, which no text has by itself.
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
	if err != nil || r < 0 || r > most || len(digits) < 2 || !utf8.ValidRune(rune(r)) || strings.ContainsAny(digits, "+-_") {
		t.refuse(from, "")
	}
	return classItem{first: rune(r)}
}

// bracket translates a class between brackets.
func (t *translator) bracket(folds bool) {
	from := t.at
	t.at++
	not := strings.HasPrefix(t.expr[t.at:], "^")
	if not {
		t.at++
	}
	var items []classItem
	for t.err == nil {
		rest := t.expr[t.at:]
		switch {
		case rest == "":
			t.refuse(from, "")
			return
		case rest[0] == ']':
			t.at++
			if folds {
				t.foldItems(items, from)
			}
			t.class(items, not, from)
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
	if first.set != nil || last.set != nil || last.first < first.first || strings.HasPrefix(t.expr[t.at:], "-") && !strings.HasPrefix(t.expr[t.at:], "-]") {
		t.refuse(from, "")
	}
	return classItem{set: runeSet{first.first, last.first}.withoutSurrogates()}
}

// foldItems adds the other case of a class's letters. Only ASCII's are folded here.
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

// class writes a class. Properties stay by name, where regexp2 finds a code point
// by halving, as long as Go's Unicode has none in them that the reference has not.
func (t *translator) class(items []classItem, not bool, from int) {
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
	t.out.WriteString("[")
	if not {
		t.out.WriteString("^")
	}
	for _, name := range names {
		t.out.WriteString(`\p{` + name + `}`)
	}
	t.out.WriteString(all.minus(native).body() + "]")
}

// body spells a set as the inside of a class.
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

// quoteRune spells a code point that stands for itself.
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

// whiteSpace is \s of the reference.
func whiteSpace() runeSet {
	var out runeSet
	for _, r := range unicode.White_Space.R16 {
		for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
			out = append(out, c, c)
		}
	}
	return out.union(nil)
}
