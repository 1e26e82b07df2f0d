package schemas

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"entropipe/algos/geom"
)

// Table gives access to all columns of an Arrow stream or of an Arrow file (Feather V2), by
// position. A Decoder knows the columns of messages only, and reads streams only. The zero
// value is ready. A Table keeps memory between values and is not for concurrent use.
//
// A Table checks what it reads as a Decoder does. It reads a file by the footer, whose blocks
// must lie within the file, one after the other, each with a whole message.
type Table struct {
	// MaxBytes bounds the value, the sizes that its buffers declare, and one decoded column, each
	// for itself. 0 means DefaultMaxBytes.
	MaxBytes int64

	decoder Decoder
	layout  *layout
}

// TableColumn describes a column of a Table.
type TableColumn struct {
	Name    string
	Type    string // the name of the Arrow type, for people
	Number  bool   // the values are floats or integers, so that the column can be read
	Integer bool   // the values are integers
	Wide    bool   // some values of the type do not fit into float32
}

const (
	arrowMagic   = "ARROW1"
	fileHead     = 8  // magic and padding
	fileTail     = 10 // length of the footer and magic
	fileBlock    = 24 // bytes of a Block in the footer
	shortestFile = fileHead + fileTail
)

// IsArrowFile reports whether a value begins as an Arrow file does.
func IsArrowFile(head []byte) bool { return bytes.HasPrefix(head, []byte(arrowMagic)) }

// Read reads the metadata of value, an Arrow stream or file, and keeps a reference to value. The
// values of columns are checked when they are asked for. The error is a *FormatError.
func (t *Table) Read(value []byte) error {
	d := &t.decoder
	d.MaxBytes = t.MaxBytes
	d.begin()
	t.layout = nil
	if int64(len(value)) > d.limit() {
		return formatErr(ReasonTooLarge, -1, "the table has %d bytes, more than the limit of %d", len(value), d.limit())
	}
	if err := t.read(value); err != nil {
		d.begin()
		t.layout = nil
		return err
	}
	return nil
}

func (t *Table) read(value []byte) *FormatError {
	if IsArrowFile(value) {
		return t.readFile(value)
	}
	m, next, err := readSchemaMessage(value)
	if err != nil {
		return err
	}
	if t.layout, err = readLayout(&m, true); err != nil {
		return err
	}
	return t.decoder.readBatches(value, next, t.layout)
}

// readFile reads the footer and the batches that it names. The footer holds the schema again.
func (t *Table) readFile(value []byte) *FormatError {
	if len(value) < shortestFile || !bytes.HasSuffix(value, []byte(arrowMagic)) {
		return formatErr(ReasonTruncated, len(value),
			"the Arrow file does not end with %s: it was cut short or never closed", arrowMagic)
	}
	end := len(value) - fileTail
	size := int32(binary.LittleEndian.Uint32(value[end:]))
	if size <= 0 || int(size) > end-fileHead {
		return formatErr(ReasonCorrupt, end, "the Arrow file declares a footer of %d bytes, but has %d", size,
			len(value))
	}
	at := end - int(size)
	m := ipcMessage{flat: flat{b: value[at:end:end]}, at: at}
	root := m.root()
	m.version, m.header = m.shortField(root, 0, 0), m.sub(root, 1)
	start, blocks := m.vector(root, 3, fileBlock)
	switch {
	case m.broken || m.header.size == 0:
		return formatErr(ReasonCorrupt, at, "the footer points outside its %d bytes, or has no schema", size)
	case m.version != metadataV5 && m.version != metadataV4:
		return formatErr(ReasonUnsupported, at, "metadata version V%d; V4 and V5 can be read", m.version+1)
	}
	var err *FormatError
	if t.layout, err = readLayout(&m, true); err != nil {
		return err
	}
	limit, behind := t.decoder.limit(), int64(fileHead)
	for i := range blocks {
		p := start + fileBlock*i
		block := fileSpan{m.i64(p), int64(m.i32(p + 8)), m.i64(p + 16)}
		if block.at < behind || block.at > int64(at) {
			return formatErr(ReasonCorrupt, at, "block %d begins at byte %d; the batch before it ends at %d, and the "+
				"footer begins at %d", i, block.at, behind, at)
		}
		declared, err := t.readBlock(value[:at:at], i, block, limit)
		if err != nil {
			return err
		}
		limit -= declared
		behind = block.at + block.metadata + block.body
	}
	return nil
}

