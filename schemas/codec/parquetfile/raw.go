package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unsafe"

	"github.com/parquet-go/parquet-go/format"
)

// RawFooter is a footer whose row groups stay encoded, for programs that move column chunks to
// another file: they change a few numbers, and copy all other bytes. Reading it costs a tenth of
// what ReadFooter does, which checks more: a program reads one footer of each Kind by that, too.
type RawFooter struct {
	// Kind is the same for files with the same version, schema and column orders, whose row groups
	// have page indexes of the same columns: the row groups of such files fit into one file.
	Kind      string
	Rows      int64
	KeyValues []format.KeyValue // views of the footer
	Groups    int               // row groups
	Chunks    []RawChunk        // column chunks, by row group and column
	Begin     int64             // offset in the file
	Size      int64             // bytes

	version   int64
	schema    []byte // encoded
	orders    []byte // encoded; nil: none
	createdBy []byte
	groups    []byte // encoded
	numbers   []number
}

// RawChunk says where the parts of a column chunk lie. Empty ranges: it has none.
type RawChunk struct {
	Pages, Filter, ColumnIndex, OffsetIndex Range
}

// Range is [From, To) in a file.
type Range struct{ From, To int64 }

func rangeOf(from, length int64) Range {
	if from <= 0 || length <= 0 || length > endless-min(from, endless) {
		return Range{}
	}
	return Range{from, from + length}
}

// NumberKind says what a number of an encoded row group means.
type NumberKind uint8

// Numbers that change when a row group moves. The first two are numbers of a row group, the
// others those of a column chunk.
const (
	GroupOffset NumberKind = iota
	GroupOrdinal
	ChunkOffset
	PageOffset // of data, index or dictionary
	FilterOffset
	ColumnIndexOffset
	ColumnIndexLength
	OffsetIndexOffset
	OffsetIndexLength
)

// number is a varint among the encoded row groups.
type number struct {
	at    int32 // first byte
	owner int32 // row group or column chunk
	kind  NumberKind
}

// Bytes of a footer by number and by column chunk, at least, in the files of this program: for a
// guess of how many there are.
const (
	bytesByNumber = 10
	bytesByChunk  = 64
)

// ReadRawFooter reads a footer. Lengths are compared with the bytes that are there; ranges are
// not compared with the file. Every error is a *FormatError.
func ReadRawFooter(r io.ReaderAt, size int64) (*RawFooter, error) {
	f := &File{r: r, size: size}
	footer, err := f.readFooter()
	raw := &RawFooter{Begin: f.footer, Size: int64(len(footer))}
	if err == nil {
		err = (&rawScanner{scanner: scanner{b: footer}, f: raw}).read()
	}
	if err != nil {
		return nil, &FormatError{err}
	}
	return raw, nil
}

// rawScanner reads a RawFooter.
type rawScanner struct {
	scanner
	f      *RawFooter
	begin  int    // of the row groups
	first  []byte // which page indexes the chunks of the first row group have
	column int    // number of a chunk in its row group

	// of the chunk that is read
	data, dictionary, compressed int64
	filter, filterLength         int64
	columnIndex, columnLength    int64
	offsetIndex, offsetLength    int64
}

func (s *rawScanner) read() error {
	if err := s.fields(s.field); err != nil {
		return err
	}
	if n := len(s.b) - s.at; n != 0 {
		return fmt.Errorf("%d bytes follow its metadata", n)
	}
	f := s.f
	head := binary.AppendUvarint(binary.AppendVarint(make([]byte, 0, 20), f.version), uint64(len(f.schema)))
	var kind strings.Builder
	kind.Grow(len(head) + len(f.schema) + len(f.orders) + len(s.first))
	for _, part := range [][]byte{head, f.schema, f.orders, s.first} {
		kind.Write(part)
	}
	f.Kind = kind.String()
	for i := range f.numbers {
		f.numbers[i].at -= int32(s.begin)
	}
	return nil
}

// field reads a field of the footer.
func (s *rawScanner) field(id int64, kind byte) (err error) {
	f, begin := s.f, s.at
	switch {
	case id == 1 && kind == thriftI32:
		f.version, err = s.number()
	case id == 2 && kind == thriftList:
		err = s.skip(kind, inStruct)
		f.schema = s.b[begin:s.at]
	case id == 3 && kind == thriftI64:
		f.Rows, err = s.number()
	case id == 4 && kind == thriftList:
		err = s.rowGroups()
	case id == 5 && kind == thriftList:
		err = s.keyValues()
	case id == 6 && kind == thriftBinary:
		f.createdBy, err = s.text()
	case id == 7 && kind == thriftList:
		err = s.skip(kind, inStruct)
		f.orders = s.b[begin:s.at]
	case id == 8 || id == 9:
		err = errors.New("it is encrypted")
	default:
		err = s.skip(kind, inStruct)
	}
	return err
}

