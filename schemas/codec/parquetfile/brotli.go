package parquetfile

import (
	"encoding/binary"
	"slices"
)

// unbrotli unpacks brotli (RFC 7932) into one piece of memory, which needs no window: long
// runs of equal numbers, of which range images are full, take half the time of the library's
// reader. It leaves words of the static dictionary to the library, and every error, too. The
// zero value is ready to use. It is not for concurrent use.
type unbrotli struct {
	in     bitReader
	dst    []byte
	begin  int // position of the stream's first byte in dst
	end    int // position behind its last byte
	window int // the greatest distance

	blocks    [3]blocks // of literals, commands and distances
	modes     []byte    // way to the context of literals, by block type
	literals  []byte    // trees of literals, by block type and context
	distances []byte    // trees of distances, by block type and context
	trees     [3]trees
	last      [4]int // distances, the newest at position next-1
	next      int
	postfix   uint
	direct    int
	lengths   []byte // scratch of readCode
}

// Kinds of symbols.
const (
	ofLiterals = iota
	ofCommands
	ofDistances
)

// blocks are the types of blocks of one kind of symbols.
type blocks struct {
	types         int
	now, before   int // types of this block and of the one before it
	left          int // symbols that follow in this block
	kinds, counts code
}

// trees are the codes of one kind of symbols. They keep the memory of former ones.
type trees []code

func (t *trees) resize(n int) {
	*t = slices.Grow((*t)[:0], n)[:n]
}

// append unpacks src and appends exactly size bytes to dst. It reserves at most twice the
// bytes that were unpacked. false: the library decides, dst is as it was.
func (u *unbrotli) append(dst, src []byte, size int) ([]byte, bool) {
	u.in, u.dst, u.begin, u.end = bitReader{src: src}, dst, len(dst), len(dst)+size
	u.last, u.next = [4]int{16, 15, 11, 4}, 0
	ok := u.stream() && len(u.dst) == u.end
	unpacked := u.dst
	u.dst, u.in.src = nil, nil
	if !ok {
		return dst, false
	}
	return unpacked, true
}

// stream reads all meta-blocks.
func (u *unbrotli) stream() bool {
	bits := uint(16)
	if u.in.take(1) == 1 {
		if n := u.in.take(3); n > 0 {
			bits = 17 + uint(n)
		} else if n := u.in.take(3); n > 1 {
			bits = 8 + uint(n)
		} else if bits = 17; n == 1 {
			return false
		}
	}
	u.window = 1<<bits - 16
	for {
		last := u.in.take(1) == 1
		if last && u.in.take(1) == 1 {
			return u.in.ends()
		}
		nibbles := uint(4 + u.in.take(2))
		if nibbles == 7 {
			return false // metadata
		}
		n := int(u.in.take(4*nibbles)) + 1
		if n > u.end-len(u.dst) || nibbles > 4 && (n-1)>>(4*nibbles-4) == 0 {
			return false
		}
		switch {
		case !last && u.in.take(1) == 1:
			plain := u.in.bytes(n)
			if plain == nil {
				return false
			}
			u.dst = append(u.dst, plain...)
		case !u.header() || !u.commands(n):
			return false
		}
		if last {
			return u.in.ends()
		}
	}
}

// header reads the codes of a meta-block.
func (u *unbrotli) header() bool {
	for kind := range u.blocks {
		if !u.readBlocks(&u.blocks[kind]) {
			return false
		}
	}
	u.postfix = uint(u.in.take(2))
	u.direct = int(u.in.take(4)) << u.postfix
	u.modes = u.modes[:0]
	for range u.blocks[ofLiterals].types {
		u.modes = append(u.modes, byte(u.in.take(2)))
	}
	var n [3]int
	n[ofCommands] = u.blocks[ofCommands].types
	var ok bool
	if u.literals, n[ofLiterals], ok = u.contexts(u.literals, 64*u.blocks[ofLiterals].types); !ok {
		return false
	}
	if u.distances, n[ofDistances], ok = u.contexts(u.distances, 4*u.blocks[ofDistances].types); !ok {
		return false
	}
	for kind, symbols := range [...]int{256, 704, 16 + u.direct + 48<<u.postfix} {
		u.trees[kind].resize(n[kind])
		for i := range u.trees[kind] {
			if !u.readCode(&u.trees[kind][i], symbols) {
				return false
			}
		}
	}
	return true
}

