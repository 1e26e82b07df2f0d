package token

import (
	"math/rand/v2"
	"strings"
)

// hostileTexts are what breaks tokenizers. The golden files hold the
// reference's answers in this order: add at the end, and run -update.
func hostileTexts() []string {
	return []string{
		"", " ", "  ", "\n", "\r\n", "\r", "\t", "\x00", "a\x00b", "a", " a", "a ", "  a  b  ",
		"The lighthouse keeper counted the waves, he counted the stars.",
		"She wouldn't say where THEY'D gone; we'Ve looked, I'm sure HE'LL look'T too, 'tis 's 'S '\u017F " +
			"'ll'LL'd'D'm''re",
		"line\r\nbreak\r\n\r\n\n\n  indented\r\r\ttab \n \n  x \r\n y",
		"trailing spaces   ", "three   spaces   before",
		"space\u00a0no-break\u2003em\u3000ideographic\u2028line\u2029para\u0085next\u1680ogham\u180emongol\u200bzero",
		"\v\f\x1c\x1d\x1e\x1f", "soft\u00adhyphen \ufeffbom a\ufeffb word\u2060joiner",
		"zero\u200cwidth\u200djoin\u200e\u200fmarks\u202abidi\u202c",
		"caf\u00e9 cafe\u0301 caf\u0065\u0301 na\u00efve \u00c5ngstr\u00f6m A\u030angstro\u0308m \u212bngstrom " +
			"\u212aelvin",
		"e\u0301\u0323 e\u0323\u0301 q\u0307\u0323 \u1e69 s\u0323\u0307 \u0344 a\u0345\u0301",
		"\u0301\u0302 starts with marks", "Z\u0351\u0343a\u0321l\u0334g\u0489o\u0362",
		"a" + strings.Repeat("\u0301", 80) + "b", "x" + strings.Repeat("\u0323\u0301", 40),
		"\u302e\u302f\u0301\u302e a\U0001d165\U0001d16d\u0301",
		"\u0130stanbul I\u0131i\u0307 STRASSE stra\u00dfe \u1e9e \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 " +
			"\u039f\u0394\u039f\u03a3 \u01c5 \ufb01 \ufb05",
		"\U00010400\U00010428 \U0001e900 \u10a0 \u13a0 \u1c90 \ua640 \u2c00",
		"\u1c89 \ua7cb \ua7dc \U00010d50 \U00016ea0",
		"灯台の光が消えた。灯塔的光熄灭了。등대의 불빛이 꺼졌다 각 \u1100\u1161\u11a8 \uf900\uf92c \U0002f800 \U00020000\U0002b920\U00030000",
		"Свет маяка погас, и море стало тёмным. Το φως του φάρου έσβησε. \u0627\u0644\u0633\u0644\u0627\u0645 " +
			"\u0639\u0644\u064a\u0643\u064f\u0645 \u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",
		"\u0939\u093f\u0928\u094d\u0926\u0940 \u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 " +
			"\u0ba4\u0bae\u0bbf\u0bb4\u0bcd " +
			"\u1019\u103c\u1014\u103a\u1019\u102c \u0f56\u0f7c\u0f51 \u12a0\u121b\u122d\u129b",
		"👍🏽 👨\u200d👩\u200d👧\u200d👦 🏳\ufe0f\u200d🌈 🇩🇪 1\ufe0f\u20e3 ☺ ☺\ufe0f \U0001fae8\U0001fac6",
		"\u2460\u2167\u00bd\u0663\u096a\uff15\U0001d7d8 ¹²³ 1,234.5 12345678901234567890 1a2b 007",
		"\ue000\uf8ff\U000f0000\U0010fffd private", "\ufdd0\ufffe\uffff\U0010ffff non-characters",
		"\u0378\u0530\U000e0080 unassigned \U000e0041\U000e007f tags \ufff9\ufffb", "\ufffd replacement \ufffd",
		"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "a.b,c!d?e;f:g$h+i<j=k>l^m`n|o~p",
		"“quotes” ‘single’ «guillemets» — – … • § ¶ † ₿€£¥ ¿¡ ⟨⟩ 、。！？",
		"\u061d\u166d\u2e43\u2e5d\U00011ff0\U00010f55 punctuation of several ages",
		"\u1abf\u1dfa\u0898\u1734\u180f\U0001e4ec marks of several ages",
		"\u0890\u08e2\U000110cd\U00013430 controls of several ages",
		"snake_case camelCase kebab-case dotted.name path/to/file.go:12 C:\\dir\\x http://example.org/?q=a&b=c#d",
		"func main() {\n\tfor i := 0; i < 10; i++ {\n\t\tfmt.Println(i*i+1) // comment\n\t}\n}\n",
		strings.Repeat("a", 40), strings.Repeat("a", 41), strings.Repeat("\u00e4", 40), strings.Repeat("\u00e4", 41),
		strings.Repeat("the", 60), strings.Repeat("reader ", 30),
		strings.Repeat(" ", 100) + "x" + strings.Repeat("\n", 70),
		strings.Repeat("ab", 200), strings.Repeat("!", 150), strings.Repeat("1", 100), strings.Repeat("'", 30),
		strings.Repeat("灯", 50),
		"[CLS] nested [MASK][SEP] [[PAD]] [UNK][unk] [MA[MASK]SK] <s></s><unk> < s> <s",
		"<|endoftext|> <|begin_of_text|><|end_of_text|> <|endoftext|x <|<|endoftext|>|> <|ENDOFTEXT|>",
		"x <mask> y<mask>z  <mask>  <mask>\n<mask>",
		"<both>word <both> word  <both>  word a<both> <both>b \u0301<both> _<both> <both>\u200d -<both>-",
		"a word swords word. Word words word_ word\u0301 \u00e9word word",
		"a left  left left left", "right right  right b right", "left right leftright  left  right  rightleft",
		"Zürich Café zürich café Zu\u0308rich Cafe\u0301 ZÜRICH CAFÉ Zürich  Café",
		"▁ ▁▁ a▁b ▁a ▁ a \u2581\u2581lower", "<0x41> <0x0A><0xFF> <0xZZ>", "Ġ Ġthe Ċ ĉ Ã© ĠĠ",
		"\x80", "\xff\xfe", "a\xc3", "\xc3\xa9\xc3", "\xe2\x82", "\xe2\x82\xe2\x82\xac", "\xf0\x9f\x98",
		"\xf0\x9f\x98\x80\xf0\x9f", "\xed\xa0\x80\xed\xbf\xbf", "\xc0\xaf\xe0\x80\xaf\xf0\x80\x80\xaf",
		"\xf4\x90\x80\x80\xf5\xbf", "x\xc3(y\xe2(\xa1z\xf0(\x8c\xbc",
		"In 1987 there were 365 days, $19.99 or €20, 50% off!? Yes... no -- maybe: \"quoted\".",
		" leading newline\n then", "\n\n\nx", "x\n\n\n", "a\n b\n  c\n   d", "tabs\t\tand\t spaces \t",
		"9'9 a's9 's9's", "don\u2019t we\u2019ll \u2019s", "a\u0301\u0301'll \u0301's", "\u00b2'm \u2163's",
		"x<s>y</s> z<s>\u2581q<s> <s>\n<s>", "<|endoftext|>the<|endoftext|> the<mask>the <mask> the",
		"HTTPServer getURLFor iPhone McDonald's MCDONALD'S XMLs ABCdefGHI'll ÀÉÎõü ǅungla ǅǅ ǅA",
		"漢字ABC漢字abc ABC漢字 Aʰb ABʰ ʰAB \u0301AB a\u0301B AB\u0301C's",
		"//\n//\r\n/ a/b/\n\n/ ?!/\n x'S/ 'tis 's'S ab'ſ AB'ſ12'll '",
		"\U00010D50\U00010D51\U00010D70 \u1C89\u1C8A \uA7CB\uA7CD\uA7DA\uA7DC Ꮠa aᎠ",
		"\U0002EBF0\U0002EE5Dx \U0001CCF0\U0001CCF9 12\U0001CCF1 \U00016D40\U00016D70\U00016D79 \U0001E5D0\U0001E5FA",
		"\u0897a \U00010D69x \U00011F5A\u0301 \U000113E1\U000113E2 \U00016EA0\U00016EBB",
		"ΑΒΓδε Привет МИР да\u0301 ЁЖ éE\u0301 12٣٤ \u212A\u017F KELVIN'K 'k'\u212A",
		"\u1DFA\u1ACE \U00010EFCb \U0001171E\U0001171F a\U0001171E \u1734\u1715 x\u1734",
	}
}

// randomText draws a text of parts that tokenizers treat differently.
func randomText(r *rand.Rand, parts int) string {
	var b strings.Builder
	for range parts {
		switch r.IntN(12) {
		case 0:
			b.WriteRune(rune(r.IntN(128)))
		case 1:
			b.WriteString([]string{" ", "  ", "\n", "\r\n", "\t", " \n ", "\u00a0", "\u2003"}[r.IntN(8)])
		case 2:
			b.WriteString([]string{"'s", "'LL", "'ve ", "'\u017f", "'", "''", "'re"}[r.IntN(7)])
		case 3:
			b.WriteString([]string{"[MASK]", "<|endoftext|>", "<s>", "<both>", "<mask>", "word", "left", "right",
				"▁", "##"}[r.IntN(10)])
		case 4:
			b.WriteRune(rune(0x300 + r.IntN(0x70)))
		case 5:
			b.WriteRune(rune(0x80 + r.IntN(0x800)))
		case 6:
			if c := rune(r.IntN(0x110000)); c < 0xD800 || c > 0xDFFF {
				b.WriteRune(c)
			}
		case 7:
			b.WriteByte(byte(r.IntN(256)))
		case 8:
			b.WriteString([]string{"12", "1", "1234", "٣", "½"}[r.IntN(5)])
		default:
			for range 1 + r.IntN(8) {
				b.WriteByte("etaoinshrdlu"[r.IntN(12)])
			}
			b.WriteString([]string{"", " ", ", "}[r.IntN(3)])
		}
	}
	return b.String()
}