func (s *rawScanner) rowGroups() error {
	if s.f.groups != nil {
		return errors.New("it has two lists of row groups")
	}
	n, elem, err := s.list()
	if err != nil {
		return err
	}
	if elem != thriftStruct && n > 0 {
		return errors.New("its row groups are no structures")
	}
	s.begin = s.at
	s.f.numbers = make([]number, 0, (len(s.b)-s.at)/bytesByNumber)
	s.f.Chunks = make([]RawChunk, 0, (len(s.b)-s.at)/bytesByChunk)
	err = s.each(n, func() error {
		s.column = 0
		if err := s.fields(s.rowGroup); err != nil {
			return err
		}
		if s.column != len(s.first) {
			return errors.New("its row groups differ in their columns")
		}
		s.f.Groups++
		return nil
	})
	s.f.groups = s.b[s.begin:s.at]
	return err
}

// rowGroup reads a field of a row group.
func (s *rawScanner) rowGroup(id int64, kind byte) error {
	switch {
	case id == 1 && kind == thriftList:
		n, elem, err := s.list()
		if err != nil {
			return err
		}
		if elem != thriftStruct && n > 0 {
			return errors.New("its column chunks are no structures")
		}
		if len(s.f.Chunks)+n > MaxColumnChunks {
			return fmt.Errorf("it has more than %d column chunks", MaxColumnChunks)
		}
		return s.each(n, s.chunk)
	case id == 5 && kind == thriftI64:
		return s.note(GroupOffset, s.f.Groups, nil)
	case id == 7 && kind == thriftI16:
		return s.note(GroupOrdinal, s.f.Groups, nil)
	}
	return s.skip(kind, inStruct)
}

// chunk reads a column chunk.
func (s *rawScanner) chunk() error {
	s.data, s.dictionary, s.compressed, s.filter, s.filterLength = 0, 0, 0, 0, 0
	s.columnIndex, s.columnLength, s.offsetIndex, s.offsetLength = 0, 0, 0, 0
	if err := s.fields(s.chunkField); err != nil {
		return err
	}
	from, to := ChunkRange(&format.ColumnMetaData{DataPageOffset: s.data, DictionaryPageOffset: s.dictionary,
		TotalCompressedSize: s.compressed})
	c := RawChunk{Pages: Range{from, to}, Filter: rangeOf(s.filter, s.filterLength),
		ColumnIndex: rangeOf(s.columnIndex, s.columnLength), OffsetIndex: rangeOf(s.offsetIndex, s.offsetLength)}
	s.f.Chunks = append(s.f.Chunks, c)
	has := byte('0')
	if c.ColumnIndex != (Range{}) {
		has++
	}
	if c.OffsetIndex != (Range{}) {
		has += 2
	}
	switch {
	case s.f.Groups == 0:
		s.first = append(s.first, has)
	case s.column >= len(s.first) || s.first[s.column] != has:
		return errors.New("its row groups differ in their columns or page indexes")
	}
	s.column++
	return nil
}

// chunkField reads a field of a column chunk.
func (s *rawScanner) chunkField(id int64, kind byte) error {
	i := len(s.f.Chunks)
	switch {
	case id == 2 && kind == thriftI64:
		return s.note(ChunkOffset, i, nil)
	case id == 3 && kind == thriftStruct:
		return s.fields(s.metaField)
	case id == 4 && kind == thriftI64:
		return s.note(OffsetIndexOffset, i, &s.offsetIndex)
	case id == 5 && kind == thriftI32:
		return s.note(OffsetIndexLength, i, &s.offsetLength)
	case id == 6 && kind == thriftI64:
		return s.note(ColumnIndexOffset, i, &s.columnIndex)
	case id == 7 && kind == thriftI32:
		return s.note(ColumnIndexLength, i, &s.columnLength)
	}
	return s.skip(kind, inStruct)
}

// metaField reads a field of the metadata of a column chunk.
func (s *rawScanner) metaField(id int64, kind byte) (err error) {
	i := len(s.f.Chunks)
	switch {
	case id == 7 && kind == thriftI64:
		s.compressed, err = s.number()
		return err
	case id == 9 && kind == thriftI64:
		return s.note(PageOffset, i, &s.data)
	case id == 10 && kind == thriftI64:
		return s.note(PageOffset, i, nil)
	case id == 11 && kind == thriftI64:
		return s.note(PageOffset, i, &s.dictionary)
	case id == 14 && kind == thriftI64:
		return s.note(FilterOffset, i, &s.filter)
	case id == 15 && kind == thriftI32:
		s.filterLength, err = s.number()
		return err
	}
	return s.skip(kind, inStruct)
}

// note reads a number and remembers where it stands.
func (s *rawScanner) note(kind NumberKind, owner int, into *int64) error {
	at := s.at
	value, err := s.number()
	if err != nil {
		return err
	}
	if into != nil {
		*into = value
	}
	s.f.numbers = append(s.f.numbers, number{at: int32(at), owner: int32(owner), kind: kind})
	return nil
}