// fileSpan is a Block of the footer: where a message begins, the bytes of its metadata with
// their prefix, and the bytes of its body.
type fileSpan struct{ at, metadata, body int64 }

// readBlock reads batch number i, at block. value ends where the footer begins.
func (t *Table) readBlock(value []byte, i int, block fileSpan, limit int64) (declared int64, err *FormatError) {
	at := int(block.at)
	m, next, err := readMessage(value, at)
	switch {
	case err != nil && err.Reason == ReasonTrailingBytes, err == nil && next < 0:
		return 0, formatErr(ReasonCorrupt, at, "block %d holds the end of the stream instead of a batch", i)
	case err != nil:
		return 0, err
	case m.kind != kindRecordBatch:
		return 0, formatErr(ReasonCorrupt, at, "block %d holds a message of kind %d instead of a batch", i, m.kind)
	case int64(m.bodyAt-at) != block.metadata || int64(len(m.body)) != block.body:
		return 0, formatErr(ReasonCorrupt, at, "block %d has %d bytes of metadata and %d of body, but the footer says "+
			"%d and %d", i, m.bodyAt-at, len(m.body), block.metadata, block.body)
	}
	d := &t.decoder
	b, declared, err := newBatch(&m, m.header, t.layout, limit)
	if err != nil {
		return 0, err
	}
	if b.rows > math.MaxInt32-d.rows {
		return 0, formatErr(ReasonTooLarge, at, "the batches have more than %d rows", math.MaxInt32)
	}
	d.batches = append(d.batches, b)
	d.rows += b.rows
	return declared, nil
}

// Rows returns the number of rows of all batches; 0 unless a value was read.
func (t *Table) Rows() int { return t.decoder.rows }

// Columns returns the top-level columns in the order of the schema; nil unless a value was read.
func (t *Table) Columns() []TableColumn {
	if t.layout == nil {
		return nil
	}
	all := make([]TableColumn, len(t.layout.all))
	for i := range all {
		c := &t.layout.all[i]
		all[i] = TableColumn{Name: c.name, Type: c.desc, Number: c.isNumber(), Integer: c.isInteger(),
			Wide: c.isNumber() && c.isDouble()}
	}
	return all
}

// Float32s returns the values of column i, converted as Go converts. Null is NaN. The result
// is a view of the value, or stands in dst or in new memory; it is valid until the next Read. The
// error is a *FormatError.
func (t *Table) Float32s(i int, dst []float32) ([]float32, error) {
	return readColumn(t, i, dst, 4, fillRounded[float32])
}

// Float64s is Float32s for float64. An integer that float64 does not hold is an error.
func (t *Table) Float64s(i int, dst []float64) ([]float64, error) {
	return readColumn(t, i, dst, 8, fillFloats[float64])
}

// Int64s is Float32s for integers: another type is an error. Null is math.MinInt64.
func (t *Table) Int64s(i int, dst []int64) ([]int64, error) {
	return readColumn(t, i, dst, 8, fillInts)
}

// readColumn reads column i into dst, or in place.
func readColumn[T geom.Float | int64](t *Table, i int, dst []T, width int64,
	fill func([]T, arrow.Array, *column) *FormatError) (v []T, err error) {
	c := &t.layout.all[i]
	defer func() {
		// This version's arrays trust their input. A value that passed the checks and
		// still makes an array panic is refused.
		if p := recover(); p != nil {
			v, err = nil, formatErr(ReasonArrowPanic, -1, "Arrow failed on column %s: %v", c.name, p)
		}
	}()
	if !c.isNumber() {
		return nil, formatErr(ReasonBadType, -1, "column %s is of type %s; it must be %s", c.name, c.desc, numberTypes)
	}
	if err := t.decoder.checkSize(width); err != nil {
		return nil, err
	}
	v, bad := values(&t.decoder, c, &dst, fill)
	if bad != nil {
		return nil, bad
	}
	return v, nil
}
