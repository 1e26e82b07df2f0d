package token

import "unicode/utf8"

// A bpe merges the symbols of a word, pair by pair: the pair of lowest rank first,
// and the leftmost of pairs of equal rank.
type bpe struct {
	bytes   bool // words are cut into bytes first; if false, into code points
	words   *wordTable
	symbols [256]int32 // symbol of each byte, or -1
	merges  mergeTable

	unknown      int32 // unknown symbol; -1: code points without a symbol are dropped
	fuse         bool  // adjacent unknown symbols become one
	fallback     bool  // a code point without a symbol becomes the tokens of its bytes
	fallbacks    [256]int32
	ignoreMerges bool   // a word that is a token becomes that token without merges
	whole        []bool // [id] true if merging the token's own bytes gives the token
}

func (m *bpe) append(dst []int32, word []byte, w *wordScratch) []int32 {
	if m.ignoreMerges || m.whole != nil {
		if id := m.words.find(word); id >= 0 && (m.ignoreMerges || m.whole[id]) {
			return append(dst, id)
		}
	}
	start := len(dst)
	if m.bytes {
		dst = m.appendBytes(dst, word)
	} else {
		dst = m.appendRunes(dst, word)
	}
	n := m.merge(dst[start:], w)
	return dst[:start+n]
}

// appendBytes appends the symbols of bytes. A byte without a symbol becomes the
// unknown symbol; m.fuse joins adjacent ones.
func (m *bpe) appendBytes(dst []int32, word []byte) []int32 {
	pending := false
	for _, b := range word {
		id := m.symbols[b]
		if id < 0 {
			if m.unknown >= 0 {
				if pending && !m.fuse {
					dst = append(dst, m.unknown)
				}
				pending = true
			}
			continue
		}
		if pending {
			dst = append(dst, m.unknown)
			pending = false
		}
		dst = append(dst, id)
	}
	if pending {
		dst = append(dst, m.unknown)
	}
	return dst
}

// appendRunes appends the symbols of code points. It appends an unknown symbol
// only when the next known symbol or the end of the word follows, so that fallback
// bytes in between come before it, as in the reference.
func (m *bpe) appendRunes(dst []int32, word []byte) []int32 {
	pending := false
	for len(word) > 0 {
		_, n := utf8.DecodeRune(word)
		r := word[:n]
		word = word[n:]
		if id := m.words.find(r); id >= 0 {
			if pending {
				dst = append(dst, m.unknown)
				pending = false
			}
			dst = append(dst, id)
			continue
		}
		if m.hasFallback(r) {
			for _, b := range r {
				dst = append(dst, m.fallbacks[b])
			}
			continue
		}
		if m.unknown >= 0 {
			if pending && !m.fuse {
				dst = append(dst, m.unknown)
			}
			pending = true
		}
	}
	if pending {
		dst = append(dst, m.unknown)
	}
	return dst
}

func (m *bpe) hasFallback(r []byte) bool {
	for _, b := range r {
		if !m.fallback || m.fallbacks[b] < 0 {
			return false
		}
	}
	return true
}

// shortWord is the number of symbols up to which a scan of all pairs for the next
// merge is faster than a heap.
const shortWord = 48

// merge merges symbols in place and returns the number of symbols that are left.
func (m *bpe) merge(symbols []int32, w *wordScratch) int {
	if len(symbols) < 2 || m.merges.count == 0 {
		return len(symbols)
	}
	if len(symbols) <= shortWord {
		return m.mergeShort(symbols, w)
	}
	return m.mergeLong(symbols, w)
}

// mergeShort merges in quadratic time: every round finds the next pair, and closes
// the gap that its merge leaves.
func (m *bpe) mergeShort(symbols []int32, w *wordScratch) int {
	ranks := w.ranks[:0] // ranks[i] is the rank of the pair that begins at i
	for i := range len(symbols) - 1 {
		ranks = append(ranks, m.merges.find(symbols[i], symbols[i+1]).rank)
	}
	w.ranks = ranks
	n := len(symbols)
	for n > 1 {
		best, at := uint32(noRank), 0
		for i, rank := range ranks {
			if rank < best {
				best, at = rank, i
			}
		}
		if best == noRank {
			break
		}
		symbols[at] = m.merges.find(symbols[at], symbols[at+1]).id
		copy(symbols[at+1:], symbols[at+2:n])
		copy(ranks[at:], ranks[at+1:])
		ranks = ranks[:len(ranks)-1]
		n--
		if at > 0 {
			ranks[at-1] = m.merges.find(symbols[at-1], symbols[at]).rank
		}
		if at+1 < n {
			ranks[at] = m.merges.find(symbols[at], symbols[at+1]).rank
		}
	}
	return n
}

// mergeLong keeps the symbols in a list and the pairs in a heap. It takes
// O(n log n) for a word of n symbols.
func (m *bpe) mergeLong(symbols []int32, w *wordScratch) int {
	n := len(symbols)
	w.next, w.prev, w.heap = w.next[:0], w.prev[:0], w.heap[:0]
	for i := range n {
		w.prev = append(w.prev, int32(i-1))
		w.next = append(w.next, int32(i+1))
	}
	for i := range n - 1 {
		m.push(symbols, i, i+1, w)
	}
	for len(w.heap) > 0 {
		top := pop(&w.heap)
		at := int(uint32(top))
		if symbols[at] < 0 || int(w.next[at]) == n {
			continue
		}
		right := w.next[at]
		found := m.merges.find(symbols[at], symbols[right])
		if found.rank != uint32(top>>32) { // an earlier merge has changed the pair
			continue
		}
		symbols[at], symbols[right] = found.id, -1
		after := w.next[right]
		w.next[at] = after
		if int(after) < n {
			w.prev[after] = int32(at)
			m.push(symbols, at, int(after), w)
		}
		if before := w.prev[at]; before >= 0 {
			m.push(symbols, int(before), at, w)
		}
	}
	left := 0
	for i := 0; i < n; i = int(w.next[i]) {
		symbols[left] = symbols[i]
		left++
	}
	return left
}

func (m *bpe) push(symbols []int32, at, right int, w *wordScratch) {
	if rank := m.merges.find(symbols[at], symbols[right]).rank; rank != noRank {
		push(&w.heap, uint64(rank)<<32|uint64(uint32(at)))
	}
}

// push and pop keep the least number at the top.
func push(heap *[]uint64, x uint64) {
	h := append(*heap, x)
	i := len(h) - 1
	for i > 0 && h[(i-1)/2] > x {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = x
	*heap = h
}

func pop(heap *[]uint64) uint64 {
	h := *heap
	top, x := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*heap = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[child] >= x {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = x
	return top
}
