package token

// A wordPiece cuts a word into the longest tokens from the left.
type wordPiece struct {
	words    *wordTable
	unknown  int32
	maxRunes int // a longer word is unknown
}

// append appends the tokens of one word: the unknown token alone when some part
// of it is in no token. Time is O(len(word)), with the longest token as factor.
func (m *wordPiece) append(dst []int32, word []byte) []int32 {
	if len(word) > m.maxRunes && runeCount(word) > m.maxRunes {
		return append(dst, m.unknown)
	}
	start := len(dst)
	flag := uint32(0)
	for len(word) > 0 {
		id, n := m.words.longest(word, flag)
		if id < 0 {
			return append(dst[:start], m.unknown)
		}
		dst = append(dst, id)
		word = word[n:]
		flag = continues
	}
	return dst
}

// runeCount counts the code points of valid UTF-8. utf8.RuneCount copies s when
// it is inlined here.
func runeCount(s []byte) int {
	n := 0
	for _, b := range s {
		if b&0xC0 != 0x80 {
			n++
		}
	}
	return n
}
