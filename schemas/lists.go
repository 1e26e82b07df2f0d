package schemas

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
)

// Columns of lists: list, large_list, fixed_size_list and the two list views,
// of integers or booleans. A list is a range of the elements, which stand in a
// column of their own. Where a range ends is checked when its row is read, so
// that nothing is taken on trust; a row that is null is not looked at.

// readElement reads, of a column of lists, what the lists hold.
func (r *layoutReader) readElement(c *column, t table) {
	kind := r.byteField(t, 2, 0)
	switch kind {
	case typeList, typeLargeList, typeFixedSizeList, typeListView, typeLargeListView:
	default:
		return
	}
	start, n := r.vector(t, 5, 4)
	if n != 1 || c.dict || r.err != nil {
		return
	}
	c.list, c.size = kind, r.intField(r.sub(t, 3), 0, 0)
	c.elem = &column{name: c.name, node: c.node + 1, buffer: c.buffer + arrowTypes[kind].buffers, views: c.views}
	r.readType(c.elem, r.table(r.deref(start)))
	c.desc += " of " + c.elem.desc
}

// isTokenList tells whether the column can hold the tokens of sequences.
func (c *column) isTokenList() bool { return c.elem != nil && c.elem.isInteger() }

// isMaskList tells whether the column can hold attention masks.
func (c *column) isMaskList() bool { return c.isTokenList() || c.elem != nil && c.elem.isBool() }

// isBool tells whether the column holds booleans.
func (c *column) isBool() bool { return !c.dict && c.dt != nil && c.dt.ID() == arrow.BOOL }

// elements are the values that lists hold, of one batch.
type elements struct {
	raw   []byte
	nulls []byte // validity, nil: none is null
	kind  arrow.Type
	n     int
}

// lists is a column of lists in one batch.
type lists struct {
	name   string
	kind   byte
	valid  []byte // validity of the rows, nil: none is null
	starts []byte // offsets, or where each view starts
	sizes  []byte // sizes of the lists, if kind is a list view
	size   int    // size of every list, if kind is typeFixedSizeList
	elements
}

// listsOf opens a column of lists in a batch. n elements are there at least.
func (d *Decoder) listsOf(b *batch, c *column) (l lists, err *FormatError) {
	l = lists{name: c.name, kind: c.list, size: c.size}
	if l.valid, err = d.validity(b, c); err != nil {
		return l, err
	}
	if l.elements, err = d.elementsOf(b, c.elem); err != nil {
		return l, err
	}
	first, width := b.firstBuffer(c), int64(4)
	if c.list == typeLargeList || c.list == typeLargeListView {
		width = 8
	}
	switch c.list {
	case typeFixedSizeList:
		if l.size < 0 || int64(b.rows)*int64(l.size) > int64(l.n) {
			return l, formatErr(ReasonCorrupt, b.bodyAt, "column %s has %d elements, but %d rows of %d", c.name,
				l.n, b.rows, l.size)
		}
		return l, nil
	case typeList, typeLargeList:
		l.starts, err = d.sized(b, c, first+1, int64(b.rows+1)*width)
	default:
		if l.starts, err = d.sized(b, c, first+1, int64(b.rows)*width); err == nil {
			l.sizes, err = d.sized(b, c, first+2, int64(b.rows)*width)
		}
	}
	return l, err
}

// sized returns buffer i of column c, which must hold n bytes for its rows.
func (d *Decoder) sized(b *batch, c *column, i int, n int64) ([]byte, *FormatError) {
	v, err := d.buffer(b, c, i)
	if err == nil && int64(len(v)) < n && b.rows > 0 {
		err = formatErr(ReasonBadLength, b.bodyAt, "column %s has %d bytes of offsets or sizes, but %d rows",
			c.name, len(v), b.rows)
	}
	return v, err
}

