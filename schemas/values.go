package schemas

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"entropipe/algos/geom"
)

// buffer returns buffer i of the batch, decompressed: one of column c. It is a
// view of the value, or valid until the next message.
func (d *Decoder) buffer(b *batch, c *column, i int) ([]byte, *FormatError) {
	off, n := b.bufferAt(i)
	raw := b.body[off : off+n : off+n]
	if b.codec == codecNone || n == 0 {
		return raw, nil
	}
	size := int64(binary.LittleEndian.Uint64(raw))
	if size == -1 {
		return raw[8:], nil
	}
	out, err := d.inflater.inflate(b.codec, raw[8:], int(size))
	if err != nil {
		return nil, formatErr(ReasonCorrupt, b.bodyAt+int(off), "column %s, buffer %d: %v", c.name, i, err)
	}
	return out, nil
}

// fixed returns the values of a column of fixed width, one after the other,
// and nothing behind the last.
func (d *Decoder) fixed(b *batch, c *column, dt arrow.DataType) ([]byte, *FormatError) {
	v, err := d.buffer(b, c, b.firstBuffer(c)+1)
	if err != nil {
		return nil, err
	}
	width := dt.(arrow.FixedWidthDataType).BitWidth() / 8
	if len(v) < b.rows*width {
		return nil, formatErr(ReasonBadLength, b.bodyAt, "column %s has %d bytes, but %d rows of %d bytes", c.name,
			len(v), b.rows, width)
	}
	return v[:b.rows*width], nil
}

// validity returns the bitmap of a column, nil if no value is null. A bitmap
// beside a null count of zero is not looked at.
func (d *Decoder) validity(b *batch, c *column) ([]byte, *FormatError) {
	if _, nulls := b.fieldNode(c.node); nulls == 0 {
		return nil, nil
	}
	v, err := d.buffer(b, c, b.firstBuffer(c))
	if err != nil {
		return nil, err
	}
	if len(v) < (b.rows+7)/8 {
		return nil, formatErr(ReasonBadLength, b.bodyAt,
			"column %s has nulls, but a validity bitmap of %d bytes for %d rows", c.name, len(v), b.rows)
	}
	return v, nil
}

// array returns a column as an Arrow array, for whatever is not read in place:
// nulls, integers, half floats, strings. dt is the type of its values, or of
// the indices of a dictionary.
func (d *Decoder) array(b *batch, c *column, dt arrow.DataType) (arrow.Array, *FormatError) {
	bits, err := d.validity(b, c)
	if err != nil {
		return nil, err
	}
	buffers := make([]*memory.Buffer, 1, 3)
	if bits != nil {
		buffers[0] = memory.NewBufferBytes(bits)
	}
	if _, ok := dt.(arrow.FixedWidthDataType); ok {
		v, err := d.fixed(b, c, dt)
		if err != nil {
			return nil, err
		}
		buffers = append(buffers, d.arrowBuffer(v))
	} else if buffers, err = d.stringBuffers(buffers, b, c, dt); err != nil {
		return nil, err
	}
	_, nulls := b.fieldNode(c.node)
	data := array.NewData(dt, b.rows, buffers, nil, int(nulls), 0)
	return array.MakeFromData(data), nil
}

// stringBuffers appends the buffers of a string column: offsets and bytes, or
// views and any number of bytes. Where the text of a row lies is checked when
// it is read, except for the end of the last one, at which Arrow looks now.
func (d *Decoder) stringBuffers(buffers []*memory.Buffer, b *batch, c *column,
	dt arrow.DataType) ([]*memory.Buffer, *FormatError) {
	width, need, count := 4, b.rows+1, 3
	switch dt.ID() {
	case arrow.LARGE_STRING:
		width = 8
	case arrow.STRING_VIEW:
		width, need = 16, b.rows
		count = 2 + int(b.i64(b.variadic+8*c.views))
	}
	first := b.firstBuffer(c)
	var last int64 // end of the last text
	for k := 1; k < count; k++ {
		v, err := d.buffer(b, c, first+k)
		if err != nil {
			return nil, err
		}
		switch {
		case b.rows == 0 || width == 16 && k > 1:
		case k == 1 && len(v) < need*width:
			return nil, formatErr(
				ReasonBadLength,
				b.bodyAt,
				"column %s has %d bytes of offsets or views, but %d rows",
				c.name,
				len(v),
				b.rows,
			)
		case k == 1 && width == 4:
			last = int64(int32(binary.LittleEndian.Uint32(v[4*b.rows:])))
		case k == 1 && width == 8:
			last = int64(binary.LittleEndian.Uint64(v[8*b.rows:]))
		case last < 0 || last > int64(len(v)):
			return nil, formatErr(ReasonCorrupt, b.bodyAt, "column %s: its last text ends at byte %d of %d",
				c.name, last, len(v))
		}
		buffers = append(buffers, d.arrowBuffer(v))
	}
	return buffers, nil
}

