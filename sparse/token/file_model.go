package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// fileModel holds the fields of both models.
type fileModel struct {
	Type    string           `json:"type"`
	Vocab   map[string]int32 `json:"vocab"`
	Unknown *string          `json:"unk_token"`
	Prefix  *string          `json:"continuing_subword_prefix"`

	MaxRunes *int `json:"max_input_chars_per_word"` // WordPiece

	Merges       []fileMerge `json:"merges"` // BPE
	Suffix       *string     `json:"end_of_word_suffix"`
	Dropout      *float64    `json:"dropout"`
	FuseUnknown  bool        `json:"fuse_unk"`
	ByteFallback bool        `json:"byte_fallback"`
	IgnoreMerges bool        `json:"ignore_merges"`
}

// fileMerge is a pair of tokens, ["a", "b"] or "a b" in the file. Both are empty
// for the line "#version", with which old lists begin.
type fileMerge [2]string

func (m *fileMerge) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		pair := []*string{&m[0], &m[1]}
		if err := json.Unmarshal(data, &pair); err != nil {
			return err
		}
		if len(pair) != 2 || pair[0] != &m[0] || pair[1] != &m[1] {
			return fmt.Errorf("merge %s is not a pair", data)
		}
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	if strings.HasPrefix(text, "#version") {
		return nil
	}
	left, right, ok := strings.Cut(text, " ")
	if !ok || strings.Contains(right, " ") {
		return fmt.Errorf("merge %q is not two tokens", text)
	}
	m[0], m[1] = left, right
	return nil
}