// keyValues reads the pairs of the footer.
func (s *rawScanner) keyValues() error {
	n, elem, err := s.list()
	if err != nil {
		return err
	}
	if elem != thriftStruct && n > 0 {
		return errors.New("its pairs are no structures")
	}
	return s.each(n, func() error {
		var kv format.KeyValue
		err := s.fields(func(id int64, kind byte) error {
			if kind != thriftBinary || id != 1 && id != 2 {
				return s.skip(kind, inStruct)
			}
			text, err := s.text()
			view := unsafe.String(unsafe.SliceData(text), len(text)) // the footer never changes
			if id == 1 {
				kv.Key = view
			} else {
				kv.Value = view
			}
			return err
		})
		s.f.KeyValues = append(s.f.KeyValues, kv)
		return err
	})
}

func (s *scanner) number() (int64, error) {
	u, err := s.uvarint()
	return int64(u>>1) ^ -int64(u&1), err
}

// text reads bytes behind their length.
func (s *scanner) text() ([]byte, error) {
	n, err := s.uvarint()
	if err != nil {
		return nil, err
	}
	begin := s.at
	if err := s.bytes(n); err != nil {
		return nil, err
	}
	return s.b[begin:s.at], nil
}

// AppendGroups appends the encoded row groups to dst, with value(kind, owner, number) in place of
// each number that a NumberKind names. owner is the row group of GroupOffset and GroupOrdinal, and
// the index in Chunks of the others.
func (f *RawFooter) AppendGroups(dst []byte, value func(kind NumberKind, owner int, number int64) int64) []byte {
	at := 0
	for i := range f.numbers {
		n := &f.numbers[i]
		dst = append(dst, f.groups[at:n.at]...)
		before, size := binary.Varint(f.groups[n.at:])
		dst = binary.AppendVarint(dst, value(n.kind, int(n.owner), before))
		at = int(n.at) + size
	}
	return append(dst, f.groups[at:]...)
}

// AppendFooter appends an encoded footer with the version, schema, column orders and program of
// f, which has so many rows and row groups.
func (f *RawFooter) AppendFooter(dst []byte, rows int64, groups int, encoded []byte, pairs []format.KeyValue) []byte {
	w := fieldWriter{dst: dst}
	w.field(1, thriftI32)
	w.dst = binary.AppendVarint(w.dst, f.version)
	w.field(2, thriftList)
	w.dst = append(w.dst, f.schema...)
	w.field(3, thriftI64)
	w.dst = binary.AppendVarint(w.dst, rows)
	w.field(4, thriftList)
	w.list(groups)
	w.dst = append(w.dst, encoded...)
	if len(pairs) > 0 {
		w.field(5, thriftList)
		w.list(len(pairs))
		for _, kv := range pairs {
			pair := fieldWriter{dst: w.dst}
			pair.field(1, thriftBinary)
			pair.text(kv.Key)
			pair.field(2, thriftBinary)
			pair.text(kv.Value)
			w.dst = append(pair.dst, 0)
		}
	}
	if len(f.createdBy) > 0 {
		w.field(6, thriftBinary)
		w.text(string(f.createdBy))
	}
	if f.orders != nil {
		w.field(7, thriftList)
		w.dst = append(w.dst, f.orders...)
	}
	return append(w.dst, 0)
}

// fieldWriter appends the fields of a structure, in the order of their ids, each less than 16 above
// the one before.
type fieldWriter struct {
	dst  []byte
	last byte
}

func (w *fieldWriter) field(id, kind byte) {
	w.dst = append(w.dst, (id-w.last)<<4|kind)
	w.last = id
}

// list appends the head of a list of structures.
func (w *fieldWriter) list(n int) {
	if n < 15 {
		w.dst = append(w.dst, byte(n)<<4|thriftStruct)
		return
	}
	w.dst = binary.AppendUvarint(append(w.dst, 15<<4|thriftStruct), uint64(n))
}

func (w *fieldWriter) text(s string) {
	w.dst = append(binary.AppendUvarint(w.dst, uint64(len(s))), s...)
}

// AppendOffsetIndex appends an encoded offset index to dst, whose pages lie shift bytes later than
// data says. Every error is a *FormatError.
func AppendOffsetIndex(dst, data []byte, shift int64) ([]byte, error) {
	s := scanner{b: data}
	copied := 0
	page := func(id int64, kind byte) error {
		if id != 1 || kind != thriftI64 {
			return s.skip(kind, inStruct)
		}
		dst = append(dst, data[copied:s.at]...)
		offset, err := s.number()
		dst, copied = binary.AppendVarint(dst, offset+shift), s.at
		return err
	}
	err := s.fields(func(id int64, kind byte) error {
		if id != 1 || kind != thriftList {
			return s.skip(kind, inStruct)
		}
		n, elem, err := s.list()
		if err == nil && elem != thriftStruct && n > 0 {
			err = errors.New("pages of an offset index are no structures")
		}
		if err != nil {
			return err
		}
		return s.each(n, func() error { return s.fields(page) })
	})
	if err == nil && s.at != len(data) {
		err = fmt.Errorf("%d bytes follow an offset index", len(data)-s.at)
	}
	if err != nil {
		return nil, &FormatError{err}
	}
	return append(dst, data[copied:]...), nil
}