// arrowBuffer wraps bytes for Arrow, which reads numbers in place and so needs
// them aligned. Streams need not have them so.
func (d *Decoder) arrowBuffer(v []byte) *memory.Buffer {
	if !isAligned(v, 8) {
		v = append(d.inflater.slot(len(v))[:0], v...)
	}
	return memory.NewBufferBytes(v)
}

// inPlace tells whether the values of a column in b can be read as they stand:
// values of type T, none of them null.
func (d *Decoder) inPlace(b *batch, c *column, id arrow.Type) bool {
	_, nulls := b.fieldNode(c.node)
	return nulls == 0 && c.dt.ID() == id && !d.throughArrow
}

// view returns the values in b in place; false if they are not aligned.
func view[T geom.Float | int32 | int64](b []byte) ([]T, bool) {
	if len(b) == 0 {
		return []T{}, true
	}
	var v T
	if !isAligned(b, unsafe.Sizeof(v)) {
		return nil, false
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(v))), true
}

// bytesOf is the inverse of view.
func bytesOf[T geom.Float | int32 | int64](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
}

// values reads a whole column: in place if it is one batch of values of type T,
// none of them null, aligned; else gathered into scratch, where fill converts
// what is not of type T.
func values[T geom.Float | int32 | int64](d *Decoder, c *column, scratch *[]T,
	fill func([]T, arrow.Array, *column) *FormatError) ([]T, *FormatError) {
	if len(d.batches) == 1 && d.inPlace(&d.batches[0], c, typeID[T]()) {
		raw, err := d.fixed(&d.batches[0], c, c.dt)
		if err != nil {
			return nil, err
		}
		if v, ok := view[T](raw); ok {
			return v, nil
		}
		*scratch = resize(*scratch, d.rows)
		copy(bytesOf(*scratch), raw)
		return *scratch, nil
	}
	*scratch = resize(*scratch, d.rows)
	dst := *scratch
	for i := range d.batches {
		b := &d.batches[i]
		if err := gather(d, b, c, dst[:b.rows], fill); err != nil {
			return nil, err
		}
		dst = dst[b.rows:]
	}
	return *scratch, nil
}

// gather copies one batch of a column to dst.
func gather[T geom.Float | int32 | int64](d *Decoder, b *batch, c *column, dst []T,
	fill func([]T, arrow.Array, *column) *FormatError) *FormatError {
	mark := d.inflater.used
	defer func() { d.inflater.used = mark }() // dst holds the values: the slots are free again
	if d.inPlace(b, c, typeID[T]()) {
		raw, err := d.fixed(b, c, c.dt)
		if err != nil {
			return err
		}
		copy(bytesOf(dst), raw)
		return nil
	}
	a, err := d.array(b, c, c.dt)
	if err != nil {
		return err
	}
	return fill(dst, a, c)
}

// typeID returns Arrow's name of T.
func typeID[T geom.Float | int32 | int64]() arrow.Type {
	var v T
	switch any(v).(type) {
	case float32:
		return arrow.FLOAT32
	case float64:
		return arrow.FLOAT64
	case int32:
		return arrow.INT32
	}
	return arrow.INT64
}

// number is what a column of ours may hold.
type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func convert[T, S number](dst []T, src []S) {
	for i, v := range src {
		dst[i] = T(v)
	}
}

// fillFloats converts coordinates. Null becomes NaN, which the pipeline drops
// and counts. An integer that T does not hold exactly is an error: geometry is
// never rounded.
func fillFloats[T geom.Float](dst []T, a arrow.Array, c *column) *FormatError {
	switch a := a.(type) {
	case *array.Int64:
		for i, v := range a.Int64Values() {
			if a.IsValid(i) && !isExact(uint64(max(v, -v))) {
				return formatErr(ReasonBadValue, -1, "column %s holds %d, which float64 cannot", c.name, v)
			}
		}
	case *array.Uint64:
		for i, v := range a.Uint64Values() {
			if a.IsValid(i) && !isExact(v) {
				return formatErr(ReasonBadValue, -1, "column %s holds %d, which float64 cannot", c.name, v)
			}
		}
	}
	return fillRounded(dst, a, c)
}

