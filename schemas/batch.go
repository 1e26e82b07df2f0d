package schemas

import (
	"encoding/binary"
	"math"
)

// batch is a RecordBatch whose metadata has been checked against its layout:
// every buffer lies within the body, every top-level column has rows rows. The
// values of its columns have not been checked.
type batch struct {
	flat
	body     []byte
	bodyAt   int
	rows     int
	nodes    int // position of the field nodes in the metadata
	buffers  int // position of the buffers
	variadic int // position of the counts of variadic buffers
	codec    int8
	words    [2]words // dictionaries of the columns of text, as they stood when the batch was sent
}

// Codecs of a batch's body (CompressionType in Message.fbs).
const (
	codecLZ4  = 0
	codecZstd = 1
	codecNone = -1
)

// fieldNode returns length and null count of a column.
func (b *batch) fieldNode(i int) (length, nulls int64) {
	return b.i64(b.nodes + 16*i), b.i64(b.nodes + 16*i + 8)
}

// bufferAt returns position and length of a buffer in the body.
func (b *batch) bufferAt(i int) (off, n int64) {
	return b.i64(b.buffers + 16*i), b.i64(b.buffers + 16*i + 8)
}

// firstBuffer returns the number of a column's first buffer. It adds up the
// variadic buffers before it: once a column, not once a buffer.
func (b *batch) firstBuffer(c *column) int {
	first := c.buffer
	for i := range c.views {
		first += int(b.i64(b.variadic + 8*i))
	}
	return first
}

// newBatch checks the RecordBatch t of message m. declared is the sum of the
// buffers' sizes after decompression, as they say themselves; more than limit
// is an error.
func newBatch(m *ipcMessage, t table, l *layout, limit int64) (b batch, declared int64, err *FormatError) {
	b = batch{flat: m.flat, body: m.body, bodyAt: m.bodyAt, codec: codecNone}
	rows := b.longField(t, 0, 0)
	var nodes, buffers, views int
	b.nodes, nodes = b.vector(t, 1, 16)
	b.buffers, buffers = b.vector(t, 2, 16)
	b.variadic, views = b.vector(t, 4, 8)
	comp := b.sub(t, 3)
	if b.broken {
		return b, 0, formatErr(ReasonCorrupt, m.at, "the metadata of the batch points outside its %d bytes", len(b.b))
	}
	if comp.size > 0 {
		codec, method := b.byteField(comp, 0, 0), b.byteField(comp, 1, 0)
		if codec > codecZstd || method != 0 {
			return b, 0, formatErr(ReasonUnsupported, m.at,
				"the body is compressed with codec %d (method %d); only none, lz4 (0) and zstd (1) can be read", codec,
				method)
		}
		b.codec = int8(codec)
	}
	if rows < 0 || rows > math.MaxInt32 {
		return b, 0, formatErr(ReasonCorrupt, m.at, "the batch declares %d rows", rows)
	}
	b.rows = int(rows)
	if err := b.checkCounts(m.at, l, nodes, buffers, views); err != nil {
		return b, 0, err
	}
	if err := b.checkNodes(m.at, l); err != nil {
		return b, 0, err
	}
	declared, err = b.checkBuffers(buffers, limit)
	return b, declared, err
}

// checkCounts compares the numbers of nodes and buffers with the schema's.
func (b *batch) checkCounts(at int, l *layout, nodes, buffers, views int) *FormatError {
	want := int64(l.buffers)
	if views != l.views {
		return formatErr(ReasonCorrupt, at, "the batch has %d variadic counts, but its schema has %d columns of views",
			views, l.views)
	}
	for i := range views {
		n := b.i64(b.variadic + 8*i)
		if n < 0 || n > int64(buffers) {
			return formatErr(ReasonCorrupt, at, "the batch declares %d buffers for one column of views", n)
		}
		want += n
	}
	if nodes != l.nodes || int64(buffers) != want {
		return formatErr(ReasonCorrupt, at, "the batch has %d field nodes and %d buffers, but its schema needs %d "+
			"and %d", nodes, buffers, l.nodes, want)
	}
	return nil
}

// checkNodes compares the lengths of the columns.
func (b *batch) checkNodes(at int, l *layout) *FormatError {
	for i := range l.nodes {
		if n, nulls := b.fieldNode(i); n < 0 || nulls < 0 || nulls > n {
			return formatErr(ReasonCorrupt, at, "field node %d declares %d values, %d of them null", i, n, nulls)
		}
	}
	for i, node := range l.top {
		if n, _ := b.fieldNode(int(node)); n != int64(b.rows) {
			return formatErr(ReasonBadLength, at, "column %d has %d values, but the batch has %d rows", i, n, b.rows)
		}
	}
	return nil
}

// checkBuffers checks that the buffers lie within the body, and adds up their
// sizes after decompression.
func (b *batch) checkBuffers(buffers int, limit int64) (declared int64, err *FormatError) {
	for i := range buffers {
		off, n := b.bufferAt(i)
		if off < 0 || n < 0 || off > int64(len(b.body)) || n > int64(len(b.body))-off {
			return 0, formatErr(ReasonCorrupt, b.bodyAt, "buffer %d is bytes %d to %d of a body of %d", i, off,
				off+n, len(b.body))
		}
		size := n
		if b.codec != codecNone && n > 0 {
			if n < 8 {
				return 0, formatErr(ReasonCorrupt, b.bodyAt+int(off),
					"compressed buffer %d has %d bytes, less than its length prefix", i, n)
			}
			if size = int64(binary.LittleEndian.Uint64(b.body[off:])); size == -1 {
				size = n - 8 // stored as it is
			}
			if size < 0 {
				return 0, formatErr(ReasonCorrupt, b.bodyAt+int(off), "compressed buffer %d declares %d bytes", i, size)
			}
		}
		if size > limit-declared {
			return 0, formatErr(ReasonTooLarge, b.bodyAt+int(off),
				"the buffers declare more than %d bytes, the most that a message may hold (--max-frame-bytes)", limit)
		}
		declared += size
	}
	return declared, nil
}
