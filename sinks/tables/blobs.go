package tables

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"
)

// Column value of table messages has a column buffer of this package. Values of megabytes are
// most of the work of a file, and a commit would compress them alone, one after the other.
// Instead workers compress a large value as soon as they have it (Pack): as the page that it
// will be, since a large value has a page of its own. The buffer takes such a page, and has
// parquet-go write it as it is. Small values are not copied before their page is encoded.
//
// The buffer enters the library as that of numbers does (numbers.go), and by the column's codec,
// which returns the bytes of a packed page in place of compressing it. A page's header needs the
// size before compression, and the library takes it from what Type.Encode returns: for a packed
// page, as many bytes of anything.

// packedFrom is the size from which a value has a page of its own.
const packedFrom = messagePageBytes / 4

// lengthBytes is the length before a value in encoding PLAIN.
const lengthBytes = 4

// pages holds memory in which a page is put together.
var pages = sync.Pool{New: func() any { return new([]byte) }}

// Pack returns the compressed page of a value of table messages, in the memory of dst if that is
// enough; nil: the value is so small that it shares a page with others. Any goroutine may call it.
func Pack(dst, value []byte) []byte {
	if len(value) < packedFrom {
		return nil
	}
	page := pages.Get().(*[]byte)
	defer pages.Put(page)
	*page = append(binary.LittleEndian.AppendUint32((*page)[:0], uint32(len(value))), value...)
	packed, err := compression.Encode(dst, *page)
	if err != nil {
		panic("tables: zstd fails on a page: " + err.Error()) // it has no reason to
	}
	return packed
}

// blobs is the column buffer of one page of values.
type blobs struct {
	// ColumnBuffer has the methods that a writer of whole pages never calls. It is nil, so a
	// call would panic.
	parquet.ColumnBuffer

	typ    parquet.Type // parquet-go's type of the column
	values [][]byte     // values of the page, or one packed page
	size   int          // bytes of the values
	packed bool
	codec  *blobCodec
	blank  []byte // so many bytes of anything
}

// pack announces that the next value is the packed page of one value of size bytes. The page
// before must be written.
func (b *blobs) pack(size int) { b.packed, b.size = true, size }

// The methods of a ColumnBuffer that parquet-go's writer calls.

func (b *blobs) Len() int    { return len(b.values) }
func (b *blobs) Size() int64 { return int64(b.size + lengthBytes*len(b.values)) }

func (b *blobs) Reset() {
	clear(b.values)
	b.values, b.size, b.packed = b.values[:0], 0, false
}

// WriteValues appends values, which must not change before their page is written.
func (b *blobs) WriteValues(v []parquet.Value) (int, error) {
	for i := range v {
		b.values = append(b.values, v[i].ByteArray())
		if !b.packed {
			b.size += len(v[i].ByteArray())
		}
	}
	return len(v), nil
}

func (b *blobs) Page() parquet.Page { return &blobPage{blobs: b} }

// blobPage is the page of a buffer, without its nulls, which the library adds.
type blobPage struct {
	parquet.Page // nil, as in blobs
	*blobs
}

func (p *blobPage) Column() int                    { return 0 } // not asked for by the writer
func (p *blobPage) Dictionary() parquet.Dictionary { return nil }
func (p *blobPage) Size() int64                    { return p.blobs.Size() }
func (p *blobPage) Type() parquet.Type             { return &blobPageType{p.typ, p.blobs} }

// Data returns something of the size of the values: the library counts it.
func (p *blobPage) Data() encoding.Values {
	p.blank = slices.Grow(p.blank[:0], p.size)
	return encoding.ByteArrayValues(p.blank[:p.size], nil)
}

// blobPageType encodes the page of its buffer and ignores the values that it is given.
type blobPageType struct {
	parquet.Type
	page *blobs
}

// Encode appends the page as PLAIN: the length of each value, and the value.
func (t *blobPageType) Encode(dst []byte, _ encoding.Values, _ encoding.Encoding) ([]byte, error) {
	b := t.page
	n := int(b.Size())
	dst = slices.Grow(dst, n)
	if b.packed {
		b.codec.page = b.values[0]
		return dst[:len(dst)+n], nil
	}
	for _, v := range b.values {
		dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(v))), v...)
	}
	return dst, nil
}

// blobCodec compresses the pages of one buffer.
type blobCodec struct {
	compress.Codec
	page []byte // the packed page that comes next; nil: none
}

// Encode implements compress.Codec. A packed page is copied, because the library keeps what it
// gets for other pages.
func (c *blobCodec) Encode(dst, src []byte) ([]byte, error) {
	if page := c.page; page != nil {
		c.page = nil
		return append(dst[:0], page...), nil
	}
	return c.Codec.Encode(dst, src)
}

// blobType is the type of the column. It returns the column's one buffer.
type blobType struct {
	parquet.Type
	buffer *blobs
}

func (t *blobType) NewColumnBuffer(int, int) parquet.ColumnBuffer {
	t.buffer.Reset()
	return t.buffer
}

// blobField is a field of type blobType.
type blobField struct {
	parquet.Field
	typ *blobType
}

func (f *blobField) Type() parquet.Type          { return f.typ }
func (f *blobField) Compression() compress.Codec { return f.typ.buffer.codec }

// blobsOf returns the schema of table messages with a buffer of type blobs for column value, and
// this buffer by leaf column.
func blobsOf(schema *parquet.Schema) (*parquet.Schema, map[int]*blobs) {
	root, buffers := &numberRoot{Node: schema}, map[int]*blobs{}
	for _, f := range schema.Fields() {
		if leaf, found := schema.Lookup(f.Name()); found && f.Name() == "value" {
			b := &blobs{typ: f.Type(), codec: &blobCodec{Codec: compression}}
			buffers[leaf.ColumnIndex] = b
			f = &blobField{f, &blobType{f.Type(), b}}
		}
		root.fields = append(root.fields, f)
	}
	return parquet.NewSchema(schema.Name(), root), buffers
}

// packed appends the packed page of a value of size bytes.
func (t *tableWriter) packed(page []byte, size int) {
	at, c := t.next, &t.columns[t.next]
	t.flush()
	t.flushPage(c)
	c.blobs.pack(size)
	t.put(parquet.ByteArrayValue(page))
	if t.err == nil {
		_, t.err = c.out.WriteRowValues(c.values)
	}
	c.values = c.values[:0]
	t.flushPage(&t.columns[at])
}