// amount reads a number from 1 to 256.
func (u *unbrotli) amount() int {
	if u.in.take(1) == 0 {
		return 1
	}
	n := uint(u.in.take(3))
	return 1<<n + int(u.in.take(n)) + 1
}

func (u *unbrotli) readBlocks(b *blocks) bool {
	b.types, b.now, b.before, b.left = u.amount(), 0, 1, 1<<24
	if b.types < 2 {
		return true
	}
	if b.types > 256 || !u.readCode(&b.kinds, b.types+2) || !u.readCode(&b.counts, len(countCodes)) {
		return false
	}
	b.left = u.in.length(countCodes[u.in.symbol(b.counts)])
	return true
}

// change begins the next block.
func (u *unbrotli) change(b *blocks) bool {
	if b.types < 2 {
		return false
	}
	kind := u.in.symbol(b.kinds) - 2
	switch kind {
	case -2:
		kind = b.before
	case -1:
		if kind = b.now + 1; kind == b.types {
			kind = 0
		}
	}
	b.before, b.now = b.now, kind
	b.left = u.in.length(countCodes[u.in.symbol(b.counts)])
	return true
}

// contexts reads a map of n contexts to trees, and returns the number of trees.
func (u *unbrotli) contexts(dst []byte, n int) ([]byte, int, bool) {
	dst = resize(dst, n)
	clear(dst)
	count := u.amount()
	if count < 2 {
		return dst, 1, true
	}
	longest := 0
	if u.in.take(1) == 1 {
		longest = int(u.in.take(4)) + 1
	}
	var c code
	if count > 256 || !u.readCode(&c, count+longest) {
		return dst, 0, false
	}
	for i := 0; i < n; i++ {
		switch s := u.in.symbol(c); {
		case s > longest:
			dst[i] = byte(s - longest)
		case s > 0:
			i += 1<<s + int(u.in.take(uint(s))) - 1 // zeros
			if i >= n {
				return dst, 0, false
			}
		}
	}
	if u.in.take(1) == 1 {
		var order [256]byte
		for i := range order {
			order[i] = byte(i)
		}
		for i, at := range dst {
			v := order[at]
			copy(order[1:int(at)+1], order[:at])
			order[0], dst[i] = v, v
		}
	}
	return dst, count, !u.in.over()
}

// commands reads n bytes: literals, then a copy, again and again.
func (u *unbrotli) commands(n int) bool {
	until := len(u.dst) + n
	for len(u.dst) < until {
		b := &u.blocks[ofCommands]
		if b.left == 0 && !u.change(b) || u.in.over() {
			return false
		}
		b.left--
		c := u.in.symbol(u.trees[ofCommands][b.now])
		cell := &cells[c>>6]
		insert := u.in.length(insertCodes[int(cell.insert)+c>>3&7])
		length := u.in.length(copyCodes[int(cell.copy)+c&7])
		if insert > until-len(u.dst) || insert > 0 && !u.insert(insert) {
			return false
		}
		if len(u.dst) == until {
			return true
		}
		distance, ok := u.last[(u.next-1)&3], true
		if c >= 128 {
			distance, ok = u.distance(length)
		}
		if !ok || length > until-len(u.dst) || distance > min(u.window, len(u.dst)-u.begin) {
			return false
		}
		u.copy(distance, length)
	}
	return true
}

// grow makes room for n more bytes, at most twice of what was unpacked and no more than all.
func (u *unbrotli) grow(n int) {
	if cap(u.dst)-len(u.dst) < n {
		u.dst = slices.Grow(u.dst, min(u.end-len(u.dst), max(n, 4<<10, len(u.dst)-u.begin)))
	}
}

// insert reads n literals.
func (u *unbrotli) insert(n int) bool {
	u.grow(n)
	b := &u.blocks[ofLiterals]
	for n > 0 {
		if b.left == 0 && !u.change(b) {
			return false
		}
		k := min(n, b.left)
		from := len(u.dst)
		u.dst = u.dst[:from+k]
		b.left -= k
		n -= k
		trees := u.literals[64*b.now:][:64]
		if len(u.trees[ofLiterals]) == 1 {
			u.in.symbols(u.trees[ofLiterals][0], u.dst[from:])
		} else {
			u.inContext(u.dst, from, trees, u.modes[b.now])
		}
		if u.in.over() {
			return false
		}
	}
	return true
}

