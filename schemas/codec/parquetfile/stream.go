package parquetfile

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	// streamStart is the offset at which every stream begins: after the magic bytes,
	// because the library takes 0 for a missing offset.
	streamStart  = int64(len(magic))
	streamBuffer = 64 << 10
)

// headerWindows are the numbers of bytes in which a page's header is searched, in this
// order. Most headers have 50 bytes; statistics of long texts make them longer.
var headerWindows = []int{512, 64 << 10, 4 << 20}

// stream is a column chunk as the library sees it: the pages of the file one
// after the other, checked and unpacked. It can be read once, in order.
type stream struct {
	file   *File
	group  int
	column int
	leaf   *parquet.Column
	chunk  *format.ColumnMetaData
	in     *bufio.Reader
	left   int64 // unread bytes of the chunk
	values int64 // number of values that further pages may hold
	page   int   // number of pages begun
	stored []byte
	plain  []byte
	header []byte
	unpack unpacker
	rest   [2][]byte // unread bytes of the page's header and of its body
	at     int64     // offset of rest in the file that the library sees
	err    error     // error that ended the stream
}

func newStream(f *File, group, column int) *stream {
	c := &f.meta.RowGroups[group].Columns[column].MetaData
	from, to := ChunkRange(c)
	return &stream{file: f, group: group, column: column, leaf: f.leaves[column], chunk: c, left: to - from,
		values: c.NumValues,
		in: bufio.NewReaderSize(io.NewSectionReader(f.r, from, to-from),
			int(min(streamBuffer, max(to-from, int64(headerWindows[0]))))), at: streamStart}
}

func (s *stream) failed() bool { return s.err != nil && s.err != io.EOF }

// release drops the memory of pages.
func (s *stream) release() {
	s.stored, s.plain, s.header, s.in, s.rest, s.unpack = nil, nil, nil, nil, [2][]byte{}, unpacker{}
	if !s.failed() {
		s.err = io.ErrClosedPipe
	}
}

// ReadAt implements io.ReaderAt for a reader that never goes back.
func (s *stream) ReadAt(p []byte, off int64) (n int, err error) {
	if (s.err == nil || s.err == io.EOF) && off != s.at {
		// The library reads backwards only to find a dictionary that it has not met.
		s.err = s.wrong(errors.New("it refers to a dictionary that is not there"))
	}
	for n < len(p) && s.err == nil {
		if len(s.rest[0])+len(s.rest[1]) == 0 {
			if err := s.next(); err == io.EOF {
				s.err = err
			} else if err != nil {
				s.err = s.wrong(err)
			}
			continue
		}
		for i, r := range s.rest {
			k := copy(p[n:], r)
			s.rest[i] = r[k:]
			n += k
			s.at += int64(k)
		}
	}
	if n == len(p) {
		return n, nil
	}
	return n, s.err
}

// wrong returns err as a *FormatError that names page and column.
func (s *stream) wrong(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return &FormatError{fmt.Errorf("column %.100q, row group %d, page %d: %w", strings.Join(s.leaf.Path(), "."),
		s.group, max(0, s.page-1), err)}
}

// next reads the next page. io.EOF: the chunk has no further page.
func (s *stream) next() error {
	if s.left == 0 {
		return io.EOF
	}
	s.page++
	h, err := s.readHeader()
	if err != nil {
		return err
	}
	if err := s.checkHeader(h); err != nil {
		return err
	}
	s.stored = resize(s.stored, int(h.CompressedPageSize))
	if _, err := io.ReadFull(s.in, s.stored); err != nil {
		return err
	}
	s.left -= int64(len(s.stored))
	if h.CRC != 0 && uint32(h.CRC) != crc32.ChecksumIEEE(s.stored) {
		return errors.New("its bytes have another checksum than its header says")
	}
	body, err := s.body(h)
	if err != nil {
		return err
	}
	if err := s.checkBody(h, body); err != nil {
		return err
	}
	return s.show(h, body)
}

// readHeader reads a page's header. Before it decodes the header, it compares the lengths
// in the header with its bytes.
func (s *stream) readHeader() (*format.PageHeader, error) {
	for i, window := range headerWindows {
		window = int(min(int64(window), s.left))
		if s.in.Size() < window {
			s.in = bufio.NewReaderSize(s.in, window)
		}
		b, err := s.in.Peek(window)
		if err != nil && err != io.EOF {
			return nil, err
		}
		scan := scanner{b: b}
		err = scan.skip(thriftStruct, inStruct)
		if errors.Is(err, io.ErrUnexpectedEOF) && len(b) == window && i+1 < len(headerWindows) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("its header cannot be read: %w", err)
		}
		h := new(format.PageHeader)
		var protocol thrift.CompactProtocol
		if err := thrift.Unmarshal(&protocol, b[:scan.at], h); err != nil {
			return nil, fmt.Errorf("its header cannot be read: %w", err)
		}
		s.left -= int64(scan.at)
		_, err = s.in.Discard(scan.at)
		return h, err
	}
	return nil, errors.New("its header is too long")
}

