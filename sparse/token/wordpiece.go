package token

import "unicode/utf8"

// A wordPiece cuts a word into the longest tokens from the left.
type wordPiece struct {
	first, inner map[string]int32 // tokens that begin a word, and the others without their prefix
	longest      int              // bytes of the longest token
	unknown      int32
	maxRunes     int // a longer word is unknown
}

// append appends the tokens of one word: the unknown token alone when some part
// of it is in no token. Time is O(len(word)), with the longest token as factor.
func (m *wordPiece) append(dst []int32, word []byte) []int32 {
	if len(word) > m.maxRunes && utf8.RuneCount(word) > m.maxRunes {
		return append(dst, m.unknown)
	}
	start := len(dst)
	tokens := m.first
	for len(word) > 0 {
		end := min(len(word), m.longest)
		id, ok := tokens[string(word[:end])]
		for !ok && end > 1 {
			end--
			id, ok = tokens[string(word[:end])]
		}
		if !ok {
			return append(dst[:start], m.unknown)
		}
		dst = append(dst, id)
		word = word[end:]
		tokens = m.inner
	}
	return dst
}
