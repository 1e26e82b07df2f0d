package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const magic = "PAR1"

// maxNames bounds the number of names in the paths of all columns, because the library
// keeps the whole path of every column.
const maxNames = 1 << 20

// maxFixedBytes bounds the values of a column of FIXED_LEN_BYTE_ARRAY.
const maxFixedBytes = 16 << 20

// endless is the size of each column chunk in the footer that the library sees. The
// stream returns io.EOF at its real end.
const endless = 1 << 62

// readFooter returns the bytes of the footer.
func (f *File) readFooter() ([]byte, error) {
	if f.size < 12 {
		return nil, fmt.Errorf("it has %d bytes", f.size)
	}
	var tail [8]byte
	if err := readFull(f.r, tail[:], f.size-8); err != nil {
		return nil, err
	}
	switch string(tail[4:]) {
	case magic:
	case "PARE":
		return nil, errors.New("its footer is encrypted")
	default:
		return nil, fmt.Errorf("it ends with %q instead of %q", tail[4:], magic)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > f.size-12 {
		return nil, fmt.Errorf("it claims a footer of %d bytes in a file of %d", n, f.size)
	}
	if n > MaxFooterBytes {
		return nil, fmt.Errorf("its footer has %d bytes; at most %d are read", n, MaxFooterBytes)
	}
	f.footer = f.size - 8 - n
	footer := make([]byte, n)
	return footer, readFull(f.r, footer, f.footer)
}

func readFull(r io.ReaderAt, p []byte, off int64) error {
	if n, err := r.ReadAt(p, off); n < len(p) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

// ReadFooter reads and checks the footer of a file as Open does, for callers that copy pages
// without a look into them. It returns the offset at which the footer begins, too. Every error
// is a *FormatError.
func ReadFooter(r io.ReaderAt, size int64) (meta *format.FileMetaData, begin int64, err error) {
	f := &File{r: r, size: size}
	footer, err := f.readFooter()
	if err == nil {
		err = Guard(func() error { return f.decode(footer) })
	}
	if err != nil {
		return nil, 0, &FormatError{err}
	}
	return &f.meta, f.footer, nil
}

// scanFooter compares every length of a footer with its bytes, and counts its
// column chunks, before anything is decoded.
func scanFooter(footer []byte) error {
	s := scanner{b: footer}
	chunks := 0
	rowGroup := func() error {
		return s.fields(func(id int64, kind byte) error {
			if id != 1 || kind != thriftList {
				return s.skip(kind, inStruct)
			}
			n, elem, err := s.list()
			if err != nil {
				return err
			}
			if chunks += n; chunks > MaxColumnChunks {
				return fmt.Errorf("it has more than %d column chunks", MaxColumnChunks)
			}
			return s.each(n, func() error { return s.skip(elem, inList) })
		})
	}
	return s.fields(func(id int64, kind byte) error {
		if kind != thriftList || id != 2 && id != 4 {
			return s.skip(kind, inStruct)
		}
		n, elem, err := s.list()
		switch {
		case err != nil:
			return err
		case id == 2 && n > MaxColumns:
			return fmt.Errorf("its schema has %d elements; at most %d are read", n, MaxColumns)
		case id == 4 && n > parquet.MaxRowGroups:
			return fmt.Errorf("it has %d row groups; at most %d are read", n, parquet.MaxRowGroups)
		case id == 4 && elem == thriftStruct:
			return s.each(n, rowGroup)
		}
		return s.each(n, func() error { return s.skip(elem, inList) })
	})
}

// decode decodes the footer and checks it.
func (f *File) decode(footer []byte) error {
	if err := scanFooter(footer); err != nil {
		return err
	}
	var protocol thrift.CompactProtocol
	reader := protocol.NewReaderFromBytes(footer) // strings are views of footer
	if err := thrift.NewDecoder(reader).Decode(&f.meta); err != nil {
		return err
	}
	if f.meta.EncryptionAlgorithm.Value != nil {
		return errors.New("it is encrypted")
	}
	if n := len(footer) - reader.BytesRead(); n != 0 {
		return fmt.Errorf("%d bytes follow its metadata", n)
	}
	return f.check()
}

// open decodes the footer, and shows the library a file that has the same schema and row
// groups, but uncompressed pages.
func (f *File) open(footer []byte) error {
	if err := f.decode(footer); err != nil {
		return err
	}
	var protocol thrift.CompactProtocol
	shown, err := thrift.Marshal(&protocol, f.disguise())
	if err != nil {
		return err
	}
	file := append([]byte(magic), shown...)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(shown)))
	file = append(file, magic...)
	f.shown, err = parquet.OpenFile(bytes.NewReader(file), int64(len(file)),
		parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(streamBuffer))
	if err != nil {
		return err
	}
	f.findLeaves(f.shown.Root())
	return nil
}

func (f *File) findLeaves(c *parquet.Column) {
	if c.Leaf() {
		f.leaves = append(f.leaves, c)
	}
	for _, child := range c.Columns() {
		f.findLeaves(child)
	}
}

