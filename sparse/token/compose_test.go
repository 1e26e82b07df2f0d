package token

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// composed is the NFC of a text by the composer.
func composed(text string) string {
	return string(composition().append(nil, []byte(text), new(decomposer)))
}

// NFC equals that of package norm for code points that both know. It is idempotent,
// and canonically equivalent texts have the same NFC.
func TestCompose(t *testing.T) {
	const seed = 16
	r := rand.New(rand.NewPCG(seed, seed))
	var moving []rune // unstable code points, which random ones seldom are
	for c := rune(0x300); c < 0x30000; c++ {
		if composition().isUnstable(c) && !inRanges(c, laterDecompositions) {
			moving = append(moving, c)
		}
	}
	letters := []rune("aAeEsqkω\u0938\u1100\u1102\uac00\uac01\u304b\u1025\u05d0\u00c5\u1ea5 -")
	for range 20000 {
		var text []rune
		for range 1 + r.IntN(8) {
			from := letters
			if r.IntN(2) == 0 {
				from = moving
			}
			text = append(text, from[r.IntN(len(from))])
		}
		s := string(text)
		want := norm.NFC.String(s)
		for name, form := range map[string]string{"as it is": s, "apart": norm.NFD.String(s), "composed": want} {
			if got := composed(form); got != want {
				t.Fatalf("seed %d: %+q %s: got %+q, want %+q", seed, form, name, got, want)
			}
		}
	}
}

// More marks than package norm lets stand behind one letter.
func TestComposeManyMarks(t *testing.T) {
	marks := strings.Repeat("\u0301", 40) + strings.Repeat("\u0323", 40)
	if got, want := composed("xa"+marks), "x\u1ea1"+strings.Repeat("\u0323", 39)+
		strings.Repeat("\u0301", 40); got != want {
		t.Errorf("got %+q\nwant %+q", got, want)
	}
}

// NFC and numbers of every code point beside the reference: alone, with a mark,
// and as a mark.
func TestReferenceComposesEveryCodePoint(t *testing.T) {
	python(t)
	var texts []string
	for page := range 0xE02 {
		if page >= 0x340 && page < 0xE00 {
			continue // nothing is there
		}
		var b strings.Builder
		for c := range 256 {
			if r := rune(page<<8 | c); utf8.ValidRune(r) {
				fmt.Fprintf(&b, "%c\u0301 a%c\u0323\u1100%c1", r, r, r)
			}
		}
		texts = append(texts, b.String())
	}
	for pair, r := range composition().pairs {
		texts = append(texts, fmt.Sprintf("%c%c %c\u0323%c %c", pair[0], pair[1], pair[0], pair[1], r))
	}
	slices.Sort(texts)
	dir := t.TempDir()
	plain := string(seamsFile(t, ""))
	bytes := `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":%v}`
	digits := `{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":false},` +
		fmt.Sprintf(bytes, false) + `]}`
	for name, file := range map[string]string{
		"nfc":    strings.Replace(plain, `"normalizer":null`, `"normalizer":{"type":"NFC"}`, 1),
		"digits": strings.Replace(plain, fmt.Sprintf(bytes, true), digits, 1),
	} {
		path := filepath.Join(dir, name+".json")
		if err := os.WriteFile(path, []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
		compare(t, name, load(t, path), texts, reference(t, path, texts))
	}
}

// Decode gives the normalized spelling of an added token that matches in normalized
// text.
func TestDecodeOfNormalizedTokens(t *testing.T) {
	tok, err := Parse(
		[]byte(`{"version":"1.0","added_tokens":[{"id":3,"content":"foo bar","normalized":true},{"id":4,"content":"x y","normalized":false}],
		"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"_"},
		"decoder":{"type":"Replace","pattern":{"String":"_"},"content":"+"},
		"model":{"type":"BPE","vocab":{"a":0,"b":1,"_":2},"merges":[]}}`))
	if err != nil {
		t.Fatal(err)
	}
	ids := tok.Encode(nil, "a foo barx y")
	if want := []int32{0, 2, 3, 4}; !slices.Equal(ids, want) {
		t.Fatalf("ids %d, want %d", ids, want)
	}
	if got, want := tok.Decode(ids), "a+foo+barx y"; got != want {
		t.Errorf("decoded %q, want %q", got, want)
	}
	if text, _ := tok.Token(3); text != "foo bar" {
		t.Errorf("token 3 is spelled %q, want as in the file", text)
	}
}

// An empty match at the end of the previous match does not count.
func TestEmptyMatches(t *testing.T) {
	p, err := compilePattern("a*")
	if err != nil {
		t.Fatal(err)
	}
	want := []span{{0, 0, true}, {0, 1, false}, {1, 3, true}, {3, 4, false}, {4, 4, true}}
	if got := p.spans([]byte("baab")); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
