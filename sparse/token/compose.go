package token

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A composer brings text into NFC. norm.NFC does not serve, for the reason that
// decomposer gives, and because it follows a later Unicode than the reference.
type composer struct {
	pairs map[[2]rune]rune // composition of two code points
	// unstable has a bit for each code point that NFC may alter, move or join to the
	// one before it.
	unstable [(unicode.MaxRune + 64) / 64]uint64
}

// composition is computed when the first tokenizer with NFC is read. It takes
// about ten milliseconds.
var composition = sync.OnceValue(func() *composer {
	c := &composer{pairs: map[[2]rune]rune{}}
	for r := rune(0x300); r <= unicode.MaxRune; r++ { // no code point below is unstable
		if full, ccc := decomposition(r); ccc != 0 || full != nil && !composes(r) {
			c.setUnstable(r)
		}
	}
	for r := rune(0xC0); r <= unicode.MaxRune; r++ {
		full, _ := decomposition(r)
		if full == nil || !composes(r) {
			continue
		}
		_, n := utf8.DecodeLastRune(full)
		last, _ := utf8.DecodeLastRune(full)
		before, _ := utf8.DecodeRune(norm.NFC.Bytes(full[:len(full)-n]))
		c.pairs[[2]rune{before, last}] = r
		c.setUnstable(last)
	}
	for r := rune(hangulV); r < hangulV+hangulVCount; r++ {
		c.setUnstable(r)
	}
	for r := rune(hangulT) + 1; r < hangulT+hangulTCount; r++ {
		c.setUnstable(r)
	}
	return c
})

// composes reports whether NFC keeps r. It decomposes code points that stand for
// one other code point, and some more.
func composes(r rune) bool { return norm.NFC.IsNormalString(string(r)) }

func (c *composer) setUnstable(r rune)     { c.unstable[r/64] |= 1 << (r % 64) }
func (c *composer) isUnstable(r rune) bool { return c.unstable[r/64]>>(r%64)&1 != 0 }

// append appends the NFC of s to dst. It copies stable code points as they are,
// and composes each run of unstable code points together with the stable code
// point before it.
func (c *composer) append(dst, s []byte, d *decomposer) []byte {
	done, stable := 0, 0 // s[:done] is in dst; the last stable code point begins at stable
	for at := 0; at < len(s); {
		r, n := rune(s[at]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(s[at:])
		}
		if !c.isUnstable(r) {
			stable = at
			at += n
			continue
		}
		dst = append(dst, s[done:stable]...)
		end := at + n
		for end < len(s) {
			r, n := utf8.DecodeRune(s[end:])
			if !c.isUnstable(r) {
				break
			}
			end += n
		}
		dst = c.appendComposed(dst, s[stable:end], d)
		at, done, stable = end, end, end
	}
	return append(dst, s[done:]...)
}

// appendComposed decomposes s and composes the result: each code point joins the
// last code point of class zero before it, if the pair has a composition and no
// code point between them has class zero or a class as large (Unicode, section
// 3.11).
func (c *composer) appendComposed(dst, s []byte, d *decomposer) []byte {
	start := len(dst)
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		dst = d.add(dst, r)
		s = s[n:]
	}
	dst = d.flush(dst)
	starter, between := -1, uint8(0) // last code point of class zero; class of the code point before r
	left := d.joined[:0]
	for rest := dst[start:]; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		rest = rest[n:]
		_, ccc := decomposition(r)
		if starter >= 0 && (len(left) == starter+1 || between < ccc) {
			if joined, ok := c.join(left[starter], r); ok {
				left[starter] = joined
				continue
			}
		}
		if ccc == 0 {
			starter = len(left)
		}
		between = ccc
		left = append(left, r)
	}
	d.joined = left
	dst = dst[:start]
	for _, r := range left {
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

func (c *composer) join(a, b rune) (rune, bool) {
	switch {
	case a >= hangulL && a < hangulL+hangulLCount && b >= hangulV && b < hangulV+hangulVCount:
		return hangulBase + ((a-hangulL)*hangulVCount+b-hangulV)*hangulTCount, true
	case isHangul(a) && (a-hangulBase)%hangulTCount == 0 && b > hangulT && b < hangulT+hangulTCount:
		return a + b - hangulT, true
	}
	r, ok := c.pairs[[2]rune{a, b}]
	return r, ok
}
