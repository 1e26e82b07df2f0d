package token

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A wordTable finds the id of a word by open addressing. A slot holds the bytes of
// a word of up to eight bytes, as most words are, or the hash of a longer word.
type wordTable struct {
	slots []wordSlot // a power of two of slots, at most half of them in use
	shift uint       // 64 - log₂(len(slots))
	words [][]byte   // [id] words that begin a word of the text
	inner [][]byte   // [id] words that continue a word of the text (WordPiece)
	long  int        // bytes of the longest word
}

type wordSlot struct {
	key  uint64
	size uint32 // length in bytes, with the flag continues; 0 if the slot is free
	id   int32
}

// continues is a flag in the length of a word that matches only within a word of
// the text.
const continues = 1 << 31

func newWordTable(words, inner map[string]int32) *wordTable {
	t := &wordTable{shift: 64 - 4}
	for n := len(words) + len(inner); 1<<(64-t.shift) < 2*n; {
		t.shift--
	}
	t.slots = make([]wordSlot, 1<<(64-t.shift))
	t.words = t.insert(words, 0)
	t.inner = t.insert(inner, continues)
	return t
}

func (t *wordTable) insert(words map[string]int32, flag uint32) [][]byte {
	size := int32(0)
	for _, id := range words {
		size = max(size, id+1)
	}
	byID := make([][]byte, size)
	for word, id := range words {
		if word == "" { // an empty word never matches
			continue
		}
		byID[id] = []byte(word)
		t.long = max(t.long, len(word))
		key := wordKey(byID[id])
		at := t.slot(key)
		for t.slots[at].size != 0 {
			at = (at + 1) & (len(t.slots) - 1)
		}
		t.slots[at] = wordSlot{key, uint32(len(word)) | flag, id}
	}
	return byID
}

func (t *wordTable) slot(key uint64) int { return int(key * 0x9E3779B97F4A7C15 >> t.shift) }

// find returns the id of a word, or -1. The word must not be empty.
func (t *wordTable) find(word []byte) int32 { return t.findKey(wordKey(word), word, 0) }

func (t *wordTable) findKey(key uint64, word []byte, flag uint32) int32 {
	size := uint32(len(word)) | flag
	for at := t.slot(key); ; at = (at + 1) & (len(t.slots) - 1) {
		s := &t.slots[at]
		if s.size == 0 {
			return -1
		}
		if s.key == key && s.size == size && (len(word) <= 8 || t.same(s.id, flag, word)) {
			return s.id
		}
	}
}

func (t *wordTable) same(id int32, flag uint32, word []byte) bool {
	if flag != 0 {
		return string(t.inner[id]) == string(word)
	}
	return string(t.words[id]) == string(word)
}

// longest returns the id and the length of the longest word that text begins
// with, or -1 and 0. Each prefix of up to eight bytes costs a mask and a probe.
func (t *wordTable) longest(text []byte, flag uint32) (int32, int) {
	n := min(len(text), t.long)
	for ; n > 8; n-- {
		if id := t.findKey(wordKey(text[:n]), text[:n], flag); id >= 0 {
			return id, n
		}
	}
	if n == 0 {
		return -1, 0
	}
	key := wordKey(text[:n])
	for {
		if id := t.findKey(key, text[:n], flag); id >= 0 {
			return id, n
		}
		if n--; n == 0 {
			return -1, 0
		}
		key &= 1<<(8*n) - 1
	}
}

// wordKey returns the bytes of a word of up to eight bytes as a number, or the
// hash of a longer word.
func wordKey(w []byte) uint64 {
	switch n := len(w); {
	case n > 8:
		return wordHash(w)
	case n == 8:
		return binary.LittleEndian.Uint64(w)
	case n >= 4:
		return uint64(binary.LittleEndian.Uint32(w)) | uint64(binary.LittleEndian.Uint32(w[n-4:]))<<(8*(n-4))
	case n >= 2:
		return uint64(binary.LittleEndian.Uint16(w)) | uint64(w[n-1])<<(8*(n-1))
	default:
		return uint64(w[0])
	}
}

// wordHash hashes a word of more than eight bytes, eight bytes at a time; the last
// eight bytes may overlap the eight bytes before.
func wordHash(w []byte) uint64 {
	h := uint64(len(w))
	last := binary.LittleEndian.Uint64(w[len(w)-8:])
	for ; len(w) > 8; w = w[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(w))
	}
	return mix(h ^ last)
}

func mix(x uint64) uint64 {
	high, low := bits.Mul64(x, 0x9FB21C651E98DF25)
	return high ^ low
}

// A mergeTable finds the merge of a pair of symbols by open addressing.
type mergeTable struct {
	slots []mergeSlot // a power of two of slots, at most half of them in use
	shift uint
	count int
}

type mergeSlot struct {
	pair uint64
	merge
}

// A merge replaces a pair of symbols by one symbol.
type merge struct {
	rank uint32 // merges of lower rank come first
	id   int32
}

const (
	noRank = math.MaxUint32
	noPair = math.MaxUint64 // no pair has this key, because ids are not negative
)

func pair(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }

func newMergeTable(size int) mergeTable {
	t := mergeTable{shift: 64 - 4, count: size}
	for 1<<(64-t.shift) < 2*size {
		t.shift--
	}
	t.slots = make([]mergeSlot, 1<<(64-t.shift))
	for i := range t.slots {
		t.slots[i] = mergeSlot{noPair, merge{rank: noRank}}
	}
	return t
}

// set sets the merge of a pair; a later call for the same pair replaces it.
func (t *mergeTable) set(a, b int32, m merge) {
	at := t.slot(pair(a, b))
	for t.slots[at].pair != noPair && t.slots[at].pair != pair(a, b) {
		at = (at + 1) & (len(t.slots) - 1)
	}
	t.slots[at] = mergeSlot{pair(a, b), m}
}

func (t *mergeTable) slot(p uint64) int { return int(p * 0x9E3779B97F4A7C15 >> t.shift) }

// find returns the merge of a pair; its rank is noRank if the pair has none.
func (t *mergeTable) find(a, b int32) merge {
	p := pair(a, b)
	for at := t.slot(p); ; at = (at + 1) & (len(t.slots) - 1) {
		if s := &t.slots[at]; s.pair == p || s.pair == noPair {
			return s.merge
		}
	}
}
