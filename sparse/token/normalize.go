package token

import (
	"bytes"
	"unicode/utf8"
)

// A normalizer is one step of the file's normalizer.
type normalizer struct {
	kind     normalizerKind
	from, to []byte // normReplace, normPrepend
	bert     bertNormalizer
}

type normalizerKind int

const (
	normBERT normalizerKind = iota
	normPrepend
	normReplace
	normNFC
)

// bertNormalizer holds the options of BertNormalizer.
type bertNormalizer struct{ clean, han, accents, lower bool }

// append appends the normalized s to dst. dst must share no memory with s.
func (n *normalizer) append(dst, s []byte, class *classTable, d *decomposer) []byte {
	switch n.kind {
	case normBERT:
		return n.bert.append(dst, s, class, d)
	case normPrepend:
		if len(s) > 0 {
			dst = append(dst, n.to...)
		}
		return append(dst, s...)
	case normReplace:
		return appendReplaced(dst, s, n.from, n.to)
	case normNFC:
		return composition().append(dst, s, d)
	}
	panic("token: unknown normalizer")
}

func appendReplaced(dst, s, from, to []byte) []byte {
	for {
		i := bytes.Index(s, from)
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(append(dst, s[:i]...), to...)
		s = s[i+len(from):]
	}
}

// appendLower appends the full lower case of one code point. Only the lower case
// of U+0130 has more than one code point.
func appendLower(dst []byte, r rune) []byte {
	if r == 0x130 {
		return append(dst, "i\u0307"...)
	}
	return utf8.AppendRune(dst, toLower(r))
}

// append cleans the text first and alters letters afterwards, so that a mark
// applies to its letter even if a character between them was dropped.
func (b bertNormalizer) append(dst, s []byte, class *classTable, d *decomposer) []byte {
	start := len(dst)
	plain := true // dst[start:] has no character beyond ASCII that alter could change
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			i++
			if b.clean {
				switch {
				case c == 0 || class.of(rune(c))&classControl != 0:
					continue
				case c == '\t' || c == '\n' || c == '\r':
					c = ' '
				}
			}
			if b.lower && c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			continue
		}
		r, size := utf8.DecodeRune(s[i:])
		bits := class.of(r)
		switch {
		case b.clean && (r == utf8.RuneError || bits&classControl != 0):
		case b.clean && bits&classSpace != 0:
			dst = append(dst, ' ')
		case b.han && bits&classHan != 0:
			dst = append(append(append(dst, ' '), s[i:i+size]...), ' ')
			plain = plain && bits&classChanges == 0
		default:
			dst = append(dst, s[i:i+size]...)
			plain = plain && bits&(classChanges|classMark) == 0
		}
		i += size
	}
	if plain || !b.accents && !b.lower {
		return dst
	}
	return b.alter(dst, start, class, d)
}

// alter strips accents and lowers the case of dst[start:], as the options say. The
// case of ASCII letters is lowered already.
func (b bertNormalizer) alter(dst []byte, start int, class *classTable, d *decomposer) []byte {
	end := len(dst)
	if b.accents {
		for i := start; i < end; {
			r, size := utf8.DecodeRune(dst[i:end])
			dst = d.add(dst, r)
			i += size
		}
		dst = d.flush(dst)
		dst = append(dst[:start], dst[end:]...)
		end = len(dst)
	}
	for i := start; i < end; {
		r, size := utf8.DecodeRune(dst[i:end])
		i += size
		switch {
		case b.accents && class.of(r)&classMark != 0:
		case b.lower:
			dst = appendLower(dst, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst[:start], dst[end:]...)
}