// checkHeader compares the claims of a page's header with its chunk and the limits.
func (s *stream) checkHeader(h *format.PageHeader) error {
	switch plain, stored := int64(h.UncompressedPageSize), int64(h.CompressedPageSize); {
	case plain < 0 || stored < 0:
		return fmt.Errorf("it claims %d bytes of %d", stored, plain)
	case stored > s.left:
		return fmt.Errorf("it claims %d bytes of a column chunk with %d left", stored, s.left)
	case plain > MaxPageBytes || stored > MaxPageBytes:
		return fmt.Errorf("it claims %d bytes, %d as stored; at most %d are read", plain, stored, MaxPageBytes)
	case plain > s.chunk.TotalUncompressedSize:
		return fmt.Errorf("it claims %d bytes in a column chunk of %d", plain, s.chunk.TotalUncompressedSize)
	}
	switch h.Type {
	case format.DictionaryPage:
		d := &h.DictionaryPageHeader
		if !d.Valid {
			return errors.New("it is a dictionary without a header of one")
		}
		return s.checkCount(d.V.NumValues, MaxPageValues)
	case format.DataPage:
		d := &h.DataPageHeader
		if !d.Valid {
			return errors.New("it is a data page without a header of one")
		}
		s.values -= int64(d.V.NumValues)
		return s.checkCount(d.V.NumValues, s.values+int64(d.V.NumValues))
	case format.DataPageV2:
		d := &h.DataPageHeaderV2
		switch {
		case !d.Valid:
			return errors.New("it is a data page without a header of one")
		case d.V.NumNulls < 0 || d.V.NumNulls > d.V.NumValues || d.V.NumRows < 0 || d.V.NumRows > d.V.NumValues:
			return fmt.Errorf("it claims %d rows and %d nulls in %d values", d.V.NumRows, d.V.NumNulls, d.V.NumValues)
		case d.V.RepetitionLevelsByteLength < 0 || d.V.DefinitionLevelsByteLength < 0 ||
			int64(d.V.RepetitionLevelsByteLength)+
				int64(d.V.DefinitionLevelsByteLength) > int64(min(h.CompressedPageSize, h.UncompressedPageSize)):
			return fmt.Errorf("it claims levels of %d and %d bytes", d.V.RepetitionLevelsByteLength,
				d.V.DefinitionLevelsByteLength)
		}
		s.values -= int64(d.V.NumValues)
		return s.checkCount(d.V.NumValues, s.values+int64(d.V.NumValues))
	}
	return fmt.Errorf("it is of the unknown type %d", h.Type)
}

func (s *stream) checkCount(n int32, most int64) error {
	if n < 0 || int64(n) > most || n > MaxPageValues {
		return fmt.Errorf("it claims %d values; at most %d are possible", n, max(0, min(most, MaxPageValues)))
	}
	return nil
}

// body returns the unpacked bytes of a page. The levels of a data page of version 2 are
// not packed and precede its values.
func (s *stream) body(h *format.PageHeader) ([]byte, error) {
	levels := 0
	packed := s.chunk.Codec != format.Uncompressed
	if h.Type == format.DataPageV2 {
		v := &h.DataPageHeaderV2.V
		levels = int(v.RepetitionLevelsByteLength) + int(v.DefinitionLevelsByteLength)
		packed = packed && (!v.IsCompressed.Valid || v.IsCompressed.V)
	}
	if !packed {
		if h.CompressedPageSize != h.UncompressedPageSize {
			return nil, fmt.Errorf("it is not compressed and claims %d bytes, %d as stored", h.UncompressedPageSize,
				h.CompressedPageSize)
		}
		return s.stored, nil
	}
	size := int(h.UncompressedPageSize)
	plain, err := s.unpack.append(append(s.plain[:0], s.stored[:levels]...), s.stored[levels:],
		size-levels, s.chunk.Codec)
	s.plain = plain[:0]
	if err == nil && len(plain) != size {
		err = fmt.Errorf("%d bytes instead of the %d that its header says", len(plain), size)
	}
	if err != nil {
		return nil, fmt.Errorf("it does not unpack (%s): %w", s.chunk.Codec, err)
	}
	return plain, nil
}

// show makes the page the next bytes of the stream. It leaves out parts of the header
// that the library does not need, such as statistics.
func (s *stream) show(h *format.PageHeader, body []byte) error {
	shown := format.PageHeader{Type: h.Type, UncompressedPageSize: int32(len(body)),
		CompressedPageSize: int32(len(body)),
		DataPageHeader:     h.DataPageHeader, DictionaryPageHeader: h.DictionaryPageHeader,
		DataPageHeaderV2: h.DataPageHeaderV2}
	shown.DataPageHeader.V.Statistics = format.Statistics{}
	shown.DataPageHeaderV2.V.Statistics = format.Statistics{}
	shown.DataPageHeaderV2.V.IsCompressed = thrift.New(false)
	var protocol thrift.CompactProtocol
	header, err := thrift.Marshal(&protocol, &shown)
	s.rest = [2][]byte{header, body}
	return err
}

// resize returns n bytes, in b if it is large enough and not much too large.
func resize(b []byte, n int) []byte {
	if cap(b) < n || cap(b) > 64<<10 && cap(b)/8 > n {
		return make([]byte, n)
	}
	return b[:n]
}
