package token

// A wordPiece cuts a word into tokens from the left, each as long as possible.
type wordPiece struct {
	words    *wordTable
	unknown  int32
	maxRunes int // longest word in code points; a longer word is unknown
}

// append appends the tokens of one word, or the unknown token alone if the word
// cannot be cut into tokens. Time is O(len(word)·longest token).
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

// runeCount returns the number of code points of valid UTF-8. It is here because
// the compiler copies s to the heap when it inlines utf8.RuneCount in append.
func runeCount(s []byte) int {
	n := 0
	for _, b := range s {
		if b&0xC0 != 0x80 {
			n++
		}
	}
	return n
}
