package tables

import (
	"encoding/binary"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/rle"
)

// levels are the definition levels of the rows of a page: 1 for a value, 0 for null. While
// all rows of the page are alike, only their number is kept: a column that a whole frame
// lacks costs nothing per point. The levels of a required column are not counted.
type levels struct {
	optional bool
	rows     int
	nulls    int
	each     []byte // one a row; empty while all rows are alike
}

// Rows of a page. A page of many rows that are alike is small, but its number of rows has
// 31 bits in the file.
const (
	mostAlike = 1 << 24
	mostMixed = pageBytes // one byte each
)

// accepts tells whether n rows that are alike may join the page. If they are not as those
// before them, they may not if either are many: a page of their own is smaller and made
// faster. n is at most mostAlike.
func (l *levels) accepts(present bool, n int) bool {
	switch {
	case !l.optional || l.rows == 0:
		return true
	case len(l.each) > 0:
		return n < longRun
	case (l.nulls == 0) == present:
		return l.rows+n <= mostAlike
	}
	return n < longRun && l.rows < longRun
}

// add appends n rows that are alike, at least one, which accepts has accepted.
func (l *levels) add(present bool, n int) {
	if !l.optional {
		return
	}
	if l.rows > 0 && (len(l.each) > 0 || (l.nulls == 0) != present) {
		l.spell()
		l.each = slices.Grow(l.each, n)
		for range n {
			l.each = append(l.each, level(present))
		}
	}
	l.rows += n
	if !present {
		l.nulls += n
	}
}

// spellOut prepares for calls of addOne. It returns false if the caller must flush the page
// first.
func (l *levels) spellOut() bool {
	if len(l.each) == 0 && l.rows >= longRun {
		return false
	}
	l.spell()
	return true
}

// addOne appends a row, after spellOut.
func (l *levels) addOne(present bool) {
	l.rows++
	l.each = append(l.each, level(present))
	if !present {
		l.nulls++
	}
}

// spell makes each of rows that are alike.
func (l *levels) spell() {
	if len(l.each) == 0 {
		for range l.rows {
			l.each = append(l.each, level(l.nulls == 0))
		}
	}
}

func (l *levels) full() bool { return len(l.each) >= mostMixed }

func (l *levels) reset() { l.rows, l.nulls, l.each = 0, 0, l.each[:0] }

func level(present bool) byte {
	if present {
		return 1
	}
	return 0
}

// append appends the levels as data pages of version 1 have them: the number of bytes that
// follow, then runs of equal levels and of single bits.
func (l *levels) append(dst []byte) ([]byte, error) {
	begin := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if len(l.each) == 0 || l.nulls == 0 || l.nulls == l.rows {
		dst = binary.AppendUvarint(dst, uint64(l.rows)<<1)
		dst = append(dst, level(l.nulls == 0))
	} else {
		bits, err := (&rle.Encoding{BitWidth: 1}).EncodeLevels(nil, l.each)
		if err != nil {
			return dst, err
		}
		dst = append(dst, bits...)
	}
	binary.LittleEndian.PutUint32(dst[begin:], uint32(len(dst)-begin-4))
	return dst, nil
}