// inContext reads literals from position from of dst on, whose codes depend on the two bytes
// before.
func (u *unbrotli) inContext(dst []byte, from int, trees []byte, mode byte) {
	var p1, p2 byte
	if from > u.begin {
		p1 = dst[from-1]
	}
	if from > u.begin+1 {
		p2 = dst[from-2]
	}
	first, second, codes, in := &contexts[mode][0], &contexts[mode][1], u.trees[ofLiterals], u.in
	for i := from; i < len(dst); i++ {
		c := codes[trees[first[p1]|second[p2]]]
		p2, p1 = p1, byte(in.symbol(c))
		dst[i] = p1
	}
	u.in = in
}

// contexts are the parts of a literal's context that the last byte and the one before it
// give, by the mode of the block.
var contexts = func() (c [4][2][256]byte) {
	// Characters of text: A is 0, B is 4 and so on.
	const characters = "AAAAAAAAABBAABAAAAAAAAAAAAAAAAAACDEDDFDEGHDDIDJDLLLLLLLLLLIIGKHD" +
		"DMNNNMNNNMNNNNNMNNNNNMNNNNNGDHDDDOPPPOPPPOPPPPPOPPPPPOPPPPPGDHDA"
	for i := range 256 {
		c[0][0][i], c[1][0][i] = byte(i&63), byte(i>>2)
		switch {
		case i < 128:
			c[2][0][i] = 4 * (characters[i] - 'A')
		default:
			c[2][0][i] = byte(i>>6&1<<1 | i&1)
		}
		switch letter := i | 32; {
		case letter >= 'a' && letter <= 'z' && i >= 'a':
			c[2][1][i] = 3
		case letter >= 'a' && letter <= 'z' && i < 128, i >= '0' && i <= '9', i >= 192:
			c[2][1][i] = 2
		case i > ' ' && i < 127:
			c[2][1][i] = 1
		}
		for _, from := range [...]int{1, 16, 64, 128, 192, 240, 255} { // size and sign of a number
			if i >= from {
				c[3][0][i] += 8
				c[3][1][i]++
			}
		}
	}
	return c
}()

// distance reads the distance of a copy of a length.
func (u *unbrotli) distance(length int) (int, bool) {
	b := &u.blocks[ofDistances]
	if b.left == 0 && !u.change(b) {
		return 0, false
	}
	b.left--
	s := u.in.symbol(u.trees[ofDistances][u.distances[4*b.now+min(max(length, 2), 5)-2]])
	d := 0
	switch {
	case s == 0:
		return u.last[(u.next-1)&3], true
	case s < 4:
		d = u.last[(u.next-1-s)&3]
	case s < 10:
		d = u.last[(u.next-1)&3] + [...]int{-1, 1, -2, 2, -3, 3}[s-4]
	case s < 16:
		d = u.last[(u.next-2)&3] + [...]int{-1, 1, -2, 2, -3, 3}[s-10]
	case s < 16+u.direct:
		d = s - 15
	default:
		s -= 16 + u.direct
		bits := 1 + uint(s)>>(u.postfix+1)
		high := (2+s>>u.postfix&1)<<bits - 4
		d = (high+int(u.in.take(bits)))<<u.postfix + s&(1<<u.postfix-1) + u.direct + 1
	}
	if d > u.window || d > len(u.dst)-u.begin {
		return 0, false // a word of the dictionary
	}
	u.last[u.next&3] = d
	u.next++
	return d, d > 0
}

// copy appends n bytes that begin distance bytes before the end.
func (u *unbrotli) copy(distance, n int) {
	u.grow(n)
	at := len(u.dst)
	u.dst = u.dst[:at+n]
	if room := u.dst[:cap(u.dst)]; n <= 16 && distance >= 16 && len(room)-at >= 16 {
		from := room[at-distance:][:16]
		low, high := binary.LittleEndian.Uint64(from), binary.LittleEndian.Uint64(from[8:])
		binary.LittleEndian.PutUint64(room[at:], low)
		binary.LittleEndian.PutUint64(room[at+8:], high)
		return
	}
	for from := at - distance; at < len(u.dst); { // the part to copy doubles
		at += copy(u.dst[at:], u.dst[from:at])
	}
}
