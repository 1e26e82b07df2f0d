package token

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// Split patterns that no scanner knows, of models in use: they are accepted.
var patternsInUse = []string{
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`,
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	`(?i:'[sdmtk]|'ll|'ve|'re)|\p{Lu}?[\p{Ll}\p{Mn}]+|[^\S\n]+`,
	`\p{Han}|[\p{Cyrillic}\p{Greek}]{1,4}|\d{1,2}|[\P{L}\p{Lo}]`,
	`[0-9]`, `[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, `[一-龥ࠀ-一가-퟿]+`, `\p{N}`, `\d{3}|\S`, ` ?[^\s.,!?…。，、।۔،()\[\]|]+`,
	`(?<=a)b|[a-f\-]{2,}`,
}

func TestPatternsInUseAreAccepted(t *testing.T) {
	for _, expr := range patternsInUse {
		if _, err := compilePattern(expr); err != nil {
			t.Error(err)
		}
	}
}

func TestOtherPatternsAreRefused(t *testing.T) {
	for _, expr := range []string{
		`(a`, `[a`, `\`, `^a`, `a$`, `\w+`, `a\b`, `[a[bc]]`, `[a&&b]`, `[[:alpha:]]`, `(a)\1`, `\h`, `(?m:.)`,
		`(?<n>a)`, `a{,3}`, `a{2}?`, `a{2}+`, `a++`, `[]a]`, `[^]a]`, `\p{Nothing}`, `\pL`, `\p{^L}`, `\p{letter}`,
		`(?i:straße)`, `(?i:ß)`, `(?i:lass)`, `(?i:[a-ÿ])`, `[\x80-\xff]`, `\x4`, `[a-f-z]`, `[\d-z]`, `[z-a]`,
		`[^\s\S]{2}x{`, `a{b}`,
		`(a+)+b`, `(a|a)*b`, `(\s*)*b`, `(?:a?){30}a`, `((?i:a|b)c)+`, `(?=a+)*b`, `(x(y{2}))+`,
	} {
		if _, err := compilePattern(expr); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", expr)) {
			t.Errorf("%s: got error %v, want one that names it", expr, err)
		}
	}
}

// A match that takes too long ends the search, and the rest is one word.
func TestSearchEnds(t *testing.T) {
	p, err := compilePattern(`a|.*.*.*b`)
	if err != nil {
		t.Fatal(err)
	}
	p.re.MatchTimeout = 300 * time.Millisecond
	s := splitter{kind: splitPattern, pattern: p}
	text := "a" + strings.Repeat("x", 1<<14)
	if got, want := s.pieces([]byte(text)), []span{{0, 1, true}, {1, len(text), false}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A scanner cuts text as its pattern does.
func TestScannersCutAsTheirPatterns(t *testing.T) {
	for expr, k := range scanPatterns {
		p, err := compilePattern(expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range hostileTexts() {
			checkScanner(t, k, &p, text)
		}
		r := rand.New(rand.NewPCG(7, uint64(k))) // seeded for each pattern, because a map has no order
		for range 2000 {
			checkScanner(t, k, &p, randomText(r, 1+r.IntN(20)))
		}
	}
}

func checkScanner(t *testing.T, k scanner, p *pattern, text string) {
	t.Helper()
	s := appendValid(nil, text)
	var got, want []string
	for at := 0; at < len(s); {
		n := k.next(classes(), s[at:])
		got = append(got, string(s[at:at+n]))
		at += n
	}
	for _, c := range p.spans(s) {
		if !c.match {
			t.Errorf("scanner %d: %+q: the pattern leaves %+q out", k, text, s[c.from:c.to])
		}
		want = append(want, string(s[c.from:c.to]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("scanner %d: %+q: got %+q, want %+q", k, text, got, want)
	}
}

func FuzzScanners(f *testing.F) {
	for _, text := range hostileTexts() {
		f.Add(text)
	}
	patterns := map[scanner]pattern{}
	for expr, k := range scanPatterns {
		p, err := compilePattern(expr)
		if err != nil {
			f.Fatal(err)
		}
		patterns[k] = p
	}
	f.Fuzz(func(t *testing.T, text string) {
		for k, p := range patterns {
			checkScanner(t, k, &p, text)
		}
	})
}

func TestSplitBehaviors(t *testing.T) {
	for _, c := range []struct {
		behavior string
		invert   bool
		want     []string
	}{
		{"Isolated", false, []string{"-", "-", "a", "-", "bc", "-"}},
		{"Removed", false, []string{"a", "bc"}},
		{"Removed", true, []string{"-", "-", "-", "-"}},
		{"Contiguous", false, []string{"--", "a", "-", "bc", "-"}},
		{"MergedWithPrevious", false, []string{"-", "-", "a-", "bc-"}},
		{"MergedWithNext", false, []string{"-", "-a", "-bc", "-"}},
	} {
		for _, pattern := range []string{`{"String":"-"}`, `{"Regex":"-"}`} {
			data := fmt.Sprintf(`{"type":"Split","pattern":%s,"behavior":%q,"invert":%v}`, pattern,
				c.behavior, c.invert)
			s, err := readSplitter("Split", []byte(data))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			text := []byte("--a-bc-")
			for _, span := range s.pieces(text) {
				got = append(got, string(text[span.from:span.to]))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: got %q, want %q", data, got, c.want)
			}
		}
	}
}
