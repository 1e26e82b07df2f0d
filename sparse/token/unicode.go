package token

import (
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Classes of code points, as bits.
const (
	classLetter  = 1 << iota // \p{L}
	classNumber              // \p{N}
	classSpace               // White_Space
	classPunct               // \p{P} and the symbols of ASCII, in BERT's pre-tokenizer
	classMark                // \p{Mn}, which BERT strips as accents
	classControl             // \p{Cc}, \p{Cf} and \p{Co} except \t \n \r, which BERT's cleaning drops
	classHan                 // characters that BERT puts between spaces
	classChanges             // has a decomposition, a combining class or another lower case
)

// A classTable holds the bits of every code point, 256 to a page. Equal pages are
// stored once, and most pages are equal to one of a few.
type classTable struct {
	page  [(unicode.MaxRune + 1) >> 8]uint16
	pages [][256]uint8
}

func (c *classTable) of(r rune) uint8 { return c.pages[c.page[r>>8]][r&255] }

// classes is computed when the first tokenizer is read. It takes a few
// milliseconds.
//
// The reference uses several versions of Unicode: its letters, numbers and lower
// case are newer than Go's, and the marks, punctuation and controls of BERT's
// cleaning date from 2015. unicode_tables.go holds the differences, so that the
// ids are equal.
var classes = sync.OnceValue(func() *classTable {
	bits := make([]uint8, unicode.MaxRune+1)
	set := func(bit uint8, tables ...*unicode.RangeTable) {
		for _, t := range tables {
			for _, r := range t.R16 {
				for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
					bits[c] |= bit
				}
			}
			for _, r := range t.R32 {
				for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
					bits[c] |= bit
				}
			}
		}
	}
	for name, bit := range map[string]uint8{"L": classLetter, "N": classNumber} {
		members, _ := property(name)
		setBits(bits, bit, members)
	}
	set(classSpace, unicode.White_Space)
	setBits(bits, classPunct, bertPunctuation)
	setBits(bits, classMark, bertMarks)
	setBits(bits, classControl, bertControl)
	set(classHan, hanOfBERT)
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		if changes(r) {
			bits[r] |= classChanges
		}
	}
	return pack(bits)
})

// setBits sets a bit for every code point of ranges, pairs of first and last.
func setBits(bits []uint8, bit uint8, ranges []rune) {
	for i := 0; i < len(ranges); i += 2 {
		for c := ranges[i]; c <= ranges[i+1]; c++ {
			bits[c] |= bit
		}
	}
}

// changes reports whether NFD or lower case alter or move r.
func changes(r rune) bool {
	if toLower(r) != r || isHangul(r) {
		return true
	}
	full, ccc := decomposition(r)
	return ccc != 0 || full != nil
}

// decomposition returns the full canonical decomposition of r, or nil if it has
// none, and its combining class.
func decomposition(r rune) ([]byte, uint8) {
	if inRanges(r, laterDecompositions) {
		return nil, 0
	}
	var buf [utf8.UTFMax]byte
	p := norm.NFD.Properties(utf8.AppendRune(buf[:0], r))
	return p.Decomposition(), p.CCC()
}

// inRanges reports whether r lies in one of the ranges, ascending pairs of first
// and last.
func inRanges(r rune, ranges []rune) bool {
	i, found := slices.BinarySearch(ranges, r)
	return found || i%2 == 1
}

// toLower is unicode.ToLower with the letters that Go's Unicode lacks.
func toLower(r rune) rune {
	if r >= moreLower[0][0] {
		for _, m := range moreLower {
			if m[0] <= r && r <= m[1] {
				return r + m[2]
			}
		}
	}
	return unicode.ToLower(r)
}

func pack(bits []uint8) *classTable {
	t := new(classTable)
	seen := map[[256]uint8]uint16{}
	for i := range t.page {
		page := [256]uint8(bits[i<<8:])
		at, known := seen[page]
		if !known {
			at = uint16(len(t.pages))
			seen[page] = at
			t.pages = append(t.pages, page)
		}
		t.page[i] = at
	}
	return t
}

// hanOfBERT are the blocks of Chinese characters in BERT's original code.
var hanOfBERT = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x3400, Hi: 0x4DBF, Stride: 1}, {Lo: 0x4E00, Hi: 0x9FFF, Stride: 1}, {Lo: 0xF900, Hi: 0xFAFF, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x20000, Hi: 0x2A6DF, Stride: 1}, {Lo: 0x2A700, Hi: 0x2B73F, Stride: 1},
		{Lo: 0x2B740, Hi: 0x2B81F, Stride: 1},
		{Lo: 0x2B920, Hi: 0x2CEAF, Stride: 1}, {Lo: 0x2F800, Hi: 0x2FA1F, Stride: 1},
	},
}

// Hangul syllables decompose by arithmetic (Unicode, section 3.12).
const (
	hangulBase, hangulCount         = 0xAC00, 11172
	hangulL, hangulV, hangulT       = 0x1100, 0x1161, 0x11A7
	hangulLCount                    = 19
	hangulVCount, hangulTCount rune = 21, 28
)

func isHangul(r rune) bool { return r >= hangulBase && r < hangulBase+hangulCount }

// A decomposer brings text into NFD. norm.NFD does not serve: it breaks runs of
// more than thirty marks, which the reference keeps.
type decomposer struct {
	pending []mark
	joined  []rune // memory of composer.appendComposed
}

// A mark is a code point that canonical ordering may move.
type mark struct {
	r   rune
	ccc uint8
}

// add adds the next code point. It appends to dst the code points whose place is
// now final.
func (d *decomposer) add(dst []byte, r rune) []byte {
	if isHangul(r) {
		dst = d.flush(dst)
		r -= hangulBase
		dst = utf8.AppendRune(dst, hangulL+r/(hangulVCount*hangulTCount))
		dst = utf8.AppendRune(dst, hangulV+r/hangulTCount%hangulVCount)
		if r %= hangulTCount; r > 0 {
			dst = utf8.AppendRune(dst, hangulT+r)
		}
		return dst
	}
	full, ccc := decomposition(r)
	if full == nil {
		return d.order(dst, r, ccc)
	}
	for len(full) > 0 {
		r, n := utf8.DecodeRune(full)
		_, ccc := decomposition(r)
		dst = d.order(dst, r, ccc)
		full = full[n:]
	}
	return dst
}

func (d *decomposer) order(dst []byte, r rune, ccc uint8) []byte {
	if ccc == 0 {
		return utf8.AppendRune(d.flush(dst), r)
	}
	d.pending = append(d.pending, mark{r, ccc})
	return dst
}

// flush appends the pending marks to dst, in the order of their classes.
func (d *decomposer) flush(dst []byte) []byte {
	if len(d.pending) > 1 {
		slices.SortStableFunc(d.pending, func(a, b mark) int { return int(a.ccc) - int(b.ccc) })
	}
	for _, m := range d.pending {
		dst = utf8.AppendRune(dst, m.r)
	}
	d.pending = d.pending[:0]
	return dst
}
