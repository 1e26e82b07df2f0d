package parquetfile

import (
	"encoding/binary"
	"math/bits"
)

// bitReader reads bits, the lowest of a byte first. Behind the end it reads zeros.
type bitReader struct {
	src  []byte
	at   int    // bytes taken from src, and zeros behind it
	held uint64 // bits that are not used yet
	n    uint   // number of them
}

// fill holds 56 bits or more.
func (r *bitReader) fill() {
	if r.at+8 <= len(r.src) {
		r.held |= binary.LittleEndian.Uint64(r.src[r.at:]) << r.n
		r.at += int(63-r.n) >> 3
		r.n |= 56
		return
	}
	for r.n <= 55 {
		if r.at < len(r.src) {
			r.held |= uint64(r.src[r.at]) << r.n
		}
		r.at++
		r.n += 8
	}
}

// take reads up to 24 bits.
func (r *bitReader) take(n uint) uint64 {
	if r.n < n {
		r.fill()
	}
	v := r.held & (1<<n - 1)
	r.held >>= n
	r.n -= n
	return v
}

// over reports whether bits behind the end were read.
func (r *bitReader) over() bool { return r.at-int(r.n>>3) > len(r.src) }

// align drops the rest of a byte; false: it is not zero.
func (r *bitReader) align() bool { return r.take(r.n&7) == 0 }

// ends reports whether the rest of this byte is zero and no byte follows.
func (r *bitReader) ends() bool { return r.align() && r.at-int(r.n>>3) == len(r.src) }

// bytes returns the next n bytes; nil: there are fewer, or bits before them are not zero.
func (r *bitReader) bytes(n int) []byte {
	if !r.align() {
		return nil
	}
	from := r.at - int(r.n>>3)
	if from > len(r.src) || n > len(r.src)-from {
		return nil
	}
	r.at, r.held, r.n = from+n, 0, 0
	return r.src[from:r.at]
}

// code is a prefix code: a table by the next rootBits bits, with further tables for longer
// codes. An entry has the number of bits in its lowest byte, and the symbol above. An entry
// of a further table has in its lowest byte 64 plus the bits of that table, and its place.
type code []uint32

const (
	rootBits   = 9
	link       = 64
	longestBit = 15
)

// symbol reads a symbol.
func (r *bitReader) symbol(c code) int {
	if r.n < longestBit {
		r.fill()
	}
	e := c[r.held&(1<<rootBits-1)]
	if e&link != 0 {
		e = c[int(e>>8)+int(r.held>>rootBits&(1<<(e&63)-1))]
	}
	r.held >>= e & 63
	r.n -= uint(e & 63)
	return int(e >> 8)
}

// symbols reads symbols of one byte each.
func (r *bitReader) symbols(c code, dst []byte) {
	root, in := c[:1<<rootBits], *r
	for i := range dst {
		if in.n < longestBit {
			in.fill()
		}
		e := root[in.held&(1<<rootBits-1)]
		if e&link != 0 {
			e = c[int(e>>8)+int(in.held>>rootBits&(1<<(e&63)-1))]
		}
		in.held >>= e & 63
		in.n -= uint(e & 63)
		dst[i] = byte(e >> 8)
	}
	*r = in
}

// build sets the code of lengths of at most 15 bits, which are complete, or of one symbol
// without bits.
func (c *code) build(lengths []byte) {
	t := (*c)[:0]
	var counts [longestBit + 2]int
	for _, n := range lengths {
		counts[n]++
	}
	var first [longestBit + 2]uint
	counts[0] = 0
	for n := 1; n <= longestBit; n++ {
		first[n+1] = (first[n] + uint(counts[n])) << 1
	}
	t = append(t, make([]uint32, 1<<rootBits)...)
	next := first
	for _, n := range lengths { // the sizes of further tables
		if n == 0 {
			continue
		}
		at := bits.Reverse16(uint16(next[n]<<(16-n))) & (1<<rootBits - 1)
		next[n]++
		if n > rootBits {
			t[at] = max(t[at], link|uint32(n-rootBits))
		}
	}
	for at := range 1 << rootBits {
		if t[at] != 0 {
			size := 1 << (t[at] & 63)
			t[at] |= uint32(len(t)) << 8
			t = append(t, make([]uint32, size)...)
		}
	}
	next = first
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		reversed := int(bits.Reverse16(uint16(next[n] << (16 - n))))
		next[n]++
		entry := uint32(symbol)<<8 | uint32(n)
		if n <= rootBits {
			for at := reversed; at < 1<<rootBits; at += 1 << n {
				t[at] = entry
			}
			continue
		}
		root := t[reversed&(1<<rootBits-1)]
		begin, size := int(root>>8), 1<<(root&63)
		for at := reversed >> rootBits; at < size; at += 1 << (n - rootBits) {
			t[begin+at] = entry
		}
	}
	*c = t
}

