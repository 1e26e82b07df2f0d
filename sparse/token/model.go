package token

// model cuts words into tokens. Exactly one of pieces and pairs is set.
type model struct {
	pieces *wordPiece
	pairs  *bpe
}

func (m *model) append(dst []int32, word []byte, w *wordScratch) []int32 {
	if m.pieces != nil {
		return m.pieces.append(dst, word)
	}
	return m.pairs.append(dst, word, w)
}

// wordScratch is the models' scratch memory.
type wordScratch struct {
	ranks      []uint32
	next, prev []int32
	heap       []uint64
}
