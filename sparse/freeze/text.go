package freeze

import "slices"

// Encoder appends the ids of a text to dst, with the special tokens of its model.
// token.Tokenizer implements it.
type Encoder interface {
	Encode(dst []int32, text string) []int32
}

// Pieces cuts a text into at most count sequences of exactly length tokens, each with
// the special tokens that the encoder adds around a text. It drops the last tokens if
// they do not fill a sequence. It returns nil if length leaves no room for a token of
// the text.
func Pieces(e Encoder, text func(yield func(paragraph string) bool), length, count int) [][]int32 {
	before, after := specials(e)
	room := length - len(before) - len(after)
	if room < 1 || count < 1 {
		return nil
	}
	var pieces [][]int32
	var stream, ids []int32
	for paragraph := range text {
		ids = e.Encode(ids[:0], paragraph)
		if len(ids) >= len(before)+len(after) {
			stream = append(stream, ids[len(before):len(ids)-len(after)]...)
		}
		for len(stream) >= room && len(pieces) < count {
			pieces = append(pieces, slices.Concat(before, stream[:room], after))
			stream = slices.Delete(stream, 0, room)
		}
		if len(pieces) == count {
			break
		}
	}
	return pieces
}

// specials returns the tokens with which every text begins and ends. They are the
// tokens of the empty text, divided at the place where the ids of a word stand.
func specials(e Encoder) (before, after []int32) {
	empty, word := e.Encode(nil, ""), e.Encode(nil, "a")
	for len(before) < len(empty) && empty[len(before)] == word[len(before)] {
		before = empty[:len(before)+1]
	}
	return before, empty[len(before):]
}