// elementsOf opens the column c that lies inside of lists.
func (d *Decoder) elementsOf(b *batch, c *column) (e elements, err *FormatError) {
	n, nulls := b.fieldNode(c.node)
	first := b.firstBuffer(c)
	if e.raw, err = d.buffer(b, c, first+1); err != nil {
		return e, err
	}
	width := int64(c.dt.(arrow.FixedWidthDataType).BitWidth())
	if n > math.MaxInt32 || n*width > int64(len(e.raw))*8 {
		return e, formatErr(ReasonBadLength, b.bodyAt, "the lists of column %s have %d bytes, but %d elements",
			c.name, len(e.raw), n)
	}
	if nulls > 0 {
		if e.nulls, err = d.buffer(b, c, first); err != nil {
			return e, err
		}
		if int64(len(e.nulls)) < (n+7)/8 {
			return e, formatErr(ReasonBadLength, b.bodyAt,
				"the lists of column %s have nulls, but a validity bitmap of %d bytes for %d elements",
				c.name, len(e.nulls), n)
		}
	}
	e.kind, e.n = c.dt.ID(), int(n)
	return e, nil
}

// row returns which elements the list at a row holds; null: none, not even an
// empty one.
func (l *lists) row(i int) (from, to int, null bool, err *FormatError) {
	if !bitAt(l.valid, i) {
		return 0, 0, true, nil
	}
	var start, end int64
	switch l.kind {
	case typeFixedSizeList:
		return i * l.size, (i + 1) * l.size, false, nil
	case typeList:
		start, end = int64At[int32](l.starts, i), int64At[int32](l.starts, i+1)
	case typeLargeList:
		start, end = int64At[int64](l.starts, i), int64At[int64](l.starts, i+1)
	case typeListView:
		start = int64At[int32](l.starts, i)
		end = start + int64At[int32](l.sizes, i)
	default:
		start, end = int64At[int64](l.starts, i), int64At[int64](l.sizes, i)
		if start > math.MaxInt32 || end > math.MaxInt32 { // their sum might not be an int64
			end = math.MaxInt64
		} else {
			end += start
		}
	}
	if start < 0 || start > end || end > int64(l.n) {
		return 0, 0, false, formatErr(ReasonCorrupt, -1, "column %s: the list of row %d is elements %d to %d of %d",
			l.name, i, start, end, l.n)
	}
	return int(start), int(end), false, nil
}

// int64At returns number i of little-endian integers of the width of T.
func int64At[T int32 | int64](b []byte, i int) int64 {
	var v T
	if _, wide := any(v).(int64); wide {
		return int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
}

// bitAt returns bit i of a validity bitmap; true without one.
func bitAt(bits []byte, i int) bool { return bits == nil || bits[i>>3]>>(i&7)&1 != 0 }

// at returns element i; false if it is null, or no int64.
func (e *elements) at(i int) (v int64, ok bool) {
	if !bitAt(e.nulls, i) {
		return 0, false
	}
	switch e.kind {
	case arrow.BOOL:
		return int64(e.raw[i>>3] >> (i & 7) & 1), true
	case arrow.INT8:
		return int64(int8(e.raw[i])), true
	case arrow.UINT8:
		return int64(e.raw[i]), true
	case arrow.INT16:
		return int64(int16(binary.LittleEndian.Uint16(e.raw[2*i:]))), true
	case arrow.UINT16:
		return int64(binary.LittleEndian.Uint16(e.raw[2*i:])), true
	case arrow.INT32:
		return int64(int32(binary.LittleEndian.Uint32(e.raw[4*i:]))), true
	case arrow.UINT32:
		return int64(binary.LittleEndian.Uint32(e.raw[4*i:])), true
	}
	u := binary.LittleEndian.Uint64(e.raw[8*i:])
	return int64(u), e.kind == arrow.INT64 || u <= math.MaxInt64
}

// inPlace tells whether the elements can be read as token ids where they stand.
func (e *elements) inPlace() bool {
	return e.kind == arrow.INT32 && e.nulls == nil && isAligned(e.raw, 4)
}

// noID stands for an element that is null or beyond int32.
const noID = math.MinInt32

// appendIDs appends the elements as token ids.
func (e *elements) appendIDs(dst []int32) []int32 {
	for i := range e.n {
		v, ok := e.at(i)
		if !ok || v < math.MinInt32 || v > math.MaxInt32 {
			v = noID
		}
		dst = append(dst, int32(v))
	}
	return dst
}

// ones returns how many elements from from on are 1, before zeros up to to;
// false if anything else is there.
func (e *elements) ones(from, to int) (n int, ok bool) {
	for i := from; i < to; i++ {
		v, valid := e.at(i)
		if !valid || v != 0 && v != 1 || v == 1 && n < i-from {
			return 0, false
		}
		n += int(v)
	}
	return n, true
}