// isExact tells whether a float64 can hold v: its ones span at most 53 bits.
func isExact(v uint64) bool { return bits.Len64(v)-bits.TrailingZeros64(v) <= 53 }

// fillRounded converts as Go does, for the intensity and for those types of
// coordinates that cannot be rounded.
func fillRounded[T geom.Float](dst []T, a arrow.Array, c *column) *FormatError {
	switch a := a.(type) {
	case *array.Float16:
		for i := range dst {
			dst[i] = T(WidenHalf(a.Value(i).Uint16()))
		}
	case *array.Float32:
		convert(dst, a.Float32Values())
	case *array.Float64:
		convert(dst, a.Float64Values())
	case *array.Int8:
		convert(dst, a.Int8Values())
	case *array.Int16:
		convert(dst, a.Int16Values())
	case *array.Int32:
		convert(dst, a.Int32Values())
	case *array.Int64:
		convert(dst, a.Int64Values())
	case *array.Uint8:
		convert(dst, a.Uint8Values())
	case *array.Uint16:
		convert(dst, a.Uint16Values())
	case *array.Uint32:
		convert(dst, a.Uint32Values())
	case *array.Uint64:
		convert(dst, a.Uint64Values())
	default:
		return formatErr(ReasonBadType, -1, "column %s is of type %s, which is no number", c.name, c.desc)
	}
	setNaN(dst, a)
	return nil
}

// WidenHalf returns the value of a float16 given by its bits: 5 of exponent, 10
// of fraction. The result is exact. The function moves both fields to their
// places in a float32, which then holds 2^-112 of the value, also where the
// value is subnormal; only infinity and NaN need their exponent set. Arrow's
// own float16.Num.Float32 returns 2^-112 of each subnormal.
func WidenHalf(h uint16) float32 {
	b := math.Float32bits(math.Float32frombits(uint32(h&0x7fff)<<13) * 0x1p112)
	if h&0x7c00 == 0x7c00 {
		b |= 0x7f800000
	}
	return math.Float32frombits(b | uint32(h>>15)<<31)
}

func setNaN[T geom.Float](dst []T, a arrow.Array) {
	if a.NullN() == 0 {
		return
	}
	for i := range dst {
		if a.IsNull(i) {
			dst[i] = T(math.NaN())
		}
	}
}

// nullInt64 stands for a null time.
const nullInt64 = math.MinInt64

// fillIDs is fillInts where null is an error.
func fillIDs(dst []int64, a arrow.Array, c *column) *FormatError {
	for i := 0; i < a.Len() && a.NullN() > 0; i++ {
		if a.IsNull(i) {
			return formatErr(ReasonBadValue, -1, "column %s is null in row %d of its batch", c.name, i)
		}
	}
	return fillInts(dst, a, c)
}

// fillInts converts integers. Null becomes nullInt64.
func fillInts(dst []int64, a arrow.Array, c *column) *FormatError {
	switch a := a.(type) {
	case *array.Int8:
		convert(dst, a.Int8Values())
	case *array.Int16:
		convert(dst, a.Int16Values())
	case *array.Int32:
		convert(dst, a.Int32Values())
	case *array.Int64:
		convert(dst, a.Int64Values())
	case *array.Uint8:
		convert(dst, a.Uint8Values())
	case *array.Uint16:
		convert(dst, a.Uint16Values())
	case *array.Uint32:
		convert(dst, a.Uint32Values())
	case *array.Uint64:
		for i, v := range a.Uint64Values() {
			if dst[i] = int64(v); a.IsValid(i) && v > math.MaxInt64 {
				return formatErr(ReasonBadValue, -1, "column %s holds %d, which is no int64", c.name, v)
			}
		}
	case *array.Timestamp:
		convert(dst, a.TimestampValues())
	default:
		return formatErr(ReasonBadType, -1, "column %s is of type %s, which is no integer", c.name, c.desc)
	}
	if a.NullN() == 0 {
		return nil
	}
	for i := range dst {
		if a.IsNull(i) {
			dst[i] = nullInt64
		}
	}
	return nil
}