func (t *Tokenizer) readModel(data json.RawMessage) error {
	if absent(data) {
		return errors.New("it is missing")
	}
	var head struct {
		Type     string          `json:"type"`
		Merges   json.RawMessage `json:"merges"`
		MaxRunes json.RawMessage `json:"max_input_chars_per_word"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	if head.Type == "" { // in older files the fields show the type
		switch {
		case head.Merges != nil:
			head.Type = "BPE"
		case head.MaxRunes != nil:
			head.Type = "WordPiece"
		default:
			return errors.New("it has no type")
		}
	}
	if head.Type != "BPE" && head.Type != "WordPiece" {
		return fmt.Errorf("type %q: %w", head.Type, errUnsupported)
	}
	var m fileModel
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%s: %w", head.Type, err)
	}
	if err := t.setVocab(m.Vocab); err != nil {
		return fmt.Errorf("%s: vocab: %w", head.Type, err)
	}
	read := t.readWordPiece
	if head.Type == "BPE" {
		read = t.readBPE
	}
	if err := read(&m); err != nil {
		return fmt.Errorf("%s: %w", head.Type, err)
	}
	return nil
}

func (t *Tokenizer) setVocab(vocab map[string]int32) error {
	if len(vocab) == 0 {
		return errors.New("it is missing or empty")
	}
	texts := make(map[int32]string, len(vocab))
	for text, id := range vocab {
		if id < 0 || id >= maxID {
			return fmt.Errorf("%q: id %d is not between 0 and %d", text, id, maxID-1)
		}
		if other, taken := texts[id]; taken {
			return fmt.Errorf("id %d belongs to %q and to %q", id, min(text, other), max(text, other))
		}
		texts[id] = text
		t.texts[text] = id
	}
	t.trained = len(vocab)
	return nil
}

func (t *Tokenizer) byteLevel() bool {
	n := len(t.splitters)
	return n > 0 && t.splitters[n-1].kind == splitByteLevel
}

func (t *Tokenizer) readWordPiece(m *fileModel) error {
	if t.byteLevel() {
		return errors.New("it is not supported after the pre-tokenizer ByteLevel")
	}
	if m.Unknown == nil || m.Prefix == nil || m.MaxRunes == nil {
		return errors.New("unk_token, continuing_subword_prefix or max_input_chars_per_word is missing")
	}
	unknown, ok := m.Vocab[*m.Unknown]
	if !ok {
		return fmt.Errorf("unk_token %q is not in the vocabulary", *m.Unknown)
	}
	inner := map[string]int32{}
	for text, id := range m.Vocab {
		if text, ok := strings.CutPrefix(text, *m.Prefix); ok {
			inner[text] = id
		}
	}
	t.model.pieces = &wordPiece{words: newWordTable(m.Vocab, inner), unknown: unknown, maxRunes: *m.MaxRunes}
	return nil
}

func (t *Tokenizer) readBPE(m *fileModel) error {
	switch {
	case m.Prefix != nil && *m.Prefix != "":
		return fmt.Errorf("continuing_subword_prefix %q is not supported", *m.Prefix)
	case m.Suffix != nil && *m.Suffix != "":
		return fmt.Errorf("end_of_word_suffix %q is not supported", *m.Suffix)
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("dropout %v is not supported", *m.Dropout)
	}
	b := &bpe{
		bytes: t.byteLevel(), merges: newMergeTable(len(m.Merges)),
		unknown: -1, fuse: m.FuseUnknown, fallback: m.ByteFallback, ignoreMerges: m.IgnoreMerges,
	}
	m.Merges = slices.DeleteFunc(m.Merges, func(m fileMerge) bool { return m == fileMerge{} })
	for rank, pieces := range m.Merges {
		left, knownLeft := m.Vocab[pieces[0]]
		right, knownRight := m.Vocab[pieces[1]]
		id, known := m.Vocab[pieces[0]+pieces[1]]
		if !knownLeft || !knownRight || !known {
			return fmt.Errorf("merge %d, %q: one of its tokens, or the merged token, is not in the vocabulary",
				rank, pieces)
		}
		b.merges.set(left, right, merge{uint32(rank), id})
	}
	words := m.Vocab
	if b.bytes {
		words = byteVocab(m.Vocab)
	}
	b.words = newWordTable(words, nil)
	complete := b.setSymbols(m)
	if m.Unknown != nil && !complete {
		id, ok := m.Vocab[*m.Unknown]
		if !ok {
			return fmt.Errorf("unk_token %q is not in the vocabulary", *m.Unknown)
		}
		b.unknown = id
	}
	if b.bytes && b.fallback && !complete {
		return errors.New("byte_fallback is not supported after ByteLevel")
	}
	if b.bytes {
		b.findWhole()
	}
	t.model.pairs = b
	return nil
}

// setSymbols fills the tables of bytes. It returns true if words are cut into
// bytes and every byte has a symbol.
func (b *bpe) setSymbols(m *fileModel) bool {
	complete := b.bytes
	for c := range 256 {
		b.symbols[c], b.fallbacks[c] = -1, -1
		if b.bytes {
			b.symbols[c] = b.words.find([]byte{byte(c)})
		}
		complete = complete && b.symbols[c] >= 0
		if id, ok := m.Vocab[fmt.Sprintf("<0x%02X>", c)]; ok {
			b.fallbacks[c] = id
		}
	}
	return complete
}

// findWhole sets b.whole: it marks the tokens that the merges make of their own
// bytes. Most words of a text are such tokens and need no merging.
func (b *bpe) findWhole() {
	whole := make([]bool, len(b.words.words))
	var ids []int32
	var w wordScratch
	for id, word := range b.words.words {
		if len(word) > 0 {
			ids = b.append(ids[:0], word, &w)
			whole[id] = len(ids) == 1 && ids[0] == int32(id)
		}
	}
	b.whole = whole
}

// byteLetters are the letters by which a byte-level vocabulary spells bytes. A
// printable letter of Latin-1 stands for itself; the other bytes have the letters
// from U+0100 on, in ascending order.
var byteLetters = func() (letters [256]rune) {
	next := rune(0x100)
	for b := range letters {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE {
			letters[b] = rune(b)
			continue
		}
		letters[b] = next
		next++
	}
	return letters
}()

// letterBytes is the inverse of byteLetters.
var letterBytes = func() map[rune]byte {
	back := make(map[rune]byte, 256)
	for b, r := range byteLetters {
		back[r] = byte(b)
	}
	return back
}()

// appendLetterBytes appends the bytes that a byte-level token spells. If a letter
// of the token spells no byte, it returns dst unchanged and false.
func appendLetterBytes(dst []byte, token string) ([]byte, bool) {
	start := len(dst)
	for _, r := range token {
		b, ok := letterBytes[r]
		if !ok {
			return dst[:start], false
		}
		dst = append(dst, b)
	}
	return dst, true
}

// byteVocab returns a vocabulary with its tokens as bytes. It omits tokens with
// letters that spell no byte: text never gives them.
func byteVocab(vocab map[string]int32) map[string]int32 {
	words := make(map[string]int32, len(vocab))
	var buf [utf8.UTFMax]byte
	for text, id := range vocab {
		if word, ok := appendLetterBytes(buf[:0], text); ok {
			words[string(word)] = id
		}
	}
	return words
}