// only sets the code of one symbol without bits.
func (c *code) only(symbol int) {
	t := (*c)[:0]
	for range 1 << rootBits {
		t = append(t, uint32(symbol)<<8)
	}
	*c = t
}

// readCode reads a prefix code of an alphabet.
func (u *unbrotli) readCode(c *code, symbols int) bool {
	u.lengths = resize(u.lengths, symbols)
	clear(u.lengths)
	skip := int(u.in.take(2))
	if skip == 1 {
		return u.readSimple(c, symbols)
	}
	var inner [18]byte
	space, used, only := 32, 0, 0
	for _, s := range lengthOrder[skip:] {
		if u.in.n < 4 {
			u.in.fill()
		}
		peek := u.in.held & 15
		n := lengthValues[peek]
		u.in.take(lengthBits[peek])
		if n > 0 {
			inner[s] = n
			space -= 32 >> n
			used, only = used+1, int(s)
		}
		if space <= 0 {
			break
		}
	}
	var of code
	switch {
	case used == 1:
		of.only(only)
	case space != 0:
		return false
	default:
		of.build(inner[:])
	}
	if !u.readLengths(of) || u.in.over() {
		return false
	}
	c.build(u.lengths)
	return true
}

// readLengths reads the lengths of a code that is complete.
func (u *unbrotli) readLengths(of code) bool {
	space, before, repeat, repeated := 1<<longestBit, byte(8), 0, byte(0)
	for i := 0; i < len(u.lengths) && space > 0; {
		s := u.in.symbol(of)
		if s < 16 {
			u.lengths[i] = byte(s)
			if repeat = 0; s > 0 {
				before = byte(s)
				space -= 1 << longestBit >> s
			}
			i++
			continue
		}
		extra, length := uint(s-14), byte(0)
		if s == 16 {
			length = before
		}
		if length != repeated {
			repeat, repeated = 0, length
		}
		old := repeat
		if repeat > 0 {
			repeat = (repeat - 2) << extra
		}
		repeat += int(u.in.take(extra)) + 3
		n := repeat - old
		if n > len(u.lengths)-i {
			return false
		}
		for k := range n {
			u.lengths[i+k] = length
		}
		i += n
		if length > 0 {
			space -= n << (longestBit - length)
		}
	}
	return space == 0
}

// readSimple reads a code of at most four symbols.
func (u *unbrotli) readSimple(c *code, symbols int) bool {
	n := int(u.in.take(2)) + 1
	width := uint(bits.Len(uint(symbols - 1)))
	var list [4]int
	for i := range n {
		list[i] = int(u.in.take(width))
		if list[i] >= symbols {
			return false
		}
		for _, other := range list[:i] {
			if other == list[i] {
				return false
			}
		}
	}
	if n == 1 {
		c.only(list[0])
		return !u.in.over()
	}
	lengths := [...]byte{1, 1, 0, 0}
	switch {
	case n == 3:
		lengths = [...]byte{1, 2, 2, 0}
	case n == 4 && u.in.take(1) == 1:
		lengths = [...]byte{1, 2, 3, 3}
	case n == 4:
		lengths = [...]byte{2, 2, 2, 2}
	}
	for i := range n {
		u.lengths[list[i]] = lengths[i]
	}
	c.build(u.lengths)
	return !u.in.over()
}

// Lengths of codes, whose own lengths come in this order, in a fixed code.
var (
	lengthOrder  = [...]byte{1, 2, 3, 4, 0, 5, 17, 6, 16, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	lengthBits   = [...]uint{2, 2, 2, 3, 2, 2, 2, 4, 2, 2, 2, 3, 2, 2, 2, 4}
	lengthValues = [...]byte{0, 4, 3, 2, 0, 4, 3, 1, 0, 4, 3, 2, 0, 4, 3, 5}
)

// lengthCode is the least length of a code, and how many bits tell what is added.
type lengthCode struct {
	least int32
	extra uint8
}

// length reads a length.
func (r *bitReader) length(c lengthCode) int { return int(c.least) + int(r.take(uint(c.extra))) }

// codesOf returns codes of which each begins where the one before it ends.
func codesOf(least int32, extra ...uint8) []lengthCode {
	codes := make([]lengthCode, len(extra))
	for i, n := range extra {
		codes[i] = lengthCode{least, n}
		least += 1 << n
	}
	return codes
}

var (
	countCodes  = codesOf(1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 7, 8, 9, 10, 11, 12, 13, 24)
	insertCodes = codesOf(0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 12, 14, 24)
	copyCodes   = codesOf(2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 24)
)

// cells are the first codes of 64 commands each. The first two have the last distance.
var cells = [...]struct{ insert, copy uint8 }{{0, 0}, {0, 8}, {0, 0}, {0, 8}, {8, 0}, {8, 8}, {0, 16}, {16, 0},
	{8, 16}, {16, 8}, {16, 16}}