// disguise returns the metadata of the file that the library sees: the same rows in
// uncompressed pages. Every chunk begins at the first byte of its own stream.
func (f *File) disguise() *format.FileMetaData {
	m := &format.FileMetaData{Version: f.meta.Version, Schema: f.meta.Schema, NumRows: f.meta.NumRows,
		ColumnOrders: f.meta.ColumnOrders, RowGroups: make([]format.RowGroup, len(f.meta.RowGroups))}
	for i := range m.RowGroups {
		from := &f.meta.RowGroups[i]
		to := format.RowGroup{NumRows: from.NumRows, TotalByteSize: from.TotalByteSize, Ordinal: int16(i),
			Columns: make([]format.ColumnChunk, len(from.Columns))}
		for j := range to.Columns {
			c := &from.Columns[j].MetaData
			to.Columns[j].MetaData = format.ColumnMetaData{Type: c.Type, Encoding: c.Encoding,
				PathInSchema: c.PathInSchema, Codec: format.Uncompressed,
				NumValues: c.NumValues, TotalUncompressedSize: endless, TotalCompressedSize: endless,
				DataPageOffset: streamStart}
		}
		m.RowGroups[i] = to
	}
	return m
}

// check compares the claims of the footer with each other and with the file.
func (f *File) check() error {
	if err := f.checkSchema(); err != nil {
		return err
	}
	if f.meta.NumRows < 0 {
		return fmt.Errorf("it claims %d rows", f.meta.NumRows)
	}
	stored, rows := int64(0), int64(0)
	for i := range f.meta.RowGroups {
		g := &f.meta.RowGroups[i]
		if g.NumRows < 0 || g.NumRows > f.meta.NumRows-rows {
			return fmt.Errorf("row group %d claims %d rows of %d", i, g.NumRows, f.meta.NumRows)
		}
		rows += g.NumRows
		for j := range g.Columns {
			c := &g.Columns[j]
			from, to := ChunkRange(&c.MetaData)
			stored += to - from
			switch {
			case c.FilePath != "":
				return fmt.Errorf("row group %d has columns in another file, %.100q", i, c.FilePath)
			case c.CryptoMetadata.Value != nil || len(c.EncryptedColumnMetadata) > 0:
				return fmt.Errorf("column %d of row group %d is encrypted", j, i)
			case c.MetaData.NumValues < 0:
				return fmt.Errorf("column %d of row group %d claims %d values", j, i, c.MetaData.NumValues)
			case from < int64(len(magic)) || to < from || to > f.footer:
				return fmt.Errorf("column %d of row group %d claims the bytes %d to %d of %d", j, i, from, to, f.footer)
			case stored > f.footer:
				return errors.New("its column chunks overlap")
			}
		}
	}
	if rows != f.meta.NumRows {
		return fmt.Errorf("it claims %d rows, its row groups %d", f.meta.NumRows, rows)
	}
	return nil
}

// ChunkRange returns the bytes [from, to) that a column chunk claims: its dictionary and
// its pages. to < from: the claim is impossible.
func ChunkRange(c *format.ColumnMetaData) (from, to int64) {
	from = c.DataPageOffset
	if d := c.DictionaryPageOffset; d > 0 && d < from {
		from = d
	}
	if c.TotalCompressedSize < 0 || from < 0 || c.TotalCompressedSize > endless-min(from, endless) {
		return from, -1
	}
	return from, from + c.TotalCompressedSize
}

// checkSchema walks the schema as the library does: a list of the elements of a tree in
// depth-first order.
func (f *File) checkSchema() error {
	var open []int32 // number of missing children of each enclosing group
	names := 0
	for i := range f.meta.Schema {
		e := &f.meta.Schema[i]
		if i > 0 && len(open) == 0 {
			return errors.New("its schema has more than one root")
		}
		if names += len(open) + 1; len(open) > MaxDepth || names > maxNames {
			return fmt.Errorf("its schema nests deeper than %d groups, or too many columns do", MaxDepth)
		}
		if e.Type.Valid && format.Type(e.Type.V) == format.FixedLenByteArray &&
			(!e.TypeLength.Valid || e.TypeLength.V < 1 || e.TypeLength.V > maxFixedBytes) {
			return fmt.Errorf("column %.100q has values of %d bytes; 1 to %d are read", e.Name,
				e.TypeLength.V, maxFixedBytes)
		}
		switch n := e.NumChildren; {
		case n.Valid && (n.V < 0 || int(n.V) > len(f.meta.Schema)-1-i):
			return fmt.Errorf("column %.100q claims %d children of a schema of %d elements", e.Name, n.V,
				len(f.meta.Schema))
		case n.Valid && n.V > 0 && e.Type.Valid:
			return fmt.Errorf("column %.100q is a group and has a type", e.Name)
		case n.Valid && n.V > 0:
			open = append(open, n.V)
			continue
		}
		for len(open) > 0 {
			if open[len(open)-1]--; open[len(open)-1] > 0 {
				break
			}
			open = open[:len(open)-1]
		}
	}
	if len(f.meta.Schema) == 0 || len(open) > 0 {
		return errors.New("its schema ends early")
	}
	return nil
}
